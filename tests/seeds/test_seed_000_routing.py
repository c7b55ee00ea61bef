"""Seed 000, lines 66-70 and 248-263: what may decide a handoff, and what production changes."""

import logging

import pytest

from seeds.seed_play import (
    agents,
    database,
    derived,
    desk,
    environment,
    errors,
    findings,
    handoffs,
    play,
    says,
    static,
    variables,
    write_package,
)
from support.cases import read_cases
from weft.engine.events import ConditionJudged, RunStarted, ToolReturned
from weft.engine.variables.access import IN_PRODUCTION
from weft.errors import CheckFailed, LinkError
from weft.packages.reader import read_package
from weft.runtime.workflow import Linking
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call

CASES = read_cases(__file__)

DEFINITIONS = {
    "interview_complete": derived(False, says("InterviewAgent", "NEXT")),
    "monetization_enabled": environment("MONETIZATION_ENABLED", default=False),
    "product_tier": static("beta"),
    "concept_overview": database("Concepts", field="ConceptOverview"),
    "paying": database("Concepts", "boolean", field="Paying"),
}
PRODUCTION = {"ENVIRONMENT": "production"}
OVERVIEW = ("Concepts", "autogen_ai_agents", {"ConceptOverview": "A shop for tea.", "Paying": True})


def routed(condition, *, profile="strict", definitions=None, **files):
    """Return a package whose first agent hands over to the planner on a condition."""
    return {
        "orchestrator": {"condition_profile": profile},
        "agents": agents(InterviewAgent="When you know enough, say NEXT.", Planner="Plan."),
        "handoffs": handoffs(
            ("InterviewAgent", "Planner", condition),
            ("InterviewAgent", "user"),
            ("Planner", "terminate"),
        ),
        "context_variables": variables(definitions or DEFINITIONS),
        **files,
    }


@pytest.mark.parametrize("condition", ["interview_complete", "monetization_enabled"])
def test_environment_and_derived_variables_may_appear_in_conditions(tmp_path, condition):
    """Lines 66-67, 250, 446."""
    settings = {"MONETIZATION_ENABLED": "1"}
    played = play(tmp_path, routed(condition), ["NEXT", "A plan."], environment=settings)
    assert played.ways[0] == ("InterviewAgent", "Planner")


@pytest.mark.parametrize(
    "condition",
    ["concept_overview == 'A shop for tea.'", "paying", "product_tier == 'beta'"],
    ids=["database", "database flag", "static"],
)
def test_only_environment_and_derived_variables_may_appear_in_conditions(tmp_path, condition):
    """Lines 66-67, 250, 255, 446: a package that routes on others does not run."""
    files = routed(condition, profile="full")
    assert {code for code, _ in errors(tmp_path, files)} == {"COND004"}
    with pytest.raises(CheckFailed):
        play(tmp_path, files, ["never asked"])


@pytest.mark.parametrize(
    ("condition", "told"),
    CASES["test_conditions_are_positive_and_conjunctive_with_at_most_one_and"],
)
def test_conditions_are_positive_and_conjunctive_with_at_most_one_and(tmp_path, condition, told):
    """Line 251; decision d: the strict profile."""
    said = [error for error in errors(tmp_path, routed(condition)) if error[0] == "COND005"]
    assert len(said) == 1
    assert told in said[0][1]
    assert "COND005" not in [
        code for code, _ in errors(tmp_path, routed(condition, profile="full"))
    ]


def test_when_interview_complete_is_true(tmp_path):
    """Line 252, the condition verbatim."""
    files = routed("When interview_complete is true")
    assert play(tmp_path, files, ["What?"]).ways == [("InterviewAgent", "user")]
    assert play(tmp_path, files, ["NEXT", "A plan."]).ways[0] == ("InterviewAgent", "Planner")


@pytest.mark.parametrize(
    ("enabled", "said", "target"),
    [("1", "NEXT", "Planner"), ("0", "NEXT", "user"), ("1", "What?", "user")],
)
def test_when_monetization_is_enabled_and_the_interview_complete(tmp_path, enabled, said, target):
    """Line 253, the condition verbatim: both must hold."""
    files = routed("When monetization_enabled is true AND interview_complete is true")
    settings = {"MONETIZATION_ENABLED": enabled}
    played = play(tmp_path, files, [said, "A plan."], environment=settings)
    assert played.ways[0] == ("InterviewAgent", target)


def test_in_production_the_absent_variable_prevents_the_condition(tmp_path):
    """Lines 253-254; decision g: a warning in development, refused in production, never silent."""
    files = routed("When monetization_enabled is true AND interview_complete is true")
    warned = [finding for finding in findings(tmp_path, files) if finding.code == "ENV001"]
    assert [finding.severity for finding in warned] == ["warning"]
    refused = [
        finding for finding in findings(tmp_path, files, "production") if finding.code == "ENV001"
    ]
    assert [finding.severity for finding in refused] == ["error"]
    with pytest.raises(CheckFailed, match="which production hides"):
        play(tmp_path, files, ["never asked"], environment=PRODUCTION)


def test_production_suppresses_environment_variables_early_and_at_return(tmp_path, caplog):
    """Lines 69-70, 260, 299, 443, 458: they vanish, and it is logged."""
    caplog.set_level(logging.INFO, "weft.context")
    files = routed("interview_complete", **desk("look", agent="InterviewAgent"))
    files["context_variables"]["context_variables"]["agents"] = {
        "InterviewAgent": {"variables": ["monetization_enabled", "product_tier"]}
    }
    settings = {**PRODUCTION, "MONETIZATION_ENABLED": "1"}
    script = [call("look", name="monetization_enabled"), "What?"]
    played = play(tmp_path, files, script, environment=settings)
    assert "monetization_enabled" not in played.prompt("InterviewAgent")
    assert "product_tier: beta" in played.prompt("InterviewAgent")
    assert played.of(ToolReturned)[0].value == {"found": None}
    assert "monetization_enabled" not in played.values
    assert "Desk: suppressed here: monetization_enabled" in caplog.messages


def test_an_empty_list_of_environment_variables_is_what_production_expects(tmp_path):
    """Lines 26-27, 261: as a generator emits it."""
    listed = {"context_variables": {"environment_variables": [], "definitions": {}}}
    files = {**routed("interview_complete"), "context_variables": listed}
    files["handoffs"] = handoffs(("InterviewAgent", "Planner"), ("Planner", "terminate"))
    played = play(tmp_path, files, ["Hi.", "A plan."], environment=PRODUCTION)
    assert dict(played.values) == {}


def test_database_variables_remain_fully_accessible_in_production(tmp_path):
    """Line 262: for prompts and for tools."""
    files = routed("interview_complete", **desk("look", agent="InterviewAgent"))
    files["context_variables"]["context_variables"]["agents"] = {
        "InterviewAgent": {"variables": ["concept_overview"]}
    }
    played = play(
        tmp_path,
        files,
        [call("look", name="concept_overview"), "What?"],
        documents=[OVERVIEW],
        environment=PRODUCTION,
    )
    assert played.prompt("InterviewAgent").endswith("concept_overview: A shop for tea.")
    assert played.of(ToolReturned)[0].value == {"found": "A shop for tea."}


def test_a_documented_boolean_of_the_database_may_be_a_gate_in_production(tmp_path):
    """Line 262: not the sole branching input, but an intentional one."""
    assert (
        "COND004" in [item for item, _ in errors(tmp_path, routed("paying"), "production")]
    ) is True
    meant = {**DEFINITIONS, "paying": {**DEFINITIONS["paying"], "routing": True}}
    files = routed("paying", profile="full", definitions=meant)
    played = play(tmp_path, files, ["Hi.", "A plan."], documents=[OVERVIEW], environment=PRODUCTION)
    assert played.ways[0] == ("InterviewAgent", "Planner")


def test_deployments_in_production_do_not_drift_apart(tmp_path):
    """Lines 69-70, 263: whatever is set there, the run begins and ends the same."""
    files = routed("interview_complete")
    runs = [
        play(tmp_path, files, ["NEXT", "A plan."], environment={**PRODUCTION, **settings})
        for settings in ({}, {"MONETIZATION_ENABLED": "1"}, {"MONETIZATION_ENABLED": "nonsense"})
    ]
    assert [run.of(RunStarted)[0].values for run in runs] == [{}, {}, {}]
    assert len({str(run.ways) for run in runs}) == len({run.row.digest for run in runs}) == 1


def test_context_conditions_reference_variables_with_a_dollar_sign(tmp_path):
    """Lines 413-415: `${interview_complete}` routes without code."""
    files = routed("${interview_complete}")
    assert play(tmp_path, files, ["NEXT", "A plan."]).ways[0] == ("InterviewAgent", "Planner")


def judged(words):
    """Return a package in which a model judges whether the interview is over."""
    files = routed(words)
    files["orchestrator"] = {"llm_conditions": True}
    files["handoffs"]["handoff_rules"][0]["condition_type"] = "llm"
    return files


def test_conditions_for_a_model_reference_variables_with_a_dollar_sign(tmp_path):
    """Lines 413-415: the model that judges reads the value in the words of the condition."""
    files = judged("The user was heard to the end: ${interview_complete}, {workflow_name}.")
    script = ["NEXT", {"holds": True, "reason": "It says so."}, "A plan."]
    played = play(tmp_path, files, script)
    assert played.ways[0] == ("InterviewAgent", "Planner")
    assert [event.holds for event in played.of(ConditionJudged)] == [True]
    asked = str(played.requests[1].messages[-1]["content"])
    assert asked.endswith("The user was heard to the end: true, Desk.")


@pytest.mark.parametrize(
    ("name", "profile", "code"),
    [
        ("interview_done", "development", "COND002"),
        ("monetization_enabled", "production", "ENV001"),
    ],
)
def test_conditions_for_a_model_reference_what_exists(tmp_path, name, profile, code):
    """Lines 254, 413-415: a name that is not there is refused in words for a model as well."""
    files = judged(f"It is over: ${{{name}}}.")
    (found,) = [
        finding for finding in findings(tmp_path, files, profile) if finding.severity == "error"
    ]
    assert (found.code, name in found.message) == (code, True)
    with pytest.raises(CheckFailed):
        play(tmp_path, files, ["never asked"], environment={"ENVIRONMENT": profile})


@pytest.mark.parametrize("words", ["monetization_enabled", "It pays: ${monetization_enabled}."])
def test_in_production_a_condition_on_the_environment_is_not_even_linked(tmp_path, words):
    """Line 254: nor is one that nobody has checked for production."""
    files = judged(words) if " " in words else routed(words)
    spec = read_package(write_package(tmp_path, files)).spec
    with pytest.raises(LinkError, match="asks for monetization_enabled, which does not exist here"):
        host_for(spec, ScriptedModel([]), linking=Linking(IN_PRODUCTION))
