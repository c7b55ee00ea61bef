"""Lanes of a flow: the position and the variables of each, and the inputs of a step's code."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import VariableSet
from weft.engine.flow.plan import FlowPlan, ForkPlan
from weft.engine.flow.state import FlowState, Lane, StepRun
from weft.engine.state import Activation, OwnValues, State
from weft.engine.variables.computed import recompute
from weft.engine.variables.values import queue_documents
from weft.findings import Json
from weft.spec.flow import Step, Work
from weft.spec.templates import parse_template


def plan_of(compiled: CompiledWorkflow) -> FlowPlan:
    """Return the plan of a workflow that is a flow."""
    assert compiled.flow is not None  # noqa: S101 - the kinds of its events belong to flows
    return compiled.flow


def flow_of(state: State) -> FlowState:
    """Return the state of a flow."""
    assert state.flow is not None  # noqa: S101 - as above
    return state.flow


def lane_of(state: State, key: str) -> Lane:
    """Return a lane; the key of the main lane is empty."""
    return flow_of(state).lanes[key]


def set_lane(state: State, lane: Lane) -> None:
    """Store a lane."""
    state.flow = flow_of(state).with_lane(lane)


def values_in(state: State, key: str) -> Mapping[str, Json]:
    """Return the variables as a lane has them."""
    return lane_of(state, key).values if key else state.variables


def edit_lanes(state: State, data: VariableSet) -> None:
    """Apply an edit of a forked run to the values that paths and attempts have copied."""
    value, flow = {data.name: data.value}, flow_of(state)
    state.flow = replace(
        flow,
        lanes={
            key: replace(lane, values={**lane.values, **value}) if key else lane
            for key, lane in flow.lanes.items()
        },
        forks={key: replace(fork, base={**fork.base, **value}) for key, fork in flow.forks.items()},
    )
    state.own = {
        turn: OwnValues({**own.values, **value}, own.set_by) for turn, own in state.own.items()
    }


def set_values(
    compiled: CompiledWorkflow, state: State, key: str, found: Mapping[str, tuple[Json, int]]
) -> list[Command]:
    """Set values in a lane, and the variables that are computed from them."""
    if not found:
        return []
    values = {name: value for name, (value, _) in found.items()}
    set_by = {name: seq for name, (_, seq) in found.items()}
    if key:
        lane = lane_of(state, key)
        set_lane(
            state,
            replace(lane, values={**lane.values, **values}, set_by={**lane.set_by, **set_by}),
        )
        return []
    state.variables = {**state.variables, **values}
    state.set_by = {**state.set_by, **set_by}
    rules = compiled.computed
    followed = [
        Record(write, 0) for name in found for write in recompute(rules, state.variables, name)
    ]
    return [*followed, *queue_documents(compiled, state, values)]


# -- what the code of a step is given


def step_of(compiled: CompiledWorkflow, active: Activation) -> Step:
    """Return the step that an activation does or undoes."""
    return plan_of(compiled).step(active.step).step


def run_of(active: Activation) -> StepRun:
    """Return the attempt of a step."""
    assert active.flow is not None  # noqa: S101 - every turn of a flow has one
    return active.flow


def work_of(compiled: CompiledWorkflow, active: Activation) -> Work:
    """Return the work of an activation: an agent or a function."""
    step = step_of(compiled, active)
    run = run_of(active)
    return cast("Work", step.compensate) if run.undoes else step.work


def fill_template(template: str, values: Mapping[str, Json]) -> str:
    """Return a template with the values of its variables."""
    parts = parse_template(template)
    return "".join(
        part if isinstance(part, str) else _value_text(values.get(part.name)) for part in parts
    )


def _value_text(value: Json) -> str:
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
    if not any(isinstance(node, ForkPlan) and node.join == active.step for node in nodes):
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
    done = next(
        (
            each_done
            for each_done in (failing.undo if failing else ())
            if each_done.turn == run.undoes
        ),
        None,
    )
    values = state.values_of(active.number) if done is None else done.values
    return {"step": active.step, "turn": run.undoes, "state": dict(values)}
