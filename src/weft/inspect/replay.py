"""Replay: whether a run, taken again from its journal, would be decided as it was."""

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

#: How many differences are looked for: later ones mostly follow from the first.
MOST_MISMATCHES: Final = 20


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A place where the journal and what would happen now differ."""

    seq: int
    what: str
    #: What would happen now, and what the journal says; None for nothing.
    expected: Any
    found: Any


def check_replay(workflow: Workflow, run: str, events: Sequence[Event]) -> list[Mismatch]:
    """Take a run again from its journal, and return where it would go another way now.

    Folding must give the same state every time; what the engine recorded must be what it would
    record now, in the same order; and every agent must be sent the same bytes.
    """
    stranger = next((event for event in events if _is_stranger(workflow, event)), None)
    if stranger is not None:
        what = "the agent whose turn it is is not in this version of the package"
        return [Mismatch(stranger.seq, what, None, _describe(stranger))]
    found = list(islice(_mismatches(workflow, run, events), MOST_MISMATCHES))
    return found or list(_unstable(workflow, run, events))


def _is_stranger(workflow: Workflow, event: Event) -> bool:
    if not isinstance(event.data, TurnStarted):
        return False
    plan = workflow.compiled.flow
    if plan is not None:
        return event.data.step not in plan.nodes
    rules = workflow.compiled.agents.get(event.data.agent)
    # A function that merges what a group says is shown nothing.
    return rules is None or (rules.function is None and event.data.agent not in workflow.views)


def _unstable(workflow: Workflow, run: str, events: Sequence[Event]) -> Iterator[Mismatch]:
    if fold(workflow.compiled, run, events) != fold(workflow.compiled, run, events):
        yield Mismatch(len(events), "folding the journal twice gives two states", None, None)


def _mismatches(workflow: Workflow, run: str, events: Sequence[Event]) -> Iterator[Mismatch]:
    #: What must come next, the first of it last.
    due: list[FollowUp] = []
    for number, step in enumerate(steps(workflow.compiled, run, events), start=1):
        event = step.event
        if event.seq != number:
            yield Mismatch(number, "an event is missing", number, event.seq)
            return
        if isinstance(event.data, RunForked):
            # What was under way when the events were copied is begun anew.
            due.clear()
        else:
            expected = _expected_event(workflow, step, due.pop()) if due else _own(workflow, step)
            yield from _difference(expected, event)
            yield from _refused_answers(workflow, step)
            if expected is not None and type(expected.data) is not type(event.data):
                return  # from here on recorded and expected events are not aligned
        due += follow_ups(step.commands, event.seq, event.turn, [])[::-1]
        if isinstance(event.data, RunEnded):
            due.clear()  # Nothing follows any more.
    if due:
        what = "the journal ends before everything is recorded that follows from it"
        last = due[-1]
        told = _describe(last) if isinstance(last, NewEvent) else {"kind": _kind(last)}
        yield Mismatch(len(events) + 1, what, told, None)


def _kind(due: PendingAssembly | PendingStart) -> str:
    return "ContextAssembled" if isinstance(due, PendingAssembly) else "TurnStarted"


def _expected_event(workflow: Workflow, step: Step, due: FollowUp) -> NewEvent:
    if isinstance(due, NewEvent):
        return due
    if isinstance(due, PendingStart):
        return started(step.before, due)
    return _expected_context(workflow, step.before, due.command, due.cause)


def _own(workflow: Workflow, step: Step) -> NewEvent | None:
    """Return what the engine does of itself: it takes a turn up where that was interrupted."""
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
    # A journal that was stored gives lists where the engine has tuples: what counts is the JSON.
    told, found = _describe(expected), _describe(event)
    if told == found:
        return
    if isinstance(event.data, ContextAssembled) and isinstance(expected.data, ContextAssembled):
        what = f"{event.data.agent} would be sent something else"
    else:
        what = "something else would follow"
    yield Mismatch(event.seq, what, told, found)


def _refused_answers(workflow: Workflow, step: Step) -> Iterator[Mismatch]:
    """Yield a value that would not be written any more. What if: an edit asks no transition."""
    data = step.event.data
    if isinstance(data, VariableSet) and data.writer != EDIT:
        error = value_error(
            workflow.compiled, step.before.values_of(step.event.turn), data.name, data.value
        )
        if error:
            told = _describe(step.event)
            yield Mismatch(step.event.seq, f"this would be refused: {error}", None, told)


def _describe(entry: NewEvent | Event) -> dict[str, Any]:
    """Return what is compared, as JSON: of a context the hash of what is sent, not its sizes."""
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
