"""Calls the code of a flow: functions of steps, and agent steps that process replies."""

import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from pydantic import BaseModel, ValidationError

from weft.context.agent_step import (
    Failure,
    PathResult,
    Response,
    StepContext,
    StepResult,
    Undone,
)
from weft.context.segment import values_of
from weft.context.slices import BoardReader, utc
from weft.context.step_context import AssembledContext, from_record
from weft.context.view import is_visible
from weft.engine.board.visibility import Identity
from weft.engine.events import Usage
from weft.engine.flow.lanes import failure_of, paths_of, step_of, undone_of, work_of
from weft.engine.flow.state import StepRun
from weft.errors import ToolError, WeftError
from weft.findings import Json
from weft.runtime.board.reading import owners_of_run, reader_for
from weft.runtime.flow.code import FlowCode, LinkedFunction
from weft.runtime.flow.states import GivenState, first_error, given_state
from weft.runtime.tools.code_call import CodeCall
from weft.spec.flow import AgentWork, FunctionWork, Step, Work

#: How much of a traceback is kept: its end, where the error is.
MOST_STACK: Final = 4_000


def step_call(call: CodeCall) -> CodeCall:
    """Return a call with the time limit of its step, and its name and attempt for the log."""
    step = current_step(call)
    limited = replace(
        call.call,
        timeout=step.timeout_seconds,
        log_name=f"step {step.name}",
        attempt=step_run(call).attempt,
    )
    return replace(call, call=limited)


def code_of(call: CodeCall) -> FlowCode:
    """Return the linked code of the flow."""
    return cast("FlowCode", call.workflow.flow_code)


def step_run(call: CodeCall) -> StepRun:
    """Return the attempt of the step that is running."""
    return cast("StepRun", call.active.flow)


def current_step(call: CodeCall) -> Step:
    """Return the step as it is declared."""
    return step_of(call.workflow.compiled, call.active)


def current_work(call: CodeCall) -> Work:
    """Return what the step does: a function or an agent."""
    return work_of(call.workflow.compiled, call.active)


def reader_of(call: CodeCall) -> str:
    """Return the agent in whose name variables and boards are read."""
    work = current_work(call)
    return work.agent if isinstance(work, AgentWork) else current_step(call).name


def state_for_step(call: CodeCall) -> GivenState:
    """Return the state as the step sees it."""
    return _state_from(call, {**call.state.values_of(call.active.number), **call.fresh})


def _state_from(call: CodeCall, values: Mapping[str, Json]) -> GivenState:
    return given_state(call.workflow.compiled, code_of(call).state, values)


def step_context(call: CodeCall, assembly: AssembledContext | None = None) -> StepContext:
    """Return the StepContext that the step receives besides its state."""
    if assembly is None:
        assembly = from_record(cast("Any", (step_run(call).input or {}).get("context")))
    paths = paths_of(call.workflow.compiled, call.state, call.active)
    return StepContext(
        run=call.state.run,
        step=current_step(call).name,
        attempt=step_run(call).attempt,
        key=call.call.key,
        failure=_failure(call, failure_of(call.state, call.active)),
        paths={
            name: PathResult(cast("Any", path["status"]), _failure(call, path.get("failure")))
            for name, path in paths.items()
        },
        undoes=_undone(call),
        assembly=assembly,
        variables=_variables(call),
    )


def _undone(call: CodeCall) -> Undone | None:
    found = cast("Mapping[str, Any] | None", undone_of(call.state, call.active))
    if found is None:
        return None
    return Undone(found["step"], found["turn"], _state_from(call, found["state"]).state)


def _failure(call: CodeCall, given: Any) -> Failure | None:  # noqa: ANN401 - as it was recorded
    if given is None or "step" not in given:  # A stopped path has not failed.
        return None
    return Failure(
        step=given["step"],
        attempt=given["attempt"],
        type=given["type"],
        message=given["message"],
        stack=given.get("stack") or "",
        # A failure outside of an attempt, such as a branch without a case, has no time.
        at=utc(given.get("at") or call.ports.clock.now()),
        input=given.get("input") or "",
    )


def _variables(call: CodeCall) -> dict[str, Json]:
    values = {**values_of(call.state, call.active.number), **call.fresh}
    spec, agent = call.workflow.spec, reader_of(call)
    return {name: value for name, value in values.items() if is_visible(spec, agent, name)}


def board_for_step(call: CodeCall, name: str) -> BoardReader:
    """Return a board of the tenant as the step's agent sees it."""
    return reader_for(
        call.ports.store,
        app=call.state.app,
        board=name,
        reader=Identity(reader_of(call), frozenset(), call.state.app),
        owners=owners_of_run(call.state),
        now=call.ports.clock.now(),
    )


async def call_step(call: CodeCall, hook: str) -> Json:
    """Call the code of a step at a hook point, and return the content of its event."""
    given, work = state_for_step(call), current_work(call)
    if hook == "step":
        function = code_of(call).function(cast("FunctionWork", work))
        arguments = [given.state] if function.alone else [given.state, step_context(call)]
        name = _code_name(call, function)
        returned = await call.invoke(name, function.call, *arguments)
        return _result(name, given, returned)
    step = code_of(call).agent(cast("AgentWork", work))
    name, reply = f"{type(step).__name__}.apply", cast("Mapping[str, Any]", step_run(call).reply)
    response = _response(step.output_type, reply)
    assembly = step_context(call).assembly
    returned = await call.invoke(name, step.apply, given.state, response, assembly)
    return _result(name, given, returned, _reply_confidence(reply.get("output")))


def _code_name(call: CodeCall, function: LinkedFunction) -> str:
    """Return the name of a step's code for messages."""
    if undone_of(call.state, call.active) is None:
        return current_step(call).name
    return function.name if function.is_named else f"{current_step(call).name}.compensate"


def _response(kind: type[BaseModel] | None, reply: Mapping[str, Any]) -> Response:
    output: Any = reply.get("output")
    usage: Mapping[str, Any] = reply.get("usage") or {}
    if kind is not None:
        try:
            output = kind.model_validate(output)
        except ValidationError as error:
            raise ToolError(
                f"the reply is not a valid {kind.__name__}: {first_error(error)}"
            ) from error
    return Response(str(reply.get("text") or ""), output, Usage(**usage))


def _result(name: str, given: GivenState, returned: object, sure: float | None = None) -> Json:
    """Return a step's changes and its confidence; raises ToolError that names its code."""
    if isinstance(returned, StepResult):
        result = cast("StepResult[Any]", returned)
        returned, sure = result.changes, _read_confidence(name, result.confidence, sure)
    try:
        return {"set": given.changes(returned), "confidence": sure}
    except ToolError as error:
        raise ToolError(f"{name}: {error}") from error.__cause__


def _read_confidence(name: str, given: object, otherwise: float | None) -> float | None:
    if given is None:
        return otherwise
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise ToolError(f"{name} returned the confidence {given!r}; it is a number from 0 to 1")
    return float(given)


def _reply_confidence(output: object) -> float | None:
    """Return the field `confidence` of a model's reply."""
    value = cast("dict[str, Any]", output).get("confidence") if isinstance(output, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def exception_of(error: Exception) -> dict[str, Json] | None:
    """Return type, message and stack of an exception in the code of a step."""
    cause = error.__cause__ or error
    if isinstance(cause, WeftError):  # Its message is complete without a stack.
        return None
    lines = traceback.format_exception(type(cause), cause, _own_frames(cause))
    text = "".join(lines).strip()
    return {"type": type(cause).__name__, "message": _message(cause), "stack": text[-MOST_STACK:]}


def _own_frames(cause: BaseException) -> Any:  # noqa: ANN401 - a traceback, or none
    """Skip the frames of the platform, down to the first that is the author's."""
    trace = cause.__traceback__
    while trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("weft."):
        trace = trace.tb_next
    return trace


def _message(cause: BaseException) -> str:
    try:
        return str(cause)[:MOST_STACK]
    except Exception:  # noqa: BLE001 - the author's own text fails to be made
        return "its message cannot be read"
