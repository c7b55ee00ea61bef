"""Replies of models: how they are written down, and how a person reads them."""

from weft.context.segment import shown
from weft.engine.commands import CallModel
from weft.engine.conversation.turn import read_output
from weft.engine.events import ModelReplied, ToolRequest
from weft.engine.events.codec import read_json, unfenced
from weft.engine.state import State
from weft.errors import ModelError
from weft.ports.model import ModelReply
from weft.runtime.flow.replies import reply_error
from weft.runtime.tools.forms import first_error
from weft.runtime.variables.json_values import plain_json
from weft.runtime.workflow import Workflow


def recorded(
    workflow: Workflow, state: State, command: CallModel, reply: ModelReply, turn: str
) -> ModelReplied:
    """Return a reply as it is written down; raises ModelError if no journal could hold it.

    Tool calls get ids of our own: what a provider calls them may come again in another turn.
    """
    try:
        tools = (it.tool for it in reply.tool_requests)
        for text in (reply.text, reply.model, reply.finish, reply.instead_of, *tools):
            text.encode()
        requests: list[ToolRequest] = []
        for number, asked in enumerate(reply.tool_requests):
            id_ = f"call_{turn}_{command.call}_{number}"
            arguments = {name: plain_json(value) for name, value in asked.arguments.items()}
            fault = workflow.tools.validation_error(asked.tool, arguments) or ""
            requests.append(ToolRequest(id_, asked.tool, arguments, fault))
    except ValueError as error:
        raise ModelError(f"the reply cannot be kept: {error}") from error
    return ModelReplied(
        call=command.call,
        text=reply.text,
        tool_requests=tuple(requests),
        usage=reply.usage,
        model=reply.model,
        answerer=reply.answerer,
        finish=reply.finish,
        instead_of=reply.instead_of,
        shown=_shown(workflow, command.agent, reply),
        retries=reply.retries,
        misfit=_output_error(workflow, state, command, reply),
    )


def _output_error(workflow: Workflow, state: State, command: CallModel, reply: ModelReply) -> str:
    """Say what does not fit in what an agent of a board publishes, or a step of a flow sets."""
    if reply.tool_requests:
        return ""
    if workflow.flow_code is not None:
        return reply_error(workflow, state, command.turn, reply.text)
    validator = workflow.output_validators.get(command.agent.partition("#")[0])
    if validator is None:
        return ""
    try:
        value = read_json(unfenced(reply.text).encode())
    except ValueError as error:
        return f"the reply is not JSON: {error}"
    return first_error(validator(value)) or ""


def _shown(workflow: Workflow, agent: str, reply: ModelReply) -> str | None:
    """Return what a person reads of a structured reply: nothing of one that does not fit."""
    if workflow.compiled.agents[agent].send:  # What its hooks have not had is nobody's to read.
        return ""
    return None if reply.tool_requests else reading(workflow, agent, reply.text)


def reading(workflow: Workflow, agent: str, text: str) -> str | None:
    """Return how a person reads what an agent says; None if that is the text itself."""
    model = workflow.compiled.agents[agent].output
    if model is None:
        return None
    output, fault = read_output(workflow.compiled, model, text)
    if fault is not None or output is None:
        return ""
    said = output.get("agent_message")
    if isinstance(said, str):
        return said
    return "\n".join(f"{name}: {shown(value)}" for name, value in output.items())
