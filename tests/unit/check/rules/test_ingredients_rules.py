"""Family EXPO, second part: what an agent's own context is made of."""

import pytest

from weft.check.rule import rules_of
from weft.check.rules import ingredients
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec

RULES = {rule.code: rule for rule in rules_of(ingredients)}
STATIC = {"type": "str", "source": {"type": "static", "value": "gold"}}


def hits(code, *context, exposed=("plan", "city")):
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "Demo", "initial_agent": "First"},
            "agents": [{"agent_name": "First"}, {"agent_name": "Agent", "context": list(context)}],
            "variables": {"plan": STATIC, "city": STATIC, "other": STATIC},
            "exposure": {"Agent": list(exposed)},
        }
    )
    return list(RULES[code].check(Subject(spec)))


def variables(*names, **more):
    return {"kind": "variables", "names": list(names), **more}


def test_EXPO010_not_shown():
    (hit,) = hits("EXPO010", {"kind": "history"}, variables("plan", "other"))
    assert hit.path == ("agents", 1, "context", 1, "names", 1)
    assert hit.message == 'the context of Agent names "other", which Agent is not shown'
    assert hit.hint == ('add "other" to the variables of Agent',)


def test_EXPO010_misspelt():
    (hit,) = hits("EXPO010", variables("pln"))
    assert hit.hint == ('did you mean "plan"?',)


def test_EXPO010_nothing_is_shown():
    assert len(hits("EXPO010", variables("plan", "city"), exposed=())) == 2


@pytest.mark.parametrize("context", [(), (variables(),), (variables("city", "plan"),)])
def test_EXPO010_shown(context):
    assert hits("EXPO010", *context) == []


def test_EXPO011_longer_than_max_tokens():
    text = {"kind": "literal", "text": "x" * 41, "max_tokens": 10}
    (hit,) = hits("EXPO011", {"kind": "history", "max_tokens": 1}, text)
    assert hit.path == ("agents", 1, "context", 1, "text")
    assert "takes about 11 tokens and may take 10" in hit.message
    assert hits("EXPO011", {**text, "max_tokens": 11}) == []
    assert hits("EXPO011", {"kind": "literal", "text": "x" * 41}) == []


@pytest.mark.parametrize(
    ("context", "path", "what"),
    [
        (({"kind": "history"}, {"kind": "history"}), (1,), "the conversation"),
        (({"kind": "board"}, {"kind": "board"}), (1,), "what its provider gives"),
        ((variables("plan"), variables("city", "plan")), (1, "names", 1), 'the variable "plan"'),
        ((variables("plan", "plan"),), (0, "names", 1), 'the variable "plan"'),
        ((variables("city"), variables()), (1,), 'the variable "city"'),
    ],
)
def test_EXPO012_twice(context, path, what):
    (hit,) = hits("EXPO012", *context)
    assert hit.path == ("agents", 1, "context", *path)
    assert hit.message == f"the context of Agent holds {what} twice"


def test_EXPO012_once():
    text = {"kind": "literal", "text": "x"}
    context = (text, {"kind": "history"}, text, variables("plan"), variables("city"))
    assert hits("EXPO012", *context) == []
    assert hits("EXPO012", variables(), exposed=("plan", "plan")) == []
