"""Seed 001, lines 93-135: new kinds of triggers, and what authors are advised to do."""

import sys

import pytest

from seeds.onboarding_play import complete, flags, listing, onboarding
from seeds.seed_play import (
    ADA,
    NAME,
    agents,
    desk,
    errors,
    findings,
    finish,
    opened,
    play,
    read,
    say,
    write_package,
)
from weft.engine.events import (
    ToolFailed,
    ToolReturned,
    TurnStarted,
    VariableSet,
)
from weft.errors import CheckFailed
from weft.inspect.replay import check_replay
from weft.packages.reader import read_package
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call

#: A distribution that adds a trigger: one class, and the line that registers it.
PLUGIN = """
from pydantic import BaseModel
from weft.engine.events import TurnEnded
from weft.engine.variables.trigger_index import Fires


class Settings(BaseModel, extra="forbid"):
    agent: str
    every: int


class TurnMultiple:
    settings = Settings

    def fires(self, settings, event, state):
        if not isinstance(event.data, TurnEnded) or event.data.agent != settings.agent:
            return None
        return Fires(event.turn % settings.every == 0)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install the distribution as a packager would, for the time of a test."""
    site = tmp_path / "site"
    info = site / "turn_multiple-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: turn-multiple\nVersion: 1.0\n")
    point = "turn_multiple = turn_multiple_plugin:TurnMultiple"
    (info / "entry_points.txt").write_text(f"[weft.triggers]\n{point}\n")
    (site / "turn_multiple_plugin.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(site))
    yield
    sys.modules.pop("turn_multiple_plugin", None)


EVERY_SECOND = {"type": "x:turn_multiple", "agent": "InterviewAgent", "every": 2}


@pytest.mark.usefixtures("installed")
def test_a_trigger_loader_is_registered_without_touching_the_workflow_or_weft(tmp_path):
    """Lines 96-101: a class that says when it matches, under a name."""
    files = onboarding(listing(complete(EVERY_SECOND)))
    played = play(tmp_path, files, ["One.", "Two."], after=[say("and?")])
    assert played.sets("interview_complete") == [(True, "trigger")]


@pytest.mark.usefixtures("installed")
def test_a_new_trigger_is_described_by_a_schema_and_validated(tmp_path):
    """Lines 101, 106-107: wrong keys keep the package from running."""
    for odd in ({"every": "x"}, {"each": 2}):
        files = onboarding(listing(complete({**EVERY_SECOND, **odd})))
        with pytest.raises(CheckFailed):
            play(tmp_path, files, ["never asked"])


@pytest.mark.usefixtures("installed")
def test_a_new_trigger_maps_to_what_is_observable_and_stable(tmp_path):
    """Lines 109-111: from the journal alone it is decided the same."""
    write_package(tmp_path, onboarding(listing(complete(EVERY_SECOND))))
    model = ScriptedModel(["One.", "Two.", "A plan."])

    async def scenario():
        async with await opened(tmp_path, model, {}) as host:
            run = await host.start(NAME, scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            await say("and?")(host, run)
            return await read(host, run, model), await host.workflow(run, scope=ADA)

    played, workflow = finish(scenario())
    assert played.values["interview_complete"] is True
    assert check_replay(workflow, played.row.run, played.events) == []


def test_agent_turn_count_sets_a_flag_when_an_agent_reaches_its_turns(tmp_path):
    """Line 116."""
    trigger = {"type": "agent_turn_count", "agent": "InterviewAgent", "count": 3}
    files = onboarding(listing(complete(trigger)))
    script = ["One.", "Two.", "Three.", "A plan."]
    played = play(tmp_path, files, script, after=[say("a"), say("b")])
    assert flags(played, "InterviewAgent", 3) == ["false"] * 3
    assert played.ways[-2:] == [("InterviewAgent", "Planner"), ("Planner", "terminate")]


BOOK = """
def book(seats: int) -> str:
    \"\"\"Book seats.\"\"\"
    if seats > 4:
        raise ValueError("too many")
    return "booked"
"""


def test_tool_response_updates_a_variable_when_the_tool_returns_success(tmp_path):
    """Line 117: a failed call does not."""
    trigger = {"type": "tool_response", "tool": "book"}
    files = onboarding(
        listing(complete(trigger)), **desk("book", agent="InterviewAgent", code=BOOK)
    )
    script = [call("book", seats=9), "Hm.", call("book", seats=2), "Well.", "A plan."]
    played = play(tmp_path, files, script, after=[say("two then")])
    assert len(played.of(ToolFailed)) == 1
    (event,) = [event for event in played.events if isinstance(event.data, VariableSet)]
    returned = next(event for event in played.events if isinstance(event.data, ToolReturned))
    assert event.cause == returned.seq


def test_timer_expired_integrates_timers(tmp_path):
    """Line 118: while the run waits for a person."""
    trigger = {"type": "timer_expired", "after_seconds": 3600}
    folder = read_package(write_package(tmp_path, onboarding(listing(complete(trigger)))))
    clock, model = ManualClock(), ScriptedModel(["Well?", "Still there?", "A plan."])

    async def scenario():
        async with host_for(folder.spec, model, clock=clock) as host:
            run = await host.start(NAME, scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            await clock.advance(3601)
            await say("sorry")(host, run)
            return await read(host, run, model)

    played = finish(scenario())
    assert flags(played, "InterviewAgent", 2) == ["false", "true"]
    assert played.ways[-2] == ("InterviewAgent", "Planner")


def test_function_maps_a_variable_to_a_small_function_of_the_workflow(tmp_path):
    """Lines 119-120: it gets values and words, nothing to change, and a failure stays its own."""
    code = """
def over(content, values, interview_complete):
    values["interview_complete"] = "spoilt"
    if content == "crash":
        raise ValueError("no idea")
    return interview_complete or content.endswith("!")
"""
    trigger = {"type": "function", "function": "tools.judging:over"}
    files = onboarding(listing(complete(trigger)), **{"tools/judging.py": code})
    script = ["crash", "Enough!", "A plan."]
    played = play(tmp_path, files, script, after=[say("hm")])
    assert played.sets("interview_complete") == [(True, "trigger")]
    assert played.row.outcome == "completed"
    assert played.of(TurnStarted)[-1].agent == "Planner"


def test_triggers_are_expressed_declaratively(tmp_path):
    """Lines 122-123: a function is named, never written into the file."""
    trigger = {"type": "function", "function": "lambda text: True"}
    files = onboarding(listing(complete(trigger)))
    assert errors(tmp_path, files)
    with pytest.raises(CheckFailed):
        play(tmp_path, files, ["never asked"])


def test_the_expected_message_is_documented_in_the_prompt(tmp_path):
    """Lines 132-133: an agent that is not told to say it is a warning."""
    files = onboarding(agents=agents(InterviewAgent="Ask about the project.", Planner="Plan."))
    (said,) = [finding for finding in findings(tmp_path, files) if finding.code == "VAR010"]
    assert (said.severity, "TERMINATE" in said.message) == ("warning", True)
    assert "VAR010" not in [finding.code for finding in findings(tmp_path, onboarding())]
