import pytest

from weft.catalogue import CATALOGUE
from weft.check.rule import rules_of
from weft.check.rules import environment
from weft.check.subject import Subject
from weft.engine.variables.suppression import WITHOUT_SCHEMA
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
    "plan": {
        "type": "str",
        "routing": True,
        "source": {"type": "database", "collection": "Plans", "search_by": "user_id"},
    },
    "rich": computed("plan"),
}


def subject(
    condition=None,
    prompt="",
    profile="development",
    condition_type="expression",
    suppressed=frozenset(),
):
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
        suppressed=suppressed,
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


@pytest.mark.parametrize(
    ("condition", "kind"),
    [("done and plan == 'x'", "expression"), ("It is the {plan}.", "llm")],
)
def test_ENV003_what_a_lean_run_does_not_have(condition, kind):
    checked = subject(condition, condition_type=kind, suppressed=WITHOUT_SCHEMA)
    rule, computation = RULES["ENV003"].check(checked)
    assert rule.path == ("handoffs", 0, "condition")
    assert condition[rule.offset :][: rule.length] == "plan"
    assert (
        "RouterAgent -> user asks for plan, which does not exist here (CONTEXT_INCLUDE"
        in rule.message
    )
    assert computation.path == ("variables", "rich", "source", "inputs", 0)
    assert "rich is computed from plan, which does not exist here" in computation.message


def test_ENV003_what_production_does_not_have_is_no_input_either():
    hit = only("ENV003", subject("beta", profile="production"))
    assert (
        "early is computed from beta, which does not exist here (this is production)" in hit.message
    )
    assert only("ENV001", subject("beta", profile="production")), "which speaks of the rule"


@pytest.mark.parametrize("condition", [None, "plan == 'x'", "plan ="])
def test_ENV003_elsewhere_it_exists(condition):
    assert list(RULES["ENV003"].check(subject(condition))) == []


def test_ENV003_conditions_on_what_exists_or_that_do_not_parse():
    for condition in (None, "done", "plan ="):
        checked = subject(condition, suppressed=WITHOUT_SCHEMA)
        assert [it.path[0] for it in RULES["ENV003"].check(checked)] == ["variables"]
