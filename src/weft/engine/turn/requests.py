"""Questions to people: opened once, answered once, or expired."""

from dataclasses import replace

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation.handoffs import start_turn
from weft.engine.events import (
    Event,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    ToolFailed,
)
from weft.engine.flow import approval as flow_approval
from weft.engine.state import GivenAnswer, Request, State, without
from weft.engine.turn.calls import call_of
from weft.engine.variables.triggers import fire, ui_response, user_text
from weft.findings import Json


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
    compiled: CompiledWorkflow, state: State, event: Event, data: RequestAnswered
) -> list[Command]:
    """Go on with the answer. A second answer finds no question and changes nothing."""
    request = _close(state, data.id)
    if data.message_id is not None:
        state.message_ids = state.message_ids.added(data.message_id)
    if request.kind == "chat":
        text = str(data.value)
        state.add_user_message(text, event.seq)
        state.last_speaker, state.handoffs_since_turn = ("", 0), 0
        fired, seen = fire(compiled, state, 0, user_text(compiled, state.variables, text))
        ready = state.active.get(0)
        if ready is not None:  # The run is not ready yet; the turn begins when it is.
            state.put(ready.changed(result=request.agent))
            return fired
        return [*fired, start_turn(compiled, state, request.agent, seen)]
    if state.flow is not None and request.call is None:
        return flow_approval.answered(compiled, state, request, data.value, data.user)
    return _answered(compiled, state, request, data.value)


def on_request_expired(
    compiled: CompiledWorkflow, state: State, event: Event, data: RequestExpired
) -> list[Command]:
    """Go on with what was declared for this case, as if it were an answer; else the tool fails."""
    request = _close(state, data.id)
    if state.flow is not None and request.call is None:
        return flow_approval.expired(compiled, state, event, request)
    if request.otherwise is None:
        error = ToolFailed(request.call or "", "nobody answered in time", "timeout")
        return [Record(error, request.turn)]
    return _answered(compiled, state, request, request.otherwise)


def _answered(
    compiled: CompiledWorkflow, state: State, request: Request, value: Json
) -> list[Command]:
    values = state.values_of(request.turn)
    writes = ui_response(compiled, values, request.tool or "", value)
    fired, _ = fire(compiled, state, request.turn, writes)
    return [*fired, *_resume(state, request, value)]


def _close(state: State, id_: str) -> Request:
    request = state.requests[id_]
    state.requests = without(state.requests, id_)
    return request


def _resume(state: State, request: Request, value: Json) -> list[Command]:
    call = state.calls.get(request.call or "")
    if call is None:
        return []
    given = GivenAnswer(request.digest, value)
    call = replace(call, asks=None, answers=(*call.answers, given))
    state.calls = {**state.calls, call.id: call}
    return [call_of(request.agent, call)]
