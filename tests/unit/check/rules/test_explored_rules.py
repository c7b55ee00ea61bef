"""HAND008 to HAND012: what the exploration of all runs finds, and what it leaves to others."""

from hypothesis import strategies as st

from unit.check.builders_explore import (
    RULES,
    derived,
    hits,
    only,
    rule,
    said,
    workflow,
)
from weft.catalogue import CATALOGUE


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


# HAND009


# HAND010


# HAND011


# HAND012


def test_HAND012_too_many_states():
    variables = {f"x{n}": derived(said("A", f"{n}")) for n in range(22)}
    subject = workflow(*(rule("A", "A", name) for name in variables), agents="A",
                       variables=variables)  # fmt: skip
    hit = only("HAND012", subject)
    assert "make 1 x 4,194,304 states, more than 2,000,000" in hit.message
    assert hit.cause == ()
    assert hit.hint[0] == "let fewer variables decide handoffs, or give them fewer values"


# What is not explored


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
