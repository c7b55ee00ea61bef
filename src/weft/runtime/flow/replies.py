"""Replies of the agents that a flow declares: whether the class of the state takes them."""

from typing import cast

from pydantic import ValidationError

from weft.engine.compiled import CompiledWorkflow
from weft.engine.events.codec import read_json, unfenced
from weft.engine.flow.reading import work_of
from weft.engine.state import State
from weft.errors import ToolError
from weft.findings import Json
from weft.runtime.flow.states import joined, read_state, said
from weft.runtime.workflow import Workflow
from weft.spec.flow import AgentWork


def reply_error(workflow: Workflow, state: State, turn: int, text: str) -> str:
    """Say what the class of the state does not take of a reply; nothing if it takes everything."""
    kind = workflow.flow_code and workflow.flow_code.state
    active = state.active.get(turn)
    if kind is None or active is None or not active.step:
        return ""
    work = work_of(workflow.compiled, active)
    if not isinstance(work, AgentWork) or work.step is not None:  # Its code is asked, not we.
        return ""
    values, variables = state.values_of(turn), workflow.compiled.variables
    reply = _set_by(workflow.compiled, work, text)
    try:
        whole = {it: joined(it, variables[it].merge, values.get(it), reply[it]) for it in reply}
        read_state(kind, {**values, **whole})
    except ToolError as error:
        return str(error)
    except ValidationError as error:
        return said(error, of=reply)  # What else does not fit is not for this agent to fix.
    return ""


def _set_by(compiled: CompiledWorkflow, work: AgentWork, text: str) -> dict[str, Json]:
    """Return what a reply sets; nothing where it cannot be read, which the engine says itself."""
    output: Json = text
    if compiled.agents[work.agent].output is not None:
        try:
            output = read_json(unfenced(text).encode())
        except ValueError:
            return {}
    if work.output is not None:
        return {work.output: output}
    fields = cast("dict[str, Json]", output) if isinstance(output, dict) else {}
    return {name: value for name, value in fields.items() if name in compiled.variables}
