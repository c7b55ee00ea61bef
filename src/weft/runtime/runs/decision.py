"""Decisions: new events, the events that follow from them, and the effects to perform."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeAlias

from weft.context.prompt import Assembly, assemble
from weft.engine.commands import Assemble, Command, Effect, Record, Start
from weft.engine.events import (
    EDIT,
    ContextAssembled,
    Event,
    EventData,
    TurnStarted,
    VariableRefused,
    VariableSet,
)
from weft.engine.reduce import advance
from weft.engine.state import State
from weft.engine.variables.access import value_error
from weft.runtime.workflow import Workflow

#: Tells whether a state still wants something; raises UsageError if it does not allow it.
CallCheck: TypeAlias = Callable[[State], bool]

#: Who makes the events that follow from others.
ENGINE: Final = "engine"


class NewEvent(NamedTuple):
    """An event that has no number yet."""

    actor: str
    data: EventData
    cause: int = 0
    turn: int = 0


class PendingAssembly(NamedTuple):
    """A context that is put together when its turn comes: after all that is recorded before it."""

    command: Assemble
    cause: int


class PendingStart(NamedTuple):
    """A turn that gets its number when it is written."""

    command: Start
    cause: int


class PendingWrite(NamedTuple):
    """A value that a tool sets; it is judged when it is written."""

    new: NewEvent
    data: VariableSet


FollowUp: TypeAlias = NewEvent | PendingAssembly | PendingStart


class Decision(NamedTuple):
    """The events to write, the state after them, and the effects to perform afterwards."""

    events: list[Event]
    state: State
    effects: list[Effect]
    #: What the model calls among the effects send, by the event that allows each.
    assemblies: dict[int, Assembly]


def decide(
    workflow: Workflow,
    state: State,
    new: Iterable[NewEvent],
    now: int,
    commands: Iterable[Command] = (),
) -> Decision:
    """Follow what is new, or what is still to be done, to everything that needs no world.

    What follows from an event comes right after it, before its neighbours: a second tool call of
    one reply sees what the first has set.
    """
    state = state.copy()
    effects: list[Effect] = []
    events: list[Event] = []
    assemblies: dict[int, Assembly] = {}
    queue: deque[FollowUp | PendingWrite] = deque(map(_from_outside, new))
    queue += follow_ups(commands, state.seq, 0, effects)
    while queue and state.outcome is None:
        it = queue.popleft()
        seq = state.seq + 1
        if isinstance(it, PendingAssembly):
            made = it.command
            assembly = assemblies[seq] = assemble(workflow.views[made.agent], state, made.turn)
            it = assembled(made, assembly, it.cause)
        elif isinstance(it, PendingStart):
            it = started(state, it)
        elif isinstance(it, PendingWrite):
            it = _judged(workflow, state, it.new, it.data)
        event = Event(seq, now, it.actor, it.cause, it.turn, it.data)
        following = advance(workflow.compiled, state, event)
        events.append(event)
        if following:
            queue.extendleft(reversed(follow_ups(following, seq, event.turn, effects)))
    return Decision(events, state, effects, assemblies)


def _from_outside(new: NewEvent) -> NewEvent | PendingWrite:
    data = new.data
    # What if: an edit asks no transition.
    if isinstance(data, VariableSet) and data.writer != EDIT:
        return PendingWrite(new, data)
    return new


def _judged(workflow: Workflow, state: State, new: NewEvent, data: VariableSet) -> NewEvent:
    """Judge a value once more: another tool may have changed the variable since it was set."""
    fault = value_error(workflow.compiled, state.values_of(new.turn), data.name, data.value)
    if fault is None:
        return new
    return new._replace(data=VariableRefused(data.name, data.writer, fault))


def follow_ups(
    commands: Iterable[Command], cause: int, turn: int, effects: list[Effect]
) -> list[FollowUp]:
    """Return what is to be recorded after an event of a turn, in order; collect the effects."""
    found: list[FollowUp] = []
    for command in commands:
        if isinstance(command, Record):
            own = command.turn
            found.append(NewEvent(ENGINE, command.data, cause, turn if own is None else own))
        elif isinstance(command, Assemble):
            found.append(PendingAssembly(command, cause))
        elif isinstance(command, Start):
            found.append(PendingStart(command, cause))
        else:
            effects.append(command)
    return found


def assembled(command: Assemble, assembly: Assembly, cause: int) -> NewEvent:
    """Return the event that says what an agent is about to see."""
    data = ContextAssembled(command.agent, command.call, assembly.manifest, assembly.digest)
    return NewEvent(ENGINE, data, cause, command.turn)


def started(state: State, due: PendingStart) -> NewEvent:
    """Return the event that starts a turn, with the next number there is."""
    agent, fork, step, lane, attempt, undoes = due.command
    inputs: tuple[str, ...] = ()
    if step and state.board is not None:
        inputs = tuple(artifact.id for artifact in state.board.queues[step][0].artifacts)
    turn = TurnStarted(agent, fork, step, inputs, lane, attempt, undoes)
    return NewEvent(ENGINE, turn, due.cause, state.turns + 1)
