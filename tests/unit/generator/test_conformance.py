"""Conformance: what a package does otherwise than its plan, beyond the planted mistakes."""

from dataclasses import replace

import pytest

from generator_mutations import planted
from generator_mutations.planted import edit
from weft.generator.assemble import assemble
from weft.generator.judge.conformance import conformance, question_key
from weft.generator.plans.split import workflow_plans
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


def prompt(agent, old, new):
    """Return a change of the instructions of an agent of the clinic."""
    sections = planted.good("clinic")[1]["AgentsAgent"]["agents"]
    place = ["agents", {"agent_name": agent}, "prompt_sections", {"id": "instructions"}, "content"]
    texts = (each for each in sections if each["agent_name"] == agent)
    text = next(
        part["content"] for part in next(texts)["prompt_sections"] if old in part["content"]
    )
    return {"part": "AgentsAgent", "at": place, "set": text.replace(old, new)}


@pytest.mark.parametrize(
    ("new", "ok"),
    [
        ("Always diagnose and always name a dose.", False),
        ("Diagnose and never name a dose.", False),
        ("NEVER diagnose\n and never name a dose, ever.", True),
    ],
)
def test_prompt_repeats_what_must_never_happen(new, ok):
    told = messages("clinic", prompt("IntakeAgent", "Never diagnose and never name a dose.", new))
    said = 'IntakeAgent does not say "Never diagnose and never name a dose."'
    assert told == ([] if ok else [f"GEN018 the prompt of {said}"])


ADDRESS = "https://pay.example.com/v1"


@pytest.mark.parametrize(
    ("url", "ok"),
    [
        (f"{ADDRESS}/book?n={{number}}", True),
        ("https://PAY.example.com/v1", True),
        ("https://pay.example.com/v10", False),
        ("https://pay.example.com/v1/../admin", False),
        ("https://pay.example.com.evil.net/v1", False),
        ("https://pay.example.com@evil.net/v1", False),
        ("http://pay.example.com/v1", False),
    ],
)
def test_service_is_asked_at_the_planned_address(url, ok):
    planned = planned_url(f"POST {ADDRESS}")
    told = messages("invoice", planned, definition("payment", "source", "url", set=url))
    assert told == ([] if ok else [f"GEN012 payment asks POST {url}; the plan says POST {ADDRESS}"])


def test_host_is_the_planned_one_to_its_end():
    url = "https://pay.example.com.evil.net/v1"
    address = definition("payment", "source", "url", set=url)
    told = messages("invoice", planned_url("POST https://pay.example.com"), address)
    assert [each[:6] for each in told] == ["GEN012"]


def planned_url(url):
    place = ["TechnicalBlueprint", "global_context_variables", {"name": "payment"}, "url"]
    return {"part": "plan", "at": place, "set": url}


def test_address_that_no_plan_names_is_asked_about():
    url = "https://evil.example.org/steal"
    told = messages("invoice", planned_url(None), definition("payment", "source", "url", set=url))
    assert told == [f"GEN020 payment asks POST {url}; the plan names no address"]
    setting = {"type": "environment", "env_var": "PAYMENT_URL"}
    address = definition("payment_url", set={"type": "str", "source": setting})
    same = definition("payment", "source", "url", set="{payment_url}/book")
    assert messages("invoice", planned_url(None), address, same) == []


def test_input_of_a_computed_variable_is_read_by_those_who_use_the_variable():
    """Every agent counted as its reader."""
    source = {"type": "computed", "computation": "tools.vendors:share", "inputs": ["vendors"]}
    code, start = "def share(vendors):\n    return vendors\n", '"""The list of vendors."""\n'
    changes = [
        definition("share", set={"type": "any", "source": source}),
        {"file": "tools/vendors.py", "old": start, "new": f"{start}\n\n{code}"},
        {"file": "tools/vendors.py", "old": '"vendors"', "new": '"amount"'},
    ]
    unread = "GEN019 InvoiceChecker reads vendors in the plan, and neither its prompt nor its tools"
    assert messages("invoice", *changes) == [f"{unread} do"]
    used = {"file": "tools/vendors.py", "old": '"amount"', "new": '"share"'}
    assert messages("invoice", *changes, used) == []


@pytest.mark.parametrize(
    ("condition", "ok"),
    [("red_flag == 'none'", True), ("red_flag == 'other'", False), ("app_id == 'x'", True)],
)
def test_rule_that_can_never_hold_leads_nowhere(condition, ok):
    told = messages("clinic", rule("SummaryAgent", "NurseAgent", "condition", condition))
    assert (told == []) is ok, told


@pytest.mark.parametrize(
    ("body", "returned"),
    [
        ("return message", "message as it is"),
        ("re.sub('a', 'b', message)\n    return message", "message as it is"),
        ("return None", "nothing"),
        ("message = message.strip()\n    return message", None),
        ("if not message:\n        return message\n    return message.strip()", None),
        ("message['x'] = 1\n    return message", None),
        ("message.append(1)\n    return message", None),
    ],
)
def test_hook_that_returns_what_it_was_given_changes_nothing(body, returned):
    plan, outputs = planted.good("clinic")
    (draft,) = assemble(plan, outputs).drafts
    text = f"import re\n\n\ndef {draft.spec.hooks[0].function}(message):\n    {body}\n"
    changed = replace(draft, code={**draft.code, "hooks/privacy.py": text})
    told = [each.message for each in conformance(workflow_plans(plan)[0], changed)]
    said = f"{draft.spec.hooks[0].function} returns {returned}, so it changes nothing"
    assert told == ([said] if returned else [])
