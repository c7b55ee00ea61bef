"""Conformance: what a package does otherwise than its plan, beyond the planted mistakes."""

import pytest

from generator_mutations import planted
from generator_mutations.planted import edit
from weft.generator.assemble import assemble
from weft.generator.conformance import conformance, question_key
from weft.generator.split import workflow_plans
from weft.spec.plan import ActionPlan


def found(name, *changes):
    """Return the findings of a good package after changes of its outputs and its plan."""
    plan, outputs = planted.good(name)
    data = plan.model_dump(mode="json", by_alias=True)
    edit({"plan": data, "outputs": outputs}, changes)
    plan = ActionPlan.model_validate(data)
    assembled = assemble(plan, outputs)
    assert assembled.findings == ()
    return conformance(workflow_plans(plan)[0], assembled.drafts[0])


def messages(*args):
    return [f"{each.code} {each.message}" for each in found(*args)]


def rule(source, target, key, value):
    place = {"source_agent": source, "target_agent": target}
    return {"part": "HandoffsAgent", "at": ["handoff_rules", place, key], "set": value}


def renamed_way(module, old, new):
    place = ["WorkflowStrategy", "modules", module, "leads_to", {"when": old}, "when"]
    return {"part": "plan", "at": place, "set": new}


def definition(name, *path, **how):
    at = ["ContextVariablesPlan", "definitions", name, *path]
    return {"part": "ContextVariablesAgent", "at": at, **how}


def test_rejection_without_a_next_step_is_found():
    """G8: the plan says who hears of it."""
    to_end = rule("FinanceApproval", "NoticeAgent", "target_agent", "terminate")
    assert messages("invoice", to_end) == [
        "GEN013 FinanceApproval does not lead to Notice when it comes to reject"
    ]


def test_renaming_an_agent_does_not_change_who_approves():
    """G2: the approver is a fact of the plan, and no part of a name."""
    assert found("invoice") == ()
    changed = {
        "part": "plan",
        "at": ["ModuleAgents", 1, "agents", 0, "approver"],
        "set": "role:cfo",
    }
    component = ["TechnicalBlueprint", "ui_components", 0, "approver"]
    told = messages("invoice", changed, {"part": "plan", "at": component, "set": "role:cfo"})
    assert told == [
        "GEN011 approve_invoice asks role:finance_manager; the plan says role:cfo",
        "GEN020 approve_invoice asks role:finance_manager, who is not in the plan",
    ]


@pytest.mark.parametrize(
    ("when", "ok"),
    [("the amount is 5000 or more", True), ("the amount is 7500 or more", False)],
)
def test_numbers_of_a_way_in_words_are_tested(when, ok):
    told = messages("invoice", renamed_way(1, "amount >= 5000", when))
    assert (told == []) is ok
    if not ok:
        assert told == [
            "GEN013 nothing leads from FinanceApproval to Director Approval when " + when
        ]


@pytest.mark.parametrize(
    ("condition", "ok"),
    [
        ("finance_decision == 'approve' and not amount < 5000", True),
        ("finance_decision != 'reject' and amount >= 5000.0", True),
        ("amount >= 5000", True),
        ("finance_decision == 'approve' and amount >= 4999", False),
        ("finance_decision == 'approve'", False),
    ],
)
def test_condition_can_be_written_in_several_ways(condition, ok):
    told = messages("invoice", rule("FinanceApproval", "DirectorApproval", "condition", condition))
    assert (told == []) is ok, told


def test_earlier_rule_that_catches_an_outcome_is_found():
    rules = {"part": "HandoffsAgent", "at": ["handoff_rules"]}
    early = {"source_agent": "RedFlagAgent", "target_agent": "IntakeAgent", "priority": 0}
    told = messages("clinic", {**rules, "add": {**early, "condition": "red_flag != 'none'"}})
    assert told == ["GEN013 RedFlagAgent does not lead to Doctor Alert when it comes to present"]


@pytest.mark.parametrize(
    ("template", "ok"),
    [({"chat": "{chat_id}"}, False), ({"kind": "drug"}, True), ({"app": "{app_id}"}, True)],
)
def test_key_of_a_query_is_the_variable_that_it_inserts(template, ok):
    source = {"type": "database", "collection": "Medications", "query_template": template}
    told = messages(
        "clinic", definition("medications", "source", set={**source, "field": "entries"})
    )
    assert (told == []) is ok, told


def test_document_that_is_taken_as_a_whole_has_all_fields():
    source = {"type": "database", "collection": "Medications", "search_by": "app_id"}
    assert found("clinic", definition("medications", "source", set=source)) == ()
    told = messages("clinic", definition("medications", "source", set={**source, "field": "x"}))
    assert told == ["GEN012 medications lacks entries"]


def test_watched_word_can_be_heard_by_several_triggers():
    triggers = [
        {"type": "user_text", "match": {"contains": word}}
        for word in ("chest pain", "heavy bleeding")
    ]
    source = {"type": "derived", "default": False, "triggers": triggers}
    assert found("clinic", definition("emergency", "source", set=source)) == ()


def test_tool_that_only_reads_may_use_get():
    purpose = ["ModuleAgents", 3, "agents", 0, "agent_tools", 0, "purpose"]
    method = definition("payment", "source", set={
        "type": "external", "service": "Ledger", "operation": "look",
        "url": "https://ledger.example.com/payments?n={number}&v={vendor}&a={amount}",
        "refresh_strategy": "on_demand",
    })  # fmt: skip
    told = messages("invoice", method)
    assert told[0].startswith("GEN021 book_payment (Book the payment in the ledger.) calls Ledger")
    lookup = {"part": "plan", "at": purpose, "set": "Look up the payment in the ledger."}
    assert found("invoice", method, lookup) == ()


def test_key_of_a_question_is_stable_while_the_fact_is_the_same():
    wrong = definition("intake_record", "source", "collection", set="Intakes")
    keys = [question_key(each) for each in found("clinic", wrong)]
    assert keys == [question_key(each) for each in found("clinic", wrong)]
    other = definition("intake_record", "source", "collection", set="Others")
    assert keys != [question_key(each) for each in found("clinic", other)]
    assert keys[0].startswith("GEN012-")
