"""The life of a run and of a turn: assemble, ask the model, use tools, come to an end."""

from typing import Final

from weft.engine.codec import read_json, unfenced
from weft.engine.commands import Assemble, CallModel, Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation import after_turn, ask_user, start_turn
from weft.engine.events import (
    CUT,
    ContextAssembled,
    Event,
    MessageShown,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    RunEnded,
    RunForked,
    RunStarted,
    StopAsked,
    ToolCalled,
    ToolFailed,
    ToolRequest,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
from weft.engine.groups import member_ended, member_failed, replies_of, take_part
from weft.engine.state import Activation, Message, Spent, State
from weft.engine.triggers import agent_text, agent_turn_count, fire
from weft.findings import Json
from weft.spec.type_meaning import mismatch
from weft.spec.types import TypeExpr

#: How many replies may fail to fit their model, and how many model calls one turn may take.
MAX_REFUSALS: Final = 3
MAX_CALLS: Final = 25


def on_run_started(
    compiled: CompiledWorkflow, state: State, event: Event, data: RunStarted
) -> list[Command]:
    """Greet the user; then wait for a message, or let the first agent begin."""
    state.workflow, state.digest = data.workflow, data.digest
    state.app, state.user, state.started_at = data.app, data.user, event.at
    state.model = data.model
    state.variables = {**compiled.start_values, **data.values}
    greeting = compiled.orchestrator.initial_message_to_user
    commands: list[Command] = [Record(MessageShown(greeting))] if greeting else []
    if compiled.orchestrator.initial_message is not None:
        text = compiled.orchestrator.initial_message
        state.add_message(Message("user", "", text, event.seq))
    agent = compiled.orchestrator.initial_agent
    if compiled.startup == "UserDriven" or data.with_message:
        return [*commands, ask_user(state, event, agent)]
    return [*commands, start_turn(compiled, state, agent, state.variables)]


def on_run_forked(
    _compiled: CompiledWorkflow, state: State, event: Event, data: RunForked
) -> list[Command]:
    """Nothing follows: what was under way goes on. What was spent before is the other run's."""
    state.parent = data.parent
    state.model = data.model or state.model
    state.started_at = event.at
    state.spent = Spent()
    return []


def on_message_shown(
    _compiled: CompiledWorkflow, _state: State, _event: Event, _data: MessageShown
) -> list[Command]:
    """Nothing follows: agents do not see it."""
    return []


def on_turn_started(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnStarted
) -> list[Command]:
    """Put together what the agent is to see, or call the function that works in its place."""
    agent, number = data.agent, event.turn
    active = Activation(agent, number, fork=data.fork)
    state.turns = number
    state.turn_counts = {**state.turn_counts, agent: state.turn_counts.get(agent, 0) + 1}
    state.handoffs_since_turn = 0
    if data.fork:
        take_part(state, active)
    else:
        last, streak = state.last_speaker
        state.last_speaker = (agent, streak + 1 if agent == last else 1)
    function = compiled.agents[agent].function
    if function is not None:
        call = f"merge-{number}"
        state.put(active.changed(stage="tools", missing=frozenset({call})))
        replies = replies_of(state, data.fork)
        return [Record(ToolCalled(call, function, {"replies": replies}, auto=True))]
    state.put(active)
    return [Assemble(agent, number, 1)]


def on_context_assembled(
    _compiled: CompiledWorkflow, state: State, event: Event, _data: ContextAssembled
) -> list[Command]:
    """Ask the model."""
    active = state.active[event.turn]
    shown = state.values_of(event.turn)
    state.put(active.changed(stage="model", seq=event.seq, shown=shown))
    return [CallModel(active.agent, active.number, active.call, event.seq)]


def on_model_replied(
    compiled: CompiledWorkflow, state: State, event: Event, data: ModelReplied
) -> list[Command]:
    """Use the tools it asks for, or take its words for the end of the turn."""
    active = state.active[event.turn]
    message = Message("agent", active.agent, data.text, event.seq, requests=data.tool_requests)
    state.add_message(message, event.turn)
    state.spent = state.spent.plus(data.usage)
    if data.tool_requests:
        missing = frozenset(request.id for request in data.tool_requests)
        state.put(active.changed(stage="tools", missing=missing, shown=None))
        return [Record(_tool_event(compiled, active.agent, it)) for it in data.tool_requests]
    return _final(compiled, state, active, data)


def _tool_event(
    compiled: CompiledWorkflow, agent: str, request: ToolRequest
) -> ToolCalled | ToolFailed:
    tools = compiled.agents[agent].tools
    if request.tool in tools:
        return ToolCalled(request.id, request.tool, request.arguments)
    known = ", ".join(tools) or "none"
    return ToolFailed(request.id, f"there is no tool {request.tool}; available: {known}", "unknown")


def _final(
    compiled: CompiledWorkflow, state: State, active: Activation, reply: ModelReplied
) -> list[Command]:
    """Take a reply without tool calls: refuse it, call the automatic tool with it, or end."""
    rules = compiled.agents[active.agent]
    output, fault = read_output(compiled, rules.output, reply.text)
    if fault is not None:
        if reply.finish == CUT:
            fault += " (the reply was truncated: token limit)"
        state.put(active.changed(shown=None))
        return [Record(OutputRefused(active.call, fault))]
    values = state.values_of(active.number)
    triggered = fire(values, agent_text(compiled, values, active.agent, reply.text)).records
    result = reply.text if output is None else output
    if rules.auto_tool is not None and output is not None:
        again = f"-{active.sent_back + 1}" if active.sent_back else ""
        id_ = f"auto-{active.number}{again}"
        missing = frozenset({id_})
        state.put(active.changed(stage="tools", missing=missing, result=result, shown=None))
        return [*triggered, Record(ToolCalled(id_, rules.auto_tool, output, auto=True))]
    state.put(active.changed(stage="ending", result=result, shown=None))
    return [*triggered, Record(TurnEnded(active.agent))]


def read_output(
    compiled: CompiledWorkflow, output: TypeExpr | None, text: str
) -> tuple[dict[str, Json] | None, str | None]:
    """Read a reply as the model its agent is bound to; say what does not fit."""
    if output is None:
        return None, None
    try:
        value = read_json(unfenced(text).encode())
    except ValueError as error:
        return None, f"the reply is not JSON: {error}"
    fault = mismatch(output, value, compiled.models)
    return (None, fault) if fault else (value, None)  # pyright: ignore[reportReturnType]


def on_output_refused(
    _compiled: CompiledWorkflow, state: State, event: Event, data: OutputRefused
) -> list[Command]:
    """Tell the agent what does not fit, and let it try again within limits."""
    active = state.active[event.turn]
    if active.refusals + 1 >= MAX_REFUSALS:
        error = f"{active.agent} gave no reply that fits its model: {data.fault}"
        return [Record(TurnFailed(active.agent, error, "output"))]
    text = f"Your reply does not fit what is asked for: {data.fault}. Reply again."
    state.add_message(Message("user", "", text, event.seq, to=active.agent), event.turn)
    return next_call(state, active.changed(refusals=active.refusals + 1))


def next_call(state: State, active: Activation) -> list[Command]:
    """Let the model of a turn speak again."""
    if active.call >= MAX_CALLS:
        state.put(active)
        error = f"{active.agent} took {MAX_CALLS} model calls in one turn and came to no end"
        return [Record(TurnFailed(active.agent, error, "model"))]
    active = active.changed(stage="assembling", call=active.call + 1)
    state.put(active)
    return [Assemble(active.agent, active.number, active.call)]


def on_model_failed(
    _compiled: CompiledWorkflow, state: State, event: Event, data: ModelFailed
) -> list[Command]:
    """A turn cannot go on without its model."""
    agent = state.active[event.turn].agent
    error = f"the model of {agent} gave no answer: {data.error}"
    return [Record(TurnFailed(agent, error, "model"))]


def on_turn_ended(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnEnded
) -> list[Command]:
    """Hand off, or wait for the others of the group."""
    active = state.active[event.turn]
    values = state.values_of(event.turn)
    count = state.turn_counts.get(data.agent, 0)
    fired = fire(values, agent_turn_count(compiled, values, data.agent, count))
    if active.fork:
        active = active.changed(stage="done")
        state.put(active)
        return [*fired.records, *member_ended(compiled, state, active)]
    state.drop(event.turn)
    return [*fired.records, after_turn(compiled, state, data.agent, fired.values)]


def on_turn_failed(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnFailed
) -> list[Command]:
    """A run fails with its turn, unless the others of a group go on without it."""
    active = state.active[event.turn]
    if active.fork:
        return member_failed(compiled, state, active, data.error)
    return [Record(RunEnded("failed", data.error))]


def on_stop_asked(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: StopAsked
) -> list[Command]:
    """Stop now, or remember to stop when the turn is over."""
    if data.mode == "after_turn" and state.active:
        state.stopping = True
        return []
    return [Record(RunEnded("cancelled", f"stopped by {data.user}"))]


def on_run_ended(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: RunEnded
) -> list[Command]:
    """Nothing is open any more."""
    state.status = "ended"
    state.active, state.calls, state.groups, state.threads, state.own = {}, {}, {}, {}, {}
    state.requests, state.timers = {}, {}
    state.outcome, state.reason = data.outcome, data.reason
    return []
