import pytest

from weft.catalogue import CATALOGUE
from weft.check.rule import rules_of
from weft.check.rules import environment
from weft.check.subject import Subject
from weft.spec.workflow import WorkflowSpec

RULES = {rule.code: rule for rule in rules_of(environment)}


def computed(*inputs):
    source = {"type": "computed", "computation": "tools.x:f", "inputs": list(inputs)}
    return {"type": "bool", "routing": True, "source": source}


VARIABLES = {
    "beta": {"type": "bool", "source": {"type": "environment", "env_var": "BETA"}},
    "done": {"type": "bool", "source": {"type": "derived", "default": False}},
    "early": computed("done", "beta"),
    "late": computed("late", "missing", "early", "done"),
    "plain": computed("done"),
}


def subject(condition=None, prompt="", profile="development", condition_type="expression"):
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {"workflow_name": "Demo", "initial_agent": "RouterAgent"},
                "agents": [
                    {
                        "agent_name": "RouterAgent",
                        "prompt_sections": [{"id": "role", "content": prompt}],
                    }
                ],
                "variables": VARIABLES,
                "handoffs": [
                    {
                        "source_agent": "RouterAgent",
                        "target_agent": "user",
                        "condition": condition,
                        "condition_type": condition_type,
                    }
                ],
            }
        ),
        profile=profile,
    )


def only(code, checked):
    (hit,) = RULES[code].check(checked)
    return hit


def test_every_rule_has_its_entry_in_the_catalogue():
    assert set(RULES) == {code for code in CATALOGUE if code.startswith("ENV")}


@pytest.mark.parametrize(
    ("profile", "severity"), [("development", "warning"), ("production", "error")]
)
def test_ENV001_rule_on_an_environment_variable(profile, severity):
    hit = only("ENV001", subject("done and beta and beta", profile=profile))
    assert hit.path == ("handoffs", 0, "condition")
    assert (hit.offset, hit.length, hit.severity) == (9, 4, severity)
    assert "RouterAgent -> user depends on the environment variable beta" in hit.message
    assert hit.cause == ()


def test_ENV001_through_computed_variables():
    hit = only("ENV001", subject("late"))
    assert "environment variable beta" in hit.message
    assert hit.cause == ("late is computed from early", "early is computed from beta")


def test_ENV001_words_for_a_model_with_an_environment_variable():
    hit = only("ENV001", subject("The ${beta} is over, not {done}.", condition_type="llm"))
    assert (hit.offset, hit.length, hit.severity) == (6, 4, "warning")


@pytest.mark.parametrize(
    "condition", [None, "done", "plain", "missing", "user_id == 'x'", "beta ="]
)
def test_ENV001_rule_on_something_else(condition):
    assert list(RULES["ENV001"].check(subject(condition))) == []


@pytest.mark.parametrize(
    ("profile", "severity"), [("development", "warning"), ("production", "error")]
)
def test_ENV002_prompt_with_an_environment_variable(profile, severity):
    hit = only("ENV002", subject(prompt="Beta: {early}", profile=profile))
    assert hit.path == ("agents", 0, "prompt_sections", 0, "content")
    assert (hit.offset, hit.length, hit.severity) == (7, 5, severity)
    assert "the prompt of RouterAgent depends on the environment variable beta" in hit.message
    assert hit.cause == ("early is computed from beta",)


def test_ENV002_prompt_with_something_else():
    assert list(RULES["ENV002"].check(subject(prompt="{done} {plain} {{beta}} beta"))) == []
