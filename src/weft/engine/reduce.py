"""The engine: from a state and an event to the next state and the commands that follow.

`reduce` is pure. Time, ids and everything random are inside the events. An event that follows from
another without anything from outside is returned as `Record`, so that the journal has it with its
cause; everything else is returned as other commands.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from weft.engine import events
from weft.engine.commands import Assemble, CallModel, Command, Judge, Record, WriteDocument
from weft.engine.compiled import CompiledWorkflow, Expected, Handler
from weft.engine.events import Event, EventData
from weft.engine.state import Activation, State
from weft.engine.turn import calls, run
from weft.engine.variables import values as variables
from weft.engine.variables.triggers import custom

#: The handlers that all modes share; a mode adds its own, and may replace these.
HANDLERS: Final[Mapping[type[EventData], Handler]] = {
    events.RunStarted: run.on_run_started,
    events.RunForked: run.on_run_forked,
    events.MessageShown: run.on_message_shown,
    events.ContextAssembled: calls.on_context_assembled,
    events.ModelReplied: calls.on_model_replied,
    events.ModelFailed: calls.on_model_failed,
    events.OutputRefused: calls.on_output_refused,
    events.ToolCalled: calls.on_tool_called,
    events.ToolReturned: calls.on_tool_returned,
    events.ToolFailed: calls.on_tool_failed,
    events.ModelConsulted: calls.on_model_consulted,
    events.SurfaceShown: calls.on_surface_shown,
    events.ContextFetched: run.on_context_fetched,
    events.DocumentWritten: run.on_document_written,
    events.VariableSet: variables.on_variable_set,
    events.VariableRefused: variables.on_variable_refused,
    events.RequestOpened: calls.on_request_opened,
    events.RequestAnswered: calls.on_request_answered,
    events.RequestExpired: calls.on_request_expired,
    events.TurnFailed: run.on_turn_failed,
    events.TimerSet: run.on_timer_set,
    events.TimerFired: run.on_timer_fired,
    events.StopRequested: run.on_stop_asked,
    events.RunEnding: run.on_run_ending,
    events.RunEnded: run.on_run_ended,
}


def _at_call(stage: str) -> Expected:
    """Expect the result of a model call of a turn, in a stage of it."""

    def expected(state: State, turn: int, data: events.ModelReplied) -> bool:
        active = state.active.get(turn)
        return active is not None and active.stage == stage and active.call == data.call

    return expected


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


def _may_expire(state: State, _turn: int, data: events.RequestExpired) -> bool:
    request = state.requests.get(data.id)
    return request is not None and request.kind != "chat"  # A chat waits without limit.


def _is_fetching(state: State, turn: int, _data: EventData) -> bool:
    active = state.active.get(turn)
    return active is not None and active.stage == "fetching"


def _is_open(state: State, _turn: int, data: events.ModelConsulted | events.SurfaceShown) -> bool:
    return data.call in state.calls


#: Events that come late or twice find none of these states, and change nothing.
EXPECTED: Final[Mapping[type[EventData], Expected]] = {
    events.ContextAssembled: _at_call("assembling"),
    events.ModelReplied: _at_call("model"),
    events.ModelFailed: _at_call("model"),
    events.OutputRefused: _at_call("model"),
    events.ToolCalled: _is_missing,
    events.ToolReturned: _is_called,
    events.ToolFailed: _is_missing,
    events.RequestOpened: _may_ask,
    events.RequestAnswered: lambda state, _turn, data: data.id in state.requests,
    events.RequestExpired: _may_expire,
    events.TurnEnded: _is_active,
    events.TurnFailed: _is_active,
    events.TimerFired: lambda state, _turn, data: data.id in state.timers,
    events.ModelConsulted: _is_open,
    events.SurfaceShown: _is_open,
    events.ContextFetched: _is_fetching,
    events.DocumentWritten: lambda state, _turn, data: state.writing.get(data.name) == data.seq,
    events.RunEnding: lambda state, _turn, _data: state.ending is None,
}


def reduce(compiled: CompiledWorkflow, state: State, event: Event) -> tuple[State, list[Command]]:
    """Apply one event to a copy of the state. After the end of a run nothing changes."""
    after = state.copy()
    return after, advance(compiled, after, event)


def advance(compiled: CompiledWorkflow, state: State, event: Event) -> list[Command]:
    """Apply one event to a state that belongs to the caller alone."""
    state.seq = event.seq
    data = event.data
    kind = type(data)
    known = compiled.handlers.get(kind)
    if known is None or state.status == "ended":  # An event of another mode, or after the end.
        return []
    handler, check = known
    if check is not None and not check(state, event.turn, data):
        return []
    if compiled.triggers.custom:
        fired, seen = custom(compiled, state, event)
        if fired:  # Decisions see what plug-ins set; the records follow.
            state.preview_values(event.turn, seen)
        commands = [*fired, *handler(compiled, state, event, data)]
    else:
        commands = handler(compiled, state, event, data)
    if state.outcome is None:
        is_paused = compiled.is_paused
        may_wait = state.requests or (is_paused is not None and is_paused(state))
        state.status = "waiting" if may_wait and not _is_busy(state) else "running"
    return commands


def is_expected(compiled: CompiledWorkflow, state: State, turn: int, data: EventData) -> bool:
    """Return whether a run still waits for the result of an effect.

    Another process may have got a result first, or the run may have ended.
    """
    _, check = compiled.handlers[type(data)]
    return state.status != "ended" and (check is None or check(state, turn, data))


def fold(compiled: CompiledWorkflow, run: str, history: Iterable[Event]) -> State:
    """Return the state after a journal; `pending` has the commands that are not carried out."""
    state = State(run)
    for event in history:
        advance(compiled, state, event)
    return state


def pending(compiled: CompiledWorkflow, state: State) -> Iterator[Command]:
    """Yield the commands whose results are not in the journal; a restart carries them out again."""
    for active in state.active.values():
        yield from _pending_in(compiled, state, active)
    for call in state.calls.values():
        if call.asks is None:
            yield calls.call_of(state.active[call.turn].agent, call)
    # On a copy: a mode may change the state, which must not happen before the events are recorded.
    yield from compiled.mode.resume(compiled, state.copy())
    for name, seq in state.writing.items():
        yield WriteDocument(name, seq)
    if state.judging is not None:
        yield Judge(state.judging.agent, state.judging.rule, state.judging.seq)


def _pending_in(compiled: CompiledWorkflow, state: State, active: Activation) -> Iterable[Command]:
    mode, number = compiled.mode, active.number
    match active.stage:
        case "assembling":
            return [Assemble(mode.role_of(compiled, active), number, active.call)]
        case "model":
            return [CallModel(mode.role_of(compiled, active), number, active.call, active.seq)]
        case "fetching":
            return [mode.fetch_of(compiled, active) if number else run.fetch_of(compiled, active)]
        case "ending":
            return [Record(events.TurnEnded(active.agent), number)]
        case _ if number:
            return mode.resume_turn(compiled, state, active)
        case _:
            return run.resume_run(compiled, state, active)


def _is_busy(state: State) -> bool:
    """Return whether there is work that does not wait for a person."""
    if state.writing or state.judging:
        return True
    return any(_is_working(state, active) for active in state.active.values())


def _is_working(state: State, active: Activation) -> bool:
    if active.missing:
        calls_ = (state.calls.get(id_) for id_ in active.missing)
        return any(call is None or call.asks is None for call in calls_)
    return active.stage not in ("done", "approval")
