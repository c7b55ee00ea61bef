"""Runs of flows that are taken up at one of their steps, with other values."""

import asyncio

import pytest

from support.flow_hosts import SCOPE, FlowPlay, derived, step
from weft.engine.events import Event, TimerSet
from weft.inspect.replay import check_replay


def add(state):
    """Add what is to be added."""
    return {"total": state["total"] + state["more"]}


def refuse(state):
    """Fail, unless there is enough."""
    if state["total"] < 5:
        raise ValueError("too little")
    return {}


def forked(play, spec, turn, **values):
    """Play a run, fork it at a turn, and return the state of the fork and its events."""

    async def whole():
        async with play.host(spec) as host:
            run = await host.start("F", scope=SCOPE, run="r1")
            await host.settled(run, scope=SCOPE)
            child = await host.fork(run, scope=SCOPE, turn=turn, values=values)
            await host.settled(child, scope=SCOPE)
            events = [event async for event in host.events(child, scope=SCOPE)]
            workflow = await host.workflow(child, scope=SCOPE)
            return await host.state(child, scope=SCOPE), events, workflow, child

    state, found, workflow, child = asyncio.run(whole())
    events = [item for item in found if isinstance(item, Event)]
    assert check_replay(workflow, child, events) == []
    return state, events


VARIABLES = {"total": derived("int", 0), "more": derived("int", 1), "seen": derived("int", 0)}


def test_a_step_is_given_what_the_fork_edits():
    play = FlowPlay()
    spec = play.spec(
        step("add", play.function(add)), step("refuse", play.function(refuse)), variables=VARIABLES
    )
    state, _ = forked(play, spec, 1, more=7)
    assert (state.outcome, state.variables["total"]) == ("completed", 7)
    play = FlowPlay()
    spec = play.spec(
        step("add", play.function(add)), step("refuse", play.function(refuse)), variables=VARIABLES
    )
    state, _ = forked(play, spec, 2, total=5)
    assert (state.outcome, state.variables["total"]) == ("completed", 5)


@pytest.mark.parametrize("turn", [1, 2])
def test_paths_side_by_side_are_given_it_too_and_join_without_conflict(turn):
    play = FlowPlay()

    def look(state):
        return {"seen": state["more"]}

    fork = {
        "kind": "fork",
        "name": "both",
        "paths": [
            {"name": "a", "steps": [step("add", play.function(add))]},
            {"name": "b", "steps": [step("look", play.function(look))]},
        ],
        "join": step("refuse", play.function(refuse)),
    }
    state, _ = forked(play, play.spec(fork, variables=VARIABLES), turn, more=9)
    assert state.outcome == "completed"
    assert (state.variables["total"], state.variables["seen"]) == (9, 9)
    assert state.variables["more"] == 9


def test_a_step_has_all_of_its_time_again():
    play = FlowPlay()
    one = step("refuse", play.function(refuse), timeout_seconds=30)
    state, events = forked(play, play.spec(one, variables=VARIABLES), 1, total=5)
    assert state.outcome == "completed"
    timers = [event for event in events if isinstance(event.data, TimerSet)]
    assert [timer.data.at - timer.at for timer in timers] == [30_000]
    assert timers[0].seq > 2
