"""The life of a run and of a turn: assemble, ask the model, use tools, come to an end."""

from collections.abc import Mapping
from typing import Final, cast

from pydantic_core import to_json

from weft.engine.board import correlation as board
from weft.engine.commands import CallModel, Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation.groups import member_ended, member_failed, replies_of, take_part
from weft.engine.conversation.handoffs import after_turn, ask_user, handed, start_turn
from weft.engine.events import (
    CUT,
    ContextAssembled,
    Event,
    MessageSent,
    MessageShown,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    RunForked,
    RunStarted,
    StopAsked,
    TimerSet,
    ToolCalled,
    ToolFailed,
    ToolRequest,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    VariableSet,
)
from weft.engine.events.codec import read_json, unfenced
from weft.engine.flow import failure as flow_failure
from weft.engine.flow import order as flow
from weft.engine.modes import steps_of
from weft.engine.spent import Spent
from weft.engine.state import Activation, Message, State
from weft.engine.turn.ending import end_run
from weft.engine.turn.hook_points import HANDOFF
from weft.engine.turn.lifecycle import arrive, cut_short, leave, prepare, reply, send
from weft.engine.turn.offered import offered_tools
from weft.engine.variables.computed import all_conditions
from weft.engine.variables.triggers import (
    agent_text,
    agent_turn_count,
    fire,
    lifecycle,
    model_failed,
)
from weft.findings import Json
from weft.spec.type_meaning import validation_error
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
    state.kept = compiled.kept
    state.variables = {**compiled.start_values, **data.values}
    greeting = compiled.orchestrator.initial_message_to_user
    commands: list[Command] = [Record(MessageShown(greeting))] if greeting else []
    if compiled.orchestrator.initial_message is not None:
        text = compiled.orchestrator.initial_message
        state.add_message(Message("user", "", text, event.seq))
    if data.input is not None:
        text = f"Started by {compiled.orchestrator.trigger.type}: {to_json(data.input).decode()}"
        state.add_message(Message("user", "", text, event.seq))
    fired, seen = fire(compiled, state, 0, lifecycle(compiled, state.variables, "before_chat"))
    commands += fired
    conditions = all_conditions(compiled.computed, seen)
    commands += map(Record, conditions)
    for name, rule in compiled.triggers.timers.items():
        due = event.at + round(rule.seconds * 1000)
        commands.append(Record(TimerSet(name, due, "trigger")))
    if compiled.board is not None:
        commands += board.begin(compiled, state, event, data)
        return [*commands, *prepare(compiled, state)] if compiled.prepares else commands
    if compiled.flow is not None:
        begin = prepare if compiled.prepares else flow.begin
        return [*commands, *begin(compiled, state)]
    agent = compiled.orchestrator.initial_agent
    asks = compiled.startup == "UserDriven" or data.with_message
    if asks:
        commands.append(ask_user(state, event, agent))
    if compiled.prepares:
        return [*commands, *prepare(compiled, state)]
    if asks:
        return commands
    worked_out = {it.name: it.value for it in conditions if isinstance(it, VariableSet)}
    values = {**seen, **worked_out}
    return [*commands, start_turn(compiled, state, agent, values)]


def on_run_forked(
    _compiled: CompiledWorkflow, state: State, event: Event, data: RunForked
) -> list[Command]:
    """Nothing follows: what was under way goes on. What was spent before is the other run's."""
    state.parent = data.parent
    state.model = data.model or state.model
    state.started_at = event.at
    state.spent = Spent()
    if state.board is not None:  # What if: it has a correlation of its own.
        state.board = state.board.changed(correlation=state.run)
    # The documents of what was set before are those of the other run as well.
    state.unwritten, state.writing = {}, {}
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
    if data.step:
        return steps_of(compiled).start(compiled, state, event, data)
    agent, number = data.agent, event.turn
    phase = state.last_agent != agent
    state.turns = number
    state.turn_counts = {**state.turn_counts, agent: state.turn_counts.get(agent, 0) + 1}
    state.handoffs_since_turn = 0
    if data.fork:
        take_part(state, agent, number, data.fork)
    else:
        last, streak = state.last_speaker
        state.last_speaker = (agent, streak + 1 if agent == last else 1)
    state.last_agent = agent
    values = state.values_of(number)
    active = Activation(agent, number, fork=data.fork, phase=phase, asked=values)
    function = compiled.agents[agent].function
    if function is not None:
        call = f"merge-{number}"
        state.put(active.changed(stage="tools", missing=frozenset({call})))
        replies = replies_of(state, data.fork)
        return [Record(ToolCalled(call, function, {"replies": replies}, auto=True))]
    fired, seen = fire(compiled, state, number, lifecycle(compiled, values, "before_agent", agent))
    return [*fired, *arrive(compiled, state, active, seen)]


def on_context_assembled(
    _compiled: CompiledWorkflow, state: State, event: Event, data: ContextAssembled
) -> list[Command]:
    """Ask the model."""
    active = state.active[event.turn]
    shown = state.values_of(event.turn)
    state.put(active.changed(stage="model", seq=event.seq, shown=shown))
    return [CallModel(data.agent, active.number, active.call, event.seq)]


def on_model_replied(
    compiled: CompiledWorkflow, state: State, event: Event, data: ModelReplied
) -> list[Command]:
    """Use the tools it asks for, or take its words for the end of the turn."""
    active = state.active[event.turn]
    state.spent = state.spent.plus(data.usage)
    if data.tool_requests:
        # Words beside a call are nobody's to hear where hooks have a say in all that is said.
        words = "" if compiled.agents[active.agent].send else data.text
        _say(state, event, active.agent, words, data.tool_requests)
        missing = frozenset(request.id for request in data.tool_requests)
        state.put(active.changed(stage="tools", missing=missing, shown=None))
        return [Record(_tool_event(compiled, state, active, it)) for it in data.tool_requests]
    rules = compiled.agents[active.agent]
    if active.step:
        output, fault = steps_of(compiled).read_reply(compiled, active, data)
    else:
        output, fault = read_output(compiled, rules.output, data.text)
    if fault is not None:
        _say(state, event, active.agent, data.text)
        if data.finish == CUT:
            fault += " (the reply was truncated: token limit)"
        state.put(active.changed(shown=None))
        return [Record(OutputRefused(active.call, fault))]
    if rules.send:  # It is said when its hooks have had it.
        return send(compiled, state, active, data.text)
    _say(state, event, active.agent, data.text)
    if active.step:
        return steps_of(compiled).replied(compiled, state, event, active, data, output)
    return _final(compiled, state, active, data.text, cast("dict[str, Json] | None", output))


def on_message_sent(
    compiled: CompiledWorkflow, state: State, event: Event, data: MessageSent
) -> list[Command]:
    """Take what an agent says after its hooks for the end of the turn."""
    active = state.active[event.turn].changed(edits=())
    output, fault = read_output(compiled, compiled.agents[active.agent].output, data.text)
    if fault is not None:
        error = f"what the hooks of {active.agent} made of its reply does not fit: {fault}"
        return [Record(TurnFailed(active.agent, error, "hook"))]
    _say(state, event, active.agent, data.text)
    return _final(compiled, state, active, data.text, output)


def _say(
    state: State, event: Event, agent: str, text: str, requests: tuple[ToolRequest, ...] = ()
) -> None:
    state.add_message(Message("agent", agent, text, event.seq, requests=requests), event.turn)


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
        return ToolCalled(request.id, request.tool, request.arguments, point=HANDOFF)
    offered = offered_tools(state, rules.servers) if state.offered else {}
    if request.tool in offered:
        return ToolCalled(request.id, request.tool, request.arguments)
    known = ", ".join((*rules.tools, *rules.targets, *offered)) or "none"
    return ToolFailed(request.id, f"there is no tool {request.tool}; available: {known}", "unknown")


def _final(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    text: str,
    output: dict[str, Json] | None,
) -> list[Command]:
    """Take a reply without tool calls: call the automatic tool with it, or end."""
    rules = compiled.agents[active.agent]
    values = state.values_of(active.number)
    fired, seen = fire(
        compiled, state, active.number, agent_text(compiled, values, active.agent, text)
    )
    result = text if output is None else output
    if rules.auto_tool is not None and output is not None:
        again = f"-{active.sent_back + 1}" if active.sent_back else ""
        id_ = f"auto-{active.number}{again}"
        missing = frozenset({id_})
        state.put(active.changed(stage="tools", missing=missing, result=result, shown=None))
        return [*fired, Record(ToolCalled(id_, rules.auto_tool, output, auto=True))]
    active = active.changed(result=result)
    return [*fired, *leave(compiled, state, active, seen)]


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
    fault = validation_error(output, value, compiled.models)
    return (None, fault) if fault else (value, None)  # pyright: ignore[reportReturnType]


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
    active = active.changed(refusals=active.refusals + 1)
    return next_call(compiled, state, active, state.values_of(event.turn))


def next_call(
    compiled: CompiledWorkflow, state: State, active: Activation, values: Mapping[str, Json]
) -> list[Command]:
    """Let the model of a turn speak again, unless it has handed off itself."""
    if active.route is not None:
        return leave(compiled, state, active, values)
    if active.call >= MAX_CALLS:
        state.put(active)
        error = f"{active.agent} took {MAX_CALLS} model calls in one turn and came to no end"
        return [Record(TurnFailed(active.agent, error, "model"))]
    return reply(compiled, state, active.changed(call=active.call + 1), values)


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


def on_turn_ended(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnEnded
) -> list[Command]:
    """Hand off, or wait for the others of the group."""
    active = state.active[event.turn]
    if active.step:
        return steps_of(compiled).ended(compiled, state, active)
    values = state.values_of(event.turn)
    count = state.turn_counts.get(data.agent, 0)
    writes = agent_turn_count(compiled, values, data.agent, count)
    fired, seen = fire(compiled, state, event.turn, writes)
    if active.fork:
        active = active.changed(stage="done")
        state.put(active)
        return [*fired, *member_ended(compiled, state, active)]
    state.drop(event.turn)
    if active.route is not None and not state.stopping:
        return [*fired, Record(handed(data.agent, active.route))]
    return [*fired, after_turn(compiled, state, data.agent, seen)]


def on_turn_failed(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnFailed
) -> list[Command]:
    """A run fails with its turn, unless the others of a group go on without it."""
    active = state.active[event.turn]
    if active.step:
        return steps_of(compiled).failed(compiled, state, event, active, data)
    if active.fork:
        return member_failed(compiled, state, active, data.error)
    return [end_run(compiled, "failed", data.error)]


def on_stop_asked(
    compiled: CompiledWorkflow, state: State, _event: Event, data: StopAsked
) -> list[Command]:
    """Stop now, or remember to stop when the turn is over. A run that is ending goes on to."""
    if state.ending is not None:
        return cut_short(compiled, state) if data.mode == "now" else []
    if data.mode == "after_turn" and (_is_taken(state) or state.judging):
        state.stopping = True
        return []
    if state.board is not None:
        return board.over(compiled, state, "cancelled", f"stopped by {data.user}")
    if state.flow is not None:
        return flow_failure.stop(compiled, state, data.user)
    return [end_run(compiled, "cancelled", f"stopped by {data.user}")]


def _is_taken(state: State) -> bool:
    """Tell whether a turn is under way that a run may wait for; a person may take for ever."""
    return any(it.stage != "approval" for it in state.active.values())
