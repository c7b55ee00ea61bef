"""HAND008 to HAND012: what the exploration of all runs finds, and what it leaves to others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.check.builders_explore import (
    RULES,
    derived,
    hits,
    judged,
    only,
    rule,
    said,
    tool,
    unknown,
    workflow,
)
from weft.catalogue import CATALOGUE
from weft.check.rules.conditions import comparison_makes_sense, priorities_differ
from weft.check.rules.states import state_is_reachable
from weft.check.rules.usage import something_sets_it


def nothing(subject):
    return not any(hits(code, subject) for code in RULES)


def test_every_rule_has_its_entry_in_the_catalogue():
    assert list(RULES) == ["HAND008", "HAND009", "HAND010", "HAND011", "HAND012"]
    assert [CATALOGUE[code].severity for code in RULES] == [
        "error", "warning", "error", "error", "warning",
    ]  # fmt: skip


def test_a_workflow_is_explored_once_for_all_rules(monkeypatch):
    made = []
    subject = workflow(agents="A")
    real = RULES["HAND008"].check.__globals__["explore"]

    def counted(asked):
        made.append(asked)
        return real(asked)

    monkeypatch.setitem(RULES["HAND008"].check.__globals__, "explore", counted)
    assert nothing(subject)
    assert made == [subject]


# HAND008


def test_HAND008_no_rule_leads_to_an_agent():
    hit = only("HAND008", workflow(rule("A", "user")))
    assert hit.path == ("agents", 1, "agent_name")
    assert hit.message == "no run ever comes to B"
    assert hit.cause == ()
    assert hit.hint == ("add a handoff to B, or remove it",)


def test_HAND008_the_rule_that_leads_there_never_applies():
    hit = only(
        "HAND008",
        workflow(rule("A", "B", "x == 'tec'"), variables={
            "x": derived(said("A", value="tech"), kind="str", default="new")}),
    )  # fmt: skip
    assert hit.cause == (
        "the rule A -> B never applies: its condition is never true",
        "x is only ever new or tech",
    )


def test_HAND008_an_agent_that_is_always_passed_over():
    subject = workflow(
        rule("A", "B"),
        rule("B", "user", "x", condition_scope="pre"),
        variables={"x": derived(default=True)},
    )
    hit = only("HAND008", subject)
    assert hit.path == ("agents", 1, "agent_name")
    assert hit.message == "B never speaks: a rule before its replies always hands off"


def test_HAND008_one_finding_for_all_agents_behind_one():
    links = (rule("B", "C"), rule("C", "D"), rule("D", "C"), rule("E", "D"), rule("F", "F"))
    subject = workflow(rule("A", "user"), *links, agents="ABCDEF")
    assert [(hit.path[1], hit.cause) for hit in hits("HAND008", subject)] == [
        (5, ()),
        (4, ("nor does any come to C, D by way of E",)),
        (1, ()),
    ]


def test_HAND008_a_closed_circle_is_told_once():
    subject = workflow(rule("A", "user"), rule("B", "C"), rule("C", "B"), agents="ABC")
    (hit,) = hits("HAND008", subject)
    assert hit.path == ("agents", 1, "agent_name")
    assert hit.cause == ("nor does any come to C by way of B",)


def test_HAND008_every_agent_is_reached_by_a_rule_or_the_pattern():
    assert nothing(workflow(rule("A", "B")))
    assert nothing(workflow(judged("A", "B")))
    assert nothing(workflow(orchestrator={"orchestration_pattern": "Pipeline"}))


# HAND009


def test_HAND009_condition_that_is_never_true():
    subject = workflow(
        rule("A", "B", "x == 'on'"),
        rule("A", "B", "x == 'off' and y"),
        variables={
            "x": derived(said("A", value="on"), kind="str", default="out"),
            "y": derived(*(said("A", f"{n}", n) for n in range(9)), kind="int", default=0),
        },
    )
    hit = only("HAND009", subject)
    assert hit.path == ("handoffs", 1, "condition")
    assert hit.message == "the rule A -> B never applies: its condition is never true"
    assert hit.cause == ("x is only ever out or on",)


def test_HAND009_shadowed_by_one_rule():
    subject = workflow(
        rule("A", "B", "x"),
        rule("A", "user", "x and y", priority=2),
        variables={"x": derived(said("A")), "y": derived({"type": "tool_call", "tool": "act"})},
        tools=[tool("A")],
        code={"tools/act.py": "def act(): ..."},
    )
    hit = only("HAND009", subject)
    assert hit.path == ("handoffs", 1, "condition")
    assert hit.message == "the rule A -> user never applies: the rule to B always comes first"


def test_HAND009_shadowed_by_several_rules():
    subject = workflow(
        rule("A", "B", "x"),
        rule("A", "C", "not x"),
        rule("A", "user", "y", priority=2),
        agents="ABC",
        variables={"x": derived(said("A")), "y": derived({"type": "tool_call", "tool": "act"})},
        tools=[tool("A")],
        code={"tools/act.py": "def act(): ..."},
    )
    hit = only("HAND009", subject)
    assert hit.message.endswith("never applies: one of the rules before it always comes first")


def test_HAND009_a_model_is_never_asked():
    subject = workflow(
        rule("A", "B", "x"),
        rule("A", "B", "not x"),
        judged("A", "user", priority=2),
        variables={"x": derived(said("A"))},
    )
    assert only("HAND009", subject).path == ("handoffs", 2, "condition")


@pytest.mark.parametrize(
    ("scope", "moment"), [("pre", "about to reply"), ("post", "done")]
)  # fmt: skip
def test_HAND009_condition_that_is_never_true_then(scope, moment):
    leave = {"type": "handoff", "source_agent": "B", "value": True}
    subject = workflow(
        rule("A", "B"),
        rule("B", "C"),
        rule("B", "user", "x", condition_scope=scope),
        rule("C", "user"),
        agents="ABC",
        variables={"x": derived(leave)},
    )
    hit = only("HAND009", subject)
    assert hit.message == (
        f"the rule B -> user never applies: its condition is never true when B is {moment}"
    )


def test_HAND009_rules_that_may_apply():
    assert nothing(workflow(rule("A", "B", "x"), variables={"x": unknown()}))
    assert nothing(workflow(rule("A", "B", "x"), variables={"x": derived(said("A"))}))


def test_HAND009_a_fallback_that_is_never_needed_is_a_safety_net():
    subject = workflow(
        rule("A", "B", "x"), rule("A", "B", "not x"), rule("A", "user"),
        variables={"x": derived(said("A"))},
    )  # fmt: skip
    assert nothing(subject)


def test_HAND009_is_silent_where_a_comparison_makes_no_sense():
    subject = workflow(
        rule("A", "B"),
        rule("A", "user", "x == 'oft'"),
        variables={"x": derived(said("A", value="on"), kind='literal["on", "off"]', default="off")},
    )
    assert list(comparison_makes_sense.check(subject))
    assert nothing(subject)


def test_HAND009_is_silent_where_priorities_tie():
    subject = workflow(
        rule("A", "B", "x"),
        rule("A", "user", "x and y"),
        variables={"x": derived(said("A")), "y": derived(said("A", "Y"))},
    )
    assert list(priorities_differ.check(subject))
    assert nothing(subject)


@pytest.mark.parametrize("always", ["1 == 1", "x or not x", "x == true or x == false"])
def test_HAND009_after_a_rule_that_always_applies_of_the_same_priority(always):
    subject = workflow(
        rule("A", "B", always), rule("A", "user", "x"), variables={"x": derived(said("A"))}
    )
    assert list(priorities_differ.check(subject)) == []
    hit = only("HAND009", subject)
    assert hit.message == "the rule A -> user never applies: the rule to B always comes first"


def test_HAND009_is_silent_where_nothing_sets_the_variable():
    subject = workflow(rule("A", "B"), rule("A", "user", "x"), variables={"x": derived()})
    assert list(something_sets_it.check(subject))
    assert nothing(subject)


def test_HAND009_is_silent_where_a_state_is_an_orphan():
    steps = [{"from": "new", "to": "open"}, {"from": "old", "to": "gone"}]
    status = derived(said("A", value="open"), kind="str", default="new", transitions=steps)
    subject = workflow(
        rule("A", "B"), rule("A", "user", "status == 'gone'"), variables={"status": status}
    )
    assert list(state_is_reachable.check(subject))
    assert nothing(subject)


# HAND010


def test_HAND010_agent_that_hands_off_to_itself():
    subject = workflow(
        rule("A", "B"),
        rule("B", "terminate", "done"),
        rule("B", "B"),
        variables={"done": derived(said("A"))},
    )
    hit = only("HAND010", subject)
    assert hit.path == ("agents", 1, "agent_name")
    assert hit.message == (
        "B has one turn after the other for ever once done = false: no rule leads on to an end"
    )
    assert hit.cause == ("a run gets there by: A -> B", "and goes on: B -> B")


def test_HAND010_without_conditions():
    hit = only("HAND010", workflow(rule("A", "A"), agents="A"))
    assert hit.message == "A has one turn after the other for ever: no rule leads on to an end"


def test_HAND010_something_may_still_let_it_go():
    subject = workflow(
        rule("A", "B"),
        rule("B", "terminate", "done"),
        rule("B", "B"),
        variables={"done": derived(said("B"))},
    )
    assert nothing(subject)


# HAND011


def test_HAND011_circle_without_a_way_out():
    subject = workflow(
        rule("A", "B"), rule("B", "C", "x or not x"), rule("C", "D"), rule("D", "B"),
        agents="ABCD", variables={"x": derived(said("A"))},
    )  # fmt: skip
    hit = only("HAND011", subject)
    assert hit.path == ("agents", 1, "agent_name")
    assert hit.message == "B, C and D hand off to each other for ever: no rule leads out"
    assert hit.cause == ("a run gets there by: A -> B", "and goes on: B -> C -> D -> B")


def test_HAND011_circle_with_a_way_out():
    assert nothing(workflow(rule("A", "B"), rule("B", "A"), judged("B", "user")))


# HAND012


def test_HAND012_a_trap_behind_an_unknown_value():
    subject = workflow(
        rule("A", "B", "x == 'a'"), rule("A", "user"), rule("B", "B"), variables={"x": unknown()}
    )
    hit = only("HAND012", subject)
    assert hit.path == ("agents", 1, "agent_name")
    assert hit.message == "a run may get to B and never come to an end"
    assert hit.cause == (
        "it depends on this: x cannot be followed: its type any has too many values",
        "a run gets there by: A -> B",
        "and goes on: B -> B",
    )
    assert hit.hint == (
        "add a rule that leads to user or terminate then",
        "or correct the one that should",
    )


def test_HAND012_a_trap_behind_what_code_may_set():
    code = {"tools/act.py": "def act(context):\n    context.set('x', True)\n"}
    subject = workflow(
        rule("A", "B", "x"), rule("A", "user"), rule("B", "B"),
        variables={"x": derived()}, tools=[tool("A")], code=code,
    )  # fmt: skip
    hit = only("HAND012", subject)
    assert hit.cause[0] == "it depends on this: the code of act may set x, or leave it"
    assert hit.cause[1] == "a run gets there by: A -> (x = true) -> B"


def test_HAND012_code_counts_as_a_way_out():
    code = {"tools/act.py": "def act(context):\n    context.set(name, True)\n"}
    subject = workflow(
        rule("A", "terminate", "x"), rule("A", "A"), agents="A",
        variables={"x": derived()}, tools=[tool("A")], code=code,
    )  # fmt: skip
    assert nothing(subject)


def test_HAND012_too_many_states():
    variables = {f"x{n}": derived(said("A", f"{n}")) for n in range(22)}
    subject = workflow(*(rule("A", "A", name) for name in variables), agents="A",
                       variables=variables)  # fmt: skip
    hit = only("HAND012", subject)
    assert "make 1 x 4,194,304 states, more than 2,000,000" in hit.message
    assert hit.cause == ()
    assert hit.hint[0] == "let fewer variables decide handoffs, or give them fewer values"


def test_HAND012_all_ways_lead_on_whatever_is_unknown():
    subject = workflow(
        rule("A", "terminate", "score == 3"), rule("A", "user"), agents="A",
        variables={"score": unknown()},
    )  # fmt: skip
    assert nothing(subject)


def test_HAND012_is_silent_where_a_comparison_makes_no_sense():
    subject = workflow(
        rule("A", "terminate", "x < 3"), rule("A", "A"), agents="A", variables={"x": derived()}
    )
    assert list(comparison_makes_sense.check(subject))
    assert nothing(subject)


def test_HAND012_is_silent_where_the_code_is_missing():
    subject = workflow(
        rule("A", "terminate", "x"), rule("A", "A"), agents="A",
        variables={"x": derived()}, tools=[tool("A")],
    )  # fmt: skip
    assert nothing(subject)


# What is not explored


@pytest.mark.parametrize(
    ("handoffs", "spec"),
    [
        ([], {"flow": {"steps": []}}),
        ([], {"board": {"artifacts": []}}),
        ([], {"agents": "AA"}),
        ([], {"agents": ["A", "user"]}),
        ([], {"orchestrator": {"initial_agent": "X"}}),
        ([], {"orchestrator": {"default_target": "X"}}),
        ([], {"tools": [tool("X")]}),
        ([], {"tools": [tool("A"), tool("A")]}),
        ([], {"agents": "ABC", "tools": [tool("A"), tool("B", file="b.py")]}),
        ([], {"registry": [{"agent": "A", "model": it} for it in (None, "F")]}),
        ([rule("X", "A")], {}),
        ([rule("A", "X")], {}),
        ([rule("A", "B", "x ==")], {}),
        ([rule("A", "B", condition_type="llm")], {}),
        ([rule("A", "B", condition_scope="pre")], {}),
        ([rule("A", "B", "x")], {}),
        ([], {"variables": {"x": derived(said("X"))}}),
        ([], {"variables": {"x": derived({"type": "tool_call", "tool": "x"})}}),
        ([], {"variables": {"x": derived({"type": "handoff", "target_agent": "X"})}}),
    ],
)
def test_what_other_rules_report_is_not_explored(handoffs, spec):
    assert nothing(workflow(*handoffs, **spec))


# Never an exception


names = st.sampled_from(("A", "B", "user", "terminate", "X"))
anything = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from(("", "a")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.just("k"), inner, max_size=1),
    max_leaves=3,
)
kinds = st.sampled_from(
    ("bool", "any", "int", "float", "str", "optional[bool]", 'literal["a", 1, true]', "list", "M")
)
conditions = st.sampled_from(
    ("x", "x == y", "x < 1", "y in x", "not y and x != 'a'", "c", "z", "x ==", "user_id", "x > 1.5")
)


def derived_source(default, triggers, steps, persist):
    return {
        "type": "derived",
        "default": default,
        "triggers": triggers,
        "transitions": [{"from": old, "to": new} for old, new in steps],
        "persist": persist,
    }


sources = st.one_of(
    st.builds(lambda value: {"type": "static", "value": value}, anything),
    st.builds(
        derived_source,
        anything,
        st.lists(st.builds(said, names, value=anything), max_size=2),
        st.lists(st.tuples(anything, anything), max_size=2),
        st.booleans(),
    ),
    st.builds(lambda value: {"type": "environment", "env_var": "X", "default": value}, anything),
    st.builds(
        lambda text: {"type": "computed", "computation": text, "inputs": []},
        conditions | st.just("m:f"),
    ),
)
variables = st.fixed_dictionaries(
    {"type": kinds, "source": sources, "writers": st.none() | st.lists(names, max_size=2)}
)
handoffs = st.builds(
    rule,
    names,
    names,
    st.none() | conditions,
    condition_type=st.sampled_from(("expression", "llm")),
    condition_scope=st.sampled_from(("pre", "post")),
)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(st.sampled_from(("x", "y", "c", "user_id")), variables, max_size=3),
    st.lists(handoffs, max_size=4),
    st.sampled_from(("A", "AB", "AA", ["user", "A"], ["B", "A", "X"])),
)
def test_the_rules_never_raise(declared, rules, agents):
    subject = workflow(*rules, agents=agents, variables=declared, tools=[tool("A")])
    for code in RULES:
        hits(code, subject)
