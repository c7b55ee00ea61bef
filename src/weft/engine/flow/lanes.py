"""Lanes: where a run of a flow is, and the variables as each line of steps has them."""

from collections.abc import Mapping
from dataclasses import replace

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import VariableSet
from weft.engine.flow.plan import FlowPlan
from weft.engine.flow.state import FlowState, Lane
from weft.engine.state import OwnValues, State
from weft.engine.variables import documents
from weft.engine.variables.computed import follow
from weft.findings import Json


def plan_of(compiled: CompiledWorkflow) -> FlowPlan:
    """Return the plan of a workflow that is a flow."""
    assert compiled.flow is not None  # noqa: S101 - the kinds of its events belong to flows
    return compiled.flow


def flow_of(state: State) -> FlowState:
    """Return where a run of a flow is."""
    assert state.flow is not None  # noqa: S101 - as above
    return state.flow


def lane_of(state: State, key: str) -> Lane:
    """Return a lane; the main line has the empty key."""
    return flow_of(state).lanes[key]


def set_lane(state: State, lane: Lane) -> None:
    """Keep a lane as it is now."""
    state.flow = flow_of(state).with_lane(lane)


def values_in(state: State, key: str) -> Mapping[str, Json]:
    """Return the variables as a lane has them."""
    return lane_of(state, key).values if key else state.variables


def edit_lanes(state: State, data: VariableSet) -> None:
    """Let what a fork edits count wherever values were taken before: in paths and attempts."""
    value, flow = {data.name: data.value}, flow_of(state)
    state.flow = replace(
        flow,
        lanes={
            key: replace(it, values={**it.values, **value}) if key else it
            for key, it in flow.lanes.items()
        },
        forks={key: replace(it, base={**it.base, **value}) for key, it in flow.forks.items()},
    )
    state.own = {
        turn: OwnValues({**own.values, **value}, own.set_by) for turn, own in state.own.items()
    }


def set_values(
    compiled: CompiledWorkflow, state: State, key: str, found: Mapping[str, tuple[Json, int]]
) -> list[Command]:
    """Let values count in a lane, and work out what follows from them."""
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
    followed = [Record(it, 0) for name in found for it in follow(rules, state.variables, name)]
    return [*followed, *documents.changed(compiled, state, values)]
