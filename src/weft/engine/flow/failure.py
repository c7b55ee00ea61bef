"""Failures of steps, in the order of docs/decisions/0012: retry, failure path, compensation, end.

Only the failure path of a fork's path repairs a run. Completed steps are compensated newest first,
each at most once.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal, cast

from weft.engine.commands import Command, Record, Start
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import Branched, Event, TimerSet, TurnFailed
from weft.engine.flow.lanes import flow_of, lane_of, plan_of, set_lane, values_in
from weft.engine.flow.plan import JOIN, ForkPlan, NodePlan, PathPlan, StepPlan
from weft.engine.flow.state import Done, Failing, FailureStage, FlowState, Lane, StepRun, Wait
from weft.engine.state import Activation, State, without
from weft.engine.turn.run import close_all, end_run, stop_after_turn
from weft.findings import Json
from weft.spec.flow import AgentWork, Retry

#: The longest time between two attempts, in seconds, and the share of a delay that is by chance.
LONGEST_DELAY: Final = 60.0
JITTER: Final = 0.5

#: The reasons for a branch.
Why = Literal["failure", "recovery"]

#: The prefix of the timer of the next attempt; the turn of the last attempt follows.
RETRY: Final = "retry:"

#: With more doublings every delay is the longest one.
_MOST_DOUBLINGS: Final = 16

#: Failures that are not retried.
_FINAL: Final = ("deadline", "guard")


def failure_record(
    state: State, active: Activation, error: str, message: str, stack: str = ""
) -> dict[str, Json]:
    """Return the record of a failure: step, attempt, error, and a hash of the input."""
    run = active.flow
    values = values_in(state, run.lane) if run is not None else state.variables
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    return {
        "step": active.step,
        "attempt": run.attempt if run is not None else 1,
        "type": error,
        "message": message,
        "stack": stack,
        "input": digest,
    }


def handle_failure(
    compiled: CompiledWorkflow, state: State, event: Event, active: Activation, data: TurnFailed
) -> list[Command]:
    """Retry, or handle the failure. The values of the attempt are discarded."""
    run = cast("StepRun", active.flow)
    state.close_turns(active.number)
    step = plan_of(compiled).nodes[active.step]
    retry = step.step.retry if isinstance(step, StepPlan) and not run.undoes else None
    more = retry is not None and run.attempt < retry.attempts and data.kind not in _FINAL
    if retry is not None and more and not state.stopping:
        return _retry(compiled, state, event, active, retry)
    _forget_deadline(state, run.lane)
    if run.undoes:
        _note(state, run.lane, f"compensating {active.step} failed: {data.error}")
    failure = {
        **(data.failure or failure_record(state, active, data.kind, data.error)),
        "at": event.at,
    }
    turn = 0 if data.kind == "guard" else active.number
    return fail_node(compiled, state, run.lane, active.step, data.error, failure, turn)


def _retry(
    compiled: CompiledWorkflow, state: State, event: Event, active: Activation, retry: Retry
) -> list[Command]:
    """Start the next attempt, after its delay."""
    run = cast("StepRun", active.flow)
    wait = Wait(run.lane, active.step, run.attempt + 1)
    times = 2 ** min(run.attempt - 1, _MOST_DOUBLINGS)
    delay = min(retry.delay_seconds * times, LONGEST_DELAY)
    pause = round(delay * 1000 * (1 - JITTER * _draw(state.run, active.step, run.attempt)))
    if pause <= 0:
        return [start_attempt(plan_of(compiled).step(active.step), wait)]
    timer = f"{RETRY}{active.number}"
    at = flow_of(state)
    state.flow = replace(at, waits={**at.waits, timer: wait})
    return [Record(TimerSet(timer, event.at + pause, "flow"), turn=0)]


def _note(state: State, key: str, told: str) -> None:
    """Add an error to the reason of the failure that is being handled."""
    lane = lane_of(state, key)
    failing = cast("Failing", lane.failing)
    _at(state, lane, replace(failing, reason=f"{failing.reason}; {told}"), failing.stage)


def _draw(*parts: object) -> float:
    """Return a pseudo-random number from 0 to 1, so that runs do not all retry at once."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def start_attempt(step: StepPlan, wait: Wait) -> Start:
    """Return the next attempt at a step, or at undoing one."""
    work = step.step.compensate if wait.undoes else step.step.work
    agent = work.agent if isinstance(work, AgentWork) else step.step.name
    return Start(agent, step=wait.step, lane=wait.lane, attempt=wait.attempt, undoes=wait.undoes)


def overdue(compiled: CompiledWorkflow, state: State, active: Activation) -> Command:
    """Return the failure of an attempt that did not finish before the deadline of its step."""
    told = _missed_deadline(compiled, active.step)
    failure = failure_record(state, active, "TimeoutError", told)
    return Record(TurnFailed(active.agent, told, "deadline", failure), active.number)


def _missed_deadline(compiled: CompiledWorkflow, step: str) -> str:
    seconds = plan_of(compiled).step(step).step.timeout_seconds
    return f"{step} did not finish within {seconds:g} s"


def give_up(compiled: CompiledWorkflow, state: State, lane: Lane) -> list[Command]:
    """Make no further attempt at a step that waits for its next one."""
    name, told = lane.at, _missed_deadline(compiled, lane.at)
    at = flow_of(state)
    timer, wait = next(
        (key, each_wait) for key, each_wait in at.waits.items() if each_wait.lane == lane.key
    )
    state.flow = replace(at, waits=without(at.waits, timer))
    state.timers = state.timers.removed(timer)
    set_lane(state, replace(lane, deadline=""))
    turn = int(timer.removeprefix(RETRY))
    last = Activation("", turn, step=name, flow=StepRun(lane.key, wait.attempt - 1))
    failure = failure_record(state, last, "TimeoutError", told)
    return fail_node(compiled, state, lane.key, name, told, failure, turn)


def _forget_deadline(state: State, key: str) -> None:
    lane = lane_of(state, key)
    if lane.deadline:
        state.timers = state.timers.removed(lane.deadline)
        set_lane(state, replace(lane, deadline=""))


def fail_node(
    compiled: CompiledWorkflow,
    state: State,
    key: str,
    name: str,
    reason: str,
    failure: Mapping[str, Json] | None = None,
    turn: int = 0,
) -> list[Command]:
    """Handle the failure of a node; `turn` is its last attempt, 0 if none was made."""
    lane = lane_of(state, key)
    if lane.failing is not None:
        return _next_stage(compiled, state, lane, lane.failing)
    known = failure or {"step": name, "attempt": 0, "type": "FlowError", "message": reason}
    _at(state, lane, Failing(name, turn, reason, known))
    node = plan_of(compiled).nodes[name]
    if isinstance(node, StepPlan) and node.on_failure:
        return [_branched(lane_of(state, key), node.on_failure, "failure")]
    return after_path(compiled, state, key)


def _branched(lane: Lane, target: str, why: Why) -> Command:
    failing = cast("Failing", lane.failing)
    return Record(Branched(failing.step, target, why, lane.key), turn=0)


def _next_stage(
    compiled: CompiledWorkflow, state: State, lane: Lane, failing: Failing
) -> list[Command]:
    """Begin the stage after one that has ended or failed."""
    match failing.stage:
        case "path":
            return after_path(compiled, state, lane.key)
        case "own":
            return _after_own(compiled, state, lane.key)
        case "recovery":
            return _undo_all(compiled, state, lane, failing)
        case "undo":
            _at(state, lane, replace(failing, undo=failing.undo[1:]), "undo")
            return _undo_next(compiled, state, lane.key)
        case _:
            return end_failed_run(compiled, state, lane.key)


def on_compensated(compiled: CompiledWorkflow, state: State, key: str) -> list[Command]:
    """Continue after a step was compensated."""
    lane = lane_of(state, key)
    return _next_stage(compiled, state, lane, cast("Failing", lane.failing))


def after_path(compiled: CompiledWorkflow, state: State, key: str) -> list[Command]:
    """After the failure path of a step: undo what its attempts may have done."""
    lane = lane_of(state, key)
    failing = cast("Failing", lane.failing)
    node = plan_of(compiled).nodes.get(failing.step)
    if failing.turn and isinstance(node, StepPlan) and _is_undone(node):
        _at(state, lane, failing, "own")
        return [start_attempt(node, Wait(key, failing.step, 1, failing.turn))]
    return _after_own(compiled, state, key)


def _after_own(compiled: CompiledWorkflow, state: State, key: str) -> list[Command]:
    lane = lane_of(state, key)
    failing = cast("Failing", lane.failing)
    recovery = _path_of(compiled, state, lane).on_failure if key else ""
    if recovery:
        _at(state, lane, failing, "recovery")
        return [_branched(lane, recovery, "recovery")]
    return _undo_all(compiled, state, lane, failing)


def _path_of(compiled: CompiledWorkflow, state: State, lane: Lane) -> PathPlan:
    run = flow_of(state).forks[lane.fork]
    fork = cast("ForkPlan", plan_of(compiled).nodes[run.name])
    return next(path for path in fork.paths if path.name == lane.path)


def _undo_all(
    compiled: CompiledWorkflow, state: State, lane: Lane, failing: Failing
) -> list[Command]:
    """Undo the completed steps of a lane, newest first."""
    undo = tuple(reversed(lane.done))
    _at(state, replace(lane, done=()), replace(failing, undo=undo), "undo")
    return _undo_next(compiled, state, lane.key)


def _undo_next(compiled: CompiledWorkflow, state: State, key: str) -> list[Command]:
    lane = lane_of(state, key)
    failing = cast("Failing", lane.failing)
    if failing.undo:
        done = failing.undo[0]
        return [
            start_attempt(plan_of(compiled).step(done.step), Wait(key, done.step, 1, done.turn))
        ]
    if key:  # The path has failed.
        return [_branched(lane, JOIN, "failure")]
    path = plan_of(compiled).on_failure
    if path and failing.outcome == "failed":
        _at(state, lane, failing, "workflow")
        return [_branched(lane, path, "failure")]
    return end_failed_run(compiled, state, key)


def end_failed_run(compiled: CompiledWorkflow, state: State, key: str) -> list[Command]:
    """End a run whose failure or cancellation has been handled."""
    failing = cast("Failing", lane_of(state, key).failing)
    return [end_run(compiled, failing.outcome, failing.reason)]


def _at(state: State, lane: Lane, failing: Failing, stage: FailureStage = "path") -> None:
    set_lane(state, replace(lane, failing=replace(failing, stage=stage)))


def stop_when_idle(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Stop a run that is to stop, once no step runs; approvals are not waited for."""
    if any(active.stage != "approval" for active in state.active.values()):
        return []
    return cancel(compiled, state)


def cancel(compiled: CompiledWorkflow, state: State, reason: str = "") -> list[Command]:
    """Cancel a run; compensate its steps if `compensate_on_cancel` is set."""
    if not plan_of(compiled).spec.compensate_on_cancel:
        return [end_run(compiled, "cancelled", reason)] if reason else [stop_after_turn(compiled)]
    told = reason or "stopped on request after the turn"
    plan = plan_of(compiled)
    found = (done_step for done_step in _undoable(state) if _is_undone(plan.nodes[done_step.step]))
    done = sorted((entry for entry in found if entry.turn), key=lambda entry: entry.turn)
    close_all(state)
    state.flow = FlowState({"": Lane(done=tuple(done))})
    failing = Failing("", 0, told, {"message": told}, outcome="cancelled")
    return _undo_all(compiled, state, lane_of(state, ""), failing)


def _is_undone(node: NodePlan) -> bool:
    return isinstance(node, StepPlan) and node.step.compensate is not None


def _undoable(state: State) -> Iterator[Done]:
    """Yield the steps to compensate: those that were done or may have been."""
    at = flow_of(state)
    for lane in at.lanes.values():
        yield from lane.done
        failing = lane.failing
        if failing is not None:
            yield from failing.undo
        if failing is not None and failing.stage == "path":
            yield Done(failing.turn, failing.step, values_in(state, lane.key))
    for active in state.active.values():
        key = cast("StepRun", active.flow).lane
        yield Done(active.number, active.step, values_in(state, key))
    for timer, wait in at.waits.items():
        turn = int(timer.removeprefix(RETRY))
        yield Done(turn, wait.step, values_in(state, wait.lane))


def stop(compiled: CompiledWorkflow, state: State, user: str) -> list[Command]:
    """Stop a run now; compensations under way are finished first if a stop compensates too."""
    working = [
        each_active
        for each_active in state.active.values()
        if not cast("StepRun", each_active.flow).undoes
    ]
    if len(working) == len(state.active) or not plan_of(compiled).spec.compensate_on_cancel:
        return cancel(compiled, state, f"stopped by {user}")
    state.stopping = True
    for active in working:
        key = cast("StepRun", active.flow).lane
        lane = lane_of(state, key)
        begun = Done(active.number, active.step, values_in(state, key))
        set_lane(state, replace(lane, done=(*lane.done, begun)))
    state.close_turns(*(each_active.number for each_active in working))
    return []


def resume_compensation(
    compiled: CompiledWorkflow, state: State, lane: Lane
) -> list[Command] | None:
    """Return the compensation that is due after a restart; None if there is none."""
    match lane.failing.stage if lane.failing is not None else None:
        case "own":
            return after_path(compiled, state, lane.key)
        case "undo":
            return _undo_next(compiled, state, lane.key)
        case _:
            return None
