"""Tool calls: begun, returned, failed; the model goes on when all of a reply are done."""

import json

from weft.engine.activations import next_call
from weft.engine.commands import CallTool, Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    Event,
    OutputRefused,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
)
from weft.engine.state import Activation, Message, OpenCall, State, without
from weft.engine.triggers import fire, tool_call, tool_response
from weft.findings import Json


def on_tool_called(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolCalled
) -> list[Command]:
    """Set what the call sets, and let the tool be called."""
    active = state.active[event.turn]
    call = OpenCall(data.id, event.turn, data.tool, data.arguments, event.seq, data.auto)
    state.calls = {**state.calls, data.id: call}
    values = state.values_of(event.turn)
    fired = fire(values, tool_call(compiled, values, data))
    return [*fired.records, call_of(active.agent, call)]


def on_tool_returned(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolReturned
) -> list[Command]:
    """Set what the result sets, and give it to the agent."""
    call, values = state.calls[data.id], state.values_of(event.turn)
    if call.auto and compiled.agents[state.active[event.turn].agent].function is not None:
        state.put(state.active[event.turn].changed(result=data.value))
    fired = fire(values, tool_response(compiled, values, call.tool, data.value))
    return [*fired.records, *_done(state, event, data.id, _text(data.value))]


def on_tool_failed(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolFailed
) -> list[Command]:
    """Tell the agent why there is no result.

    No model has asked for the call of an automatic tool: the reply is refused that it was made
    with, if the tool wants another one, and else the turn has failed.
    """
    call, active = state.calls.get(data.id), state.active[event.turn]
    if call is None or not call.auto:
        return _done(state, event, data.id, f"error: {data.error}")
    if compiled.agents[active.agent].function is not None:
        error = f"{call.tool} did not merge what {active.agent} said: {data.error}"
        return [Record(TurnFailed(active.agent, error, "tool"))]
    if data.kind == "retry":
        return _send_back(state, active, call, data.error)
    error = f"the automatic tool {call.tool} gave no result: {data.error}"
    return [Record(TurnFailed(active.agent, error, "tool"))]


def call_of(agent: str, call: OpenCall) -> CallTool:
    """Return the command that performs a call, with the answers it has had."""
    return CallTool(call.id, agent, call.turn, call.tool, call.arguments, call.seq, call.answers)


def _send_back(state: State, active: Activation, call: OpenCall, fault: str) -> list[Command]:
    """Refuse the reply a call was made with, as if it did not fit its model."""
    _close(state, call)
    missing = frozenset[str]()
    state.put(active.changed(stage="model", missing=missing, sent_back=active.sent_back + 1))
    return [Record(OutputRefused(active.call, fault))]


def _done(state: State, event: Event, id_: str, text: str) -> list[Command]:
    active = state.active[event.turn]
    active = active.changed(missing=active.missing - {id_})
    call = state.calls.get(id_)
    if call is not None:
        _close(state, call)
        if call.auto:
            state.put(active.changed(stage="ending"))
            return [Record(TurnEnded(active.agent))]
    state.add_message(Message("tool", active.agent, text, event.seq, call=id_), event.turn)
    state.put(active)
    return [] if active.missing else next_call(state, active)


def _close(state: State, call: OpenCall) -> None:
    """Let nobody answer any more what a call has given up asking."""
    state.calls = without(state.calls, call.id)
    if call.asks:
        state.requests = without(state.requests, call.asks)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
