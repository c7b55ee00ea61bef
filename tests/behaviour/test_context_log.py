"""Every change of a variable is logged where that is asked for, and no secret is."""

import asyncio
import logging

import pytest

from support.desk_play import make_desk
from support.group_play import CODE, team
from support.inspection_play import derived
from support.run_play import ADA, play
from weft.app.hosts import LOCAL, open_host
from weft.engine.events import Event, VariableSet
from weft.engine.state import State
from weft.runtime.runs.writer import log_changes
from weft.spec.workflow import WorkflowSpec
from weft.testing import ScriptedModel, call, host_for

TOOLS = {
    "tools/desk.py": b'''
def put(name: str, value, context_variables) -> str:
    """Set a variable."""
    context_variables.set(name, value)
    return "done"
'''
}


def spec() -> WorkflowSpec:
    tool = {"tool_type": "Agent_Tool", "agent": "A", "file": "desk.py", "function": "put"}
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "variables": {
                "plan": derived("str", "none"),
                "note": derived("str", ""),
                "hidden": {**derived("str", "a"), "secret": True},
                "logins": derived("dict[str, str]", {}),
            },
            "tools": [tool],
            "handoffs": [{"source_agent": "A", "target_agent": "terminate"}],
        }
    )


def script() -> ScriptedModel:
    return ScriptedModel(
        [
            [call("put", name="plan", value="gold"), call("put", name="note", value="x" * 900)],
            call("put", name="logins", value={"password": "hush-hush-hush"}),
            "Done.",
        ]
    )


def lines(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "weft.context"]


def test_each_change_is_logged_with_both_values_and_the_writer(caplog):
    with caplog.at_level(logging.DEBUG, logger="weft.context"):
        played = play(spec(), script(), code=TOOLS, values={"plan": "tin"})
    told = lines(caplog)
    assert told[0] == f'plan: null -> "tin" (start; run {played.run}, event 1)'
    (gold,) = (item for item in told if '"gold"' in item)
    assert gold.startswith('plan: "tin" -> "gold" (tool:put; run ')
    assert gold.endswith(", turn 1)")
    (long,) = (text for text in told if text.startswith("note: "))
    assert len(long) < 400
    assert "hush" not in "\n".join(told)


def test_value_of_a_secret_variable_is_never_shown(caplog):
    state = State("r1", variables={"hidden": "s3cret"})
    event = Event(4, 0, "engine", 3, 1, VariableSet("hidden", "m0re", "tool:put"))
    with caplog.at_level(logging.DEBUG, logger="weft.context"):
        log_changes(spec().variables, state, state, [event])
    assert lines(caplog) == [
        "hidden: (secret) -> (secret) (tool:put; run r1, event 4, turn 1)",
    ]


def test_values_of_a_group_are_logged_when_it_joins(caplog):
    by = {"Ann": [call("count", by=7), "a"], "Ben": [call("count", by=2), "b"]}
    model = ScriptedModel({"Lead": ["go"], "Cas": ["same"], "Editor": ["over"], **by})

    async def scenario():
        async with host_for(team(), model, code=CODE) as host:
            await host.start("Side", scope=ADA, message="write", run="run")
            await host.settled("run", scope=ADA)

    with caplog.at_level(logging.DEBUG, logger="weft.context"):
        asyncio.run(asyncio.wait_for(scenario(), 30))
    told = [line.partition(";")[0] for line in lines(caplog)]
    assert sorted(told) == [
        "total: 0 -> 2 (tool:count",
        "total: 0 -> 7 (group Team",
        "total: 0 -> 7 (tool:count",
    ]


def test_nothing_is_logged_unless_it_is_asked_for(caplog):
    with caplog.at_level(logging.INFO, logger="weft.context"):
        play(spec(), script(), code=TOOLS)
    assert lines(caplog) == []


@pytest.mark.parametrize(("said", "is_told"), [("1", True), ("true", True), ("0", False)])
def test_the_setting_prints_it_on_the_error_stream(tmp_path, capsys, said, is_told):
    make_desk(tmp_path)

    async def scenario(setting: str) -> None:
        environment = {"CONTEXT_VERBOSE_DEBUG": setting}
        async with await open_host(tmp_path, journal=":memory:", environment=environment) as host:
            run = await host.start("Desk", scope=LOCAL, values={"limit": 7}, model="sample")
            await host.state(run, scope=LOCAL)

    try:
        asyncio.run(asyncio.wait_for(scenario(said), 30))
        assert ("weft.context: limit: null -> 7 (start; run " in capsys.readouterr().err) is is_told
    finally:
        asyncio.run(asyncio.wait_for(scenario(""), 30))
    assert "limit" not in capsys.readouterr().err
