"""Groups as those see them who look at a run: inspection, limits, end users."""

import json

import pytest

from behaviour.bad_run_play import ADA, play
from support.group_play import CODE, team
from weft.context.audience import Audience
from weft.engine.events import Event, Joined
from weft.inspect.run import inspect_run
from weft.testing import ScriptedModel, call, host_for
from weft.wire.events import event_data, user_event_data

BY = {"Ann": call("count", by=7), "Ben": call("count", by=2)}


def script(**replies):
    lines = {"Lead": ["go"], "Cas": ["same"], "Editor": ["over"]}
    return ScriptedModel({**lines, **{name: [BY[name], reply] for name, reply in replies.items()}})


def run(spec, model):
    async def scenario():
        async with host_for(spec, model, code=CODE) as host:
            await host.start("Side", scope=ADA, message="write", run="run")
            await host.settled("run", scope=ADA)
            events = [
                event async for event in host.events("run", scope=ADA) if isinstance(event, Event)
            ]
            state = await host.state("run", scope=ADA)
            return await host.workflow("run", scope=ADA), state, events

    return play(scenario)


@pytest.mark.parametrize(
    ("merge", "replies", "total"),
    [
        ("majority", {"Ann": "other", "Ben": "same"}, 2),
        ("majority", {"Ben": "other", "Ann": "same"}, 7),
        ("concatenate", {"Ann": "a", "Ben": "b"}, 7),
    ],
)
def test_inspection_shows_the_value_that_counts_and_who_set_it(merge, replies, total):
    workflow, state, events = run(team(merge=merge), script(**replies))
    assert state.variables["total"] == total
    record = next(
        variable
        for variable in inspect_run(workflow, "run", events).variables
        if variable.name == "total"
    )
    assert (record.value, record.causes[0].seq) == (total, state.set_by["total"])


def test_a_group_that_does_not_fit_max_turns_ends_the_run():
    _, state, _ = run(team({"max_turns": 3}), script(Ann="a", Ben="b"))
    assert (state.outcome, state.turns) == ("max_turns", 1)
    assert state.reason == "the run has used its 1 turn: Team would go beyond max_turns"
    _, state, _ = run(team({"max_turns": 5}), script(Ann="a", Ben="b"))
    assert (state.outcome, state.turns) == ("completed", 5)


@pytest.mark.parametrize("merge", ["collect", "custom"])
def test_replies_of_members_are_not_repeated_to_users(merge):
    function = {"function": "tools.merging:pick"} if merge == "custom" else {}
    workflow, _, events = run(team(merge=merge, **function), script(Ann="secret a", Ben="b"))
    (joined,) = (event for event in events if isinstance(event.data, Joined))
    seen = user_event_data(joined, "run", workflow, Audience(workflow.spec))
    assert joined.data.text
    if merge == "collect":
        assert seen is None
        assert "secret a" in json.dumps(event_data(joined, "run", workflow))
    else:
        assert seen is not None
        assert seen["data"] == {"name": "Team", "text": "Ann wins"}
