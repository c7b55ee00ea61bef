"""Tool calls and questions to persons: opened, answered or failed, and closed."""

import json
from dataclasses import replace

from weft.engine.commands import CallTool, Command, Record
from weft.engine.compiled import CompiledWorkflow, Values
from weft.engine.events import (
    Event,
    ModelConsulted,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    SurfaceShown,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnFailed,
)
from weft.engine.state import GivenAnswer, Message, OpenCall, Request, State, without
from weft.engine.turn import run
from weft.engine.turn.model_calls import next_call
from weft.engine.variables.triggers import (
    fire,
    tool_call,
    tool_failed,
    tool_response,
    ui_response,
)
from weft.findings import Json


def on_tool_called(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolCalled
) -> list[Command]:
    """Set what the call sets, and let the tool be called."""
    active = state.active[event.turn]
    call = OpenCall(
        data.id,
        event.turn,
        data.tool,
        data.arguments,
        event.seq,
        data.auto,
        hook=data.hook,
        variable=data.variable,
    )
    state.calls = {**state.calls, data.id: call}
    if data.hook == "handoff":
        return [Record(ToolReturned(data.id, f"You have called {data.tool}."))]
    if data.hook:
        return [call_of(active.agent, call)]
    values = state.values_of(event.turn)
    fired, _ = fire(compiled, state, event.turn, tool_call(compiled, values, data))
    return [*fired, call_of(active.agent, call)]


def on_tool_returned(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolReturned
) -> list[Command]:
    """Give the result to the model that asked for it; other calls belong to the run or the mode."""
    call = state.calls[data.id]
    if not (call.hook or call.auto):
        return finish_call(compiled, state, event, call, data.value)
    if event.turn:
        return compiled.mode.on_hook_returned(compiled, state, event, call, data)
    return run.on_hook_returned(compiled, state, event, call, data)


def finish_call(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, value: Json
) -> list[Command]:
    """Set what the result sets, and give it to the model that asked for the call."""
    values = state.values_of(event.turn)
    writes = tool_response(compiled, values, call.tool, value)
    fired, seen = fire(compiled, state, event.turn, writes)
    return [*fired, *_tell_model(compiled, state, event, call.id, _text(value), seen)]


def on_tool_failed(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolFailed
) -> list[Command]:
    """Tell the model why there is no result, or fail the turn if the tool is declared so."""
    call, active = state.calls.get(data.id), state.active[event.turn]
    if call is not None and (call.hook or call.auto):
        if event.turn:
            return compiled.mode.on_hook_failed(compiled, state, event, call, data)
        return run.on_hook_failed(compiled, state, event, call, data)
    tool = _asked_for(state, event.turn, data.id) if call is None else call.tool
    values = state.values_of(event.turn)
    fired, seen = fire(compiled, state, event.turn, tool_failed(compiled, values, tool, data))
    declared = compiled.agents[active.agent].tools.get(tool)
    if declared and declared.on_error == "fail" and data.kind in ("error", "timeout"):
        error = f"the tool {tool} of {active.agent} failed: {data.error}"
        return [*fired, Record(TurnFailed(active.agent, error, "tool"))]
    text = f"error: {data.error}"
    return [*fired, *_tell_model(compiled, state, event, data.id, text, seen)]


def _tell_model(
    compiled: CompiledWorkflow, state: State, event: Event, id_: str, text: str, values: Values
) -> list[Command]:
    """Add a result to the conversation; ask the model again when it was the last of a reply."""
    active = state.active[event.turn]
    active = active.replace(missing=active.missing - {id_})
    call = state.calls.get(id_)
    if call is not None:
        state.close_call(call)
    state.add_message(Message("tool", active.agent, text, event.seq, call=id_), event.turn)
    state.update(active)
    return [] if active.missing else next_call(compiled, state, active, values)


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
        call.id,
        agent,
        call.turn,
        call.tool,
        call.arguments,
        call.seq,
        call.answers,
        call.hook,
        call.variable,
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# -- questions to persons: opened once, answered once, or expired


def on_request_opened(
    _compiled: CompiledWorkflow, state: State, event: Event, data: RequestOpened
) -> list[Command]:
    """Remember the question."""
    request = Request(
        id=data.id,
        kind=data.kind,
        agent=data.agent,
        tool=data.tool,
        call=data.call,
        turn=event.turn,
        payload=data.payload,
        digest=data.digest,
        expires_at=data.expires_at,
        otherwise=data.otherwise,
        seq=event.seq,
        opened_at=event.at,
        sets=tuple(data.sets),
        component=data.component,
        mode=data.mode,
        addressee=data.addressee,
    )
    state.requests = {**state.requests, data.id: request}
    if data.call is not None:
        state.calls = {**state.calls, data.call: replace(state.calls[data.call], asks=data.id)}
    return []


def on_request_answered(
    compiled: CompiledWorkflow, state: State, _event: Event, data: RequestAnswered
) -> list[Command]:
    """Give an answer to the tool that asked. A second answer finds no request and is ignored."""
    return _answer(compiled, state, close_request(state, data.id), data.value)


def on_request_expired(
    compiled: CompiledWorkflow, state: State, _event: Event, data: RequestExpired
) -> list[Command]:
    """Use the declared answer for this case; without one the tool fails."""
    request = close_request(state, data.id)
    if request.otherwise is None:
        error = ToolFailed(request.call or "", "nobody answered in time", "timeout")
        return [Record(error, request.turn)]
    return _answer(compiled, state, request, request.otherwise)


def close_request(state: State, id_: str) -> Request:
    """Close a request and return it."""
    request = state.requests[id_]
    state.requests = without(state.requests, id_)
    return request


def _answer(
    compiled: CompiledWorkflow, state: State, request: Request, value: Json
) -> list[Command]:
    """Set what an answer sets, and resume the call that asked."""
    values = state.values_of(request.turn)
    writes = ui_response(compiled, values, request.tool or "", value)
    fired, _ = fire(compiled, state, request.turn, writes)
    call = state.calls.get(request.call or "")
    if call is None:
        return fired
    given = GivenAnswer(request.digest, value)
    call = replace(call, asks=None, answers=(*call.answers, given))
    state.calls = {**state.calls, call.id: call}
    return [*fired, call_of(request.agent, call)]
