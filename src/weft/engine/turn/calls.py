"""Tool calls and questions to persons: opened, answered or failed, and closed."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from weft.engine.commands import Assemble, CallModel, CallTool, Command, Record
from weft.engine.compiled import CompiledWorkflow, Values
from weft.engine.events import (
    CUT,
    ContextAssembled,
    Event,
    EventData,
    MessageSent,
    MessageShown,
    ModelConsulted,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    SurfaceShown,
    ToolCalled,
    ToolFailed,
    ToolRequest,
    ToolReturned,
    TurnFailed,
)
from weft.engine.message import Message
from weft.engine.state import Activation, GivenAnswer, OpenCall, Request, State, without
from weft.engine.turn import run
from weft.engine.variables.triggers import (
    dig,
    fire,
    fire_tool_failed,
    fire_tool_response,
    model_failed,
)
from weft.findings import Json
from weft.spec.templates import parse_template


def on_tool_called(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolCalled
) -> list[Command]:
    """Set what the call sets, and call the tool."""
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
    settings = compiled.triggers.tool_call.get(data.tool, ())
    fired, _ = fire(compiled, state, event.turn, settings, data.arguments)
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
    fired, seen = fire_tool_response(compiled, state, call, value)
    shown = shown_on_return(compiled, state, call)
    return [*shown, *fired, *_tell_model(compiled, state, event, call.id, _text(value), seen)]


def shown_on_return(compiled: CompiledWorkflow, state: State, call: OpenCall) -> list[Command]:
    """Show the user the reply that a call held back, and what its tool tells about the answer."""
    found: list[EventData] = [*held_reply(state, call.turn)]
    tell = compiled.agents[state.active[call.turn].agent].tells.get(call.tool)
    if tell is not None and call.answers:
        answer = call.answers[-1].value
        parts = (
            part if isinstance(part, str) else _words(dig(answer, (part.name,)))
            for part in parse_template(tell)
        )
        found.append(MessageShown("".join(parts)))
    return [Record(each, call.turn) for each in found]


def _words(value: Json) -> str:
    return "" if value is None else _text(value)


def on_tool_failed(
    compiled: CompiledWorkflow, state: State, event: Event, data: ToolFailed
) -> list[Command]:
    """Tell the model why there is no result, or fail the turn if the tool declares that."""
    call, active = state.calls.get(data.id), state.active[event.turn]
    if call is not None and (call.hook or call.auto):
        if event.turn:
            return compiled.mode.on_hook_failed(compiled, state, event, call, data)
        return run.on_hook_failed(compiled, state, event, call, data)
    tool = _asked_for(state, event.turn, data.id) if call is None else call.tool
    fired, seen = fire_tool_failed(compiled, state, event.turn, tool, data)
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
    """Store the reply for the call that asked, in case that is repeated."""
    call = state.calls[data.call]
    given = (*call.consulted, GivenAnswer(data.digest, data.text))
    state.calls = {**state.calls, call.id: replace(call, consulted=given)}
    state.spent = state.spent.plus(data.usage)
    return []


def held_reply(state: State, turn: int) -> tuple[MessageSent, ...]:
    """Return the reply that a turn holds back for its automatic tool, to be sent now."""
    active = state.active.get(turn)
    return (MessageSent(active.agent, active.held),) if active and active.held else ()


def on_surface_shown(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: SurfaceShown
) -> list[Command]:
    """Note that it was shown: a repeated call does not show it again."""
    call = state.calls[data.call]
    state.calls = {**state.calls, call.id: replace(call, surfaces=data.number + 1)}
    return []


def _asked_for(state: State, turn: int, id_: str) -> str:
    """Return the name of the requested tool of a refused call."""
    asked = (request for message in reversed(state.thread_of(turn)) for request in message.requests)
    return next((request.tool for request in asked if request.id == id_), "")


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
    compiled: CompiledWorkflow, state: State, event: Event, data: RequestOpened
) -> list[Command]:
    """Store the request, and show the user what its tool tells when somebody is asked."""
    request = Request(
        id=data.id,
        kind=data.kind,
        agent=data.agent,
        tool=data.tool,
        call=data.call,
        turn=event.turn,
        payload=data.payload,
        digest=data.digest,
        expires_at=None if data.kind == "chat" else data.expires_at,  # A chat has no time limit.
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
    rules = compiled.agents.get(data.agent)
    told = rules.tells_asked.get(data.tool or "") if rules else None
    return [Record(MessageShown(told), event.turn)] if told else []


def on_request_answered(
    compiled: CompiledWorkflow, state: State, _event: Event, data: RequestAnswered
) -> list[Command]:
    """Give an answer to the tool that asked. A second answer finds no request and is ignored."""
    return _answer(compiled, state, close_request(state, data.id), data.value)


def on_request_expired(
    compiled: CompiledWorkflow, state: State, _event: Event, data: RequestExpired
) -> list[Command]:
    """Use the declared answer for an expired request; without one the tool fails."""
    request = close_request(state, data.id)
    if request.otherwise is None:
        error = ToolFailed(request.call or "", "no answer in time", "timeout")
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
    settings = compiled.triggers.ui_response.get(request.tool or "", ())
    fired, _ = fire(compiled, state, request.turn, settings, value)
    call = state.calls.get(request.call or "")
    if call is None:
        return fired
    given = GivenAnswer(request.digest, value)
    call = replace(call, asks=None, answers=(*call.answers, given))
    state.calls = {**state.calls, call.id: call}
    return [*fired, call_of(request.agent, call)]


# -- model calls


#: How many replies may be refused, and how many model calls one turn may take.
MAX_REFUSALS: Final = 3
MAX_CALLS: Final = 25


def assemble(compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    """Assemble the context for the next model call of a turn."""
    state.update(active if active.stage == "assembling" else active.replace(stage="assembling"))
    return [Assemble(compiled.mode.role_of(compiled, active), active.number, active.call)]


def on_context_assembled(
    _compiled: CompiledWorkflow, state: State, event: Event, data: ContextAssembled
) -> list[Command]:
    """Ask the model."""
    active = state.active[event.turn]
    shown = state.values_of(event.turn)
    state.update(active.replace(stage="model", seq=event.seq, shown=shown))
    return [CallModel(data.agent, active.number, active.call, event.seq)]


def on_model_replied(
    compiled: CompiledWorkflow, state: State, event: Event, data: ModelReplied
) -> list[Command]:
    """Call the tools it asks for, or give its final reply to the mode."""
    active = state.active[event.turn]
    state.spent = state.spent.plus(data.usage)
    if data.tool_requests:
        # Hooks see every message that is sent, so text beside a call is not sent where there are.
        text = "" if compiled.agents[active.agent].send else data.text
        state.say(active.agent, text, event, data.tool_requests)
        missing = frozenset(request.id for request in data.tool_requests)
        state.update(active.replace(stage="tools", missing=missing, shown=None))
        return [
            Record(_tool_event(compiled, state, active, request)) for request in data.tool_requests
        ]
    output, wrong = compiled.mode.read_reply(compiled, active, data)
    if wrong is None:
        return compiled.mode.on_reply(compiled, state, event, active, data, output)
    state.say(active.agent, data.text, event)
    if data.finish_reason == CUT:
        wrong += " (the reply was truncated: token limit)"
    state.update(active.replace(shown=None))
    return [Record(OutputRefused(active.call, wrong))]


def _tool_event(
    compiled: CompiledWorkflow, state: State, active: Activation, request: ToolRequest
) -> ToolCalled | ToolFailed:
    rules = compiled.agents[active.agent]
    if request.tool in rules.tools:
        if request.error:
            return ToolFailed(request.id, request.error, "retry")
        return ToolCalled(request.id, request.tool, request.arguments)
    if request.tool in rules.targets:
        if active.fork:
            told = "you work in parallel with others, so you cannot hand off"
            return ToolFailed(request.id, told, "refused")
        return ToolCalled(request.id, request.tool, request.arguments, hook="handoff")
    offered = offered_tools(state, rules.servers) if state.offered else {}
    if request.tool in offered:
        return ToolCalled(request.id, request.tool, request.arguments)
    known = ", ".join((*rules.tools, *rules.targets, *offered)) or "none"
    return ToolFailed(request.id, f"there is no tool {request.tool}; available: {known}", "unknown")


def on_output_refused(
    compiled: CompiledWorkflow, state: State, event: Event, data: OutputRefused
) -> list[Command]:
    """Tell the agent the validation error, and ask again within limits."""
    active = state.active[event.turn]
    if active.refusals + 1 >= MAX_REFUSALS:
        error = f"{active.agent} gave no valid reply: {data.error}"
        return [Record(TurnFailed(active.agent, error, "output"))]
    text = f"Your reply is not valid: {data.error}. Reply again."
    state.add_message(Message("correction", "", text, event.seq, to=active.agent), event.turn)
    active = active.replace(refusals=active.refusals + 1)
    return next_call(compiled, state, active, state.values_of(event.turn))


def next_call(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Ask the model of a turn again, within limits."""
    if active.call >= MAX_CALLS and active.route is None:
        state.update(active)
        error = f"{active.agent} took {MAX_CALLS} model calls in one turn without a final reply"
        return [Record(TurnFailed(active.agent, error, "model"))]
    return compiled.mode.ask_again(compiled, state, active.replace(call=active.call + 1), values)


def on_model_failed(
    compiled: CompiledWorkflow, state: State, event: Event, data: ModelFailed
) -> list[Command]:
    """Fail the turn."""
    active = state.active[event.turn]
    agent = active.agent
    turn = 0 if active.fork else event.turn  # The member's own thread and values are dropped.
    failed = model_failed(compiled, agent)
    fired, _ = fire(compiled, state, turn, failed, {"message": data.error})
    error = f"the model of {agent} failed: {data.error}"
    return [*fired, Record(TurnFailed(agent, error, "model"))]


# -- tools of servers


class Offered(NamedTuple):
    """A tool of a server, as it was when the run began.

    `schema` has name, description and parameters as a model sees them, `tool` is its name on the
    server, and `reads` says that it changes nothing.
    """

    server: str
    tool: str
    reads: bool
    schema: Mapping[str, Json]


def offered_tools(state: State, servers: Iterable[str]) -> dict[str, Offered]:
    """Return the tools of some servers, by the names models know them by."""
    return {
        str(offer["name"]): Offered(server, str(offer["tool"]), offer["reads"] is True, offer)
        for server in servers
        for offer in state.offered.get(server, ())
    }
