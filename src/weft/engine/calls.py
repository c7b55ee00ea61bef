"""Tool calls: begun, returned, failed; the model goes on when all of a reply are done."""

import json
from dataclasses import replace

from weft.engine.book import Rulebook
from weft.engine.commands import CallTool, Command, Record
from weft.engine.events import Event, RunEnded, ToolCalled, ToolFailed, ToolReturned, TurnEnded
from weft.engine.state import Message, OpenCall, State
from weft.engine.triggers import called
from weft.engine.turns import next_call
from weft.findings import Json


def on_tool_called(book: Rulebook, state: State, event: Event, data: ToolCalled) -> list[Command]:
    """Set what the call sets, and let the tool be called."""
    turn = state.turn
    if turn is None or data.id not in turn.missing:
        return []
    call = OpenCall(data.id, data.tool, data.arguments, event.seq, data.auto)
    state.turn = replace(turn, calls={**turn.calls, data.id: call})
    return [*(Record(it) for it in called(book, state, data)), call_of(turn.agent, call)]


def on_tool_returned(
    _book: Rulebook, state: State, event: Event, data: ToolReturned
) -> list[Command]:
    """Give the result to the agent."""
    return _done(state, event, data.id, _text(data.value))


def on_tool_failed(_book: Rulebook, state: State, event: Event, data: ToolFailed) -> list[Command]:
    """Tell the agent why there is no result; without an agent to tell, the run has failed."""
    call = state.turn.calls.get(data.id) if state.turn else None
    if call is not None and call.auto:
        return [Record(RunEnded("failed", f"{call.tool} failed: {data.error}"))]
    return _done(state, event, data.id, f"error: {data.error}")


def call_of(agent: str, call: OpenCall) -> CallTool:
    """Return the command that performs a call, with the answers it has had."""
    return CallTool(call.id, agent, call.tool, call.arguments, call.seq, call.answers)


def _done(state: State, event: Event, id_: str, text: str) -> list[Command]:
    """Take a result once; the second for the same call finds nothing missing."""
    turn = state.turn
    if turn is None or id_ not in turn.missing:
        return []
    call = turn.calls.get(id_)
    open_ = {key: value for key, value in turn.calls.items() if key != id_}
    turn = replace(turn, calls=open_, missing=turn.missing - {id_})
    if call is not None and call.auto:
        state.turn = replace(turn, phase="ending")
        return [Record(TurnEnded(turn.agent, turn.number))]
    state.say(Message("tool", turn.agent, text, event.seq, call=id_))
    state.turn = turn
    state.status = "running"
    return [] if turn.missing else next_call(state, turn)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
