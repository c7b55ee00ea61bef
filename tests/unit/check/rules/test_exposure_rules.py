import pytest

from weft.catalogue import CATALOGUE
from weft.check.rule import rules_of
from weft.check.rules import exposure, ingredients
from weft.check.subject import Subject
from weft.findings import AppendItem, Remove, SetValue
from weft.spec.workflow import WorkflowSpec

RULES = {rule.code: rule for rule in rules_of(exposure, ingredients)}

STATIC = {"type": "str", "source": {"type": "static", "value": "gold"}}
SECRET = {"type": "str", "secret": True, "source": {"type": "environment", "env_var": "KEY"}}
PLACE = ("agents", 0, "prompt_sections", 0, "content")


def subject(*texts, variables=("plan", "user_tier"), exposure=None, code=None, **more):
    """Build a workflow whose first agent has the given texts as prompt sections."""
    sections = [{"id": f"part{index}", "content": text} for index, text in enumerate(texts)]
    declared = variables if isinstance(variables, dict) else dict.fromkeys(variables, STATIC)
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {"workflow_name": "Demo", "initial_agent": "RouterAgent"},
                "agents": [
                    {"agent_name": "RouterAgent", "prompt_sections": sections},
                    {"agent_name": "TechAgent"},
                ],
                "variables": declared,
                "exposure": exposure or {},
                **more,
            }
        ),
        code=code or {},
    )


def hits(code, checked):
    return list(RULES[code].check(checked))


def only(code, checked):
    (hit,) = hits(code, checked)
    return hit


def test_every_rule_has_its_entry_in_the_catalogue():
    assert set(RULES) == {code for code in CATALOGUE if code.startswith("EXPO")}


def test_EXPO001_undeclared_variable_in_prompt():
    hit = only("EXPO001", subject("Plan: {plan}", "Use {pln} and {pln}."))
    assert hit.path == ("agents", 0, "prompt_sections", 1, "content")
    assert (hit.offset, hit.length) == (5, 3)
    assert hit.message == 'the prompt of RouterAgent puts in "pln", which is no variable'
    assert hit.hint == (
        'did you mean "plan"?',
        "or write {{pln}} if the braces are meant literally",
    )


def test_EXPO001_nothing_similar():
    assert only("EXPO001", subject("{zzz}")).hint[0] == "declare the variable"


def test_EXPO001_literal_braces_and_known_names():
    text = 'Reply with {"kind": {{zzz}}, "list": [{}]}. { zzz } {plan} {user_id}'
    assert hits("EXPO001", subject(text)) == []


def test_EXPO001_undeclared_variable_that_the_agent_is_shown():
    checked = subject("{zzz}", exposure={"RouterAgent": ["zzz"]})
    assert hits("EXPO001", checked) == []
    assert only("EXPO003", checked)


def test_EXPO002_hidden_variable_in_prompt():
    checked = subject("See {plan}.", exposure={"RouterAgent": ["user_tier"]})
    hit = only("EXPO002", checked)
    assert hit.path == PLACE
    assert (hit.offset, hit.length) == (5, 4)
    assert "puts in plan, which RouterAgent is not shown" in hit.message
    assert hit.fix is not None
    assert hit.fix.edits == (AppendItem(("exposure", "RouterAgent"), "plan"),)


def test_EXPO002_agent_without_a_list_gets_one_with_all_it_needs():
    first, second = hits("EXPO002", subject("{plan} and {user_tier} and {plan}"))
    assert first.fix is not None
    assert second.fix is not None
    edit = SetValue(("exposure", "RouterAgent"), ["plan", "user_tier"])
    assert first.fix.edits == second.fix.edits == (edit,)


def test_EXPO002_built_in_variables_are_listed_as_well():
    assert only("EXPO002", subject("You serve {user_id}.")).fix


def test_EXPO002_no_fix_where_the_agent_may_not_read():
    hidden = {**STATIC, "readers": ["TechAgent"]}
    first, second = hits(
        "EXPO002", subject("{plan}{user_tier}", variables={"plan": hidden, "user_tier": STATIC})
    )
    assert first.fix is None
    assert 'and "RouterAgent" to the readers of plan' in first.hint[0]
    assert second.fix is not None
    assert second.fix.edits == (SetValue(("exposure", "RouterAgent"), ["user_tier"]),)


@pytest.mark.parametrize(
    "exposure", [{"RouterAgent": ["plan"]}, {"RoutrAgent": ["plan"]}, {"RouterAgent": ["plann"]}]
)
def test_EXPO002_shown_or_misspelt_where_it_is_shown(exposure):
    assert hits("EXPO002", subject("{plan} {undeclared}", exposure=exposure)) == []


def test_EXPO002_secrets_are_the_matter_of_another_rule():
    assert hits("EXPO002", subject("{key}", variables={"key": SECRET})) == []


def test_EXPO003_undeclared_variable_in_list():
    hit = only("EXPO003", subject(exposure={"RouterAgent": ["plan", "userTier", "userTier"]}))
    assert hit.path == ("exposure", "RouterAgent", 1)
    assert hit.message == 'RouterAgent is shown "userTier", which is no variable'
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(hit.path, "user_tier"),)


def test_EXPO003_nothing_similar():
    hit = only("EXPO003", subject(exposure={"RouterAgent": ["zzz"]}))
    assert (hit.hint, hit.fix) == (("declare the variable, or remove it here",), None)


def test_EXPO003_declared_and_built_in_variables():
    assert hits("EXPO003", subject(exposure={"RouterAgent": ["plan", "chat_id"]})) == []


def test_EXPO004_shown_but_not_used():
    shown = {"RouterAgent": ["user_tier", "plan"]}
    hit = only("EXPO004", subject("Be kind to a user_tier, planner.", exposure=shown))
    assert hit.path == ("exposure", "RouterAgent", 1)
    assert hit.message.startswith("RouterAgent is shown plan, but neither its prompt")


@pytest.mark.parametrize("text", ["{plan}", "Mind the plan.", "{{plan}}", "plan"])
def test_EXPO004_used_in_the_prompt(text):
    assert hits("EXPO004", subject(text, exposure={"RouterAgent": ["plan"]})) == []


@pytest.mark.parametrize("condition", ["plan == 'gold'", "plan =", "if plan is gold"])
def test_EXPO004_used_in_a_condition_of_the_agent(condition):
    handoffs = [
        {"source_agent": "RouterAgent", "target_agent": "user"},
        {"source_agent": "RouterAgent", "target_agent": "user", "condition": condition},
    ]
    shown = {"RouterAgent": ["plan"], "TechAgent": ["plan"]}
    hit = only("EXPO004", subject(exposure=shown, handoffs=handoffs))
    assert hit.path == ("exposure", "TechAgent", 0)


def test_EXPO004_shown_with_its_description():
    variables = {"plan": {**STATIC, "description": "What the customer pays for."}}
    shown = {"RouterAgent": ["plan", "chat_id"]}
    hit = only("EXPO004", subject(variables=variables, exposure=shown))
    assert hit.path == ("exposure", "RouterAgent", 1)


def tool(agent="RouterAgent", file="look.py", **more):
    return {"tool_type": "Agent_Tool", "agent": agent, "file": file, "function": "look", **more}


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"tools": [tool()]}, {"tools/look.py": "def look(c): return c.get('plan')"}),
        (
            {"tools": [tool()]},
            {
                "tools/look.py": "from .shared import read\nfrom . import look\n",
                "tools/shared.py": "def read(c): return c['plan']",
            },
        ),
        ({"tools": [tool()]}, {"tools/look.py": "def broken(: 'plan'"}),
        (
            {
                "lifecycle_tools": [
                    {"file": "look.py", "function": "look", "trigger": "before_chat"}
                ]
            },
            {"tools/look.py": 'PLAN = "plan"'},
        ),
        (
            {"hooks": [{"hook_type": "before_agent", "file": "look.py", "function": "look"}]},
            {"hooks/look.py": 'PLAN = "plan"'},
        ),
    ],
)
def test_EXPO004_used_in_code(parts, code):
    assert hits("EXPO004", subject(exposure={"RouterAgent": ["plan"]}, code=code, **parts)) == []


def test_EXPO004_code_of_other_agents_does_not_count():
    checked = subject(
        exposure={"RouterAgent": ["plan"]},
        tools=[tool(agent="TechAgent"), tool(file="/away.py"), tool(file="absent.py")],
        code={"tools/look.py": "x = 'plan'"},
    )
    assert only("EXPO004", checked)


def test_EXPO004_other_faults_are_not_repeated():
    checked = subject(
        variables={"plan": {**STATIC, "readers": []}, "key": SECRET},
        exposure={"RouterAgent": ["plan", "key", "undeclared"], "Nobody": ["plan"]},
    )
    assert hits("EXPO004", checked) == []


def test_EXPO005_prompt_speaks_of_a_hidden_variable():
    hit = only("EXPO005", subject("Be kind.", "Mind the user_tier, yes, user_tier."))
    assert hit.path == ("agents", 0, "prompt_sections", 1, "content")
    assert (hit.offset, hit.length) == (9, 9)
    assert "speaks of user_tier, but RouterAgent is not shown its value" in hit.message


def test_EXPO005_plain_words_shown_variables_and_braces():
    checked = subject(
        "The plan is user_tiers, {{user_tier}}, { user_tier }, {user_tier.x}.",
    )
    assert hits("EXPO005", checked) == []
    assert (
        hits("EXPO005", subject("Mind user_tier.", exposure={"RouterAgent": ["user_tier"]})) == []
    )
    assert hits("EXPO005", subject("{user_tier} is the user_tier")) == []
    assert hits("EXPO005", subject("my_key", variables={"my_key": SECRET})) == []


def test_EXPO005_mention_after_literal_braces():
    assert only("EXPO005", subject("{{user_tier}} shows user_tier")).offset == 20


def derived(*triggers):
    return {"type": "any", "source": {"type": "derived", "triggers": list(triggers)}}


def test_EXPO005_names_the_agent_has_for_other_reasons():
    said = {"type": "agent_text", "agent": "RouterAgent", "match": {"equals": "x"}}
    called = {"type": "tool_call", "tool": "look"}
    names = ("is_said", "is_called", "look_up", "a_field", "is_other", "is_lost")
    checked = subject(
        " ".join(names),
        variables={
            "is_said": derived(said),
            "is_called": derived(called),
            "look_up": STATIC,
            "a_field": STATIC,
            "is_other": derived(
                {**said, "agent": "TechAgent"}, {"type": "user_text", "match": {"equals": "x"}}
            ),
            "is_lost": derived({**called, "tool": "absent"}),
        },
        tools=[tool(), {**tool(), "function": "look_up"}],
        models=[{"name": "Reply", "fields": {"a_field": {"type": "str"}}}],
        registry=[
            {"agent": "RouterAgent", "model": "Reply"},
            {"agent": "RouterAgent", "model": None},
        ],
    )
    found = {hit.message.split()[6].rstrip(",") for hit in hits("EXPO005", checked)}
    assert found == {"is_other", "is_lost"}


@pytest.mark.parametrize(
    ("text", "effect"),
    [
        ("Plan: { plan }", "is plain text because of the blanks"),
        ("Plan: {plan }", "is plain text because of the blanks"),
        ("Plan: {\n  plan}", "is plain text because of the blanks"),
        ("Plan: ${plan}", "leaves a $ before the value"),
        ("Plan: {{plan}", "leaves a { before the value"),
        ("Plan: {plan.name}", "only {name} is replaced"),
        ("Plan: {plan[0]}", "only {name} is replaced"),
    ],
)
def test_EXPO006_almost_a_reference(text, effect):
    hit = only("EXPO006", subject(text))
    assert hit.path == PLACE
    assert (hit.offset, hit.length) == (6, len(text) - 6)
    assert effect in hit.message
    assert hit.hint == (
        "write {plan} to put the value in",
        "or {{plan}} for the literal text {plan}",
    )


@pytest.mark.parametrize(
    "text",
    [
        "{plan}",
        "{{plan}}",
        "{{{plan}}}",
        '{"x": {plan}}',
        "{ other }",
        "${other}",
        "{plan: 1}",
        "{}",
    ],
)
def test_EXPO006_exact_or_literal(text):
    assert hits("EXPO006", subject(text)) == []


def test_EXPO007_not_among_the_readers():
    variables = {"plan": {**STATIC, "readers": ["TechAgent"]}}
    shown = {"RouterAgent": ["plan"], "TechAgent": ["plan"], "Nobody": ["plan"]}
    hit = only("EXPO007", subject(variables=variables, exposure=shown))
    assert hit.path == ("exposure", "RouterAgent", 0)
    assert hit.message == "RouterAgent is shown plan, but is not among its readers"


def test_EXPO007_readers_and_open_variables():
    shown = {"RouterAgent": ["plan", "user_id", "undeclared"]}
    assert hits("EXPO007", subject(exposure=shown)) == []


def test_EXPO008_secret_in_list():
    checked = subject("{key}", variables={"key": SECRET}, exposure={"RouterAgent": ["key"]})
    hit = only("EXPO008", checked)
    assert hit.path == ("exposure", "RouterAgent", 0)
    assert hit.message == "RouterAgent is shown key, which is secret"


def test_EXPO008_secret_in_prompt():
    hit = only("EXPO008", subject("Use {key}.", variables={"key": SECRET}))
    assert (hit.path, hit.offset, hit.length) == (PLACE, 5, 3)
    assert "puts in key, which is secret" in hit.message


def computed(*inputs, **more):
    source = {"type": "computed", "computation": "tools.x:y", "inputs": list(inputs)}
    return {"type": "str", "source": source, **more}


def test_EXPO008_what_is_computed_from_a_secret():
    variables = {"key": SECRET, "half": computed("key"), "whole": computed("plan", "half")}
    variables["plan"] = STATIC
    checked = subject("Use {half}.", variables=variables, exposure={"RouterAgent": ["whole"]})
    shown, put_in = hits("EXPO008", checked)
    assert shown.message == "RouterAgent is shown whole, which comes from the secret key"
    assert shown.cause == ("whole is computed from half", "half is computed from key")
    assert put_in.message == (
        "the prompt of RouterAgent puts in half, which comes from the secret key"
    )
    assert put_in.cause == ("half is computed from key",)


def test_EXPO008_what_is_computed_from_other_variables():
    variables = {"plan": STATIC, "a": computed("plan", "b", "gone"), "b": computed("a")}
    checked = subject("{a}", variables=variables, exposure={"RouterAgent": ["a", "b"]})
    assert hits("EXPO008", checked) == []


def test_EXPO008_plain_variable():
    assert hits("EXPO008", subject("{plan}", exposure={"RouterAgent": ["plan"]})) == []


def outside(env_var, type_="str", **more):
    return {"type": type_, "source": {"type": "environment", "env_var": env_var}, **more}


def test_EXPO013_a_key_of_the_environment_is_shown():
    shown = {"RouterAgent": ["crm"]}
    hit = only(
        "EXPO013", subject("{crm}", variables={"crm": outside("CRM_API_KEY")}, exposure=shown)
    )
    assert hit.path == ("exposure", "RouterAgent", 0)
    assert hit.message == (
        "RouterAgent is shown crm, which is read from an environment variable that is named like "
        "a secret"
    )
    assert '"secret"' in hit.hint[0]


def test_EXPO013_a_key_of_the_environment_in_a_prompt_or_what_is_computed_from_it():
    variables = {"crm": outside("CRM_TOKEN"), "half": computed("crm")}
    first, second = hits("EXPO013", subject("Use {crm}.", "{half}", variables=variables))
    assert (first.path, first.offset, first.length) == (PLACE, 5, 3)
    assert "puts in half, which comes from crm, which is read from" in second.message
    assert second.cause == ("half is computed from crm",)


@pytest.mark.parametrize(
    "variable",
    [
        SECRET,
        STATIC,
        outside("SHOP_NAME"),
        outside("KEYBOARD_LAYOUT"),
        outside("MAX_TOKENS"),
        outside("TOKEN_LIMIT", "int"),
        outside("SHOW_PASSWORD", "bool"),
    ],
)
def test_EXPO013_no_secret_or_no_name_of_one(variable):
    checked = subject("{x}", variables={"x": variable}, exposure={"RouterAgent": ["x"]})
    assert hits("EXPO013", checked) == []


def test_EXPO013_not_shown():
    assert hits("EXPO013", subject("Hi.", variables={"crm": outside("CRM_KEY")})) == []


def test_EXPO009_listed_twice():
    hit = only("EXPO009", subject(exposure={"RouterAgent": ["plan", "user_tier", "plan"]}))
    assert hit.path == ("exposure", "RouterAgent", 2)
    assert hit.message == "RouterAgent is shown plan twice"
    assert hit.fix is not None
    assert hit.fix.edits == (Remove(hit.path),)


def test_EXPO009_listed_for_two_agents():
    assert hits("EXPO009", subject(exposure={"RouterAgent": ["plan"], "TechAgent": ["plan"]})) == []
