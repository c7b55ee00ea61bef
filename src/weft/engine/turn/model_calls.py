"""Model calls: the context is assembled, the model replies, a refused reply is asked for again."""

from typing import Final

from weft.engine.commands import Assemble, CallModel, Command, Record
from weft.engine.compiled import CompiledWorkflow, Values
from weft.engine.events import (
    CUT,
    ContextAssembled,
    Event,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    ToolCalled,
    ToolFailed,
    ToolRequest,
    TurnFailed,
)
from weft.engine.state import Activation, Message, State
from weft.engine.turn.offered import offered_tools
from weft.engine.variables.triggers import fire, model_failed

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
    if data.finish == CUT:
        wrong += " (the reply was truncated: token limit)"
    state.update(active.replace(shown=None))
    return [Record(OutputRefused(active.call, wrong))]


def _tool_event(
    compiled: CompiledWorkflow, state: State, active: Activation, request: ToolRequest
) -> ToolCalled | ToolFailed:
    rules = compiled.agents[active.agent]
    if request.tool in rules.tools:
        if request.fault:
            return ToolFailed(request.id, request.fault, "retry")
        return ToolCalled(request.id, request.tool, request.arguments)
    if request.tool in rules.targets:
        if active.fork:
            told = "you work side by side with others: what comes after you is settled"
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
    """Tell the agent what does not fit, and let it try again within limits."""
    active = state.active[event.turn]
    if active.refusals + 1 >= MAX_REFUSALS:
        error = f"{active.agent} gave no reply that fits its model: {data.fault}"
        return [Record(TurnFailed(active.agent, error, "output"))]
    text = f"Your reply does not fit what is asked for: {data.fault}. Reply again."
    state.add_message(Message("correction", "", text, event.seq, to=active.agent), event.turn)
    active = active.replace(refusals=active.refusals + 1)
    return next_call(compiled, state, active, state.values_of(event.turn))


def next_call(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Values
) -> list[Command]:
    """Ask the model of a turn again, within limits."""
    if active.call >= MAX_CALLS and active.route is None:
        state.update(active)
        error = f"{active.agent} took {MAX_CALLS} model calls in one turn and came to no end"
        return [Record(TurnFailed(active.agent, error, "model"))]
    return compiled.mode.ask_again(compiled, state, active.replace(call=active.call + 1), values)


def on_model_failed(
    compiled: CompiledWorkflow, state: State, event: Event, data: ModelFailed
) -> list[Command]:
    """A turn cannot go on without its model."""
    active = state.active[event.turn]
    agent = active.agent
    turn = 0 if active.fork else event.turn  # What a member has for itself goes with it.
    writes = model_failed(compiled, state.variables, agent, data.error)
    fired, _ = fire(compiled, state, turn, writes)
    error = f"the model of {agent} gave no answer: {data.error}"
    return [*fired, Record(TurnFailed(agent, error, "model"))]
