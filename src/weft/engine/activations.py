"""The life of a run and of a turn: assemble, ask the model, use tools, come to an end."""

from typing import Final

from weft.engine.codec import read_json
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
    TurnStarted,
)
from weft.engine.state import Message, Spent, State, Turn
from weft.engine.triggers import agent_text, agent_turn_count, fire, user_text
from weft.findings import Json
from weft.spec.type_meaning import mismatch
from weft.spec.types import TypeExpr

#: How many replies may fail to fit their model, and how many model calls one turn may take.
MAX_REFUSALS: Final = 3
MAX_CALLS: Final = 25


def on_run_started(
    compiled: CompiledWorkflow, state: State, event: Event, data: RunStarted
) -> list[Command]:
    """The first words: of the user, of the workflow, or of the first agent."""
    state.status = "running"
    state.workflow, state.digest = data.workflow, data.digest
    state.app, state.user, state.started_at = data.app, data.user, event.at
    state.model = data.model
    state.variables = {**compiled.start_values, **data.values}
    opening = compiled.orchestrator.initial_message_to_user
    commands: list[Command] = [Record(MessageShown(opening))] if opening else []
    if compiled.orchestrator.initial_message is not None:
        state.add_message(Message("user", "", compiled.orchestrator.initial_message, event.seq))
    if data.message is not None:
        state.add_user_message(data.message, event.seq)
    fired = fire(state, user_text(compiled, state, data.message) if data.message else ())
    commands += fired.records
    agent = compiled.orchestrator.initial_agent
    if compiled.startup == "UserDriven" and data.message is None:
        return [*commands, ask_user(state, event, agent)]
    return [*commands, start_turn(compiled, state, agent, fired.values)]


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
    _compiled: CompiledWorkflow, state: State, _event: Event, data: TurnStarted
) -> list[Command]:
    """Put together what the agent is to see."""
    agent = data.agent
    last, streak = state.last_speaker
    state.status = "running"
    state.turn = Turn(agent, data.turn)
    state.turns = data.turn
    state.turn_counts = {**state.turn_counts, agent: state.turn_counts.get(agent, 0) + 1}
    state.last_speaker = (agent, streak + 1 if agent == last else 1)
    state.handoffs_since_turn = 0
    return [Assemble(agent, data.turn, 1)]


def on_context_assembled(
    _compiled: CompiledWorkflow, state: State, event: Event, data: ContextAssembled
) -> list[Command]:
    """Ask the model."""
    turn = state.turn
    if turn is None or turn.stage != "assembling" or (data.turn, data.call) != _spot(turn):
        return []
    state.turn = turn.changed(stage="model", seq=event.seq)
    return [CallModel(turn.agent, turn.number, turn.call, event.seq)]


def on_model_replied(
    compiled: CompiledWorkflow, state: State, event: Event, data: ModelReplied
) -> list[Command]:
    """Use the tools it asks for, or take its words for the end of the turn."""
    turn = _asked(state, data)
    if turn is None:
        return []
    state.add_message(
        Message("agent", turn.agent, data.text, event.seq, requests=data.tool_requests)
    )
    state.spent = state.spent.plus(data.usage)
    if data.tool_requests:
        missing = frozenset(request.id for request in data.tool_requests)
        state.turn = turn.changed(stage="tools", calls={}, missing=missing)
        return [Record(_tool_event(compiled, turn.agent, it)) for it in data.tool_requests]
    return _final(compiled, state, turn, data)


def _asked(state: State, data: ModelReplied | ModelFailed | OutputRefused) -> Turn | None:
    """Return the turn whose model was asked for this; None for what comes late or twice."""
    turn = state.turn
    if turn is None or turn.stage != "model" or (data.turn, data.call) != _spot(turn):
        return None
    return turn


def _spot(turn: Turn) -> tuple[int, int]:
    return turn.number, turn.call


def _tool_event(
    compiled: CompiledWorkflow, agent: str, request: ToolRequest
) -> ToolCalled | ToolFailed:
    tools = compiled.agents[agent].tools
    if request.tool in tools:
        return ToolCalled(request.id, request.tool, request.arguments)
    known = ", ".join(tools) or "none"
    return ToolFailed(request.id, f"there is no tool {request.tool}; there is: {known}", "unknown")


def _final(
    compiled: CompiledWorkflow, state: State, turn: Turn, reply: ModelReplied
) -> list[Command]:
    """Take a reply without tool calls: refuse it, call the automatic tool with it, or end."""
    part = compiled.agents[turn.agent]
    output, fault = _read_output(compiled, part.output, reply.text)
    if fault is not None:
        if reply.finish == CUT:
            fault += " (the reply was cut at its longest)"
        return [Record(OutputRefused(turn.number, turn.call, fault))]
    triggered = fire(state, agent_text(compiled, state, turn.agent, reply.text)).records
    if part.auto_tool is not None and output is not None:
        again = f"-{turn.sent_back + 1}" if turn.sent_back else ""
        id_ = f"auto-{turn.number}{again}"
        state.turn = turn.changed(stage="tools", calls={}, missing=frozenset({id_}))
        return [*triggered, Record(ToolCalled(id_, part.auto_tool, output, auto=True))]
    state.turn = turn.changed(stage="ending")
    return [*triggered, Record(TurnEnded(turn.agent, turn.number))]


def _read_output(
    compiled: CompiledWorkflow, output: TypeExpr | None, text: str
) -> tuple[dict[str, Json] | None, str | None]:
    """Read a reply as the model its agent is bound to; say what does not fit."""
    if output is None:
        return None, None
    try:
        value = read_json(text.encode())
    except ValueError as error:
        return None, f"the reply is not JSON: {error}"
    fault = mismatch(output, value, compiled.models)
    return (None, fault) if fault else (value, None)  # pyright: ignore[reportReturnType]


def on_output_refused(
    _compiled: CompiledWorkflow, state: State, event: Event, data: OutputRefused
) -> list[Command]:
    """Tell the agent what does not fit, and let it try again within limits."""
    turn = _asked(state, data)
    if turn is None:
        return []
    if turn.refusals + 1 >= MAX_REFUSALS:
        reason = f"{turn.agent} gave no reply that fits its model: {data.fault}"
        return [Record(RunEnded("failed", reason))]
    told = f"Your reply does not fit what is asked for: {data.fault}. Reply again."
    state.add_message(Message("user", "", told, event.seq, to=turn.agent))
    return next_call(state, turn.changed(refusals=turn.refusals + 1))


def next_call(state: State, turn: Turn) -> list[Command]:
    """Let the model of a turn speak again."""
    if turn.call >= MAX_CALLS:
        reason = f"{turn.agent} took {MAX_CALLS} model calls in one turn and came to no end"
        return [Record(RunEnded("failed", reason))]
    state.turn = turn = turn.changed(stage="assembling", call=turn.call + 1)
    return [Assemble(turn.agent, turn.number, turn.call)]


def on_model_failed(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: ModelFailed
) -> list[Command]:
    """A run cannot go on without its model."""
    turn = _asked(state, data)
    if turn is None:
        return []
    reason = f"the model of {turn.agent} gave no answer: {data.error}"
    return [Record(RunEnded("failed", reason))]


def on_turn_ended(
    compiled: CompiledWorkflow, state: State, _event: Event, data: TurnEnded
) -> list[Command]:
    """Pass the word on."""
    state.turn = None
    fired = fire(state, agent_turn_count(compiled, state, data.agent))
    return [*fired.records, after_turn(compiled, state, data.agent, fired.values)]


def on_stop_asked(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: StopAsked
) -> list[Command]:
    """Stop now, or remember to stop when the turn is over."""
    if data.mode == "after_turn" and state.turn is not None:
        state.stopping = True
        return []
    return [Record(RunEnded("cancelled", f"stopped by {data.user}"))]


def on_run_ended(
    _compiled: CompiledWorkflow, state: State, _event: Event, data: RunEnded
) -> list[Command]:
    """Nothing is open any more."""
    state.status = "ended"
    state.turn, state.requests = None, {}
    state.outcome, state.reason = data.outcome, data.reason
    return []
