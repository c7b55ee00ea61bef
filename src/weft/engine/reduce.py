"""The engine: from a state and an event to the next state and what is to be done.

`reduce` is pure. Time, identities and everything random are inside the events. What follows from
an event without asking the world is returned as `Record`, so that it stands in the journal with
its cause; what needs the world is returned as the other commands.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from weft.engine import events, timers
from weft.engine.board import correlation as board
from weft.engine.board import turn as board_turn
from weft.engine.commands import Assemble, CallModel, Command, Judge, WriteDocument
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation import groups
from weft.engine.conversation import handoffs as conversation
from weft.engine.events import Event, EventData
from weft.engine.flow import order as flow
from weft.engine.modes import role_of
from weft.engine.state import Activation, State
from weft.engine.turn import activations, calls, ending, requests
from weft.engine.turn import lifecycle as boundaries
from weft.engine.variables import values as variables
from weft.engine.variables.triggers import custom

#: Takes an event into a state it may write on, and says what is to be done.
Handler: TypeAlias = Callable[[CompiledWorkflow, State, Event, Any], list[Command]]

#: Tells whether a state waits for such an event of a turn.
Wanted: TypeAlias = Callable[[State, int, Any], bool]

HANDLERS: Final[dict[type[EventData], Handler]] = {
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
    events.ModelConsulted: calls.on_model_consulted,
    events.SurfaceShown: calls.on_surface_shown,
    events.MessageSent: activations.on_message_sent,
    events.ContextFetched: boundaries.on_context_fetched,
    events.DocumentWritten: boundaries.on_document_written,
    events.ConditionJudged: conversation.on_condition_judged,
    events.VariableSet: variables.on_variable_set,
    events.VariableRefused: variables.on_variable_refused,
    events.RequestOpened: requests.on_request_opened,
    events.RequestAnswered: requests.on_request_answered,
    events.RequestExpired: requests.on_request_expired,
    events.TurnEnded: activations.on_turn_ended,
    events.TurnFailed: activations.on_turn_failed,
    events.HandedOff: conversation.on_handed_off,
    events.Forked: groups.on_forked,
    events.Joined: groups.on_joined,
    events.Branched: flow.on_branched,
    events.TimerSet: timers.on_timer_set,
    events.TimerFired: timers.on_timer_fired,
    events.ArtifactPublished: board.on_artifact_published,
    events.ArtifactArrived: board.on_artifact_arrived,
    events.DeliveryMissed: board.on_delivery_missed,
    events.DeliveryDeferred: board_turn.on_delivery_deferred,
    events.BatchesFlushed: board.on_batches_flushed,
    events.StopAsked: activations.on_stop_asked,
    events.RunEnding: boundaries.on_run_ending,
    events.RunEnded: ending.on_run_ended,
}


def _at(stage: str) -> Wanted:
    """Wait for what comes of a call of the model of a turn, in a stage of it."""

    def wanted(state: State, turn: int, data: events.ModelReplied) -> bool:
        active = state.active.get(turn)
        return active is not None and active.stage == stage and active.call == data.call

    return wanted


def _may_start(state: State, _turn: int, data: events.TurnStarted) -> bool:
    if state.flow is not None:
        return data.lane in state.flow.lanes
    if data.step:
        return state.board is not None and data.step in state.board.queues
    return not data.fork or data.fork in state.groups


def _is_on_board(state: State, _turn: int, data: events.ArtifactPublished) -> bool:
    return state.board is not None and not (data.id and data.id in state.board.ids)


def _is_unread(state: State, _turn: int, data: events.ArtifactArrived) -> bool:
    return state.board is not None and data.letter not in state.board.ids


def _is_active(state: State, turn: int, _data: EventData) -> bool:
    return turn in state.active


def _is_missing(state: State, turn: int, data: events.ToolCalled | events.ToolFailed) -> bool:
    active = state.active.get(turn)
    return active is not None and data.id in active.missing


def _is_called(state: State, turn: int, data: events.ToolReturned) -> bool:
    return turn in state.active and data.id in state.calls


def _may_ask(state: State, _turn: int, data: events.RequestOpened) -> bool:
    if data.call is None:
        return True
    call = state.calls.get(data.call)
    return call is not None and call.asks is None and len(call.answers) == data.number


def _is_asked(state: State, _turn: int, data: events.RequestAnswered) -> bool:
    return data.id in state.requests


def _may_expire(state: State, _turn: int, data: events.RequestExpired) -> bool:
    request = state.requests.get(data.id)
    return request is not None and request.kind != "chat"  # That waits as long as it takes.


def _is_set(state: State, _turn: int, data: events.TimerFired) -> bool:
    timer = state.timers.get(data.id)
    return timer is not None and (not timer.owner or timer.owner in state.groups)


def _is_forked(state: State, _turn: int, data: events.Joined) -> bool:
    return data.fork in (state.groups if state.flow is None else state.flow.forks)


def _is_going(state: State, _turn: int, data: events.Branched) -> bool:
    return state.flow is not None and data.lane in state.flow.lanes


def _is_at(stage: str) -> Wanted:
    """Wait for what comes of a stage of a turn."""

    def wanted(state: State, turn: int, _data: EventData) -> bool:
        active = state.active.get(turn)
        return active is not None and active.stage == stage

    return wanted


def _is_written(state: State, _turn: int, data: events.DocumentWritten) -> bool:
    return state.writing.get(data.name) == data.seq


def _is_judged(state: State, _turn: int, data: events.ConditionJudged) -> bool:
    return state.judging is not None and state.judging.rule == data.rule


def _is_open(state: State, _turn: int, data: events.ModelConsulted | events.SurfaceShown) -> bool:
    return data.call in state.calls


#: What comes late or twice is in none of these states: it changes nothing.
WANTED: Final[dict[type[EventData], Wanted]] = {
    events.TurnStarted: _may_start,
    events.ContextAssembled: _at("assembling"),
    events.ModelReplied: _at("model"),
    events.ModelFailed: _at("model"),
    events.OutputRefused: _at("model"),
    events.ToolCalled: _is_missing,
    events.ToolReturned: _is_called,
    events.ToolFailed: _is_missing,
    events.RequestOpened: _may_ask,
    events.RequestAnswered: _is_asked,
    events.RequestExpired: _may_expire,
    events.TurnEnded: _is_active,
    events.TurnFailed: _is_active,
    events.Joined: _is_forked,
    events.Branched: _is_going,
    events.TimerFired: _is_set,
    events.ModelConsulted: _is_open,
    events.SurfaceShown: _is_open,
    events.MessageSent: _is_at("sending"),
    events.ContextFetched: _is_at("fetching"),
    events.DocumentWritten: _is_written,
    events.ConditionJudged: _is_judged,
    events.ArtifactPublished: _is_on_board,
    events.ArtifactArrived: _is_unread,
    events.DeliveryMissed: lambda state, _turn, _data: state.board is not None,
    events.DeliveryDeferred: _is_active,
    events.BatchesFlushed: lambda state, _turn, _data: state.board is not None,
    events.RunEnding: lambda state, _turn, _data: state.ending is None,
}


def reduce(compiled: CompiledWorkflow, state: State, event: Event) -> tuple[State, list[Command]]:
    """Take one event into the state. After the end of a run nothing changes any more."""
    after = state.copy()
    return after, advance(compiled, after, event)


def advance(compiled: CompiledWorkflow, state: State, event: Event) -> list[Command]:
    """Take one event into a state that belongs to the caller alone, and change that."""
    state.seq = event.seq
    data = event.data
    kind = type(data)
    check = WANTED.get(kind)  # As in `is_wanted`, without a call for every event.
    if state.status == "ended" or (check is not None and not check(state, event.turn, data)):
        return []
    if compiled.triggers.custom:
        fired, seen = custom(compiled, state, event)
        if fired:  # What is decided sees what plug-ins set; their records follow.
            state.foresee(event.turn, seen)
        commands = [*fired, *HANDLERS[kind](compiled, state, event, data)]
    else:
        commands = HANDLERS[kind](compiled, state, event, data)
    if state.outcome is None:
        paused = state.flow is not None and state.flow.waits  # for the time of the next attempt
        rests = (state.requests or state.board is not None or paused) and not _is_busy(state)
        state.status = "waiting" if rests else "running"
    return commands


def is_wanted(state: State, turn: int, data: EventData) -> bool:
    """Tell whether a run still waits for what came of an effect.

    Another process may have got a result first, or the run may have ended.
    """
    check = WANTED.get(type(data))
    return state.status != "ended" and (check is None or check(state, turn, data))


def fold(compiled: CompiledWorkflow, run: str, history: Iterable[Event]) -> State:
    """Return the state after a journal. What was to be done is done, or `pending`."""
    state = State(run)
    for event in history:
        advance(compiled, state, event)
    return state


def pending(compiled: CompiledWorkflow, state: State) -> Iterator[Command]:
    """Yield the commands whose results are not in the journal: what a restart does again."""
    for group in state.groups.values():
        yield from groups.start_members(group)
    for active in state.active.values():
        if active.stage == "assembling":
            yield Assemble(role_of(compiled, active), active.number, active.call)
        elif active.stage == "model":
            role = role_of(compiled, active)
            yield CallModel(role, active.number, active.call, active.seq)
        elif active.stage == "fetching":
            yield boundaries.needed(compiled, active)
        else:
            yield from boundaries.reopened(compiled, state, active)
    for call in state.calls.values():
        if call.asks is None:
            yield calls.call_of(state.active[call.turn].agent, call)
    if state.board is not None:
        yield from board.start_next(compiled, state)
    if state.flow is not None:
        yield from flow.resting(compiled, state)
    for name, seq in state.writing.items():
        yield WriteDocument(name, seq)
    if state.judging is not None:
        yield Judge(state.judging.agent, state.judging.rule, state.judging.seq)


def _is_busy(state: State) -> bool:
    """Tell whether something can be done before people have answered."""
    if state.writing or state.judging:
        return True
    return any(_works(state, active) for active in state.active.values())


def _works(state: State, active: Activation) -> bool:
    if active.missing:
        found = (state.calls.get(it) for it in active.missing)
        return any(call is None or call.asks is None for call in found)
    return active.stage not in ("done", "approval")
