"""Starting runs: the first events of a run, and forks of earlier runs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import cast

from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    EDIT,
    SOURCE,
    ContextAssembled,
    ContextFetched,
    Event,
    HandedOff,
    RequestAnswered,
    RunForked,
    RunStarted,
    TimerSet,
    TurnStarted,
    VariableSet,
)
from weft.engine.reduce import fold
from weft.engine.rows import Batch, batch
from weft.engine.state import State
from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError, UsageError
from weft.findings import Json
from weft.ports.scope import Scope
from weft.runtime.runs.decision import NewEvent, decide
from weft.runtime.variables.json_values import plain_json
from weft.runtime.variables.values import open_value
from weft.runtime.workflow import Workflow
from weft.spec.condition_parser import parse_condition
from weft.spec.orchestrator import DatabaseStart, FormStart, WebhookStart
from weft.spec.type_meaning import validation_error
from weft.spec.types import Ref


def require_way(workflow: Workflow, message: str | None) -> None:
    """Raise UsageError if a workflow cannot begin with this input: it is a board or a flow."""
    name = workflow.name
    if workflow.compiled.board is not None:
        raise UsageError(
            f"{name} is a board: it begins with an artifact",
            hint=f"publish one: weft board publish {name} TYPE key=value, or "
            f"POST /api/boards/{name}/artifacts",
        )
    if workflow.compiled.flow is not None and message is not None:
        raise UsageError(
            f"{name} is a flow: it begins with values, not with a message",
            hint=f"give them: weft run {name} --set NAME=VALUE, or `values` over HTTP",
        )


def start_input(workflow: Workflow, given: Mapping[str, Json] | None) -> dict[str, Json] | None:
    """Return the first event of a run; raises UsageError if the input is not valid.

    A form must fit its model, a document the condition that starts the workflow.
    """
    start = workflow.spec.orchestrator.trigger
    if not isinstance(start, FormStart | WebhookStart | DatabaseStart):
        if given is None:
            return None
        raise UsageError(
            f"{workflow.name} is started by {start.type}, with which nothing comes",
            hint="leave the input out; give values of variables instead",
        )
    if given is None and (isinstance(start, DatabaseStart) or _form(start)):
        raise UsageError(f"{workflow.name} needs {_input_name(workflow)}", hint=_hint(workflow))
    try:
        values = cast("dict[str, Json]", plain_json(dict(given or {})))
    except ValueError as error:
        raise UsageError(f"the input is {error}") from error
    fault = _fault(workflow, values)
    if fault:
        raise UsageError(f"the input does not fit: {fault}", hint=_hint(workflow))
    return values


def values_of_input(workflow: Workflow, values: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields of the input that have the name of a derived variable."""
    variables = workflow.compiled.variables
    return {
        name: value
        for name, value in values.items()
        if name in variables and variables[name].source.type == "derived"
    }


def _fault(workflow: Workflow, values: dict[str, Json]) -> str | None:
    start = workflow.spec.orchestrator.trigger
    if isinstance(start, FormStart) and start.form:
        return validation_error(Ref(start.form), values, workflow.compiled.models)
    if isinstance(start, DatabaseStart):
        try:
            holds = evaluate(parse_condition(start.condition), values)
        except ExpressionError as error:
            return f"the condition {start.condition} cannot be answered: {error}"
        return None if holds else f"the condition {start.condition} does not hold for it"
    return None


def _form(start: FormStart | WebhookStart | DatabaseStart) -> str | None:
    return start.form if isinstance(start, FormStart) else None


def _input_name(workflow: Workflow) -> str:
    start = workflow.spec.orchestrator.trigger
    if isinstance(start, DatabaseStart):
        return f"a document of {start.collection} that fits {start.condition}"
    fields = workflow.compiled.models.get(getattr(start, "form", None) or "", {})
    return f"the fields of its form: {', '.join(fields)}" if fields else "what it is sent"


def _hint(workflow: Workflow) -> str:
    needed, name = _input_name(workflow), workflow.name
    return f"give {needed}: weft run {name} --input FILE, or `input` over HTTP"


def first_events(
    run: str,
    workflow: Workflow,
    scope: Scope,
    values: dict[str, Json],
    message: str | None,
    model: str | None,
    given: tuple[str, ...],
    brought: dict[str, Json] | None,
) -> tuple[NewEvent, ...]:
    """Return the first events of a run; the first message answers its first request."""
    user = scope.user or ""
    begun = RunStarted(
        workflow.name,
        workflow.digest,
        scope.app,
        user,
        values,
        message is not None,
        model,
        given=given,
        input=brought,
    )
    events = (NewEvent(f"user:{user}", begun),)
    if message is None:
        return events
    return (*events, NewEvent(f"user:{user}", RequestAnswered(f"{run}:1", message, user)))


@dataclass(frozen=True, slots=True)
class Edits:
    """The differences of a fork from its parent run."""

    values: Mapping[str, Json]
    model: str | None = None
    #: What the user says instead of the message that began the turn.
    message: str | None = None


def fork(  # noqa: PLR0913 - all by name
    workflow: Workflow,
    events: Sequence[Event],
    *,
    parent: str,
    child: str,
    turn: int,
    edits: Edits,
    user: str,
    now: int,
    batch_id: str,
    held: bool,
) -> tuple[Batch, State]:
    """Return the first batch of a run that continues from the start of a turn of another run.

    The turn itself is repeated: the agent sees the edited values. A fork of a fork uses the same
    model, unless the edits name another. With another message, the run continues from there.
    """
    begun, said = _count_before(events, parent, turn), ()
    if edits.message is not None:
        begun, *said = _replace_message(events, turn, edits.message)
    kept = events[:begun]
    before = fold(workflow.compiled, child, kept)
    model = edits.model or _model(events)
    drafts = [NewEvent(f"user:{user}", RunForked(parent, kept[-1].seq, model))]
    for name, value in edits.values.items():
        edited = _edited_value(workflow.compiled, name, value)
        drafts.append(NewEvent(f"user:{user}", VariableSet(name, edited, EDIT), kept[-1].seq + 1))
    drafts += said
    drafts += (
        NewEvent(f"user:{user}", timer, fork) for fork, timer in _deadlines(workflow, before, now)
    )
    decision = decide(workflow, before, drafts, now)
    written = batch(
        State(child),
        decision.state,
        [*kept, *decision.events],
        id=batch_id,
        package=workflow.package,
        held=held,
    )
    return written, decision.state


def _deadlines(workflow: Workflow, state: State, now: int) -> Iterator[tuple[int, TimerSet]]:
    """Restart the deadlines of groups that begin again and the timers of the run."""
    for fork, group in state.groups.items():
        seconds = workflow.compiled.groups[group.name].deadline
        if seconds is not None:
            yield fork, TimerSet(f"deadline:{fork}", now + round(seconds * 1000), "deadline")
    for turn, timer, seconds in _steps(workflow, state):
        yield turn, TimerSet(timer, now + round(seconds * 1000), "flow")
    for name in state.timers:
        rule = workflow.compiled.triggers.timers.get(name)
        if rule is not None:
            yield 1, TimerSet(name, now + round(rule.seconds * 1000), "trigger")


def _steps(workflow: Workflow, state: State) -> Iterator[tuple[int, str, float]]:
    """Yield the steps of a flow that are begun again and have a deadline: event, timer, seconds."""
    plan = workflow.compiled.flow
    lanes = {lane.key: lane for lane in state.flow.lanes.values()} if state.flow is not None else {}
    for active in state.active.values():
        lane = lanes.get(active.flow.lane) if active.flow is not None else None
        if plan is not None and lane is not None and lane.deadline:
            seconds = plan.step(active.step).step.timeout_seconds
            if seconds is not None:
                yield active.seq, lane.deadline, seconds


def _model(events: Sequence[Event]) -> str | None:
    """Return the model that answers for all agents of a run, if one does."""
    named = (event.data.model for event in events if isinstance(event.data, RunStarted | RunForked))
    return next(filter(None, reversed(list(named))), None)


def _count_before(events: Sequence[Event], run: str, turn: int) -> int:
    """Return the number of events before a turn, after which the edits apply."""
    turns = 0
    for number, event in enumerate(events, start=1):
        if isinstance(event.data, TurnStarted):
            turns = event.turn
            if turns == turn:
                # A member of a group begins again with its whole group: they run in parallel.
                first = event.data.fork or _count_with_fetched(events, number, turn)
                return first + sum(1 for _ in takewhile(_is_edit, events[first:]))
    raise UsageError(
        f"run {run} has no turn {turn}",
        hint=f"its turns are 1 to {turns}" if turns else "no agent has taken a turn in it",
    )


def _replace_message(events: Sequence[Event], turn: int, text: str) -> tuple[int, NewEvent]:
    """Return another message in place of the one that began a turn, and how many events precede."""
    started = (event for event in events if isinstance(event.data, TurnStarted))
    event = next(event for event in started if event.turn == turn)
    while isinstance(event.data, TurnStarted | HandedOff):  # A rule may choose who answers it.
        event = events[event.cause - 1]
    if not isinstance(event.data, RequestAnswered):
        raise UsageError(
            f"turn {turn} was not begun by a message", hint="fork at a turn that follows a message"
        )
    said = replace(event.data, value=text, message_id=None)
    return event.seq - 1, NewEvent(event.actor, said)


def _count_with_fetched(events: Sequence[Event], begun: int, turn: int) -> int:
    """Return the number of events including the values that the turn has read from outside.

    They are not read again: a store that has changed would give another turn and undo edits.
    """
    for number, event in enumerate(events[begun:], start=begun + 1):
        if event.turn == turn and isinstance(event.data, ContextAssembled):
            break
        if event.turn == turn and event.actor == SOURCE and isinstance(event.data, ContextFetched):
            return number
    return begun


def _is_edit(event: Event) -> bool:
    data = event.data
    return isinstance(data, RunForked) or (isinstance(data, VariableSet) and data.writer == EDIT)


def _edited_value(compiled: CompiledWorkflow, name: str, value: Json) -> Json:
    if name not in compiled.variables:
        known = ", ".join(compiled.variables) or "none"
        raise UsageError(f"there is no variable {name}", hint=f"available: {known}")
    return open_value(compiled, name, value)
