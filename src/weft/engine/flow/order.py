"""The order of steps: what comes next in a lane, and how paths fork and join."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from weft.engine.commands import Command, Record, Start
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation.groups import merge_values
from weft.engine.events import Branched, Event, Forked, Joined, TurnEnded
from weft.engine.events.kinds import StepInput
from weft.engine.flow.failure import (
    after_path,
    end_failed_run,
    fail_node,
    give_up,
    on_compensated,
    overdue,
    resume_compensation,
    start_attempt,
    stop_when_idle,
)
from weft.engine.flow.lanes import (
    fill_template,
    flow_of,
    lane_of,
    plan_of,
    run_of,
    set_lane,
    set_values,
    values_in,
    work_of,
)
from weft.engine.flow.plan import (
    AGAIN,
    END,
    FAILED,
    JOIN,
    OVER,
    ApprovalPlan,
    BranchPlan,
    ForkPlan,
    RepeatPlan,
    StepPlan,
)
from weft.engine.flow.state import Done, ForkRun, Lane, PathStatus
from weft.engine.message import Message
from weft.engine.persistent import Log
from weft.engine.state import Activation, State, without
from weft.engine.timers import Timer
from weft.engine.turn.run import end_run
from weft.engine.variables.conditions import evaluate, same, value_at
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.conditions import Condition, Name
from weft.spec.flow import AgentWork


def go(compiled: CompiledWorkflow, state: State, key: str, target: str) -> list[Command]:
    """Continue a lane at a node."""
    set_lane(state, lane_of(state, key).replace(at=target))
    if state.stopping and lane_of(state, key).failing is None:
        return stop_when_idle(compiled, state)
    if target.startswith("/"):
        return _at_end(compiled, state, key, target)
    plan = plan_of(compiled)
    match node := plan.nodes[target]:
        case StepPlan(step=step):
            agent = step.work.agent if isinstance(step.work, AgentWork) else step.name
            return [Start(agent, step=step.name, lane=key)]
        case ApprovalPlan(approval=approval):
            return [Start(approval.name, step=approval.name, lane=key)]
        case BranchPlan() as branch:
            return _branch(compiled, state, key, target, branch)
        case ForkPlan(paths=paths):
            return [Record(Forked(target, tuple(path.name for path in paths), key), turn=0)]
        case _:
            return _entered(compiled, state, key, target, node.first)


def _at_end(compiled: CompiledWorkflow, state: State, key: str, target: str) -> list[Command]:
    if target == END:
        return [end_run(compiled, "completed", "the flow is complete")]
    if target == JOIN:
        return _path_ended(compiled, state, key)
    if target == FAILED:
        return after_path(compiled, state, key)
    if target == OVER:
        return end_failed_run(compiled, state, key)
    return _again(compiled, state, key, target.removeprefix(AGAIN))


def _branch(
    compiled: CompiledWorkflow, state: State, key: str, name: str, branch: BranchPlan
) -> list[Command]:
    values = values_in(state, key)
    try:
        value = _evaluate_branch(branch.on, values)
    except ExpressionError as error:
        return fail_node(compiled, state, key, name, f"{name} could not be evaluated: {error}")
    for case, target in branch.cases:
        if same(case, value):
            return [Record(Branched(name, target, "case", key), turn=0)]
    if branch.otherwise:
        return [Record(Branched(name, branch.otherwise, "otherwise", key), turn=0)]
    known = ", ".join(repr(case) for case, _ in branch.cases)
    reason = f"{name} has no case for this value; it has cases for {known}"
    return fail_node(compiled, state, key, name, reason)


def _evaluate_branch(on: Condition, values: Mapping[str, Json]) -> object:
    return value_at(values, on.name) if isinstance(on, Name) else evaluate(on, values)


def _entered(
    compiled: CompiledWorkflow, state: State, key: str, name: str, first: str
) -> list[Command]:
    """Begin a loop; a nested loop begins again each time."""
    lane = lane_of(state, key)
    set_lane(state, replace(lane, loops={**lane.loops, name: 1}))
    return go(compiled, state, key, first)


def _again(compiled: CompiledWorkflow, state: State, key: str, name: str) -> list[Command]:
    """Repeat a loop, or continue after it."""
    loop = cast("RepeatPlan", plan_of(compiled).nodes[name])
    count = lane_of(state, key).loops[name]
    try:
        ends = evaluate(loop.until, values_in(state, key))
    except ExpressionError as error:
        return fail_node(compiled, state, key, name, f"{name} could not be evaluated: {error}")
    if ends:
        return [Record(Branched(name, loop.next, "done", key), turn=0)]
    if count >= loop.limit:
        return [Record(Branched(name, loop.next, "limit", key), turn=0)]
    return [Record(Branched(name, loop.first, "again", key), turn=0)]


def on_branched(
    compiled: CompiledWorkflow, state: State, _event: Event, data: Branched
) -> list[Command]:
    """Continue at the target of the branch."""
    lane = lane_of(state, data.lane)
    if data.why == "again":
        set_lane(
            state, replace(lane, loops={**lane.loops, data.source: lane.loops[data.source] + 1})
        )
    elif data.why in ("done", "limit"):
        set_lane(state, replace(lane, loops=without(lane.loops, data.source)))
    return go(compiled, state, data.lane, data.target)


def on_turn_ended(
    compiled: CompiledWorkflow, state: State, event: Event, _data: TurnEnded
) -> list[Command]:
    """Apply the values of the attempt to its lane, and continue."""
    active = state.active[event.turn]
    run = run_of(active)
    key, own = run.lane, state.own[active.number]
    found = {name: (own.values[name], seq) for name, seq in own.set_by.items()}
    commands = set_values(compiled, state, key, found)
    lane = held = lane_of(state, key)
    if lane.deadline and not run.undoes:
        state.timers = state.timers.removed(lane.deadline)
        lane = lane.replace(deadline="")
    node = plan_of(compiled).nodes[active.step]
    counts = lane.failing is None or lane.failing.stage == "recovery"
    if isinstance(node, StepPlan) and node.step.compensate is not None and counts:
        done = Done(active.number, active.step, values_in(state, key))
        lane = lane.replace(done=(*lane.done, done))
    if active.agent in plan_of(compiled).remembered and not run.undoes:
        kept = _extend_thread(compiled, state, active)
        lane = lane.replace(threads={**lane.threads, active.agent: kept})
    if lane is not held:
        set_lane(state, lane)
    state.close_turns(active.number)
    if run.undoes:
        return [*commands, *on_compensated(compiled, state, key)]
    return [*commands, *_onward(compiled, state, active, key, node)]


def _onward(
    compiled: CompiledWorkflow, state: State, active: Activation, key: str, node: object
) -> list[Command]:
    branch = run_of(active).branch
    if branch is not None:
        return [Record(Branched(active.step, *branch, key), turn=0)]
    return go(compiled, state, key, cast("StepPlan | ApprovalPlan", node).next)


def _extend_thread(compiled: CompiledWorkflow, state: State, active: Activation) -> Log[Message]:
    """Return the conversation of an agent with its prompt and messages of this step."""
    run = run_of(active)
    thread = lane_of(state, run.lane).threads.get(active.agent) or Log[Message]()
    sent = (run.input or StepInput()).get("messages") or []
    prompts = [str(message["content"]) for message in sent if message["role"] == "user"]
    work = cast("AgentWork", work_of(compiled, active))
    told = prompts[-1] if prompts else fill_template(work.prompt, values_in(state, run.lane))
    asked = Message("user", "", told, active.seq)
    return thread.added(asked, *state.threads[active.number])


# -- parallel paths


def on_forked(
    compiled: CompiledWorkflow, state: State, event: Event, data: Forked
) -> list[Command]:
    """Begin all paths of a fork, each with the variables for itself."""
    plan = cast("ForkPlan", plan_of(compiled).nodes[data.name])
    flow, base = flow_of(state), values_in(state, data.lane)
    threads = lane_of(state, data.lane).threads
    lanes = [
        Lane(f"{event.seq}.{at}", path.first, event.seq, path.name, values=base, threads=threads)
        for at, path in enumerate(plan.paths)
    ]
    run = ForkRun(data.name, data.lane, tuple(each_lane.key for each_lane in lanes), base)
    state.flow = replace(
        flow,
        lanes={**flow.lanes, **{each_lane.key: each_lane for each_lane in lanes}},
        forks={**flow.forks, event.seq: run},
    )
    return [command for lane in lanes for command in go(compiled, state, lane.key, lane.at)]


def _path_ended(compiled: CompiledWorkflow, state: State, key: str) -> list[Command]:
    """End a path: at its end, recovered, or failed and compensated. Join after the last."""
    lane = lane_of(state, key)
    result: PathStatus = "success"
    if lane.failing is not None:
        result = "recovered" if lane.failing.stage == "recovery" else "failed"
    failure = lane.failing.failure if lane.failing is not None else None
    set_lane(state, replace(lane, result=result, failure=failure, failing=None, at=""))
    if state.stopping:
        return stop_when_idle(compiled, state)
    flow = flow_of(state)
    run = flow.forks[lane.fork]
    lanes = [flow.lanes[each_lane] for each_lane in run.lanes]
    if any(each_lane.result is None for each_lane in lanes):
        return []
    results = {each_lane.path: str(each_lane.result) for each_lane in lanes}
    return [Record(Joined(run.name, lane.fork, (), results=results), turn=0)]


def on_joined(
    compiled: CompiledWorkflow, state: State, _event: Event, data: Joined
) -> list[Command]:
    """Merge the values of the paths, and continue after them."""
    flow = flow_of(state)
    run = flow.forks[data.fork]
    lanes = [flow.lanes[lane] for lane in run.lanes]
    others = {key: lane for key, lane in flow.lanes.items() if key not in run.lanes}
    state.flow = replace(flow, lanes=others, forks=without(flow.forks, data.fork))
    kept = [lane for lane in lanes if lane.result != "failed"]
    parent = lane_of(state, run.lane)
    # In the order of the paths, so that their speed does not change the order of compensation.
    steps = [done for lane in kept for done in lane.done]
    set_lane(
        state,
        replace(
            parent,
            done=(*parent.done, *steps),
            joined={lane.path: {"status": lane.result, "failure": _plain(lane)} for lane in lanes},
            threads=_joined_threads(parent, kept),
        ),
    )
    if not kept:
        reasons = "; ".join(str((lane.failure or {}).get("message", "")) for lane in lanes)
        told = f"every path of {run.name} failed: {reasons}"
        return fail_node(compiled, state, run.lane, run.name, told)
    values, conflict = _merge_values(compiled, run, kept)
    if conflict:
        return fail_node(compiled, state, run.lane, run.name, conflict)
    commands = set_values(compiled, state, run.lane, values)
    join = cast("ForkPlan", plan_of(compiled).nodes[run.name]).join
    return [*commands, *go(compiled, state, run.lane, join)]


def _plain(lane: Lane) -> Json:
    return None if lane.failure is None else dict(lane.failure)


def _joined_threads(parent: Lane, lanes: list[Lane]) -> Mapping[str, object]:
    """Return the conversations of agents with the messages of the paths, in their order."""
    threads = dict(parent.threads)
    for lane in lanes:
        for agent, thread in lane.threads.items():
            before = len(parent.threads.get(agent, ()))
            news = thread.since(before)
            if news:
                held = threads.get(agent)
                threads[agent] = thread if held is None else held.added(*news)
    return threads


def _merge_values(
    compiled: CompiledWorkflow, run: ForkRun, lanes: list[Lane]
) -> tuple[dict[str, tuple[Json, int]], str]:
    """Return the values of the paths, each with its event, and the error if two conflict."""
    found: dict[str, tuple[Json, int]] = {}
    first: dict[str, str] = {}
    for lane in lanes:
        for name, seq in lane.set_by.items():
            value = lane.values[name]
            if name in found:
                rule = compiled.variables[name].merge
                before = run.base.get(name)
                value, fault = merge_values(rule, before, found[name][0], value)
                if fault:
                    told = f"{first[name]} and {lane.path} have both set {name}: {fault}"
                    return {}, f"the paths of {run.name} cannot be joined: {told}"
            first.setdefault(name, lane.path)
            found[name] = (value, seq)
    return found, ""


def on_timer(
    compiled: CompiledWorkflow, state: State, _event: Event, timer: Timer
) -> list[Command]:
    """Start the next attempt, or fail a step that missed its deadline."""
    flow = flow_of(state)
    wait = flow.waits.get(timer.id)
    if wait is not None and state.stopping:
        return stop_when_idle(compiled, state)
    if wait is not None:
        state.flow = replace(flow, waits=without(flow.waits, timer.id))
        step = plan_of(compiled).step(wait.step)
        return [start_attempt(step, wait)]
    lane = next(
        (each_lane for each_lane in flow.lanes.values() if each_lane.deadline == timer.id), None
    )
    if lane is None:
        return []
    active = next(
        (
            each_active
            for each_active in state.active.values()
            if each_active.flow and each_active.flow.lane == lane.key
        ),
        None,
    )
    if active is not None:
        return [overdue(compiled, state, active)]
    return give_up(compiled, state, lane)


def resume(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Return the steps that are due where a journal was cut between two of them."""
    if state.flow is None:
        return []
    flow = state.flow
    busy = {active.flow.lane for active in state.active.values() if active.flow is not None}
    busy |= {fork.lane for fork in flow.forks.values()} | {
        wait.lane for wait in flow.waits.values()
    }
    idle = [
        each_lane
        for each_lane in flow.lanes.values()
        if each_lane.key not in busy and each_lane.result is None
    ]
    commands: list[Command] = []
    for lane in sorted(idle, key=lambda each_lane: each_lane.failing is None):
        undoing = resume_compensation(compiled, state, lane)
        if undoing is not None:
            commands += undoing
        elif not (commands and state.stopping and lane.failing is None):
            # Of a run that is to stop, a lane that fails is finished first, and one stops the run.
            commands += go(compiled, state, lane.key, lane.at)
    return commands
