"""One step of a run: what came in, all that follows from it, and what the world is to do."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from weft.context.assembly import Assembly, assemble
from weft.engine.commands import Assemble, CallModel, CallTool, Command, Record
from weft.engine.events import (
    EDIT,
    ContextAssembled,
    Event,
    EventData,
    ModelFailed,
    ModelReplied,
    RequestOpened,
    ToolFailed,
    ToolReturned,
    VariableRefused,
    VariableSet,
)
from weft.engine.reduce import advance
from weft.engine.state import State
from weft.engine.writes import value_error
from weft.runtime.workflow import Workflow

#: Tells whether a state still wants something; raises UsageError if it does not allow it.
CallCheck: TypeAlias = Callable[[State], bool]


class NewEvent(NamedTuple):
    """An event that has no number yet."""

    actor: str
    data: EventData
    cause: int = 0


class PendingAssembly(NamedTuple):
    """A context that is put together when its turn comes: after all that is recorded before it."""

    command: Assemble
    cause: int


@dataclass(frozen=True, slots=True)
class Decision:
    """The events to write, the state after them, and the effects to perform afterwards."""

    events: list[Event]
    state: State
    effects: list[CallModel | CallTool]
    #: What the model calls among the effects send.
    assembly: Assembly | None


def decide(workflow: Workflow, state: State, drafts: Iterable[NewEvent], now: int) -> Decision:
    """Follow drafts to everything that needs nothing from the world.

    What follows from an event comes right after it, before its neighbours: a second tool call of
    one reply sees what the first has set.
    """
    state = state.copy()
    queue: deque[NewEvent | PendingAssembly] = deque(drafts)
    events: list[Event] = []
    effects: list[CallModel | CallTool] = []
    assembly: Assembly | None = None
    while queue:
        draft = queue.popleft()
        if isinstance(draft, PendingAssembly):
            assembly = assemble(workflow.views[draft.command.agent], state)
            draft = NewEvent("engine", assembled(draft.command, assembly), draft.cause)
        elif isinstance(draft.data, VariableSet):
            draft = _judged(workflow, state, draft, draft.data)
        event = Event(state.seq + 1, now, draft.actor, draft.cause, draft.data)
        commands = advance(workflow.compiled, state, event)
        events.append(event)
        if commands:
            queue.extendleft(reversed(follow_ups(commands, event.seq)))
            effects += [it for it in commands if isinstance(it, CallModel | CallTool)]
    return Decision(events, state, effects, assembly)


def _judged(workflow: Workflow, state: State, draft: NewEvent, data: VariableSet) -> NewEvent:
    """Judge a value once more: another tool may have changed the variable since it was set."""
    fault = value_error(workflow.compiled, state.variables, data.name, data.value)
    if fault is None or data.writer == EDIT:  # What if: an edit asks no transition.
        return draft
    return NewEvent(draft.actor, VariableRefused(data.name, data.writer, fault), draft.cause)


def follow_ups(commands: Iterable[Command], cause: int) -> list[NewEvent | PendingAssembly]:
    """Return what is to be recorded after an event, in order."""
    found: list[NewEvent | PendingAssembly] = []
    for command in commands:
        if isinstance(command, Record):
            found.append(NewEvent(command.actor, command.data, cause))
        elif isinstance(command, Assemble):
            found.append(PendingAssembly(command, cause))
    return found


def assembled(command: Assemble, assembly: Assembly) -> ContextAssembled:
    """Return the event that says what an agent is about to see."""
    return ContextAssembled(
        command.agent, command.turn, command.call, assembly.manifest, assembly.digest
    )


def is_wanted(state: State, result: EventData) -> bool:
    """Tell whether a run still waits for what came of an effect.

    Another process may have got a result first, or the run may have ended.
    """
    turn = state.turn
    if turn is None:
        return False
    match result:
        case ContextAssembled():
            return turn.stage == "assembling" and _spot(result) == (turn.number, turn.call)
        case ModelReplied() | ModelFailed():
            return turn.stage == "model" and _spot(result) == (turn.number, turn.call)
        case ToolReturned(id=id_) | ToolFailed(id=id_):
            return id_ in turn.calls
        case RequestOpened(call=id_, number=number):
            call = turn.calls.get(id_ or "")
            return call is not None and call.asks is None and len(call.answers) == number
        case _:
            return True


def _spot(result: ContextAssembled | ModelReplied | ModelFailed) -> tuple[int, int]:
    return result.turn, result.call
