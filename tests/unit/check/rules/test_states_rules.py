import pytest

from weft.catalogue import CATALOGUE
from weft.check.rule import rules_of
from weft.check.rules import states
from weft.check.subject import Subject
from weft.findings import Remove
from weft.spec.workflow import WorkflowSpec

RULES = {rule.code: rule for rule in rules_of(states)}
SOURCE = ("variables", "phase", "source")


def step(start, end, trigger=None):
    return {"from": start, "to": end, "trigger": trigger}


def subject(*steps, default="open", triggers=(), conditions=(), type_="any", judged=(), **others):
    phase = {
        "type": type_,
        "source": {
            "type": "derived",
            "default": default,
            "transitions": list(steps),
            "triggers": list(triggers),
        },
    }
    rule = {"source_agent": "RouterAgent", "target_agent": "user"}
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {"workflow_name": "Demo", "initial_agent": "RouterAgent"},
                "agents": [{"agent_name": "RouterAgent"}],
                "exposure": {"RouterAgent": ["phase"]},
                "variables": {
                    "phase": phase,
                    "flag": {"type": "bool", "source": {"type": "derived", "default": False}},
                    **others,
                },
                "handoffs": [
                    rule,
                    *({**rule, "condition": text} for text in conditions),
                    *({**rule, "condition": text, "condition_type": "llm"} for text in judged),
                ],
            }
        )
    )


def hits(code, checked):
    return list(RULES[code].check(checked))


def only(code, checked):
    (hit,) = hits(code, checked)
    return hit


def test_every_rule_has_its_entry_in_the_catalogue():
    assert set(RULES) == {code for code in CATALOGUE if code.startswith("STATE")}


def test_STATE001_default_is_no_state():
    hit = only("STATE001", subject(step("open", "closed"), default="new"))
    assert hit.path == (*SOURCE, "default")
    assert hit.message == 'phase starts as "new", which no transition knows'
    assert hit.hint == ('the states are "open", "closed"',)


def test_STATE001_no_default():
    hit = only("STATE001", subject(step("open", "closed"), default=None))
    assert hit.path == SOURCE
    assert "has transitions but no default" in hit.message


def test_STATE001_many_states_are_cut():
    steps = [step(f"state number {index}", f"state number {index + 1}") for index in range(20)]
    assert len(only("STATE001", subject(*steps, default="x")).hint[0]) < 100


@pytest.mark.parametrize(
    ("default", "start"),
    [("open", "open"), (None, None), (1, 1.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1})],
)
def test_STATE001_default_is_a_state(default, start):
    assert hits("STATE001", subject(step(start, "closed"), default=default)) == []


def test_STATE001_true_is_not_one():
    assert only("STATE001", subject(step(1, 2), default=True))


def test_STATE001_plain_variables_have_no_states():
    assert hits("STATE001", subject(default="new")) == []


def test_STATE002_unreachable_states():
    steps = [step("open", "closed"), step("review", "done"), step("done", "closed")]
    hit = only("STATE002", subject(*steps))
    assert hit.path == (*SOURCE, "transitions", 1, "from")
    assert hit.message.startswith('phase can never be "review", "done": no transition leads there')


def test_STATE002_all_reachable():
    steps = [step("open", "closed"), step("closed", "open"), step("closed", "done")]
    assert hits("STATE002", subject(*steps)) == []


def test_STATE002_wrong_default_is_reported_once():
    assert hits("STATE002", subject(step("open", "closed"), default="new")) == []


def test_STATE003_end_that_nothing_notices():
    hit = only("STATE003", subject(step("open", "done"), step("lost", "gone")))
    assert hit.path == (*SOURCE, "transitions", 0, "to")
    assert 'phase stays "done" for ever once it is' in hit.message


NOTICED = [
    "phase == 'done'", "phase != 'done'", "phase in ['x', 'done']", "phase", "not phase",
    "flag and (flag or phase == 'done')", "phase > 'a'", "'done' == phase", "phse == 'done'",
]  # fmt: skip


@pytest.mark.parametrize("condition", NOTICED)
def test_STATE003_end_that_a_condition_notices(condition):
    assert hits("STATE003", subject(step("open", "done"), conditions=[condition])) == []


@pytest.mark.parametrize(
    "condition", ["phase == 'open'", "flag", "phase in ['open']", "flag == true", "fase!"]
)
def test_STATE003_other_conditions(condition):
    assert only("STATE003", subject(step("open", "done"), conditions=[condition]))


def test_STATE003_misspelt_state_is_reported_by_its_type():
    checked = subject(
        step("open", "done"), conditions=["phase == 'don'"], type_='literal["open", "done"]'
    )
    assert hits("STATE003", checked) == []


@pytest.mark.parametrize("text", ["the work is done", "phase has ended"])
def test_STATE003_a_model_may_notice(text):
    assert hits("STATE003", subject(step("open", "done"), judged=[text])) == []
    assert only("STATE003", subject(step("open", "done"), judged=["the user is angry"]))


def test_STATE003_a_computation_may_notice():
    computed = {"type": "computed", "computation": "phase == 'done'", "inputs": ["phase"]}
    late = {"type": "bool", "source": computed}
    assert hits("STATE003", subject(step("open", "done"), late=late)) == []


def test_STATE003_what_nothing_reads_is_reported_for_that_alone():
    checked = subject(step("open", "done"))
    unread = checked.spec.model_copy(update={"exposure": {}})
    assert hits("STATE003", Subject(unread)) == []


def test_STATE003_state_that_leads_on():
    assert hits("STATE003", subject(step("open", "done"), step("done", "open"))) == []


def test_STATE004_trigger_against_the_transitions():
    trigger = {"type": "tool_call", "tool": "finish", "value": "gone"}
    hit = only("STATE004", subject(step("open", "done"), triggers=[trigger]))
    assert hit.path == (*SOURCE, "triggers", 0, "value")
    assert hit.message == 'a trigger sets phase to "gone", to which no transition leads'
    assert hit.hint == ('transitions lead to "done"',)


def test_STATE004_value_left_out_is_true():
    trigger = {"type": "user_text", "match": {"equals": "x"}}
    hit = only("STATE004", subject(step("open", "done"), triggers=[trigger]))
    assert hit.path == (*SOURCE, "triggers", 0)
    assert "to true" in hit.message


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "tool_call", "tool": "finish", "value": "done"},
        {"type": "tool_call", "tool": "finish", "argument": "state"},
        {"type": "tool_response", "tool": "finish", "response_key": "state"},
        {"type": "ui_response", "tool": "finish", "response_key": "state"},
        {"type": "function", "function": "tools.x:y"},
    ],
)
def test_STATE004_trigger_along_a_transition(trigger):
    assert hits("STATE004", subject(step("open", "done"), triggers=[trigger])) == []


def test_STATE004_wrong_type_and_plain_variables():
    trigger = {"type": "user_text", "match": {"equals": "x"}}
    assert hits("STATE004", subject(step("open", "done"), triggers=[trigger], type_="str")) == []
    assert hits("STATE004", subject(triggers=[trigger])) == []


def test_STATE005_repeated_transition():
    trigger = {"type": "user_text", "match": {"equals": "x"}}
    twice = step("open", "done", trigger)
    hit = only("STATE005", subject(twice, step("done", "open"), twice))
    assert hit.path == (*SOURCE, "transitions", 2)
    assert 'from "open" to "done" is written twice' in hit.message
    assert hit.fix is not None
    assert hit.fix.edits == (Remove(hit.path),)


def test_STATE005_same_step_by_another_event():
    one = step("open", "done", {"type": "user_text", "match": {"equals": "x"}})
    other = step("open", "done", {"type": "user_text", "match": {"equals": "y"}})
    assert hits("STATE005", subject(one, other, step("open", "done"))) == []
