"""Runs flows of a program, from a script or inside an event loop."""

import asyncio
import logging
from collections import ChainMap
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, overload

from pydantic import BaseModel, ValidationError

from weft.app.folders import LOCAL
from weft.app.hosts import Adapters, open_code_host, open_host
from weft.dsl.flow import WorkflowBuilder
from weft.dsl.objects import LocalObjects, kept_objects
from weft.engine.events import Event, Outcome
from weft.engine.rows import RequestRow
from weft.engine.state import State
from weft.engine.variables.triggers import dig
from weft.errors import RunError, ToolError, UsageError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.model import Model
from weft.ports.scope import Scope
from weft.runtime.flow.starting import errors_text, require_fields, state_errors
from weft.runtime.flow.states import dump_state, read_state
from weft.runtime.host import Host
from weft.runtime.signals import Answer
from weft.spec.variables import DerivedSource
from weft.spec.workflow import WorkflowSpec

_log: Final = logging.getLogger("weft.flow")

StateT = TypeVar("StateT")
S = TypeVar("S", bound=BaseModel)

#: Answers a request to a person.
AnswerPerson: TypeAlias = Callable[[RequestRow], Json]


#: A flow, or an object that builds one.
AnyFlow: TypeAlias = WorkflowBuilder[S] | WorkflowSpec


@dataclass(frozen=True, slots=True)
class FlowResult(Generic[StateT]):
    """The result of a flow: its outcome and its last state."""

    run: str
    #: completed, failed or cancelled; None while it waits for a person.
    outcome: Outcome | None
    #: The state as an object of its class, or as a mapping if it has none. The state of a run that
    #: has not completed may be invalid for its class, and is a mapping then.
    output: StateT
    #: The reason of the outcome; while the run waits, the addressee and the question.
    reason: str
    #: The state of the run.
    state: State


@asynccontextmanager
async def open_flow(
    flow: AnyFlow[Any],
    *,
    workspace: str | Path | None = None,
    journal: str | Path | None = None,
    model: str | Model | None = None,
    collections: Adapters | None = None,
    clock: Clock | None = None,
) -> AsyncGenerator[Host]:
    """Open a host for one flow: `async with open_flow(flow) as host`.

    Runs are in memory, unless a workspace or a journal is given. `model` answers for every
    agent that names none; a model of `weft.testing` answers for all. `collections` says what
    searches which collection.
    """
    spec, objects = _spec_and_objects(flow)
    host = await open_code_host(
        spec.orchestrator.workflow_name,
        lambda: spec,
        ChainMap(objects.table, objects.given),
        workspace=workspace,
        journal=journal,
        model=model,
        clock=clock,
        collections=collections,
    )
    async with host:
        yield host


@overload
async def run_flow(
    flow: WorkflowBuilder[S],
    state: S | Mapping[str, Any] | None = None,
    *,
    workspace: str | Path | None = None,
    journal: str | Path | None = None,
    model: str | Model | None = None,
    collections: Adapters | None = None,
    answer: AnswerPerson | None = None,
    clock: Clock | None = None,
) -> FlowResult[S]: ...
@overload
async def run_flow(
    flow: WorkflowSpec,
    state: BaseModel | Mapping[str, Any] | None = None,
    *,
    workspace: str | Path | None = None,
    journal: str | Path | None = None,
    model: str | Model | None = None,
    collections: Adapters | None = None,
    answer: AnswerPerson | None = None,
    clock: Clock | None = None,
) -> FlowResult[Any]: ...
async def run_flow(
    flow: AnyFlow[Any],
    state: BaseModel | Mapping[str, Any] | None = None,
    *,
    workspace: str | Path | None = None,
    journal: str | Path | None = None,
    model: str | Model | None = None,
    collections: Adapters | None = None,
    answer: AnswerPerson | None = None,
    clock: Clock | None = None,
) -> FlowResult[Any]:
    """Run a flow, and return its result when it has ended or waits for a person.

    `answer` is called for every request to a person; without it, the first request ends the call.
    Raises RunError if the final state of a completed run is invalid for its class.
    """
    spec, _ = _spec_and_objects(flow)
    kind = type(state) if isinstance(state, BaseModel) else None
    if not isinstance(flow, WorkflowSpec):
        kind = flow.state_type
    values = _start_values(spec, kind, state)
    opened = open_flow(
        flow,
        workspace=workspace,
        journal=journal,
        model=model,
        collections=collections,
        clock=clock,
    )
    named = model if isinstance(model, str) else None
    async with opened as host:
        name = spec.orchestrator.workflow_name
        run = await host.start(name, scope=LOCAL, values=values, model=named)
        ended = await wait_until_idle(host, run, answer)
        asked = (
            [] if ended.outcome else await host.requests(scope=Scope.operator(LOCAL.app), run=run)
        )
    reason = ended.reason or "; ".join(map(_waiting_for, asked))
    return FlowResult(run, ended.outcome, _read_output(spec, kind, ended), reason, ended)


def _waiting_for(request: RequestRow) -> str:
    """Return the addressee and the question of a run that waits."""
    text = dig(request.payload, ("text",)) or request.tool or "an answer"
    return f"waits for {request.addressee or f'user:{request.user}'}: {text}"


async def wait_until_idle(host: Host, run: str, answer: AnswerPerson | None) -> State:
    """Return when a run has ended, or when it waits for a person and `answer` is not given."""
    everybody = Scope.operator(LOCAL.app)
    while True:
        state = await host.settled_state(run, scope=LOCAL)
        if state.status == "ended":
            return state
        asked = await host.requests(scope=everybody, run=run)
        if asked and answer is not None:
            for request in asked:  # The caller of a script answers for every addressee.
                await host.deliver(run, Answer(request.id, answer(request)), scope=everybody)
        elif asked and not (state.flow and state.flow.waits):
            return state
        else:  # It waits for a timer, such as that of the next attempt.
            await _next_event(host, run, state.seq)


async def _next_event(host: Host, run: str, after: int) -> None:
    events = host.events(run, scope=LOCAL, after=after, follow=True)
    async with aclosing(cast("AsyncGenerator[object]", events)) as coming:
        async for event in coming:
            if isinstance(event, Event):
                return


def _spec_and_objects(flow: AnyFlow[Any]) -> tuple[WorkflowSpec, LocalObjects]:
    if isinstance(flow, WorkflowSpec):
        spec, objects = flow, kept_objects(flow)
    elif callable(getattr(flow, "build", None)):
        spec, objects = flow.build(), flow.objects
        for finding in flow.findings:  # Errors are raised; warnings are logged here.
            _log.warning("%s: %s: %s", finding.place, finding.code, finding.message)
    else:
        raise UsageError(
            f"{type(flow).__name__} is not a flow",
            hint="give a Workflow, what it builds, or a name",
        )
    if spec.flow is None:
        raise UsageError(
            f"{spec.orchestrator.workflow_name} is not a flow", hint="give it steps with weft.flow"
        )
    return spec, objects


def _start_values(
    spec: WorkflowSpec, kind: type[BaseModel] | None, given: BaseModel | Mapping[str, Any] | None
) -> dict[str, Json]:
    """Return the initial values of a run; raises UsageError for an invalid state."""
    if kind is None:
        return dict(given) if isinstance(given, Mapping) else {}
    if isinstance(given, BaseModel) and not isinstance(given, kind):
        raise UsageError(
            f"the state of {spec.orchestrator.workflow_name} is a {kind.__name__}, "
            f"not a {type(given).__name__}"
        )
    try:
        if isinstance(given, BaseModel):
            return dump_state(given)
        require_fields(kind, given or {})
        return dump_state(kind.model_validate(dict(given or {}), by_name=True))
    except ValidationError as error:
        errors = errors_text(*state_errors(error))
        raise UsageError(f"the state is not a valid {kind.__name__}: {errors}") from None
    except ToolError as error:
        hint = "give text, numbers, lists, dicts and pydantic classes"
        raise UsageError(f"the run cannot start: {error}", hint=hint) from error


def _read_output(spec: WorkflowSpec, kind: type[BaseModel] | None, state: State) -> Any:  # noqa: ANN401 - of the caller's class
    held = {
        name: state.variables.get(name)
        for name, variable in spec.variables.items()
        if isinstance(variable.source, DerivedSource)
    }
    try:
        return held if kind is None else read_state(kind, held)
    except ValidationError as error:
        if kind is not None and state.outcome == "completed":
            message = f"run {state.run} has completed, but its state is not a valid {kind.__name__}"
            raise RunError(f"{message}: {errors_text(*state_errors(error))}") from error
        return held  # A run that failed or waits may have an incomplete state.


@overload
def run(
    workflow: str,
    message: str | None = None,
    *,
    workspace: str | Path | None = None,
    values: Mapping[str, Json] | None = None,
    model: str | None = None,
    journal: str | Path | None = None,
    answer: AnswerPerson | None = None,
    collections: Adapters | None = None,
) -> State: ...
@overload
def run(
    workflow: WorkflowBuilder[S],
    message: S | Mapping[str, Any] | None = None,
    *,
    workspace: str | Path | None = None,
    model: str | Model | None = None,
    journal: str | Path | None = None,
    answer: AnswerPerson | None = None,
    collections: Adapters | None = None,
) -> FlowResult[S]: ...
@overload
def run(
    workflow: WorkflowSpec,
    message: BaseModel | Mapping[str, Any] | None = None,
    *,
    workspace: str | Path | None = None,
    model: str | Model | None = None,
    journal: str | Path | None = None,
    answer: AnswerPerson | None = None,
    collections: Adapters | None = None,
) -> FlowResult[Any]: ...
def run(
    workflow: str | AnyFlow[Any],
    message: Any = None,
    *,
    workspace: str | Path | None = None,
    values: Mapping[str, Json] | None = None,
    model: str | Model | None = None,
    journal: str | Path | None = None,
    answer: AnswerPerson | None = None,
    collections: Adapters | None = None,
) -> Any:
    """Run a workflow from a script, and return its state when it ends or waits for a person.

    `workflow` is the name of a package, with the first message; or a flow of `weft.flow`, with
    its initial state: the result has `outcome` and, as `output`, the last state. Runs of a
    flow are in memory, unless a workspace or a journal is given.

    `answer` is called for every request to a person; without it, the first request ends the call.
    """
    if not isinstance(workflow, str):
        if values is not None:
            raise UsageError("a flow starts with a state", hint="give it in place of values")
        whole = run_flow(
            workflow,
            message,
            workspace=workspace,
            journal=journal,
            model=model,
            collections=collections,
            answer=answer,
        )
        hint = "await weft.flow.run_flow(flow, state), which takes the same"
    else:
        hint = "use: async with await weft.open_host(...) as host"
        whole = _run_package(
            workflow, message, workspace or ".", journal, values, model, answer, collections
        )
    return _run_to_end(whole, hint)


async def _run_package(
    workflow: str,
    message: str | None,
    workspace: str | Path,
    journal: str | Path | None,
    values: Mapping[str, Json] | None,
    model: Any,  # noqa: ANN401 - a name; the host says so where it is none
    answer: AnswerPerson | None,
    collections: Adapters | None,
) -> State:
    async with await open_host(workspace, journal=journal, collections=collections) as host:
        run = await host.start(workflow, scope=LOCAL, message=message, values=values, model=model)
        return await wait_until_idle(host, run, answer)


def _run_to_end(work: Coroutine[Any, Any, Any], hint: str) -> Any:  # noqa: ANN401 - what the work returns
    if _loop_is_running():
        work.close()
        message = "weft.run is for scripts, but an event loop is already running here"
        raise UsageError(message, hint=hint)
    return asyncio.run(work)


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
