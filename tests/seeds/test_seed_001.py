"""Seed 001: derived variables in the older list, and how new triggers are added."""

import json

import pytest

from seeds import verbatim
from seeds.onboarding_play import AGENTS, complete, flags, listing, onboarding
from seeds.seed_play import (
    ADA,
    NAME,
    agents,
    derived,
    desk,
    errors,
    findings,
    finish,
    handoffs,
    opened,
    play,
    read,
    say,
    says,
    write_package,
)
from weft.engine.events import (
    ToolCalled,
    ToolReturned,
    VariableRefused,
    VariableSet,
)
from weft.errors import CheckFailed
from weft.packages.reader import read_package
from weft.testing.models import ScriptedModel, call


def test_workflows_declare_three_classes_of_variables(tmp_path):
    """Lines 10-15; decision a: defined, runtime and derived ones, each list read."""
    listed = {
        "defined_variables": [
            {
                "name": "plan",
                "collection": "Concepts",
                "search_by": "enterprise_id",
                "field": "Plan",
            }
        ],
        "runtime_variables": [{"name": "notes", "default": "none"}],
        "derived_variables": [complete(says("InterviewAgent", "TERMINATE"))],
    }
    files = onboarding(
        context_variables={"context_variables": listed}, **desk("put", agent="InterviewAgent")
    )
    script = [call("put", name="notes", value="kept"), "TERMINATE", "A plan."]
    stored = [("Concepts", None, {"Plan": "gold"})]
    played = play(tmp_path, files, script, documents=stored)
    assert dict(played.values) == {"plan": "gold", "notes": "kept", "interview_complete": True}
    kinds = read_package(tmp_path / "workflows" / NAME).spec.variables
    assert [kind.source.type for kind in kinds.values()].count("database") == 1


def test_runtime_variables_live_for_a_single_run(tmp_path):
    """Line 13: the next run begins with the default."""
    listed = {"runtime_variables": [{"name": "notes", "default": "none"}]}
    files = {
        "agents": agents("InterviewAgent"),
        "handoffs": handoffs(("InterviewAgent", "terminate")),
        "context_variables": {"context_variables": listed},
        **desk("put", agent="InterviewAgent"),
    }
    first = play(tmp_path, files, [call("put", name="notes", value="kept"), "Bye."])
    second = play(tmp_path, files, ["Bye."])
    assert (first.values["notes"], second.values["notes"]) == ("kept", "none")


def test_derived_variables_are_updated_automatically_when_events_occur(tmp_path):
    """Lines 14-15, 19-20, the list of lines 40-53 verbatim: no code, one boolean."""
    played = play(tmp_path, onboarding(), ["What?", "TERMINATE", "A plan."], after=[say("all")])
    assert played.sets("interview_complete") == [(True, "trigger")]
    assert played.ways == [
        ("InterviewAgent", "user"),
        ("InterviewAgent", "Planner"),
        ("Planner", "terminate"),
    ]
    assert not played.of(ToolCalled)


def test_the_list_stands_under_derived_variables(tmp_path):
    """Lines 17-19: it is read, and what it is now called is pointed out."""
    said = findings(tmp_path, onboarding())
    assert [finding.severity for finding in said if finding.severity == "error"] == []
    told = [finding.message for finding in said if finding.code == "SCHEMA010"]
    assert "older spelling: derived_variables is now part of definitions" in told
    spec = read_package(tmp_path / "workflows" / NAME).spec
    assert spec.variables["interview_complete"].description == (
        "True once the interview agent terminates the onboarding chat."
    )


def test_the_default_is_seeded_for_every_agent_tool_and_condition(tmp_path):
    """Lines 26-27, 58, 83-86."""
    rules = handoffs(
        ("InterviewAgent", "Planner"),
        ("Planner", "terminate", "interview_complete"),
        ("Planner", "user"),
    )
    files = onboarding(handoffs=rules, **desk("look", agent="Planner"))
    script = ["Hello.", call("look", name="interview_complete"), "A plan."]
    played = play(tmp_path, files, script)
    assert flags(played, "InterviewAgent", 1) == flags(played, "Planner", 1) == ["false"]
    assert played.of(ToolReturned)[0].value == {"found": False}
    assert played.ways[-1] == ("Planner", "user")


def test_a_default_may_be_true(tmp_path):
    """Line 58: it is the value the run begins with."""
    files = onboarding(listing(complete(says("InterviewAgent", "TERMINATE"), default=True)))
    assert play(tmp_path, files, ["Hello.", "A plan."]).ways[0] == ("InterviewAgent", "Planner")


def test_every_text_of_an_agent_is_observed_and_flips_on_a_match(tmp_path):
    """Lines 28-29, 65-66, 87-88: in whichever turn it comes, the event right after it."""
    files = {
        "agents": agents("InterviewAgent"),
        "handoffs": handoffs(("InterviewAgent", "user")),
        "context_variables": verbatim.file_of(verbatim.DERIVED_VARIABLES),
    }
    played = play(
        tmp_path, files, ["a", "b", "TERMINATE", "c"], after=[say(letter) for letter in "xyz"]
    )
    (event,) = [event for event in played.events if isinstance(event.data, VariableSet)]
    said = next(each_event for each_event in played.events if each_event.seq == event.cause)
    assert (said.data.text, event.turn) == ("TERMINATE", 3)
    assert event.data.value is True


def test_without_derived_variables_nothing_happens(tmp_path):
    """Line 31: the mechanism is inert."""
    files = {
        "agents": AGENTS,
        "handoffs": handoffs(("InterviewAgent", "Planner"), ("Planner", "terminate")),
        "context_variables": {"context_variables": {"derived_variables": []}},
    }
    played = play(tmp_path, files, ["TERMINATE", "A plan."])
    assert dict(played.values) == {}
    assert not played.of(VariableSet)
    assert not played.of(VariableRefused)


def test_any_of_several_triggers_is_enough(tmp_path):
    """Line 59; decision b."""
    triggers = [says("InterviewAgent", "TERMINATE"), says("InterviewAgent", "ENOUGH")]
    for word in ("TERMINATE", "ENOUGH"):
        played = play(tmp_path, onboarding(listing(complete(*triggers))), [word, "A plan."])
        assert played.sets("interview_complete") == [(True, "trigger")]


def test_an_unknown_type_of_trigger_is_refused(tmp_path):
    """Lines 36, 60: what is not supported is not ignored."""
    odd = {"type": "agent_mood", "agent": "InterviewAgent"}
    files = onboarding(listing(complete(odd)))
    assert errors(tmp_path, files)[0][0] == "SCHEMA007"
    with pytest.raises(CheckFailed):
        play(tmp_path, files, ["never asked"])


def test_the_agent_is_the_one_that_the_workflow_names(tmp_path):
    """Line 61: another agent does not flip it, and a name of nobody is a finding."""
    rules = handoffs(("InterviewAgent", "Planner"), ("Planner", "user"))
    played = play(tmp_path, onboarding(handoffs=rules), ["Hello.", "TERMINATE"])
    assert played.sets("interview_complete") == []
    nobody = onboarding(listing(complete(says("Interviewer", "TERMINATE"))))
    assert [code for code, _ in errors(tmp_path, nobody)] == ["NAME001"]


@pytest.mark.parametrize("said", ["terminate", " TERMINATE", "TERMINATE\n", "TERMINATE."])
def test_the_text_is_matched_without_case_conversion_or_trimming(tmp_path, said):
    """Lines 62-63, 71-73; decision b: in this list, to the letter."""
    played = play(tmp_path, onboarding(), [said])
    assert played.sets("interview_complete") == []
    assert played.row.status == "waiting"


def test_alternative_matches_are_asked_for_and_never_guessed(tmp_path):
    """Lines 74-75: a flag of their own, beside the exact one."""
    loose = {**says("InterviewAgent", "x"), "match": {"contains": "terminate"}}
    files = onboarding(listing(complete(loose)))
    played = play(tmp_path, files, ["So I TERMINATE it.", "A plan."])
    assert played.sets("interview_complete") == [(True, "trigger")]


def test_the_hooks_are_agnostic_of_the_workflow(tmp_path):
    """Lines 90-91: two packages, other names, the same runtime in the same process."""
    other = {
        "agents": agents(Clerk="Say CLOSED.", Archivist="Keep it."),
        "handoffs": handoffs(
            ("Clerk", "Archivist", "closed"), ("Clerk", "user"), ("Archivist", "terminate")
        ),
        "context_variables": {
            "context_variables": {
                "derived_variables": [
                    {"name": "closed", "default": False, "triggers": [says("Clerk", "CLOSED")]}
                ]
            }
        },
    }
    write_package(tmp_path, onboarding())
    write_package(tmp_path, other, "Archive")
    model = ScriptedModel(
        {
            "InterviewAgent": ["TERMINATE"],
            "Planner": ["P."],
            "Clerk": ["CLOSED"],
            "Archivist": ["A."],
        }
    )

    async def scenario():
        async with await opened(tmp_path, model, {}) as host:
            runs = [await host.start(item, scope=ADA, message="hi") for item in (NAME, "Archive")]
            return [await read(host, run, model) for run in runs]

    first, second = finish(scenario())
    assert (dict(first.values), dict(second.values)) == (
        {"interview_complete": True},
        {"closed": True},
    )


def test_an_agent_that_comes_late_sees_the_default_and_later_changes(tmp_path):
    """Lines 85-86: every scope, members of a group that is formed in the middle included."""
    shown = '"agents": {"Left": ["interview_complete"], "Right": ["interview_complete"]}'
    over = {"over": derived(False, says("InterviewAgent", "BYE"))}
    parts = (verbatim.DERIVED_VARIABLES, f'"definitions": {json.dumps(over)}', shown)
    group = {"name": "Panel", "members": ["Left", "Right"], "next": "InterviewAgent"}
    files = {
        "orchestrator": {"parallel": [group]},
        "agents": agents("InterviewAgent", "Left", "Right"),
        "handoffs": handoffs(("InterviewAgent", "terminate", "over"), ("InterviewAgent", "Panel")),
        "context_variables": verbatim.file_of(*parts),
    }
    script = {
        "InterviewAgent": ["Hello.", "TERMINATE", "BYE"],
        "Left": ["l", "l"],
        "Right": ["r", "r"],
    }
    played = play(tmp_path, files, script)
    assert played.row.outcome == "completed"
    assert flags(played, "Left", 2) == flags(played, "Right", 2) == ["false", "true"]
