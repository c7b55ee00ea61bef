"""Tool calls: begun, returned, failed; the model goes on when all of a reply are done."""

import json
from collections.abc import Mapping
from dataclasses import replace

from weft.engine.commands import CallTool, Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation.routing import Route
from weft.engine.events import (
    Event,
    ModelConsulted,
    OutputRefused,
    SurfaceShown,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
)
from weft.engine.state import Activation, GivenAnswer, Message, OpenCall, State, without
from weft.engine.turn.activations import next_call
from weft.engine.turn.hook_points import HANDOFF
from weft.engine.turn.lifecycle import finish, point_failed, point_returned
from weft.engine.variables.triggers import fire, tool_call, tool_failed, tool_response
from weft.findings import Json


def on_tool_called(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolCalled
) -> list[Command]:
    """Set what the call sets, and let the tool be called."""
    active = state.active[event.turn]
    call = OpenCall(
        data.id, event.turn, data.tool, data.arguments, event.seq, data.auto, point=data.point
    )
    state.calls = {**state.calls, data.id: call}
    if data.point == HANDOFF:
        return [Record(ToolReturned(data.id, f"You have called {data.tool}."))]
    if data.point:
        return [call_of(active.agent, call)]
    values = state.values_of(event.turn)
    fired, _ = fire(compiled, state, event.turn, tool_call(compiled, values, data))
    return [*fired, call_of(active.agent, call)]


def on_tool_returned(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolReturned
) -> list[Command]:
    """Set what the result sets, and give it to the agent."""
    call, active = state.calls[data.id], state.active[event.turn]
    if call.point == HANDOFF:
        target = compiled.agents[active.agent].targets[call.tool]
        state.put(active.changed(route=Route(target, "chosen")))
    elif call.point:
        return point_returned(compiled, state, event, call, data)
    if call.auto and compiled.agents[active.agent].function is not None:
        state.put(active.changed(result=data.value))
    values = state.values_of(event.turn)
    writes = tool_response(compiled, values, call.tool, data.value)
    fired, seen = fire(compiled, state, event.turn, writes)
    done = _done(compiled, state, event, data.id, _text(data.value), seen)
    return [*fired, *done]


def on_tool_failed(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolFailed
) -> list[Command]:
    """Tell the agent why there is no result.

    No model has asked for the call of an automatic tool: the reply is refused that it was made
    with, if the tool wants another one, and else the turn has failed.
    """
    call, active = state.calls.get(data.id), state.active[event.turn]
    if call is not None and call.point:
        return point_failed(compiled, state, event, call, data)
    tool = _asked_for(state, event.turn, data.id) if call is None else call.tool
    values = state.values_of(event.turn)
    fired, seen = fire(compiled, state, event.turn, tool_failed(compiled, values, tool, data))
    rules = compiled.agents[active.agent]
    if call is None or not call.auto:
        declared = rules.tools.get(tool)
        if declared and declared.on_error == "fail" and data.kind in ("error", "timeout"):
            error = f"the tool {tool} of {active.agent} failed: {data.error}"
            return [*fired, Record(TurnFailed(active.agent, error, "tool"))]
        told = f"error: {data.error}"
        return [*fired, *_done(compiled, state, event, data.id, told, seen)]
    if rules.function is not None:
        error = f"{call.tool} did not merge what {active.agent} said: {data.error}"
        return [*fired, Record(TurnFailed(active.agent, error, "tool"))]
    if data.kind == "retry":
        return [*fired, *_send_back(state, active, call, data.error)]
    error = f"the automatic tool {call.tool} gave no result: {data.error}"
    return [*fired, Record(TurnFailed(active.agent, error, "tool"))]


def on_model_consulted(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: ModelConsulted
) -> list[Command]:
    """Keep the reply for the call that asked, should that be made again."""
    call = state.calls[data.call]
    given = (*call.consulted, GivenAnswer(data.digest, data.text))
    state.calls = {**state.calls, call.id: replace(call, consulted=given)}
    state.spent = state.spent.plus(data.usage)
    return []


def on_surface_shown(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: SurfaceShown
) -> list[Command]:
    """Remember that it was shown: a repeated call does not show it again."""
    call = state.calls[data.call]
    state.calls = {**state.calls, call.id: replace(call, surfaces=data.number + 1)}
    return []


def _asked_for(state: State, turn: int, id_: str) -> str:
    """Return the name of the tool that a refused call was for."""
    asked = (it for message in reversed(state.thread_of(turn)) for it in message.requests)
    return next((it.tool for it in asked if it.id == id_), "")


def call_of(agent: str, call: OpenCall) -> CallTool:
    """Return the command that performs a call, with the answers it has had."""
    return CallTool(
        call.id, agent, call.turn, call.tool, call.arguments, call.seq, call.answers, call.point
    )


def _send_back(state: State, active: Activation, call: OpenCall, fault: str) -> list[Command]:
    """Refuse the reply a call was made with, as if it did not fit its model."""
    _close(state, call)
    missing = frozenset[str]()
    state.put(active.changed(stage="model", missing=missing, sent_back=active.sent_back + 1))
    return [Record(OutputRefused(active.call, fault))]


def _done(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    id_: str,
    text: str,
    values: Mapping[str, Json],
) -> list[Command]:
    active = state.active[event.turn]
    active = active.changed(missing=active.missing - {id_})
    call = state.calls.get(id_)
    if call is not None:
        _close(state, call)
        if call.auto and compiled.agents[active.agent].function is None:
            return finish(compiled, state, active, values)
        if call.auto:
            state.put(active.changed(stage="ending"))
            return [Record(TurnEnded(active.agent))]
    state.add_message(Message("tool", active.agent, text, event.seq, call=id_), event.turn)
    state.put(active)
    return [] if active.missing else next_call(compiled, state, active, values)


def _close(state: State, call: OpenCall) -> None:
    """Let nobody answer any more what a call has given up asking."""
    state.calls = without(state.calls, call.id)
    if call.asks:
        state.requests = without(state.requests, call.asks)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
