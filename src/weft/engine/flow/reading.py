"""What code of a step is told: what it is part of, what has failed, what it joins or undoes."""

import json
from collections.abc import Mapping
from typing import cast

from weft.engine.compiled import CompiledWorkflow
from weft.engine.flow.lanes import flow_of, lane_of, plan_of
from weft.engine.flow.plan import ForkPlan
from weft.engine.flow.state import StepRun
from weft.engine.state import Activation, State
from weft.findings import Json
from weft.spec.flow import Step, Work
from weft.spec.templates import parse_template


def step_of(compiled: CompiledWorkflow, active: Activation) -> Step:
    """Return the step that an activation does or undoes."""
    return plan_of(compiled).step(active.step).step


def run_of(active: Activation) -> StepRun:
    """Return the attempt of a step."""
    assert active.flow is not None  # noqa: S101 - every turn of a flow has one
    return active.flow


def work_of(compiled: CompiledWorkflow, active: Activation) -> Work:
    """Return what does the work of an activation."""
    step = step_of(compiled, active)
    run = run_of(active)
    return cast("Work", step.compensate) if run.undoes else step.work


def filled(template: str, values: Mapping[str, Json]) -> str:
    """Return a text with the values of variables in their places."""
    parts = parse_template(template)
    return "".join(it if isinstance(it, str) else _shown(values.get(it.name)) for it in parts)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def failure_of(state: State, active: Activation) -> Mapping[str, Json] | None:
    """Return the failure that is being handled in the lane of an activation, or above it."""
    key = run_of(active).lane
    while True:
        lane = lane_of(state, key)
        if lane.failing is not None:
            return lane.failing.failure
        if not key:
            return None
        key = flow_of(state).forks[lane.fork].lane


def paths_of(
    compiled: CompiledWorkflow, state: State, active: Activation
) -> Mapping[str, Mapping[str, Json]]:
    """Return how the paths ended that a step joins, by name; empty for any other step."""
    nodes = plan_of(compiled).nodes.values()
    if not any(isinstance(it, ForkPlan) and it.join == active.step for it in nodes):
        return {}
    return lane_of(state, run_of(active).lane).joined


def undone_of(state: State, active: Activation) -> Mapping[str, Json] | None:
    """Return what an activation undoes: the step, its turn, and the values right after it.

    Of a step that has failed itself, these are the values it was begun with.
    """
    run = run_of(active)
    if not run.undoes:
        return None
    failing = lane_of(state, run.lane).failing
    done = next((it for it in (failing.undo if failing else ()) if it.turn == run.undoes), None)
    values = state.values_of(active.number) if done is None else done.values
    return {"step": active.step, "turn": run.undoes, "state": dict(values)}
