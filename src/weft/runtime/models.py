"""Model calls: judgements, comparisons, consultations by tools, and how replies are recorded."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic_core import to_json

from weft.context.history import conversation
from weft.context.segment import shown, value_of
from weft.context.similarity import GET_EMBEDDINGS, NO_EMBEDDINGS, Similarity
from weft.context.view import WITHHELD, is_visible
from weft.engine.commands import CallModel, Judge
from weft.engine.conversation.routing import compared_with, nearest_rule
from weft.engine.conversation.turn import read_output
from weft.engine.events import ConditionJudged, ModelReplied, ToolRequest
from weft.engine.events.codec import parse_reply
from weft.engine.state import State
from weft.errors import ModelError, RetrievalError, RunError, SetupError
from weft.findings import Json
from weft.ports.model import ChatMessage, ModelReply, OutputSchema
from weft.runtime.flow.states import reply_error
from weft.runtime.tools.forms import first_error
from weft.runtime.variables.json_values import plain_json
from weft.runtime.workflow import Workflow
from weft.spec.templates import parse_template

#: The schema of a judgement.
JUDGEMENT: Final = OutputSchema(
    "Judgement",
    {
        "type": "object",
        "properties": {
            "holds": {"type": "boolean", "description": "Whether the condition holds."},
            "reason": {"type": "string", "description": "Why, in a sentence."},
        },
        "required": ["holds", "reason"],
        "additionalProperties": False,
    },
)

#: How many of the last messages a judging model is sent.
HEARD: Final = 40

_JUDGE: Final = (
    "You judge whether a condition holds in a conversation between agents and a user. Go by what "
    'was said and by the values below, and by nothing else. Reply with JSON: {"holds": true or '
    'false, "reason": "one sentence"}.'
)
_TOOL: Final = "You answer a question of a program. Reply with the answer and nothing else."


def question_of(messages: list[ChatMessage], output: OutputSchema | None) -> str:
    """Return the hash that identifies a repeated question."""
    return hashlib.sha256(to_json((messages, output))).hexdigest()


def tool_messages(instruction: str) -> list[ChatMessage]:
    """Return the messages for a question of a tool."""
    return [{"role": "system", "content": _TOOL}, {"role": "user", "content": instruction}]


def judge_messages(workflow: Workflow, state: State, command: Judge) -> list[ChatMessage]:
    """Return the messages that ask a model to judge a condition."""
    handoff = workflow.spec.handoffs[command.rule]
    exposed = workflow.spec.exposure.get(command.agent, ())
    values = {
        name: value_of(state, state.variables, name)
        for name in exposed
        if is_visible(workflow.spec, command.agent, name)
    }
    said = [
        f"{message.get('name', 'user')}: {message['content']}"
        for message in conversation(state.messages)[-HEARD:]
    ]
    parts = [
        f"Workflow: {workflow.name}. {workflow.spec.orchestrator.description}".strip(),
        "Conversation:\n" + "\n".join(said or ["(nothing was said yet)"]),
        f"Values: {to_json(values).decode()}" if values else "",
        f"Condition for handing over to {handoff.target_agent}: "
        + worded(workflow, state, command.agent, handoff.condition or ""),
    ]
    return [
        {"role": "system", "content": _JUDGE},
        {"role": "user", "content": "\n\n".join(filter(None, parts))},
    ]


def worded(workflow: Workflow, state: State, agent: str, condition: str) -> str:
    """Return a condition in words with the values of its placeholders."""
    parts: list[str] = []
    for part in parse_template(condition.replace("${", "{")):
        if isinstance(part, str):
            parts.append(part)
        elif is_visible(workflow.spec, agent, part.name):
            parts.append(shown(value_of(state, state.variables, part.name)))
        else:
            parts.append(WITHHELD)
    return "".join(parts)


def parse_judgement(command: Judge, text: str, facts: Mapping[str, Any]) -> ConditionJudged:
    """Parse a judgement; an invalid one is an error, never a guess."""
    try:
        found = parse_reply(text)
    except ValueError as error:
        fault = f"the judgement is not JSON: {error}"
        return ConditionJudged(command.rule, holds=False, text=text, error=fault, **facts)
    fields = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    holds = fields.get("holds")
    if not isinstance(holds, bool):
        fault = 'the judgement has no "holds" that is true or false'
        return ConditionJudged(command.rule, holds=False, text=text, error=fault, **facts)
    return ConditionJudged(command.rule, holds=holds, text=text, **facts)


def require_embeddings(workflow: Workflow, similarity: Similarity | None) -> None:
    """Raise SetupError if a workflow compares meanings and there is no embedding model."""
    if not workflow.compares:
        return
    if similarity is None:
        raise SetupError(
            f"{workflow.name}: {workflow.compares}, and {NO_EMBEDDINGS}", hint=GET_EMBEDDINGS
        )
    _ = similarity.name  # Raises now if a library or key is missing.


async def compare(
    similarity: Similarity | None, workflow: Workflow, state: State, command: Judge
) -> ConditionJudged:
    """Compare the last message with the descriptions of all nearest-match rules of a decision."""
    if similarity is None:  # Not a failure of the run: it continues in a process with embeddings.
        raise RunError(f"{NO_EMBEDDINGS}; {GET_EMBEDDINGS}")
    rules = compared_with(workflow.compiled.routing, command.agent, command.rule)
    handoffs = workflow.spec.handoffs
    words = [
        worded(workflow, state, command.agent, handoffs[number].condition or "") for number in rules
    ]
    try:
        scores = await similarity.of(_said(state), words)
        model = similarity.name
    except RetrievalError as error:
        return ConditionJudged(command.rule, holds=False, text="", error=str(error))
    nearest = nearest_rule(workflow.compiled.routing, dict(zip(rules, scores, strict=True)))
    return ConditionJudged(
        command.rule,
        holds=nearest == command.rule,
        text="",
        model=model,
        scores={str(rule): score for rule, score in zip(rules, scores, strict=True)},
    )


def _said(state: State) -> str:
    """Return the last message of the user; without one, the last message of an agent."""
    said = conversation(state.messages)
    own = (message for message in reversed(said) if "name" not in message)
    last = next(own, said[-1] if said else None)
    return "" if last is None else str(last["content"])


def reply_event(
    workflow: Workflow, state: State, command: CallModel, reply: ModelReply, turn: str
) -> ModelReplied:
    """Return a reply as recorded; raises ModelError if it cannot be stored.

    Tool calls get new ids, because a provider may reuse its own in another turn.
    """
    try:
        tools = (request.tool for request in reply.tool_requests)
        for text in (reply.text, reply.model, reply.finish_reason, reply.instead_of, *tools):
            text.encode()
        requests: list[ToolRequest] = []
        for number, asked in enumerate(reply.tool_requests):
            id_ = f"call_{turn}_{command.call}_{number}"
            arguments = {name: plain_json(value) for name, value in asked.arguments.items()}
            fault = workflow.tools.validation_error(asked.tool, arguments) or ""
            requests.append(ToolRequest(id_, asked.tool, arguments, fault))
    except ValueError as error:
        raise ModelError(f"the reply cannot be stored: {error}") from error
    rules = workflow.compiled.agents[command.agent]
    said, error = "" if rules.send else None, ""  # What hooks process is shown after them.
    if not requests:
        output, wrong = read_output(workflow.compiled, rules.output, reply.text)
        if rules.output is not None and not rules.send:
            said = "" if output is None else _display_text(output)
        if workflow.flow_code is None:
            error = _artifact_error(workflow, command.agent, reply.text)
        elif wrong is None:  # The engine reports a reply of the wrong type.
            error = reply_error(workflow, state, command.turn, reply.text, output)
    return ModelReplied(
        call=command.call,
        text=reply.text,
        tool_requests=tuple(requests),
        usage=reply.usage,
        model=reply.model,
        answerer=reply.answerer,
        finish_reason=reply.finish_reason,
        instead_of=reply.instead_of,
        shown=said,
        held=rules.auto_tool is not None and rules.output is not None and not requests,
        retries=reply.retries,
        output_error=error,
    )


def _artifact_error(workflow: Workflow, agent: str, text: str) -> str:
    """Return the first error of an artifact to publish; empty if there is none."""
    validator = workflow.output_validators.get(agent.partition("#")[0])
    if validator is None:
        return ""
    try:
        value = parse_reply(text)
    except ValueError as error:
        return f"the reply is not JSON: {error}"
    return first_error(validator(value)) or ""


def reading(workflow: Workflow, agent: str, text: str) -> str | None:
    """Return what people see of a structured reply; None if the agent replies in plain text."""
    model = workflow.compiled.agents[agent].output
    if model is None:
        return None
    output, _ = read_output(workflow.compiled, model, text)
    return "" if output is None else _display_text(output)


def _display_text(output: Mapping[str, Json]) -> str:
    said = output.get("agent_message")
    if isinstance(said, str):
        return said
    return "\n".join(f"{name}: {shown(value)}" for name, value in output.items())
