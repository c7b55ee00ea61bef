"""Questions to people: opened once, answered once, or expired."""

from dataclasses import replace

from weft.engine.calls import call_of, only_asks
from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation import start_turn
from weft.engine.events import (
    Event,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    ToolFailed,
)
from weft.engine.state import GivenAnswer, Request, State
from weft.engine.triggers import fire, ui_response, user_text
from weft.findings import Json


def on_request_opened(
    _compiled: CompiledWorkflow, state: State, event: Event, data: RequestOpened
) -> list[Command]:
    """Remember the question; a run with nothing else to do waits."""
    request = Request(
        id=data.id,
        kind=data.kind,
        agent=data.agent,
        tool=data.tool,
        call=data.call,
        payload=data.payload,
        digest=data.digest,
        expires_at=data.expires_at,
        otherwise=data.otherwise,
        seq=event.seq,
        opened_at=event.at,
    )
    state.requests = {**state.requests, data.id: request}
    turn = state.turn
    call = turn.calls.get(data.call or "") if turn else None
    if turn is not None and call is not None:
        call = replace(call, asks=data.id)
        state.turn = turn = turn.changed(calls={**turn.calls, call.id: call})
    if turn is None or only_asks(turn):
        state.status = "waiting"
    return []


def on_request_answered(
    compiled: CompiledWorkflow, state: State, event: Event, data: RequestAnswered
) -> list[Command]:
    """Go on with the answer. A second answer finds no question and changes nothing."""
    request = _close(state, data.id)
    if request is None:
        return []
    if data.message_id is not None:
        state.message_ids = state.message_ids.added(data.message_id)
    if request.kind == "chat":
        text = str(data.value)
        state.add_user_message(text, event.seq)
        state.last_speaker, state.handoffs_since_turn = ("", 0), 0
        fired = fire(state, user_text(compiled, state, text))
        return [*fired.records, start_turn(compiled, state, request.agent, fired.values)]
    fired = fire(state, ui_response(compiled, state, request.tool or "", data.value))
    return [*fired.records, *_resume(state, request, data.value)]


def on_request_expired(
    compiled: CompiledWorkflow, state: State, _event: Event, data: RequestExpired
) -> list[Command]:
    """Go on with what was declared for this case, as if it were an answer; else the tool fails."""
    request = state.requests.get(data.id)
    if request is None or request.call is None:  # A chat waits for as long as it takes.
        return []
    _close(state, data.id)
    if request.otherwise is None:
        return [Record(ToolFailed(request.call, "nobody answered in time", "timeout"))]
    fired = fire(state, ui_response(compiled, state, request.tool or "", request.otherwise))
    return [*fired.records, *_resume(state, request, request.otherwise)]


def _close(state: State, id_: str) -> Request | None:
    request = state.requests.get(id_)
    if request is not None:
        state.requests = {key: value for key, value in state.requests.items() if key != id_}
        state.status = "running"
    return request


def _resume(state: State, request: Request, value: Json) -> list[Command]:
    turn = state.turn
    call = turn.calls.get(request.call or "") if turn else None
    if turn is None or call is None:
        return []
    given = GivenAnswer(request.digest, value)
    call = replace(call, asks=None, answers=(*call.answers, given))
    state.turn = turn.changed(calls={**turn.calls, call.id: call})
    return [call_of(turn.agent, call)]
