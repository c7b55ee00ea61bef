"""Which pattern wins, and that the reason names words of the brief."""

import re

import pytest

from support.designed import BRIEFS, design
from weft.generator.designer.brief import read_brief
from weft.generator.designer.patterns import choose_pattern
from weft.spec.patterns import PATTERNS

CALLED_FOR = {
    "01-support-desk": "Context-Aware Routing",
    "17-it-escalation": "Escalation",
    "05-content-review": "Feedback Loop",
    "18-product-launch-program": "Hierarchical",
    "19-brainstorming-round": "Organic",
    "06-onboarding": "Pipeline",
    "07-claims-second-opinion": "Redundant",
    "03-research-digest": "Star",
    "04-incident-triage": "Triage with Tasks",
    "23-sales-proposals": "Context-Aware Routing",
    "28-rechnungen-deutsch": "Pipeline",
    "29-reclamaciones-espanol": "Escalation",
    "30-toiawase-nihongo": "Context-Aware Routing",
    "26-hostile": "Context-Aware Routing",
    "27-very-long-handbook": "Triage with Tasks",
}


@pytest.mark.parametrize(("name", "title"), CALLED_FOR.items())
def test_a_pattern_wins_for_a_brief_that_calls_for_it(name: str, title: str):
    choice = choose_pattern(read_brief(BRIEFS[name], {}))
    assert choice.selection.workflows[0].pattern_name == title
    assert choice.reasons[0].startswith(f"{title}: the brief says '")
    quotes = re.findall(r"'([^']+)'", choice.reasons[0])
    assert quotes
    assert all(quote in BRIEFS[name] for quote in quotes)
    scores = dict(choice.scores)
    assert list(scores) == [item.title for item in PATTERNS]
    assert scores[title] == max(scores.values())


def test_each_of_the_nine_patterns_is_called_for_by_a_brief():
    assert set(CALLED_FOR.values()) == {item.title for item in PATTERNS}


@pytest.mark.parametrize("text", ["", "make something with AI", "???", "どうぞよろしく"])
def test_without_any_word_it_is_a_pipeline(text: str):
    choice = choose_pattern(read_brief(text, {}))
    assert choice.selection.workflows[0].pattern_name == "Pipeline"
    assert "no word of the brief spoke for another" in choice.reasons[0]


def test_one_word_that_occurs_everywhere_is_not_enough():
    choice = choose_pattern(read_brief("Draft a letter.", {}))
    assert choice.selection.workflows[0].pattern_name == "Pipeline"


def test_of_equal_scores_the_rarer_intent_wins():
    choice = choose_pattern(read_brief("Brainstorm, with a second opinion.", {}))
    scores = dict(choice.scores)
    assert scores["Organic"] == scores["Redundant"]
    assert choice.selection.workflows[0].pattern_name == "Redundant"
    assert any(reason.startswith("Not Organic") for reason in choice.reasons)


def test_words_of_comments_count_twice():
    text = "A coordinator answers questions."
    assert choose_pattern(read_brief(text, {})).selection.workflows[0].pattern_name == "Star"
    choice = choose_pattern(read_brief(text, {}, ["They should discuss it with each other."]))
    assert choice.selection.workflows[0].pattern_name == "Organic"
    assert "'discuss' in a comment" in choice.reasons[0]
    assert dict(choice.scores)["Organic"] == 2 * (3 + 2)


def test_the_goal_that_was_answered_counts():
    choice = choose_pattern(read_brief("Letters.", {"goal": "Escalate hard letters to an expert"}))
    assert choice.selection.workflows[0].pattern_name == "Escalation"


def test_one_workflow_is_named_after_the_goal():
    selection = choose_pattern(read_brief("", {"goal": "Plan weddings"})).selection
    assert (selection.pack_name, selection.workflows[0].name) == ("Plan Weddings", "PlanWeddings")
    assert not selection.is_multi_workflow
    assert selection.decomposition_reason is None
    named = choose_pattern(read_brief("We need a claims handling workflow for our office.", {}))
    assert named.selection.pack_name == "Claims Handling"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Stock alert: when there is too little, order more.", "Stock Alert"),
        ("Leave requests\nEmployees ask for days off.", "Leave Requests"),
        ("Step by step: check the order.", "Order Processing"),
        ("We want a workflow for supplier audits in our group.", "Supplier Audits"),
        ("Please make us a workflow that handles late parcels of customers.", "Late Parcels"),
        ("Build us a workflow that helps us with the order.", "Order Processing"),
        ("Write an offer for each lead and send a proposal.", "Proposal Processing"),
        (BRIEFS["12-webhook-orders"], "Order Processing"),
        (BRIEFS["13-stock-alert"], "Stock Processing"),
        (BRIEFS["14-leave-request"], "Vacation Processing"),
    ],
)
def test_goal_is_in_the_title(text: str, title: str):
    assert choose_pattern(read_brief(text, {})).selection.pack_name == title


def test_one_point_is_one_point():
    reasons = choose_pattern(read_brief("Brainstorm, then compare.", {})).reasons
    assert "Not Redundant (1 point): the brief says 'compare'." in reasons


def test_several_workflows_that_follow_each_other():
    designed = design(BRIEFS["15-customer-lifecycle-pack"])
    selection = designed.choice.selection
    assert selection.is_multi_workflow
    assert [(workflow.name, workflow.role) for workflow in selection.workflows] == [
        ("Onboarding", "primary"),
        ("Billing", "dependent"),
    ]
    assert "2 workflows" in (selection.decomposition_reason or "")
    assert {module.workflow for module in designed.strategy.modules} == {"Onboarding", "Billing"}
    approvals = [
        module.workflow for module in designed.strategy.modules if "Approval" in module.module_name
    ]
    assert approvals == ["Billing"]


def test_each_of_several_has_a_pattern_and_a_role_of_its_own():
    workflows = choose_pattern(read_brief(BRIEFS["16-hiring-pack"], {})).selection.workflows
    assert [(workflow.name, workflow.role, workflow.pattern_name) for workflow in workflows] == [
        ("Screening", "primary", "Pipeline"),
        ("Interview", "dependent", "Organic"),
        ("Newsletter", "independent", "Feedback Loop"),
    ]


def test_several_that_are_not_named_are_the_preparation_and_the_work():
    text = "Make three workflows for refunds in our shop."
    selection = choose_pattern(read_brief(text, {})).selection
    assert [workflow.name for workflow in selection.workflows] == [
        "OrderPreparation",
        "OrderExecution",
        "OrderFollowUp",
    ]


@pytest.mark.parametrize(
    "text",
    ["Improve the approval workflow, then document the workflow.", "A process that works."],
)
def test_speaking_of_one_workflow_twice_makes_no_pack(text: str):
    assert not choose_pattern(read_brief(text, {})).selection.is_multi_workflow
