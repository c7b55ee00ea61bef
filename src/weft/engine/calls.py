"""Tool calls: begun, returned, failed; the model goes on when all of a reply are done."""

import json

from weft.engine.activations import next_call
from weft.engine.commands import CallTool, Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    Event,
    OutputRefused,
    RunEnded,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
)
from weft.engine.state import Message, OpenCall, State, Turn
from weft.engine.triggers import fire, tool_call, tool_response
from weft.findings import Json


def on_tool_called(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolCalled
) -> list[Command]:
    """Set what the call sets, and let the tool be called."""
    turn = state.turn
    if turn is None or data.id not in turn.missing:
        return []
    call = OpenCall(data.id, data.tool, data.arguments, event.seq, data.auto)
    state.turn = turn.changed(calls={**turn.calls, data.id: call})
    return [*fire(state, tool_call(compiled, state, data)).records, call_of(turn.agent, call)]


def on_tool_returned(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolReturned
) -> list[Command]:
    """Set what the result sets, and give it to the agent."""
    call = state.turn.calls.get(data.id) if state.turn else None
    if call is None:
        return []
    fired = fire(state, tool_response(compiled, state, call.tool, data.value))
    return [*fired.records, *_done(state, event, data.id, _text(data.value))]


def on_tool_failed(
    _compiled: CompiledWorkflow, state: State, event: Event, data: ToolFailed
) -> list[Command]:
    """Tell the agent why there is no result.

    Nobody has asked for the call of an automatic tool: the reply is refused that it was made with,
    if the tool wants another one, and else the run has failed.
    """
    turn = state.turn
    call = turn.calls.get(data.id) if turn else None
    if turn is None or call is None or not call.auto:
        return _done(state, event, data.id, f"error: {data.error}")
    if data.kind == "retry":
        return _send_back(state, turn, call, data.error)
    reason = f"the automatic tool {call.tool} gave no result: {data.error}"
    return [Record(RunEnded("failed", reason))]


def call_of(agent: str, call: OpenCall) -> CallTool:
    """Return the command that performs a call, with the answers it has had."""
    return CallTool(call.id, agent, call.tool, call.arguments, call.seq, call.answers)


def _send_back(state: State, turn: Turn, call: OpenCall, fault: str) -> list[Command]:
    """Refuse the reply a call was made with, as if it did not fit its model."""
    _forget_question(state, call)
    state.status = "running"
    state.turn = turn.changed(
        stage="model", calls={}, missing=frozenset[str](), sent_back=turn.sent_back + 1
    )
    return [Record(OutputRefused(turn.number, turn.call, fault))]


def _done(state: State, event: Event, id_: str, text: str) -> list[Command]:
    """Take a result once; the second for the same call finds nothing missing."""
    turn = state.turn
    if turn is None or id_ not in turn.missing:
        return []
    call = turn.calls.get(id_)
    open_ = {key: value for key, value in turn.calls.items() if key != id_}
    turn = turn.changed(calls=open_, missing=turn.missing - {id_})
    if call is not None:
        _forget_question(state, call)
    if call is not None and call.auto:
        state.turn = turn.changed(stage="ending")
        return [Record(TurnEnded(turn.agent, turn.number))]
    state.add_message(Message("tool", turn.agent, text, event.seq, call=id_))
    state.turn = turn
    state.status = "waiting" if only_asks(turn) else "running"
    return [] if turn.missing else next_call(state, turn)


def _forget_question(state: State, call: OpenCall) -> None:
    """Let nobody answer any more what a call has given up asking."""
    if call.asks:
        state.requests = {key: it for key, it in state.requests.items() if key != call.asks}


def only_asks(turn: Turn) -> bool:
    """Tell whether a turn can do nothing before people have answered."""
    started = turn.calls.values()
    return len(turn.missing) == len(started) > 0 and all(call.asks for call in started)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
