"""Replay: whether the engine makes the same decisions again from the journal of a run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from pydantic_core import from_json

from weft.context.prompt import assemble
from weft.engine.commands import Assemble, Record, Start
from weft.engine.events import (
    EDIT,
    KIND_NAMES,
    ContextAssembled,
    Event,
    EventData,
    RunEnded,
    RunForked,
    TurnStarted,
    VariableSet,
)
from weft.engine.events.codec import encode
from weft.engine.reduce import fold, pending
from weft.engine.state import State
from weft.engine.variables.access import value_error
from weft.inspect.steps import Step, steps
from weft.runtime.runs.decision import (
    ENGINE,
    FollowUp,
    NewEvent,
    PendingAssembly,
    PendingStart,
    assembled,
    follow_ups,
    started,
)
from weft.runtime.workflow import Workflow

#: The most differences to report: later ones mostly follow from the first.
MOST_MISMATCHES: Final = 20


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference between the journal and the replay."""

    seq: int
    what: str
    #: What the replay gives, and what the journal has; None for nothing.
    expected: Any
    found: Any


def check_replay(workflow: Workflow, run: str, events: Sequence[Event]) -> list[Mismatch]:
    """Replay a run from its journal, and return the differences.

    Folding must give the same state every time; what the engine recorded must be what it would
    record now, in the same order; and every agent must be sent the same bytes.
    """
    stranger = next((event for event in events if _is_stranger(workflow, event)), None)
    if stranger is not None:
        what = "the agent of this turn is not in this version of the package"
        return [Mismatch(stranger.seq, what, None, _describe(stranger))]
    found = list(islice(_mismatches(workflow, run, events), MOST_MISMATCHES))
    if not found and fold(workflow.compiled, run, events) != fold(workflow.compiled, run, events):
        found = [Mismatch(len(events), "folding the journal twice gives two states", None, None)]
    return found


def _is_stranger(workflow: Workflow, event: Event) -> bool:
    if not isinstance(event.data, TurnStarted):
        return False
    plan = workflow.compiled.flow
    if plan is not None:
        return event.data.step not in plan.nodes
    rules = workflow.compiled.agents.get(event.data.agent)
    # A merge function of a group has no context.
    return rules is None or (rules.function is None and event.data.agent not in workflow.views)


def _mismatches(workflow: Workflow, run: str, events: Sequence[Event]) -> Iterator[Mismatch]:
    #: The expected next events, in reverse order.
    due: list[FollowUp] = []
    for number, step in enumerate(steps(workflow.compiled, run, events), start=1):
        event = step.event
        if event.seq != number:
            yield Mismatch(number, "an event is missing", number, event.seq)
            return
        if isinstance(event.data, RunForked):
            # Work in progress is started again in the fork.
            due.clear()
        else:
            expected = _expected_event(workflow, step, due.pop()) if due else _own(workflow, step)
            yield from _difference(expected, event)
            yield from _refused_answers(workflow, step)
            if expected is not None and type(expected.data) is not type(event.data):
                return  # from here on recorded and expected events are not aligned
        due += follow_ups(step.commands, event.seq, event.turn, [])[::-1]
        if isinstance(event.data, RunEnded):
            due.clear()  # No event follows.
    if due:
        what = "the journal ends before everything is recorded that follows from it"
        last = due[-1]
        kind = "ContextAssembled" if isinstance(last, PendingAssembly) else "TurnStarted"
        expected = _describe(last) if isinstance(last, NewEvent) else {"kind": kind}
        yield Mismatch(len(events) + 1, what, expected, None)


def _expected_event(workflow: Workflow, step: Step, due: FollowUp) -> NewEvent:
    if isinstance(due, NewEvent):
        return due
    if isinstance(due, PendingStart):
        return started(step.before, due)
    return _expected_context(workflow, step.before, due.command, due.cause)


def _own(workflow: Workflow, step: Step) -> NewEvent | None:
    """Return the event that the engine adds itself when it resumes an interrupted turn."""
    event = step.event
    for command in pending(workflow.compiled, step.before):
        if isinstance(command, Start) and isinstance(event.data, TurnStarted):
            return started(step.before, PendingStart(command, event.cause))
        if isinstance(command, Assemble) and isinstance(event.data, ContextAssembled):
            made = _expected_context(workflow, step.before, command, event.cause)
            if made.turn == event.turn:
                return made
        if (
            isinstance(command, Record)
            and type(command.data) is type(event.data)
            and command.turn == event.turn
        ):
            return NewEvent(ENGINE, command.data, event.cause, command.turn or 0)
    return None


def _expected_context(workflow: Workflow, state: State, command: Assemble, cause: int) -> NewEvent:
    assembly = assemble(workflow.views[command.agent], state, command.turn)
    return assembled(command, assembly, cause)


def _difference(expected: NewEvent | None, event: Event) -> Iterator[Mismatch]:
    if expected is None:
        if event.actor == ENGINE:
            yield Mismatch(event.seq, "this would not follow any more", None, _describe(event))
        return
    if expected == (event.actor, event.data, event.cause, event.turn):
        return
    # Compared as JSON: a stored journal has lists where the engine has tuples.
    wanted, found = _describe(expected), _describe(event)
    if wanted == found:
        return
    if isinstance(event.data, ContextAssembled) and isinstance(expected.data, ContextAssembled):
        what = f"{event.data.agent} would be sent something else"
    else:
        what = "something else would follow"
    yield Mismatch(event.seq, what, wanted, found)


def _refused_answers(workflow: Workflow, step: Step) -> Iterator[Mismatch]:
    """Yield a value that would be refused now. Edits of a fork ignore transitions."""
    data = step.event.data
    if isinstance(data, VariableSet) and data.writer != EDIT:
        error = value_error(
            workflow.compiled, step.before.values_of(step.event.turn), data.name, data.value
        )
        if error:
            recorded = _describe(step.event)
            yield Mismatch(step.event.seq, f"this would be refused: {error}", None, recorded)


def _describe(entry: NewEvent | Event) -> dict[str, Any]:
    """Return the compared part of an event as JSON; for a context the hash of the prompt."""
    data: EventData = entry.data
    fields: dict[str, Any] = from_json(encode(data))
    fields.pop("manifest", None)
    return {
        "kind": KIND_NAMES[type(data)],
        "actor": entry.actor,
        "cause": entry.cause,
        "turn": entry.turn,
        "data": fields,
    }
