import pytest

from weft.catalogue import CATALOGUE
from weft.check.rule import rules_of
from weft.check.rules import conditions, handoffs
from weft.check.subject import Subject
from weft.findings import Remove, SetValue
from weft.spec.condition_parser import mentions
from weft.spec.workflow import WorkflowSpec

RULES = {rule.code: rule for rule in rules_of(handoffs, conditions)}

BOOL = {"type": "bool", "source": {"type": "derived", "default": False}}
DOMAIN = {
    "type": 'literal["tech", "finance"]',
    "source": {"type": "derived", "default": "tech"},
}


def handoff(source="RouterAgent", target="TechAgent", condition=None, **more):
    return {"source_agent": source, "target_agent": target, "condition": condition, **more}


def subject(*handoffs, variables=None, models=(), **orchestrator):
    agents = ("RouterAgent", "TechAgent", "FinanceAgent")
    return Subject(
        WorkflowSpec.model_validate(
            {
                "orchestrator": {
                    "workflow_name": "Demo",
                    "initial_agent": "RouterAgent",
                    **orchestrator,
                },
                "agents": [{"agent_name": name} for name in agents],
                "variables": variables or {},
                "models": list(models),
                "handoffs": list(handoffs),
            }
        )
    )


def hits(code, checked):
    return list(RULES[code].check(checked))


def only(code, checked):
    (hit,) = hits(code, checked)
    return hit


def derived(type_, default=None):
    return {"type": type_, "source": {"type": "derived", "default": default}}


def test_every_rule_has_its_entry_in_the_catalogue():
    assert set(RULES) <= set(CATALOGUE)


def test_HAND001_unknown_target():
    hit = only("HAND001", subject(handoff(), handoff(target="TechAgnt")))
    assert hit.path == ("handoffs", 1, "target_agent")
    assert hit.message == 'RouterAgent hands off to "TechAgnt", which is no agent'
    assert hit.hint == ('did you mean "TechAgent"?',)
    assert hit.fix is None


def test_HAND001_other_spelling_is_mended():
    hit = only("HAND001", subject(handoff(target="TERMINATE")))
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(("handoffs", 0, "target_agent"), "terminate"),)


def test_HAND001_nothing_similar():
    hit = only("HAND001", subject(handoff(target="Zzz")))
    assert "name an agent" in hit.hint[0]


@pytest.mark.parametrize("target", ["TechAgent", "user", "terminate"])
def test_HAND001_known_targets(target):
    assert hits("HAND001", subject(handoff(target=target))) == []


def test_HAND002_unknown_source():
    hit = only("HAND002", subject(handoff(source="router_agent")))
    assert hit.path == ("handoffs", 0, "source_agent")
    assert '"router_agent", which is no agent' in hit.message
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(hit.path, "RouterAgent"),)


def test_HAND002_user_has_no_rules():
    assert "whose turn" in only("HAND002", subject(handoff(source="user"))).hint[0]


def test_HAND002_known_source():
    assert hits("HAND002", subject(handoff())) == []


def test_HAND003_condition_with_one_equals_sign():
    hit = only("HAND003", subject(handoff(), handoff(condition="domain = 'tech'")))
    assert hit.path == ("handoffs", 1, "condition")
    assert "RouterAgent -> TechAgent cannot be read" in hit.message
    assert (hit.offset, hit.hint) == (7, ("write == to compare",))


def test_HAND003_free_words_may_be_judged_by_a_model():
    hit = only("HAND003", subject(handoff(condition="the user sounds angry")))
    assert hit.hint[-1] == 'or, if a model is to judge these words, set "condition_type": "llm"'
    for condition in ("domain = 'a' and so on", "domain tech"):
        assert not any(
            "llm" in hint for hint in only("HAND003", subject(handoff(condition=condition))).hint
        )


def test_HAND003_empty_condition():
    assert "empty" in only("HAND003", subject(handoff(condition=" "))).message


def test_HAND003_readable_and_judged_conditions():
    judged = handoff(condition="the user is angry", condition_type="llm")
    assert hits("HAND003", subject(handoff(condition="a and not b"), judged, handoff())) == []


def test_HAND004_descriptive_variable():
    variables = {"plan": {"type": "str", "source": {"type": "static", "value": "gold"}}}
    hit = only("HAND004", subject(handoff(condition="not plan and plan"), variables=variables))
    assert hit.path == ("handoffs", 0, "condition")
    assert (hit.offset, hit.length) == (4, 4)
    assert "depends on plan, which may not decide a handoff" in hit.message
    assert '"routing": true' in hit.hint[0]


def test_HAND004_built_in_variable():
    hit = only("HAND004", subject(handoff(condition="user_id == 'u1'")))
    assert "built-in" in hit.hint[0]


def test_HAND004_secret_variable():
    source = {"type": "environment", "env_var": "KEY"}
    variables = {"key": {"type": "str", "secret": True, "source": source}}
    hit = only("HAND004", subject(handoff(condition="key"), variables=variables))
    assert "never part of a run" in hit.hint[0]


def test_HAND004_variables_with_the_right():
    static = {"type": "str", "source": {"type": "static", "value": "x"}, "routing": True}
    flag = {"type": "bool", "source": {"type": "environment", "env_var": "FLAG"}}
    checked = subject(
        handoff(condition="done and plan and flag and unknown"),
        variables={"done": BOOL, "plan": static, "flag": flag},
    )
    assert hits("HAND004", checked) == []


def test_HAND004_right_taken_away():
    assert only(
        "HAND004", subject(handoff(condition="x"), variables={"x": {**BOOL, "routing": False}})
    )


def test_HAND005_undeclared_variable():
    checked = subject(handoff(condition="done == true or ${dne} or dne"), variables={"done": BOOL})
    hit = only("HAND005", checked)
    assert hit.path == ("handoffs", 0, "condition")
    assert (hit.offset, hit.length) == (18, 3)
    assert '"dne", which is no variable' in hit.message
    assert hit.hint == ('did you mean "done"?', "or put it in quotes if it is a text: 'dne'")


@pytest.mark.parametrize(("word", "meant"), [("yes", "true"), ("No", "false"), ("off", "false")])
def test_HAND005_words_for_true_and_false(word, meant):
    hit = only("HAND005", subject(handoff(condition=f"done == {word}"), variables={"done": BOOL}))
    quoted = f"or put it in quotes if it is a text: '{word}'"
    assert hit.hint == (f"write {meant} if that is meant", quoted)
    text = subject(handoff(condition=f"done is {word}"), variables={"done": BOOL})
    assert only("HAND015", text).hint == (f"write {meant} without quotes",)


def test_HAND005_nothing_similar():
    assert only("HAND005", subject(handoff(condition="zzz"))).hint[0] == "declare the variable"


def test_HAND005_undeclared_variable_in_words_for_a_model():
    words = "It is over: ${dne}, {done}, {{literal}}, {user_id}."
    judged = handoff(condition=words, condition_type="llm")
    hit = only("HAND005", subject(judged, handoff(condition="done ="), variables={"done": BOOL}))
    assert hit.path == ("handoffs", 0, "condition")
    assert (hit.offset, hit.length) == (14, 3)
    assert hit.hint == ('did you mean "done"?', "or double the braces if they are meant: {{dne}}")
    assert hits("HAND005", subject(handoff(condition_type="llm"))) == []


def test_HAND005_declared_and_built_in_variables():
    checked = subject(handoff(condition="done and user_id == 'x'"), variables={"done": BOOL})
    assert hits("HAND005", checked) == []


def test_HAND006_second_fallback():
    checked = subject(handoff(priority=2), handoff(target="user"), handoff(source="TechAgent"))
    hit = only("HAND006", checked)
    assert hit.path == ("handoffs", 0, "source_agent")
    assert "second rule without a condition, to TechAgent; the one to user" in hit.message
    assert hit.fix is None


def test_HAND006_repeated_fallback_is_removed():
    hit = only("HAND006", subject(handoff(), handoff()))
    assert hit.fix is not None
    assert hit.fix.edits == (Remove(("handoffs", 1)),)


def test_HAND006_one_fallback_beside_other_rules():
    others = [
        handoff(condition="x"),
        handoff(condition_scope="pre"),
        handoff(condition_type="llm"),
    ]
    assert hits("HAND006", subject(handoff(), *others)) == []


def tied(first, second, variables, **more):
    return subject(
        handoff(condition=first, **more),
        handoff(target="FinanceAgent", condition=second, **more),
        variables=variables,
    )


def test_HAND007_tie_of_independent_conditions():
    hit = only("HAND007", tied("a", "b", {"a": BOOL, "b": BOOL}))
    assert hit.path == ("handoffs", 1, "condition")
    assert (
        "RouterAgent -> TechAgent and RouterAgent -> FinanceAgent may apply at once" in hit.message
    )
    assert "priority 1" in hit.message


INT = derived("int", 0)
TEXT = derived("str", "")


@pytest.mark.parametrize(
    ("first", "second", "variables"),
    [
        ("d == 'tech'", "d == 'finance'", {"d": DOMAIN}),
        ("d == 'tech' and a", "'finance' == d and b", {"d": DOMAIN, "a": BOOL, "b": BOOL}),
        ("a", "not a", {"a": BOOL}),
        ("a and b", "a and not b", {"a": BOOL, "b": BOOL}),
        ("d in ['tech']", "d not in ['tech']", {"d": DOMAIN}),
        ("n < 5", "n >= 5", {"n": INT}),
        ("n < 5", "n > 5 or n == 5", {"n": derived("float", 0)}),
        ("n == 1", "n in [2, 3]", {"n": INT}),
        ("t", "not t", {"t": TEXT}),
        ("t == null", "t != null", {"t": derived("str")}),
        ("n > 4 and n < 5", "n != 7", {"n": INT}),
        ("workflow_name == 'x'", "workflow_name != 'x'", {}),
    ],
)
def test_HAND007_exclusive_conditions(first, second, variables):
    assert hits("HAND007", tied(first, second, variables)) == []


@pytest.mark.parametrize(
    ("first", "second", "variables"),
    [
        ("n == 1 or n < 'a'", "n == 1", {"n": INT}),
        ("n > 3", "n > 5", {"n": INT}),
        ("n > 4 and n < 5", "n != 7", {"n": derived("float", 0)}),
        ("n <= 5", "n >= 5", {"n": INT}),
        ("d != 'tech'", "d != 'finance'", {"d": derived('literal["tech", "finance"]')}),
        ("d != 'tech'", "d != 'finance'", {"d": derived('optional[literal["tech"]]', "tech")}),
        ("t == 'a'", "t == u", {"t": TEXT, "u": TEXT}),
        ("'a' in t", "'b' in t", {"t": TEXT}),
        ("t in 'abc'", "t == 'b'", {"t": TEXT}),
        ("t == 'a'", "t <= 'a'", {"t": TEXT}),
        ("m", "m != 'a'", {"m": {"type": "Plan", "source": {"type": "derived"}}}),
        ("workflow_name == 'x'", "workflow_name != 'y'", {}),
        ("n == true or n", "n > 2", {"n": derived("any")}),
        ("n < 5 or n >= 5", "n != 3", {"n": derived("int")}),
        ("n < 5 or n >= 5", "n != 3", {"n": derived("any")}),
        ("a", "1 == 1", {"a": BOOL}),
    ],
)
def test_HAND007_overlapping_conditions(first, second, variables):
    assert only("HAND007", tied(first, second, variables))


def test_HAND007_other_priority_scope_source_or_target():
    variables = {"a": BOOL, "b": BOOL}
    checked = subject(
        handoff(condition="a"),
        handoff(target="FinanceAgent", condition="b", priority=2),
        handoff(target="FinanceAgent", condition="b", condition_scope="pre"),
        handoff(source="TechAgent", target="FinanceAgent", condition="b"),
        handoff(condition="b"),
        handoff(target="user"),
        handoff(target="user", condition="anything", condition_type="llm"),
        handoff(target="user", condition="undeclared"),
        variables=variables,
    )
    assert hits("HAND007", checked) == []


def test_HAND007_conditions_without_an_answer_do_not_hold():
    assert hits("HAND007", tied("n < 'a'", "n == 1", {"n": INT})) == []


def test_HAND007_too_many_combinations_count_as_overlapping():
    variables = {f"v{index}": BOOL for index in range(18)}
    pairs = " or ".join(f"(v{index} and v{index + 1})" for index in range(0, 18, 2))
    assert only("HAND007", tied(pairs, f"not ({pairs})", variables))


def test_HAND007_too_many_combinations_to_see_that_the_first_always_holds():
    variables = {f"v{index}": BOOL for index in range(13)}
    always = " and ".join(f"({name} or not {name})" for name in variables)
    assert only("HAND007", tied(always, "v0", variables))


def test_HAND007_many_variables_are_told_apart_where_few_decide():
    variables = {f"v{index}": BOOL for index in range(20)}
    every = " and ".join(variables)
    assert hits("HAND007", tied(every, f"not ({every})", variables)) == []
    variables["v20"] = BOOL
    assert hits("HAND007", tied(f"{every} and v20", f"not ({every})", variables)) != []


def test_HAND007_looks_at_every_pair_however_many_there_are():
    # Exclusive in pairs, but only trying values shows it: 900 pairs of 2 ** 9 combinations.
    names = [f"v{index}" for index in range(9)]
    first, second = " and ".join(names), " or ".join(f"not {name}" for name in names)
    rules = [handoff(condition=first) for _ in range(30)]
    rules += [handoff(target="FinanceAgent", condition=second) for _ in range(30)]
    last = [
        handoff(source="TechAgent", target=target, condition="v0")
        for target in ("user", "terminate")
    ]
    hit = only("HAND007", subject(*rules, *last, variables=dict.fromkeys(names, BOOL)))
    assert hit.path == ("handoffs", 61, "condition")


STATIC = {"type": "bool", "source": {"type": "static", "value": True}, "routing": True}


def test_HAND013_strict_profile():
    checked = subject(
        handoff(condition="not a or plan"),
        variables={"a": BOOL, "plan": STATIC},
        condition_profile="strict",
    )
    hit = only("HAND013", checked)
    assert hit.path == ("handoffs", 0, "condition")
    assert hit.message.startswith(
        "the strict profile forbids the condition of RouterAgent -> TechAgent"
    )
    assert "'or' is used" in hit.message
    assert any("'plan' is a static variable" in line for line in hit.cause)


def test_HAND013_plain_conditions():
    variables = {"a": BOOL, "b": BOOL, "plan": {**STATIC, "routing": None}}
    # What may not route at all is the matter of HAND004, what is undeclared that of HAND005.
    rules = [handoff(condition="a and b"), handoff(condition="plan"), handoff(condition="unknown")]
    assert hits("HAND013", subject(*rules, variables=variables, condition_profile="strict")) == []
    assert hits("HAND013", subject(handoff(condition="not a"), variables=variables)) == []


def test_HAND014_judged_condition_without_leave():
    judged = handoff(condition="the user is angry", condition_type="llm")
    hit = only("HAND014", subject(handoff(), judged))
    assert hit.path == ("handoffs", 1, "condition_type")
    assert "a model is to judge when RouterAgent hands off to TechAgent" in hit.message


def test_HAND014_judged_condition_with_leave():
    judged = handoff(condition="the user is angry", condition_type="llm")
    assert hits("HAND014", subject(judged, llm_conditions=True)) == []
    assert hits("HAND014", subject(handoff(condition_type="llm"))) == []


MODEL = {"name": "Plan", "fields": {"price": {"type": "int"}}}
TYPES = {
    "flag": BOOL,
    "domain": DOMAIN,
    "n": derived("int", 0),
    "f": derived("float", 0),
    "text": derived("str", ""),
    "maybe": derived("optional[int]"),
    "tags": derived("list[str]", []),
    "levels": derived("optional[list[literal[1, 2]]]"),
    "table": derived("dict[int]", {}),
    "plan": derived("Plan"),
    "lost": derived("Nowhere"),
    "lost_inside": derived("list[Broken]"),
    "thing": derived("any"),
    "mixed": derived('literal["a"] | optional[bool]'),
    "mixed_number": derived('int | literal["a"]'),
}
BROKEN = {"name": "Broken", "fields": {"x": {"type": "Nowhere"}, "again": {"type": "Broken"}}}


def compared(condition):
    return subject(
        handoff(condition=condition),
        variables=TYPES,
        models=[MODEL, BROKEN],
        condition_profile="full",
    )


@pytest.mark.parametrize(
    ("condition", "part", "hint"),
    [
        ("domain == 'tehc'", 'is never "tehc"', 'did you mean "tech"?'),
        ("domain != 'zzz'", 'is never "zzz"', 'it can be "tech", "finance"'),
        ("'zzz' == domain", 'is never "zzz"', "it can be"),
        ("domain in ['tech', 'fin']", 'is never "fin"', 'did you mean "finance"?'),
        ("mixed == 'b'", 'is never "b"', "it can be"),
        ("flag == 'true'", 'is never "true"', "write true without quotes"),
        ("n == '5'", 'is never "5"', "write 5 without quotes"),
        ("n == 'five'", 'is never "five"', "a value of its type"),
        ("n == 2.5", "is never 2.5", "a value of its type"),
        ("text is true", "is never true", "a value of its type"),
        ("flag < true", "neither less nor more than true", "order numbers against numbers"),
        ("text > 5", "neither less nor more than 5", "texts against texts"),
        ("5 < text", "neither less nor more than 5", "texts against texts"),
        ("n > null", "neither less nor more than null", "compare with =="),
        ("plan <= 3", "neither less nor more", "compare with =="),
        ("flag == n", "cannot be compared like this with n, which is int", "of the same type"),
        ("tags < tags", "cannot be compared like this", "of the same type"),
        ("n in 'abc'", 'cannot be looked for in "abc"', "square brackets"),
        ("text in 5", "cannot be looked for in 5", "square brackets"),
        ("'a' in n", "nothing can be found in n", "in a list"),
        ("5 in text", "text, which is str, never holds 5", "anything else in a list"),
        ("n in table", "table, which is dict[int], never holds n", "anything else in a list"),
    ],
)
def test_HAND015_comparison_that_cannot_hold(condition, part, hint):
    hit = only("HAND015", compared(condition))
    assert hit.path == ("handoffs", 0, "condition")
    assert "in the rule RouterAgent -> TechAgent, " in hit.message
    assert part in hit.message
    assert hint in hit.hint[0]
    name, offset = mentions(condition)[0]
    assert (hit.offset, hit.length) == (offset, len(name))


@pytest.mark.parametrize(
    "condition",
    [
        "flag", "not flag", "domain == 'tech'", "domain == null", "n == 5", "n == 5.0", "f == 5",
        "f > 2", "text < 'm'", "maybe == 3", "maybe in [1, null]", "'a' in tags", "null in tags",
        "text in tags", "'key' in table", "'a' in text", "text in 'abc'", "text in text", "n == f",
        "n < f", "thing == 5", "5 in thing", "thing > 'a'", "thing in thing", "plan",
        "plan != null",
        "lost == 5", "5 in lost_inside", "unknown == 5", "1 == 2", "3 in [1]", "mixed == true",
        "2 in levels", "user_id == 'u'", "mixed_number > 2", "text == thing",
    ],
)  # fmt: skip
def test_HAND015_comparison_that_may_hold(condition):
    assert hits("HAND015", compared(condition)) == []


def test_HAND015_place_of_the_variable_in_a_longer_condition():
    condition = "flag and not (n > 1 or domain == 'x') and n in [1, 'y']"
    first, second = hits("HAND015", compared(condition))
    assert condition[first.offset : first.offset + (first.length or 0)] == "domain"
    assert (second.offset, second.length) == (condition.rindex("n in"), 1)


def test_HAND015_long_types_and_values_are_cut():
    listed = ", ".join(f'"value number {index}"' for index in range(20))
    checked = subject(
        handoff(condition="x == 'zzz'"), variables={"x": derived(f"literal[{listed}]")}
    )
    assert len(only("HAND015", checked).message) < 200


def test_HAND016_reason_without_an_end():
    hit = only(
        "HAND016", subject(handoff(reason="technical"), handoff(target="terminate", reason="x"))
    )
    assert hit.path == ("handoffs", 0, "reason")
    assert "used only when the run ends" in hit.message


def test_HAND016_reason_of_an_end():
    assert hits("HAND016", subject(handoff(target="terminate", reason="done"), handoff())) == []


def test_HAND017_agent_could_never_reply():
    hit = only("HAND017", subject(handoff(condition_scope="pre")))
    assert hit.path == ("handoffs", 0, "condition_scope")
    assert hit.message.startswith("RouterAgent could never reply")


def test_HAND017_condition_or_other_scope():
    rules = [
        handoff(condition="x", condition_scope="pre"),
        handoff(),
        handoff(condition_scope="pre", condition_type="llm"),
    ]
    assert hits("HAND017", subject(*rules)) == []


@pytest.mark.parametrize(
    ("orchestrator", "reason"),
    [
        ({"startup_mode": "BackendOnly"}, "starts in the background"),
        ({"trigger": {"type": "webhook"}}, "starts in the background"),
        ({"human_in_the_loop": False}, "human_in_the_loop is false"),
    ],
)
def test_HAND018_user_is_not_there(orchestrator, reason):
    hit = only("HAND018", subject(handoff(), handoff(target="user"), **orchestrator))
    assert hit.path == ("handoffs", 1, "target_agent")
    assert "hands off to the user" in hit.message
    assert reason in hit.message


def test_HAND018_user_is_there():
    assert hits("HAND018", subject(handoff(target="user"))) == []


def test_HAND019_nothing_to_judge():
    hit = only("HAND019", subject(handoff(condition_type="llm")))
    assert hit.path == ("handoffs", 0, "condition_type")
    assert "there is no condition to judge" in hit.message


def test_HAND019_something_to_judge():
    assert (
        hits("HAND019", subject(handoff(condition="angry", condition_type="llm"), handoff())) == []
    )


def test_HAND019_nothing_to_compare_with():
    hit = only("HAND019", subject(handoff(condition_type="nearest")))
    assert hit.message == (
        "the nearest description is to decide when RouterAgent hands off to TechAgent, but there "
        "is no condition to compare with"
    )


def test_HAND025_threshold_without_comparison():
    hit = only("HAND025", subject(handoff(condition="angry", condition_type="llm", threshold=0.5)))
    assert hit.path == ("handoffs", 0, "threshold")
    near = handoff(condition="refunds", condition_type="nearest", threshold=0.0)
    assert hits("HAND025", subject(near, handoff())) == []


def test_descriptions_are_words_and_no_expressions():
    near = handoff(condition="refunds of {order}", condition_type="nearest")
    assert hits("HAND003", subject(near)) == []
    assert only("HAND005", subject(near)).message.endswith(
        'depends on "order", which is no variable'
    )
    assert hits("HAND014", subject(near)) == []


def test_HAND020_unknown_default_target():
    hit = only("HAND020", subject(default_target="tech-agent"))
    assert hit.path == ("orchestrator", "default_target")
    assert hit.message == 'the default target "tech-agent" is no agent'
    assert hit.fix is not None
    assert hit.fix.edits == (SetValue(hit.path, "TechAgent"),)


def test_HAND020_default_target_without_a_user():
    hit = only("HAND020", subject(default_target="user", human_in_the_loop=False))
    assert "the default target is the user, but human_in_the_loop is false" in hit.message


@pytest.mark.parametrize("target", [None, "TechAgent", "terminate", "user"])
def test_HAND020_known_default_target(target):
    assert hits("HAND020", subject(default_target=target)) == []


def choosing(*handoffs, tool="find", owner="RouterAgent"):
    spec = {
        "orchestrator": {"workflow_name": "Demo", "initial_agent": "RouterAgent"},
        "agents": [
            {"agent_name": "RouterAgent", "handoff_tools": True},
            {"agent_name": "TechAgent"},
        ],
        "tools": [{"tool_type": "Agent_Tool", "agent": owner, "file": "a.py", "function": tool}],
        "handoffs": list(handoffs),
    }
    return Subject(WorkflowSpec.model_validate(spec))


def test_HAND024_nobody_to_hand_off_to():
    hit = only("HAND024", choosing(handoff("TechAgent", "user")))
    assert hit.path == ("agents", 0, "handoff_tools")
    assert "RouterAgent may hand off by tools, but has no rule" in hit.message


def test_HAND024_a_tool_of_that_name():
    hit = only("HAND024", choosing(handoff(), tool="hand_off_to_TechAgent"))
    assert hit.path == ("tools", 0, "function")
    assert "the one that hands off to TechAgent: that can never be called" in hit.message


@pytest.mark.parametrize("tool", ["find", "hand_off_to_user"])
def test_HAND024_targets_to_choose_among(tool):
    assert hits("HAND024", choosing(handoff(), tool=tool)) == []
    assert hits("HAND024", choosing(handoff(), tool="hand_off_to_TechAgent", owner="Other")) == []
    assert hits("HAND024", subject()) == []
