"""The stages of a turn of a conversation: hooks, fetching, rules before a reply, the end.

A stage without work is skipped, so a turn without hooks asks its model at once.
"""

from typing import Literal

from weft.engine.commands import Command, Fetch, Record
from weft.engine.compiled import CompiledWorkflow, Values
from weft.engine.conversation.handoffs import fail_unanswerable, pre_route
from weft.engine.conversation.routing import Route
from weft.engine.events import (
    ContextFetched,
    Event,
    MessageSent,
    OutputRefused,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
)
from weft.engine.state import Activation, OpenCall, State
from weft.engine.turn.calls import assemble, finish_call, shown_on_return
from weft.engine.turn.hook_points import HookFunction, open_hook
from weft.engine.turn.hooks import call_computed, close_hook, failure_of, take_result
from weft.engine.variables.triggers import (
    fire,
    fire_tool_failed,
    fire_tool_response,
    lifecycle,
)
from weft.errors import ExpressionError
from weft.findings import Json


def begin(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Begin the first stage of a turn that has something to do."""
    rules = compiled.agents[active.agent]
    if rules.plain and not compiled.per_phase:
        return before_reply(compiled, state, active, values)
    if rules.before:
        return _next_hook(compiled, state, active.replace(stage="before", hook_index=0), values)
    return _fetch(compiled, state, active, values)


def send(compiled: CompiledWorkflow, state: State, active: Activation, text: str) -> list[Command]:
    """Call the hooks that see a reply before it is sent."""
    active = active.replace(stage="sending", hook_index=0, edits=(), reply=text, shown=None)
    return _next_hook(compiled, state, active, state.values_of(active.number))


def _fetch(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    active = active.replace(stage="fetching", seq=state.seq)
    fetch = fetch_of(compiled, active)
    if not fetch.names:
        return _proceed(compiled, state, active, values)
    state.update(active)
    return [fetch]


def fetch_of(compiled: CompiledWorkflow, active: Activation) -> Fetch:
    """Return the variables that are read again for a turn."""
    phased = compiled.per_phase if active.phase else ()
    names = (*phased, *compiled.agents[active.agent].on_demand)
    return Fetch(active.agent, active.number, names, servers=False, seq=active.seq)


def on_fetched(
    compiled: CompiledWorkflow,
    state: State,
    _event: Event,
    active: Activation,
    _data: ContextFetched,
) -> list[Command]:
    """Continue with the values that were read."""
    return _proceed(compiled, state, active, state.values_of(active.number))


def on_fetch_failed(
    _state: State, active: Activation, _data: ContextFetched, error: str
) -> list[Command]:
    """Fail the turn."""
    return [Record(TurnFailed(active.agent, error, "source"))]


def ask_again(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Ask the model again, unless it has handed off itself."""
    if active.route is not None:
        return leave(compiled, state, active, values)
    return before_reply(compiled, state, active, values)


def before_reply(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Compute, evaluate the rules before a reply, call hooks; then ask the model."""
    diverted = _divert(compiled, state, active, values, "computing")
    if diverted is not None:
        return diverted
    if values is not active.asked:
        active = active.replace(asked=values)
    if compiled.agents[active.agent].reply:
        return _next_hook(
            compiled, state, active.replace(stage="reply", hook_index=0, edits=()), values
        )
    return assemble(compiled, state, active)


def _divert(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    values: Values,
    stage: Literal["computing", "finishing"],
) -> list[Command] | None:
    """Return the function to call first, or the handoff, if a change of values demands one."""
    due = active.replace(stage=stage)
    computing = call_computed(compiled, state, due) if state.dirty else None
    if computing is not None:
        return computing
    if values is active.asked or active.fork:
        return None
    try:
        route = pre_route(compiled, active.agent, values)
    except ExpressionError as error:
        return [fail_unanswerable(compiled, active.agent, error)]
    return route and leave(compiled, state, active.replace(route=route), values)


def role_of(_compiled: CompiledWorkflow, active: Activation) -> str:
    """Return the agent itself."""
    return active.agent


def _finish(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """End a turn whose automatic tool is done; first evaluate the rules, as before a reply."""
    diverted = _divert(compiled, state, active, values, "finishing")
    return leave(compiled, state, active, values) if diverted is None else diverted


def leave(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Call the hooks after the turn, compute dependent variables, then end the turn."""
    plain = not (compiled.triggers.lifecycle or state.dirty or compiled.agents[active.agent].after)
    if plain:
        return _end(state, active)
    settings = lifecycle(compiled, "after_agent", active.agent)
    fired, seen = fire(compiled, state, active.number, settings, seen=values)
    active = active.replace(stage="after", hook_index=0, shown=None, edits=())
    return [*fired, *_next_hook(compiled, state, active, seen)]


def _settle(compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    """Compute the variables that depend on the last changes; then end the turn."""
    computing = call_computed(compiled, state, active) if state.dirty else None
    return _end(state, active) if computing is None else computing


def _end(state: State, active: Activation) -> list[Command]:
    state.update(active.replace(stage="ending", shown=None))
    return [Record(TurnEnded(active.agent), active.number)]


# -- hooks


def _proceed(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Continue the stage of a turn, or begin the next one."""
    match active.stage:
        case "fetching" | "computing":
            return before_reply(compiled, state, active, values)
        case "finishing":
            return _finish(compiled, state, active, values)
        case "settling":
            return _settle(compiled, state, active)
        case _:
            return _next_hook(compiled, state, active, values)


def _next_hook(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Call the next function of the hook point; after the last, begin the next stage."""
    hooks = hooks_of(compiled, active)
    if active.hook_index < len(hooks):
        return open_hook(state, active, hooks[active.hook_index])
    match active.stage:
        case "before":
            return _fetch(compiled, state, active, values)
        case "reply":
            return assemble(compiled, state, active)
        case "sending":
            state.update(active)
            sent = MessageSent(active.agent, _edited_reply(active), held=active.held != "")
            return [Record(sent, active.number)]
        case _:
            return _settle(compiled, state, active.replace(stage="settling"))


def hooks_of(compiled: CompiledWorkflow, active: Activation) -> tuple[HookFunction, ...]:
    """Return the functions of the hook point a turn is at."""
    rules = compiled.agents[active.agent]
    match active.stage:
        case "before":
            return rules.before
        case "reply":
            return rules.reply
        case "sending":
            return rules.send
        case _:
            return rules.after


def _edited_reply(active: Activation) -> str:
    """Return the reply as its hooks have changed it."""
    texts = [edit["message"] for edit in active.edits if "message" in edit]
    return str(texts[-1] if texts else active.reply)


def on_hook_returned(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolReturned
) -> list[Command]:
    """Continue with the result of a call that no model requested, or of a handoff."""
    if call.hook == "handoff":
        active = state.active[event.turn]
        target = compiled.agents[active.agent].targets[call.tool]
        state.update(active.replace(route=Route(target, "chosen")))
        return finish_call(compiled, state, event, call, data.value)
    if call.auto:
        return _on_automatic_returned(compiled, state, event, call, data.value)
    result = take_result(compiled, state, event, call, data)
    if result.error:
        return [Record(TurnFailed(result.active.agent, result.error, "source"))]
    return [*result.commands, *_proceed(compiled, state, result.active, result.values)]


def _on_automatic_returned(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, value: Json
) -> list[Command]:
    """End the turn of an automatic tool, or of the function that merges the replies of a group."""
    active = close_hook(state, event, call)
    fired, seen = fire_tool_response(compiled, state, call, value)
    if compiled.agents[active.agent].function is None:
        shown = shown_on_return(compiled, state, call)
        return [*shown, *fired, *_finish(compiled, state, active, seen)]
    return [*fired, *_end(state, active.replace(reply=value))]


def on_hook_failed(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolFailed
) -> list[Command]:
    """Continue without a function, or fail the turn with it, as is declared."""
    if call.auto:
        return _on_automatic_failed(compiled, state, event, call, data)
    active = close_hook(state, event, call)
    failure = failure_of(call, hooks_of(compiled, active), active.hook_index, data)
    if failure is not None:
        return [Record(TurnFailed(active.agent, failure.error, failure.kind))]
    active = active.replace(hook_index=active.hook_index + 1)
    return _proceed(compiled, state, active, state.values_of(event.turn))


def _on_automatic_failed(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolFailed
) -> list[Command]:
    """Refuse the reply an automatic tool was called with if it wants another; else fail."""
    active = state.active[event.turn]
    fired, _ = fire_tool_failed(compiled, state, event.turn, call.tool, data)
    if compiled.agents[active.agent].function is not None:
        error = f"{call.tool} did not merge the replies of {active.agent}: {data.error}"
    elif data.kind == "retry":
        active = close_hook(state, event, call)
        state.update(active.replace(stage="model", sent_back=active.sent_back + 1, held=""))
        return [*fired, Record(OutputRefused(active.call, data.error))]
    else:
        error = f"the automatic tool {call.tool} failed: {data.error}"
    return [*fired, Record(TurnFailed(active.agent, error, "tool"))]
