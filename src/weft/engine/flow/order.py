"""The order of steps: what comes next in a line, and what becomes of paths side by side."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from weft.engine.commands import Command, Record, Start
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation.groups import joined_value
from weft.engine.events import Branched, Event, Forked, Joined
from weft.engine.flow import failure as flow_failure
from weft.engine.flow.lanes import (
    flow_of,
    lane_of,
    plan_of,
    set_lane,
    set_values,
    values_in,
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
from weft.engine.flow.state import ForkRun, Lane, PathStatus
from weft.engine.state import State, Timer, without
from weft.engine.turn.run import end_run
from weft.engine.variables.conditions import evaluate, same, value_at
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.conditions import Condition, Name
from weft.spec.flow import AgentWork


def go(compiled: CompiledWorkflow, state: State, key: str, target: str) -> list[Command]:
    """Go on at a place in a lane."""
    set_lane(state, lane_of(state, key).replace(at=target))
    if state.stopping and lane_of(state, key).failing is None:
        return flow_failure.rest(compiled, state)
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
            return [Record(Forked(target, tuple(it.name for it in paths), key), turn=0)]
        case _:
            return _entered(compiled, state, key, target, node.first)


def _at_end(compiled: CompiledWorkflow, state: State, key: str, target: str) -> list[Command]:
    if target == END:
        return [end_run(compiled, "completed", "the flow has come to its end")]
    if target == JOIN:
        return _path_ended(compiled, state, key)
    if target == FAILED:
        return flow_failure.after_path(compiled, state, key)
    if target == OVER:
        return flow_failure.over(compiled, state, key)
    return _again(compiled, state, key, target.removeprefix(AGAIN))


def _branch(
    compiled: CompiledWorkflow, state: State, key: str, name: str, branch: BranchPlan
) -> list[Command]:
    values = values_in(state, key)
    try:
        value = _asked(branch.on, values)
    except ExpressionError as error:
        return flow_failure.fail(compiled, state, key, name, f"{name} has no answer: {error}")
    for case, target in branch.cases:
        if same(case, value):
            return [Record(Branched(name, target, "case", key), turn=0)]
    if branch.otherwise:
        return [Record(Branched(name, branch.otherwise, "otherwise", key), turn=0)]
    known = ", ".join(repr(case) for case, _ in branch.cases)
    reason = f"{name} has no case for this value; it has cases for {known}"
    return flow_failure.fail(compiled, state, key, name, reason)


def _asked(on: Condition, values: Mapping[str, Json]) -> object:
    return value_at(values, on.name) if isinstance(on, Name) else evaluate(on, values)


def _entered(
    compiled: CompiledWorkflow, state: State, key: str, name: str, first: str
) -> list[Command]:
    """Begin a loop; one that is in another begins anew each time."""
    lane = lane_of(state, key)
    set_lane(state, replace(lane, loops={**lane.loops, name: 1}))
    return go(compiled, state, key, first)


def _again(compiled: CompiledWorkflow, state: State, key: str, name: str) -> list[Command]:
    """Go through a loop once more, or go on after it."""
    loop = cast("RepeatPlan", plan_of(compiled).nodes[name])
    count = lane_of(state, key).loops[name]
    try:
        over = evaluate(loop.until, values_in(state, key))
    except ExpressionError as error:
        return flow_failure.fail(compiled, state, key, name, f"{name} has no answer: {error}")
    if over:
        return [Record(Branched(name, loop.next, "done", key), turn=0)]
    if count >= loop.limit:
        return [Record(Branched(name, loop.next, "limit", key), turn=0)]
    return [Record(Branched(name, loop.first, "again", key), turn=0)]


def on_branched(
    compiled: CompiledWorkflow, state: State, _event: Event, data: Branched
) -> list[Command]:
    """Go on where the branch leads."""
    lane = lane_of(state, data.lane)
    if data.why == "again":
        set_lane(
            state, replace(lane, loops={**lane.loops, data.source: lane.loops[data.source] + 1})
        )
    elif data.why in ("done", "limit"):
        set_lane(state, replace(lane, loops=without(lane.loops, data.source)))
    return go(compiled, state, data.lane, data.target)


# -- side by side


def on_forked(
    compiled: CompiledWorkflow, state: State, event: Event, data: Forked
) -> list[Command]:
    """Begin all paths of a fork, each with the variables for itself."""
    plan = cast("ForkPlan", plan_of(compiled).nodes[data.name])
    flow, base = flow_of(state), values_in(state, data.lane)
    threads = lane_of(state, data.lane).threads
    lanes = [
        Lane(f"{event.seq}.{at}", it.first, event.seq, it.name, values=base, threads=threads)
        for at, it in enumerate(plan.paths)
    ]
    run = ForkRun(data.name, data.lane, tuple(it.key for it in lanes), base)
    state.flow = replace(
        flow,
        lanes={**flow.lanes, **{it.key: it for it in lanes}},
        forks={**flow.forks, event.seq: run},
    )
    return [it for lane in lanes for it in go(compiled, state, lane.key, lane.at)]


def _path_ended(compiled: CompiledWorkflow, state: State, key: str) -> list[Command]:
    """Let a path be over: at its end, recovered, or failed and undone. Join after the last."""
    lane = lane_of(state, key)
    result: PathStatus = "success"
    if lane.failing is not None:
        result = "recovered" if lane.failing.stage == "recovery" else "failed"
    failure = lane.failing.failure if lane.failing is not None else None
    set_lane(state, replace(lane, result=result, failure=failure, failing=None, at=""))
    if state.stopping:
        return flow_failure.rest(compiled, state)
    flow = flow_of(state)
    run = flow.forks[lane.fork]
    lanes = [flow.lanes[it] for it in run.lanes]
    if any(it.result is None for it in lanes):
        return []
    results = {it.path: str(it.result) for it in lanes}
    return [Record(Joined(run.name, lane.fork, (), results=results), turn=0)]


def on_joined(
    compiled: CompiledWorkflow, state: State, _event: Event, data: Joined
) -> list[Command]:
    """Let count what the paths have set, and go on after them."""
    flow = flow_of(state)
    run = flow.forks[data.fork]
    lanes = [flow.lanes[it] for it in run.lanes]
    rest = {key: it for key, it in flow.lanes.items() if key not in run.lanes}
    state.flow = replace(flow, lanes=rest, forks=without(flow.forks, data.fork))
    kept = [it for it in lanes if it.result != "failed"]
    parent = lane_of(state, run.lane)
    # In the order of the paths: which was faster makes no difference to what is undone first.
    steps = [done for it in kept for done in it.done]
    set_lane(
        state,
        replace(
            parent,
            done=(*parent.done, *steps),
            joined={it.path: {"status": it.result, "failure": _plain(it)} for it in lanes},
            threads=_joined_threads(parent, kept),
        ),
    )
    if not kept:
        reasons = "; ".join(str((it.failure or {}).get("message", "")) for it in lanes)
        told = f"every path of {run.name} failed: {reasons}"
        return flow_failure.fail(compiled, state, run.lane, run.name, told)
    values, conflict = _joined_values(compiled, run, kept)
    if conflict:
        return flow_failure.fail(compiled, state, run.lane, run.name, conflict)
    commands = set_values(compiled, state, run.lane, values)
    join = cast("ForkPlan", plan_of(compiled).nodes[run.name]).join
    return [*commands, *go(compiled, state, run.lane, join)]


def _plain(lane: Lane) -> Json:
    return None if lane.failure is None else dict(lane.failure)


def _joined_threads(parent: Lane, lanes: list[Lane]) -> Mapping[str, object]:
    """Return the conversations of agents with what was said in the paths, in their order."""
    threads = dict(parent.threads)
    for lane in lanes:
        for agent, thread in lane.threads.items():
            before = len(parent.threads.get(agent, ()))
            news = thread.since(before)
            if news:
                held = threads.get(agent)
                threads[agent] = thread if held is None else held.added(*news)
    return threads


def _joined_values(
    compiled: CompiledWorkflow, run: ForkRun, lanes: list[Lane]
) -> tuple[dict[str, tuple[Json, int]], str]:
    """Return what the paths have set, with the event of each; and which cannot be joined."""
    found: dict[str, tuple[Json, int]] = {}
    first: dict[str, str] = {}
    for lane in lanes:
        for name, seq in lane.set_by.items():
            value = lane.values[name]
            if name in found:
                rule = compiled.variables[name].merge
                before = run.base.get(name)
                value, fault = joined_value(rule, before, found[name][0], value)
                if fault:
                    told = f"{first[name]} and {lane.path} have both set {name}: {fault}"
                    return {}, f"the paths of {run.name} cannot be joined: {told}"
            first.setdefault(name, lane.path)
            found[name] = (value, seq)
    return found, ""


def late(compiled: CompiledWorkflow, state: State, timer: Timer) -> list[Command]:
    """Make the next attempt, or give up what was not done in time."""
    flow = flow_of(state)
    wait = flow.waits.get(timer.id)
    if wait is not None and state.stopping:
        return flow_failure.rest(compiled, state)
    if wait is not None:
        state.flow = replace(flow, waits=without(flow.waits, timer.id))
        step = plan_of(compiled).step(wait.step)
        return [flow_failure.start(step, wait)]
    lane = next((it for it in flow.lanes.values() if it.deadline == timer.id), None)
    if lane is None:
        return []
    active = next(
        (it for it in state.active.values() if it.flow and it.flow.lane == lane.key), None
    )
    if active is not None:
        return [flow_failure.overdue(compiled, state, active)]
    return flow_failure.give_up(compiled, state, lane)


def resume(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Return the steps that are due where a journal was cut between two of them."""
    if state.flow is None:
        return []
    flow = state.flow
    busy = {it.flow.lane for it in state.active.values() if it.flow is not None}
    busy |= {it.lane for it in flow.forks.values()} | {it.lane for it in flow.waits.values()}
    idle = [it for it in flow.lanes.values() if it.key not in busy and it.result is None]
    commands: list[Command] = []
    for lane in idle:
        undoing = flow_failure.restart(compiled, state, lane)
        commands += go(compiled, state, lane.key, lane.at) if undoing is None else undoing
    return commands
