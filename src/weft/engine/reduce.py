"""The engine: from a state and an event to the next state and what is to be done.

`reduce` is pure. Time, identities and everything random are inside the events. What follows from
an event without asking the world is returned as `Record`, so that it stands in the journal with
its cause; what needs the world is returned as the other commands.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from weft.engine import activations, calls, events, requests, variables
from weft.engine.commands import Assemble, CallModel, Command
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation import on_handed_off
from weft.engine.events import Event
from weft.engine.state import State

#: Takes an event into a state it may write on, and says what is to be done.
Handler: TypeAlias = Callable[[CompiledWorkflow, State, Event, Any], list[Command]]

HANDLERS: Final[dict[type[events.EventData], Handler]] = {
    events.RunStarted: activations.on_run_started,
    events.RunForked: activations.on_run_forked,
    events.MessageShown: activations.on_message_shown,
    events.TurnStarted: activations.on_turn_started,
    events.ContextAssembled: activations.on_context_assembled,
    events.ModelReplied: activations.on_model_replied,
    events.ModelFailed: activations.on_model_failed,
    events.OutputRefused: activations.on_output_refused,
    events.ToolCalled: calls.on_tool_called,
    events.ToolReturned: calls.on_tool_returned,
    events.ToolFailed: calls.on_tool_failed,
    events.VariableSet: variables.on_variable_set,
    events.VariableRefused: variables.on_variable_refused,
    events.RequestOpened: requests.on_request_opened,
    events.RequestAnswered: requests.on_request_answered,
    events.RequestExpired: requests.on_request_expired,
    events.TurnEnded: activations.on_turn_ended,
    events.HandedOff: on_handed_off,
    events.StopAsked: activations.on_stop_asked,
    events.RunEnded: activations.on_run_ended,
}


def reduce(compiled: CompiledWorkflow, state: State, event: Event) -> tuple[State, list[Command]]:
    """Take one event into the state. After the end of a run nothing changes any more."""
    after = state.copy()
    return after, advance(compiled, after, event)


def advance(compiled: CompiledWorkflow, state: State, event: Event) -> list[Command]:
    """Take one event into a state that belongs to the caller alone, and change that."""
    state.seq = event.seq
    if state.status == "ended":
        return []
    return HANDLERS[type(event.data)](compiled, state, event, event.data)


def fold(compiled: CompiledWorkflow, run: str, history: Iterable[Event]) -> State:
    """Return the state after a journal. What was to be done is done, or `pending`."""
    state = State(run)
    for event in history:
        advance(compiled, state, event)
    return state


def pending(state: State) -> Iterator[Command]:
    """Yield the commands whose results are not in the journal: what a restart does again."""
    turn = state.turn
    if turn is None:
        return
    if turn.stage == "assembling":
        yield Assemble(turn.agent, turn.number, turn.call)
    elif turn.stage == "model":
        yield CallModel(turn.agent, turn.number, turn.call, turn.seq)
    else:
        waiting = (call for call in turn.calls.values() if call.asks is None)
        yield from (calls.call_of(turn.agent, call) for call in waiting)
