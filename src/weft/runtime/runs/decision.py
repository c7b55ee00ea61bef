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
    RequestAnswered,
    RequestExpired,
    TurnStarted,
    VariableRefused,
    VariableSet,
)
from weft.engine.incoming import accepts
from weft.engine.reduce import advance
from weft.engine.state import State
from weft.engine.variables.access import value_error
from weft.runtime.workflow import Workflow

#: Returns whether a state still accepts something; raises UsageError if it does not allow it.
CallCheck: TypeAlias = Callable[[State], bool]

#: The actor of the events that follow from others.
ENGINE: Final = "engine"


class NewEvent(NamedTuple):
    """An event that has no number yet."""

    actor: str
    data: EventData
    cause: int = 0
    turn: int = 0


class PendingAssembly(NamedTuple):
    """A context to assemble after the events before it."""

    command: Assemble
    cause: int


class PendingStart(NamedTuple):
    """A turn to start; it gets its number when its event is written."""

    command: Start
    cause: int


class PendingWrite(NamedTuple):
    """A value that a tool sets; it is validated when it is written."""

    new: NewEvent
    data: VariableSet


class Incoming(NamedTuple):
    """An event from outside the run, which is dropped if the run no longer accepts it."""

    actor: str
    data: EventData


FollowUp: TypeAlias = NewEvent | PendingAssembly | PendingStart


class Decision(NamedTuple):
    """The events to write, the state after them, and the effects to perform afterwards."""

    events: list[Event]
    state: State
    effects: list[Effect]
    #: The prompts of the model calls among the effects, by the event of each.
    assemblies: dict[int, Assembly]


def decide(
    workflow: Workflow,
    state: State,
    new: Iterable[NewEvent | Incoming],
    now: int,
    commands: Iterable[Command] = (),
) -> Decision:
    """Apply new events or pending commands, and the events that follow from them.

    The consequences of an event come directly after it: a second tool call of one reply sees what
    the first has set.
    """
    state = state.copy()
    effects: list[Effect] = []
    events: list[Event] = []
    assemblies: dict[int, Assembly] = {}
    queue: deque[FollowUp | PendingWrite | Incoming] = deque(map(_from_outside, new))
    queue += follow_ups(commands, state.seq, 0, effects)
    while queue and state.outcome is None:
        next_ = queue.popleft()
        seq = state.seq + 1
        if isinstance(next_, PendingAssembly):
            made = next_.command
            assembly = assemblies[seq] = assemble(workflow.views[made.agent], state, made.turn)
            next_ = assembled(made, assembly, next_.cause)
        elif isinstance(next_, PendingStart):
            next_ = started(state, next_)
        elif isinstance(next_, PendingWrite):
            next_ = _validate_again(workflow, state, next_.new, next_.data)
        elif isinstance(next_, Incoming):
            if not accepts(state, next_.data):
                continue
            next_ = NewEvent(*next_, turn=_turn_of(state, next_.data))
        event = Event(seq, now, next_.actor, next_.cause, next_.turn, next_.data)
        following = advance(workflow.compiled, state, event)
        events.append(event)
        if following:
            queue.extendleft(reversed(follow_ups(following, seq, event.turn, effects)))
    return Decision(events, state, effects, assemblies)


def _turn_of(state: State, data: EventData) -> int:
    """Return the turn of an event from outside: the one that asked, or 0."""
    if isinstance(data, RequestAnswered | RequestExpired):
        return state.requests[data.id].turn
    return 0


def _from_outside(new: NewEvent | Incoming) -> NewEvent | PendingWrite | Incoming:
    data = new.data
    if isinstance(new, Incoming):
        return new
    # An edit of a fork ignores transitions.
    if isinstance(data, VariableSet) and data.writer != EDIT:
        return PendingWrite(new, data)
    return new


def _validate_again(workflow: Workflow, state: State, new: NewEvent, data: VariableSet) -> NewEvent:
    """Validate a value again: another tool may have changed the variable since it was set."""
    fault = value_error(workflow.compiled, state.values_of(new.turn), data.name, data.value)
    if fault is None:
        return new
    return new._replace(data=VariableRefused(data.name, data.writer, fault))


def follow_ups(
    commands: Iterable[Command], cause: int, turn: int, effects: list[Effect]
) -> list[FollowUp]:
    """Return the events to record after another, in order; collect the effects."""
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
    """Return the event that records the prompt of an agent."""
    data = ContextAssembled(command.agent, command.call, assembly.manifest, assembly.digest)
    return NewEvent(ENGINE, data, cause, command.turn)


def started(state: State, due: PendingStart) -> NewEvent:
    """Return the event that starts a turn, with the next free number."""
    agent, fork, step, lane, attempt, undoes = due.command
    inputs: tuple[str, ...] = ()
    if step and state.board is not None:
        inputs = tuple(artifact.id for artifact in state.board.queues[step][0].artifacts)
    turn = TurnStarted(agent, fork, step, inputs, lane, attempt, undoes)
    return NewEvent(ENGINE, turn, due.cause, state.turns + 1)
