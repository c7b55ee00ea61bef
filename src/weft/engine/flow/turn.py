"""Flows: steps run in a declared order; this module runs one attempt at a step.

The values of an attempt count when it has ended: one that fails has changed nothing.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from weft.engine.commands import Command, Fetch, Record
from weft.engine.compiled import CompiledWorkflow, Expected, Handler
from weft.engine.conversation.turn import read_output
from weft.engine.events import (
    EDIT,
    Branched,
    ContextFetched,
    Event,
    EventData,
    Forked,
    Joined,
    ModelReplied,
    RequestAnswered,
    RequestExpired,
    RunStarted,
    TimerSet,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    VariableSet,
)
from weft.engine.events.kinds import StepHook, StepInput
from weft.engine.flow.approval import ask, on_request_answered, on_request_expired
from weft.engine.flow.failure import failure_record, handle_failure, overdue, stop
from weft.engine.flow.lanes import (
    edit_lanes,
    lane_of,
    plan_of,
    run_of,
    set_lane,
    step_of,
    values_in,
    work_of,
)
from weft.engine.flow.order import (
    go,
    on_branched,
    on_forked,
    on_joined,
    on_timer,
    on_turn_ended,
    resume,
)
from weft.engine.flow.plan import ApprovalPlan, StepPlan
from weft.engine.flow.plan import role_of as step_role
from weft.engine.flow.state import FlowState, StepReply, StepRun
from weft.engine.message import Message
from weft.engine.persistent import Log
from weft.engine.state import Activation, OpenCall, OwnValues, State
from weft.engine.turn.calls import assemble
from weft.engine.turn.hooks import close_hook
from weft.engine.turn.run import prepare
from weft.engine.variables.access import write_error
from weft.engine.variables.conditions import evaluate, same
from weft.engine.variables.triggers import agent_text, fire
from weft.engine.variables.values import on_variable_set, with_part
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.flow import AgentWork, Step

#: What a mode has; see TurnMode.
__all__ = [
    "EXPECTED",
    "HANDLERS",
    "ask_again",
    "fetch_of",
    "is_paused",
    "on_fetch_failed",
    "on_fetched",
    "on_hook_failed",
    "on_hook_returned",
    "on_reply",
    "on_timer",
    "on_turn_failed",
    "read_reply",
    "resume",
    "resume_turn",
    "role_of",
    "start_run",
    "start_turns",
    "stop",
]


def start_run(
    compiled: CompiledWorkflow,
    state: State,
    _event: Event,
    _data: RunStarted,
    values: Mapping[str, Json],
) -> list[Command]:
    """Prepare the run, or begin with the first step."""
    if compiled.prepares:
        return prepare(compiled, state)
    return start_turns(compiled, state, values, "")


def start_turns(
    compiled: CompiledWorkflow, state: State, _values: Mapping[str, Json], _agent: str
) -> list[Command]:
    """Begin with the first step."""
    state.flow = FlowState()
    return go(compiled, state, "", plan_of(compiled).first)


def _may_start(state: State, _turn: int, data: TurnStarted) -> bool:
    return state.flow is not None and data.lane in state.flow.lanes


def on_turn_started(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnStarted
) -> list[Command]:
    """Begin an attempt with the values as they are in its lane."""
    number = event.turn
    run = StepRun(data.lane, data.attempt, data.undoes)
    active = Activation(data.agent, number, step=data.step, seq=event.seq, flow=run)
    state.count_turn(data.agent, number)
    state.own = {**state.own, number: OwnValues(values_in(state, data.lane), {})}
    state.threads = {**state.threads, number: Log[Message]()}
    node = plan_of(compiled).nodes[data.step]
    if isinstance(node, ApprovalPlan):
        return ask(state, event, active, node.approval)
    step = cast("StepPlan", node)
    begun = data.attempt == 1 and not data.undoes
    fault = _guard_fault(step, state.values_of(number)) if begun else None
    if fault is not None:
        state.update(active)
        return [_failed(state, active, "StateError", fault, "guard")]
    timers = _deadline(state, event, data.lane, step.step) if begun else []
    active = active.replace(stage="fetching")
    fetch = fetch_of(compiled, active)
    if fetch.flow or fetch.names:
        state.update(active)
        return [*timers, fetch]
    return [*timers, *_work(compiled, state, active)]


def _guard_fault(plan: StepPlan, values: Mapping[str, Json]) -> str | None:
    """Return why the state does not allow a step, or None if it does."""
    for at, (condition, message) in enumerate(plan.guards):
        told = message or f"{plan.step.validate_[at].condition} does not hold"
        try:
            holds = evaluate(condition, values)
        except ExpressionError as error:
            holds, told = False, str(error)
        if not holds:
            return f"{plan.step.name} was not started: {told}"
    return None


def _deadline(state: State, event: Event, key: str, step: Step) -> list[Command]:
    """Set the deadline of all attempts at a step together."""
    if step.timeout_seconds is None:
        return []
    timer = f"step:{event.turn}"
    set_lane(state, replace(lane_of(state, key), deadline=timer))
    at = event.at + round(step.timeout_seconds * 1000)
    return [Record(TimerSet(timer, at, "flow"), turn=0)]


def fetch_of(compiled: CompiledWorkflow, active: Activation) -> Fetch:
    """Return what an attempt needs from outside."""
    step, work = step_of(compiled, active), work_of(compiled, active)
    names = compiled.per_phase
    coded = False
    if isinstance(work, AgentWork):
        names = (*names, *compiled.agents[work.agent].on_demand)
        coded = work.step is not None
    shows = step.context is not None and not _undoes(active)
    agent = role_of(compiled, active) if isinstance(work, AgentWork) else active.agent
    return Fetch(agent, active.number, names, servers=False, seq=active.seq, flow=coded or shows)


def _undoes(active: Activation) -> bool:
    return active.flow is not None and active.flow.undoes > 0


def on_fetched(
    compiled: CompiledWorkflow,
    state: State,
    _event: Event,
    active: Activation,
    data: ContextFetched,
) -> list[Command]:
    """Continue with what was assembled for the attempt."""
    run = replace(run_of(active), input=data.step)
    return _work(compiled, state, active.replace(flow=run))


def on_fetch_failed(
    state: State, active: Activation, data: ContextFetched, told: str
) -> list[Command]:
    """Fail an attempt whose context could not be assembled."""
    raised = (data.step or StepInput()).get("exception") or {}
    type_, stack = str(raised.get("type", "source")), str(raised.get("stack", ""))
    message = str(raised.get("message", told))
    failure = failure_record(state, active, type_, message, stack)
    return [Record(TurnFailed(active.agent, told, "source", failure))]


def role_of(_compiled: CompiledWorkflow, active: Activation) -> str:
    """Return the role of an agent at a step."""
    return step_role(active.agent, active.step, undoes=_undoes(active))


def ask_again(
    compiled: CompiledWorkflow, state: State, active: Activation, _values: Mapping[str, Json]
) -> list[Command]:
    """Ask the model of the step again."""
    return assemble(compiled, state, active)


def resume_turn(_compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    """Return the call that an attempt waits for, if the journal ends before it."""
    waiting = [id_ for id_ in active.missing if id_ not in state.calls]
    hooks: tuple[StepHook, ...] = ("step", "apply")
    return [_call(active, hook) for hook in hooks if _call_id(active, hook) in waiting]


def _work(compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    if isinstance(work_of(compiled, active), AgentWork):
        return assemble(compiled, state, active)
    return _call_code(state, active, "step")


def _call_code(state: State, active: Activation, hook: StepHook) -> list[Command]:
    missing = frozenset({_call_id(active, hook)})
    state.update(active.replace(stage="tools", missing=missing, shown=None))
    return [_call(active, hook)]


def _call(active: Activation, hook: StepHook) -> Command:
    return Record(ToolCalled(_call_id(active, hook), active.step, {}, hook=hook), active.number)


def _call_id(active: Activation, hook: StepHook) -> str:
    return f"{hook}-{active.number}"


def read_reply(
    compiled: CompiledWorkflow, active: Activation, data: ModelReplied
) -> tuple[Json, str | None]:
    """Parse a reply as the model its agent is bound to, and as values of the state."""
    value, fault = read_output(compiled, compiled.agents[active.agent].output, data.text)
    # The class of the state has validated the values when the reply came.
    fault = fault or data.output_error or None
    return (None, fault) if fault else (value, None)


def on_reply(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    active: Activation,
    data: ModelReplied,
    output: Json,
) -> list[Command]:
    """Let code apply the reply, or set the values it has."""
    state.say(active.agent, data.text, event)
    if _is_overdue(state, active, event):
        return [overdue(compiled, state, active)]
    said = agent_text(compiled, active.agent, data.text)
    fired, _ = fire(compiled, state, event.turn, said)
    usage = {"input_tokens": data.usage.input_tokens, "output_tokens": data.usage.output_tokens}
    reply: StepReply = {
        "text": data.text,
        "output": output,
        "usage": {**usage, "cost_usd": data.usage.cost_usd},
    }
    active = active.replace(flow=replace(run_of(active), reply=reply))
    work = cast("AgentWork", work_of(compiled, active))
    if work.step is not None:
        return [*fired, *_call_code(state, active, "apply")]
    changes, confidence = changes_of(compiled, work, data.text, output)
    return [*fired, *_finish(compiled, state, active, changes, confidence)]


def changes_of(
    compiled: CompiledWorkflow, work: AgentWork, text: str, output: Json
) -> tuple[dict[str, Json], Json]:
    """Return the changes and the confidence in the reply of a declared agent."""
    fields = cast("dict[str, Json]", output) if isinstance(output, dict) else {}
    if work.output is not None:
        return {work.output: text if output is None else output}, fields.get("confidence")
    set_ = {name: field for name, field in fields.items() if name in compiled.variables}
    return set_, fields.get("confidence")


def on_hook_returned(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolReturned
) -> list[Command]:
    """Take the result of code: the values it sets, and its confidence."""
    active = close_hook(state, event, call)
    if _is_overdue(state, active, event):
        return [overdue(compiled, state, active)]
    made = cast("Mapping[str, Any]", data.value)
    return _finish(compiled, state, active, made["set"], made.get("confidence"))


def _is_overdue(state: State, active: Activation, event: Event) -> bool:
    """Return whether a result came after the deadline; timers may fire late."""
    run = run_of(active)
    timer = None if run.undoes else state.timers.get(lane_of(state, run.lane).deadline)
    return timer is not None and event.at > timer.at


def on_hook_failed(
    _compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolFailed
) -> list[Command]:
    """Fail the attempt with its code."""
    active = close_hook(state, event, call)
    told = data.exception or {}
    message = str(told.get("message", data.error))
    type_, stack = str(told.get("type", data.kind)), str(told.get("stack", ""))
    failure = failure_record(state, active, type_, message, stack)
    return [Record(TurnFailed(active.agent, data.error, "tool", failure), active.number)]


def _finish(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    changes: Mapping[str, Json],
    confidence: Json,
) -> list[Command]:
    """Set the changes of an attempt, if they are valid and its confidence is high enough."""
    active = active.replace(missing=frozenset(), shown=None)
    values, writes = state.values_of(active.number), list[Command]()
    for name, change in changes.items():
        variable = compiled.variables.get(name)
        value = with_part(variable and variable.merge, values.get(name), change)
        fault = write_error(compiled, values, name, value, active.step, active.agent)
        if fault is not None:
            state.update(active)
            return [_failed(state, active, "ValueError", f"{active.step}: {fault}", "output")]
        if not same(values.get(name), value):
            writes.append(Record(VariableSet(name, value, f"step:{active.step}"), active.number))
    unsure = None if _undoes(active) else _unsure(step_of(compiled, active), confidence)
    target = plan_of(compiled).step(active.step).unsure if unsure else ""
    if unsure and not target:
        state.update(active)
        return [_failed(state, active, "LowConfidence", unsure, "low_confidence")]
    run = replace(run_of(active), branch=(target, "low_confidence") if target else None)
    state.update(active.replace(stage="ending", flow=run))
    return [*writes, Record(TurnEnded(active.agent), active.number)]


def _unsure(step: Step, confidence: Json) -> str | None:
    """Return why the confidence of a result is too low, or None."""
    if step.confidence is None:
        return None
    minimum = step.confidence.minimum
    if not isinstance(confidence, int | float) or isinstance(confidence, bool):
        return f"{step.name} returned no confidence; {minimum:g} is required"
    if confidence >= minimum:
        return None
    return f"the confidence of {step.name} is {confidence:g}; {minimum:g} is required"


def _failed(state: State, active: Activation, error: str, told: str, kind: Any) -> Command:  # noqa: ANN401 - a kind of TurnFailed
    failure = failure_record(state, active, error, told)
    return Record(TurnFailed(active.agent, told, kind, failure), active.number)


def on_turn_failed(
    compiled: CompiledWorkflow, state: State, event: Event, active: Activation, data: TurnFailed
) -> list[Command]:
    """Try again, or handle the failure."""
    return handle_failure(compiled, state, event, active, data)


def _on_variable_set(
    compiled: CompiledWorkflow, state: State, event: Event, data: VariableSet
) -> list[Command]:
    """Set a variable; edits of a forked run also apply to lanes that have begun."""
    commands = on_variable_set(compiled, state, event, data)
    if data.writer == EDIT and state.flow is not None:
        edit_lanes(state, data)
    return commands


def is_paused(state: State) -> bool:
    """Return whether a run waits for the time of a next attempt."""
    return state.flow is not None and bool(state.flow.waits)


HANDLERS: Final[Mapping[type[EventData], Handler]] = {
    TurnStarted: on_turn_started,
    TurnEnded: on_turn_ended,
    Forked: on_forked,
    Joined: on_joined,
    Branched: on_branched,
    RequestAnswered: on_request_answered,
    RequestExpired: on_request_expired,
    VariableSet: _on_variable_set,
}

EXPECTED: Final[Mapping[type[EventData], Expected]] = {
    TurnStarted: _may_start,
    Joined: lambda state, _turn, data: state.flow is not None and data.fork in state.flow.forks,
    Branched: lambda state, _turn, data: state.flow is not None and data.lane in state.flow.lanes,
}
