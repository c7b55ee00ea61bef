"""Calling the code of a flow: the functions of steps, and what agents' steps make of replies."""

import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
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
from weft.context.assembled import AssembledContext, from_record
from weft.context.slices import BoardReader, utc
from weft.context.values import values_of
from weft.context.view import is_visible
from weft.engine.board.visibility import Identity
from weft.engine.events import Usage
from weft.engine.flow.reading import failure_of, paths_of, step_of, undone_of, work_of
from weft.engine.flow.state import StepRun
from weft.engine.flow.turn import STEP
from weft.engine.state import Activation, State
from weft.errors import ToolError, WeftError
from weft.findings import Json
from weft.ports.board import BoardStore
from weft.ports.clock import Clock
from weft.ports.tools import ToolCall
from weft.runtime.board.reading import reader_for
from weft.runtime.flow.code import FlowCode, LinkedFunction
from weft.runtime.flow.retrieval import RunSearches
from weft.runtime.flow.states import GivenState, given_state, said
from weft.runtime.tools.options import options_of, tool
from weft.runtime.workflow import Workflow
from weft.spec.flow import AgentWork, FunctionWork, Step, Work

#: How much of a traceback is kept: its end, where the error is.
MOST_STACK: Final = 4_000


@dataclass(frozen=True, slots=True)
class FlowCall:
    """One activation while its code is called."""

    store: BoardStore
    clock: Clock
    searches: RunSearches
    workflow: Workflow
    state: State
    active: Activation
    call: ToolCall
    #: Variables that were read just now and that the state does not have yet.
    fresh: Mapping[str, Json] = field(default_factory=dict[str, Json])

    @property
    def code(self) -> FlowCode:
        return cast("FlowCode", self.workflow.flow_code)

    @property
    def run(self) -> StepRun:
        return cast("StepRun", self.active.flow)

    @property
    def step(self) -> Step:
        return step_of(self.workflow.compiled, self.active)

    @property
    def work(self) -> Work:
        return work_of(self.workflow.compiled, self.active)

    @property
    def agent(self) -> str:
        """As whom variables and boards are read."""
        work = self.work
        return work.agent if isinstance(work, AgentWork) else self.step.name

    def given(self) -> GivenState:
        """Return the state as the step sees it."""
        values = {**self.state.values_of(self.active.number), **self.fresh}
        return self._given(values)

    def _given(self, values: Mapping[str, Json]) -> GivenState:
        return given_state(self.workflow.compiled, self.code.state, values)

    async def invoke(self, name: str, function: Callable[..., Any], *arguments: object) -> Any:  # noqa: ANN401 - whatever it returns
        """Call code in time; raises ToolError with its name."""
        seconds = self.step.timeout_seconds
        if seconds and options_of(function).timeout is None:
            function = tool(timeout=seconds)(partial(function))
        step, attempt = f"step {self.step.name}", self.run.attempt
        call = replace(self.call, tool=name, logged_as=step, attempt=attempt)
        return await self.workflow.tools.invoke(call, function, *arguments)

    def context(self, assembly: AssembledContext | None = None) -> StepContext:
        """Return what the step is given beside its state."""
        if assembly is None:
            assembly = from_record(cast("Any", (self.active.fetched or {}).get("context")))
        paths = paths_of(self.workflow.compiled, self.state, self.active)
        return StepContext(
            run=self.state.run,
            step=self.step.name,
            attempt=self.run.attempt,
            key=self.call.key,
            failure=self._failure(failure_of(self.state, self.active)),
            paths={
                name: PathResult(cast("Any", it["status"]), self._failure(it.get("failure")))
                for name, it in paths.items()
            },
            undoes=self._undone(),
            assembly=assembly,
            variables=self._variables(),
        )

    def _undone(self) -> Undone | None:
        found = cast("Mapping[str, Any] | None", undone_of(self.state, self.active))
        if found is None:
            return None
        return Undone(found["step"], found["turn"], self._given(found["state"]).state)

    def _failure(self, given: Any) -> Failure | None:  # noqa: ANN401 - as it was recorded
        if given is None or "step" not in given:  # What was stopped has not failed.
            return None
        return Failure(
            step=given["step"],
            attempt=given["attempt"],
            type=given["type"],
            message=given["message"],
            stack=given.get("stack") or "",
            # What no attempt has failed with, such as a branch without a case, has no time yet.
            at=utc(given.get("at") or self.clock.now()),
            input=given.get("input") or "",
        )

    def _variables(self) -> dict[str, Json]:
        values = {**values_of(self.state, self.active.number), **self.fresh}
        spec, agent = self.workflow.spec, self.agent
        return {name: it for name, it in values.items() if is_visible(spec, agent, name)}

    def board(self, name: str) -> BoardReader:
        """Return a board of the tenant as the step's agent sees it."""
        return reader_for(
            self.store,
            app=self.state.app,
            board=name,
            reader=Identity(self.agent, frozenset(), self.state.app),
            now=self.clock.now(),
        )


async def called(call: FlowCall, point: str) -> Json:
    """Call the code of a point of an activation, and return what its event says."""
    given, work = call.given(), call.work
    if point == STEP:
        function = call.code.function(cast("FunctionWork", work))
        arguments = [given.state] if function.alone else [given.state, call.context()]
        name = _named(call, function)
        returned = await call.invoke(name, function.call, *arguments)
        return _result(name, given, returned)
    step = call.code.agent(cast("AgentWork", work))
    name, reply = f"{type(step).__name__}.apply", cast("Mapping[str, Any]", call.active.result)
    response = _response(step.output_type, reply)
    assembly = call.context().assembly
    returned = await call.invoke(name, step.apply, given.state, response, assembly)
    return _result(name, given, returned, _confidence(reply.get("output")))


def _named(call: FlowCall, function: LinkedFunction) -> str:
    """Return what messages call the code of a step: the step, as its author knows it."""
    if undone_of(call.state, call.active) is None:
        return call.step.name
    return function.name if function.is_named else f"{call.step.name}.compensate"


def _response(kind: type[BaseModel] | None, reply: Mapping[str, Any]) -> Response:
    output: Any = reply.get("output")
    usage: Mapping[str, Any] = reply.get("usage") or {}
    if kind is not None:
        try:
            output = kind.model_validate(output)
        except ValidationError as error:
            raise ToolError(f"the reply does not fit {kind.__name__}: {said(error)}") from error
    return Response(str(reply.get("text") or ""), output, Usage(**usage))


def _result(name: str, given: GivenState, returned: object, sure: float | None = None) -> Json:
    """Return what a step has changed, and how sure it is; raises ToolError naming its code."""
    if isinstance(returned, StepResult):
        result = cast("StepResult[Any]", returned)
        returned, sure = result.changes, _sure(name, result.confidence, sure)
    try:
        return {"set": given.changes(returned), "confidence": sure}
    except ToolError as error:
        raise ToolError(f"{name}: {error}") from error.__cause__


def _sure(name: str, given: object, otherwise: float | None) -> float | None:
    if given is None:
        return otherwise
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise ToolError(f"{name} returned the confidence {given!r}; it is a number from 0 to 1")
    return float(given)


def _confidence(output: object) -> float | None:
    """Return how sure a model says it is, in a field of that name."""
    value = cast("dict[str, Any]", output).get("confidence") if isinstance(output, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def exception_of(error: Exception) -> dict[str, Json] | None:
    """Return what is known of an exception in code of a step: its type, its message, its stack."""
    cause = error.__cause__ or error
    if isinstance(cause, WeftError):  # It says all there is to say itself.
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
