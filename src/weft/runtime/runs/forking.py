"""Forks: the first part of a run, with edits, going on as a run of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    EDIT,
    SOURCE,
    ContextAssembled,
    ContextFetched,
    Event,
    RunForked,
    RunStarted,
    TimerSet,
    TurnStarted,
    VariableSet,
)
from weft.engine.reduce import fold
from weft.engine.rows import Batch, batch
from weft.engine.state import State
from weft.errors import UsageError
from weft.findings import Json
from weft.runtime.runs.decision import NewEvent, decide
from weft.runtime.runs.writer import Batches
from weft.runtime.variables.values import open_value
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Edits:
    """What a fork does differently from the run it comes from."""

    values: Mapping[str, Json]
    model: str | None = None


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
    batches: Batches,
) -> tuple[Batch, State]:
    """Return what is to be written for a run that goes on where a turn of another had begun.

    The turn itself is taken anew: the agent sees the edited values. A fork of a fork is asked of
    the same model as that, unless the edits name another.
    """
    kept = events[: _beginning(events, parent, turn)]
    before = fold(workflow.compiled, child, kept)
    model = edits.model or _model(events)
    drafts = [NewEvent(f"user:{user}", RunForked(parent, kept[-1].seq, model))]
    for name, value in edits.values.items():
        edited = _edited(workflow.compiled, name, value)
        drafts.append(NewEvent(f"user:{user}", VariableSet(name, edited, EDIT), kept[-1].seq + 1))
    drafts += (NewEvent(f"user:{user}", it, fork) for fork, it in _deadlines(workflow, before, now))
    decision = decide(workflow, before, drafts, now)
    written = batch(
        State(child),
        decision.state,
        [*kept, *decision.events],
        id=batches.new_id(),
        owner=batches.owner,
        package=workflow.package,
    )
    return written, decision.state


def _deadlines(workflow: Workflow, state: State, now: int) -> Iterator[tuple[int, TimerSet]]:
    """Give groups that begin anew, and timers of the run, the whole of their time."""
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
    """Yield the steps of a flow that are begun anew and have a deadline: event, timer, seconds."""
    plan = workflow.compiled.flow
    lanes = {it.key: it for it in state.flow.lanes.values()} if state.flow is not None else {}
    for active in state.active.values():
        lane = lanes.get(active.flow.lane) if active.flow is not None else None
        if plan is not None and lane is not None and lane.deadline:
            seconds = plan.step(active.step).step.timeout_seconds
            if seconds is not None:
                yield active.seq, lane.deadline, seconds


def _model(events: Sequence[Event]) -> str | None:
    """Return the model that answers for all agents of a run, if one does."""
    named = (it.data.model for it in events if isinstance(it.data, RunStarted | RunForked))
    return next(filter(None, reversed(list(named))), None)


def _beginning(events: Sequence[Event], run: str, turn: int) -> int:
    """Return how many events there are up to the beginning of a turn, with edits made there."""
    turns = 0
    for number, event in enumerate(events, start=1):
        if isinstance(event.data, TurnStarted):
            turns = event.turn
            if turns == turn:
                # A member of a group begins anew with all of the group: they are side by side.
                first = event.data.fork or _fetched(events, number, turn)
                return first + sum(1 for _ in takewhile(_is_edit, events[first:]))
    raise UsageError(
        f"run {run} has no turn {turn}",
        hint=f"its turns are 1 to {turns}" if turns else "no agent has taken a turn in it",
    )


def _fetched(events: Sequence[Event], begun: int, turn: int) -> int:
    """Return how many events there are with what a turn has read from outside at its beginning.

    It is not read again: a store that has changed would make it another turn, and undo edits.
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


def _edited(compiled: CompiledWorkflow, name: str, value: Json) -> Json:
    if name not in compiled.variables:
        known = ", ".join(compiled.variables) or "none"
        raise UsageError(f"there is no variable {name}", hint=f"available: {known}")
    return open_value(compiled, name, value)
