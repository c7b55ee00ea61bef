"""Combinations of values as sets, the truth of conditions over them, and values that stand in."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from unit.check.builders_explore import derived, explored_by, rule, tool
from weft.check.explore.domains import questions_in, samples
from weft.check.explore.ground import (
    MOST_QUESTIONS,
    backward,
    blocks,
    change,
    first,
    forward,
    lay_out,
    truth,
    union,
)
from weft.engine.variables.conditions import UNKNOWN, decide
from weft.errors import ExpressionError
from weft.spec.condition_parser import parse_condition
from weft.spec.type_parser import parse_type

DOMAINS = {"a": (False, True), "b": ("x", "y", "z"), "c": (1,), "d": (None, 1, True)}


def numbers(bits):
    return [n for n in range(bits.bit_length()) if bits >> n & 1]


# Space


def test_every_combination_has_its_number():
    space = lay_out(DOMAINS)
    seen = {
        tuple(json.dumps(axis.value_at(n)) for axis in space.axes.values())
        for n in numbers(space.full)
    }
    assert len(numbers(space.full)) == len(seen) == 2 * 3 * 1 * 3
    for axis in space.axes.values():
        for value, mask in zip(axis.values, axis.masks, strict=True):
            assert all(axis.value_at(n) is value for n in numbers(mask))
        assert union(axis.masks) == space.full


def test_without_variables_there_is_one_combination():
    assert lay_out({}).full == 1


def test_a_set_by_values():
    space = lay_out(DOMAINS)
    bits = space.within({"a": [1], "b": [0, 2]})
    assert first(bits) == 1
    assert {space.axes["a"].value_at(n) for n in numbers(bits)} == {True}
    assert {space.axes["b"].value_at(n) for n in numbers(bits)} == {"x", "z"}
    assert len(numbers(bits)) == 1 * 2 * 1 * 3


@given(st.data())
def test_changes_work_as_they_do_on_each_combination(data):
    space = lay_out(DOMAINS)
    indexes = {name: range(len(values)) for name, values in DOMAINS.items()}
    outcomes = {
        name: data.draw(st.lists(st.sets(st.sampled_from(span), min_size=1), min_size=len(span),
                                 max_size=len(span)))
        for name, span in indexes.items() if name in ("b", "d")
    }  # fmt: skip
    changes = [change(space.axes[name], found) for name, found in outcomes.items()]
    bits = data.draw(st.integers(0, space.full))

    def results(number):
        found = {number}
        for name, options in outcomes.items():
            axis = space.axes[name]
            found = {
                n + (new - n // axis.stride % len(axis.values)) * axis.stride
                for n in found
                for new in options[n // axis.stride % len(axis.values)]
            }
        return found

    expected = {after for n in numbers(bits) for after in results(n)}
    assert set(numbers(forward(changes, bits))) == expected
    before = {n for n in numbers(space.full) if results(n) & set(numbers(bits))}
    assert set(numbers(backward(changes, bits))) == before


# Truth


CONDITIONS = (
    "a",
    "not a and b == 'x'",
    "b in ['x', 'z'] or d == 1",
    "d == true",
    "a and u",
    "a or u or b == 'y'",
    "not (u and d)",
    "d < 2",
    "b < 2",
    "a and b < 2",
    "b == d",
)


@pytest.mark.parametrize("text", CONDITIONS)
def test_truth_is_what_decide_says_of_each_combination(text):
    space = lay_out(DOMAINS)
    variables = {n: tuple(zip(a.values, a.masks, strict=True)) for n, a in space.axes.items()}
    variables["u"] = ((UNKNOWN, space.full),)
    condition = parse_condition(text)
    found = truth(condition, variables, space.full)
    assert found.yes | found.no | found.open == space.full
    for n in numbers(space.full):
        values = {name: axis.value_at(n) for name, axis in space.axes.items()} | {"u": UNKNOWN}
        try:
            answer = decide(condition, values)
        except ExpressionError:
            answer = None
        assert (found.yes >> n & 1, found.no >> n & 1) == (answer is True, answer is False)


def test_a_long_condition_is_evaluated_only_a_few_times():
    names = [f"x{n}" for n in range(16)]
    space = lay_out(dict.fromkeys(names, (False, True)))
    variables = {n: tuple(zip(a.values, a.masks, strict=True)) for n, a in space.axes.items()}
    found = truth(parse_condition(" and ".join(names)), variables, space.full)
    assert (found.yes.bit_count(), found.open) == (1, 0)


def test_a_condition_with_too_many_cases_stays_open():
    names = [f"x{n}" for n in range(16)]
    space = lay_out(dict.fromkeys(names, (False, True)))
    variables = {n: tuple(zip(a.values, a.masks, strict=True)) for n, a in space.axes.items()}
    # All variables are needed before any of the parts can be told, and there are 2**16 cases.
    parts = [f"(x{n} == x{15 - n} and x{n} == x{(n + 5) % 16})" for n in range(16)]
    found = truth(parse_condition(" or ".join(parts)), variables, space.full)
    assert found.open
    assert found.yes | found.no | found.open == space.full
    assert (found.yes | found.no).bit_count() < 2**16
    assert MOST_QUESTIONS < 2**16


def test_the_values_of_a_computed_variable():
    space = lay_out({"a": (False, True)})
    variables = {"a": tuple(zip((False, True), space.axes["a"].masks, strict=True))}
    assert blocks(truth(parse_condition("a"), variables, space.full)) == ((True, 2), (False, 1))
    variables["a"] = ((UNKNOWN, space.full),)
    assert blocks(truth(parse_condition("a"), variables, space.full)) == ((UNKNOWN, 3),)


# Samples


def sampled(kind, *conditions):
    asked = questions_in([parse_condition(text) for text in conditions])
    return samples(parse_type(kind), asked["x"])


@pytest.mark.parametrize(
    ("kind", "conditions", "expected"),
    [
        ("bool", ["x"], (False, True)),
        ("optional[bool]", ["x < y"], (None, False, True)),
        ("str", ["x == 'a'", "not x != 'b'"], ("b", "a", "another text")),
        ("str", ["x == 'another text'"], ("another text", "another text.")),
        ("str", ["x"], ("", "another text")),
        ("str", ["x in ['a', 3]"], ("a", "another text")),
        ("optional[str]", ["'a' == x or x == null"], (None, "a", "another text")),
        ("int", ["x >= 8"], (7, 8, 9)),
        ("int", ["x > 7.5"], (6, 7, 8)),
        ("int", ["x > 2 and x < 3"], (1, 2, 3, 4)),
        ("int", ["x == 'a' or x == true"], (0,)),
        ("int", ["x"], (-1, 0, 1)),
        ("float", ["x < 1 or x > 2"], (0, 1, 1.5, 2, 3)),
        ("float", ["x < 1e300"], None),
        ("int | str", ["x == 1 or x == 'a'"], (0, 1, 2, "a", "another text")),
        ("int | list[str]", ["x == 1"], None),
        ("str", ["x < 'b'"], None),
        ("str", ["x == y"], None),
        ("str", ["'a' in x"], None),
        ("str", ["x in 'abc'"], None),
        ("list[str]", ["x"], None),
        ("any", ["x == 1"], None),
    ],
)
def test_samples(kind, conditions, expected):
    assert sampled(kind, *conditions) == expected


def test_too_many_constants_have_no_samples():
    assert sampled("int", *(f"x == {n}" for n in range(64))) is not None
    assert sampled("int", *(f"x == {n}" for n in range(65))) is None


comparison = st.builds(
    "x {} {}".format,
    st.sampled_from(("==", "!=", "<", "<=", ">", ">=")),
    st.one_of(st.integers(-5, 5), st.floats(-5, 5, allow_nan=False)).map(repr),
)


@settings(max_examples=50 * TIMES)
@given(st.lists(comparison, min_size=1, max_size=4), st.data())
def test_every_number_is_stood_for_by_a_sample(texts, data):
    conditions = [parse_condition(text) for text in texts]
    kind, numbers = data.draw(
        st.sampled_from((("int", st.integers(-9, 9)), ("float", st.floats(-9, 9))))
    )
    found = samples(parse_type(kind), questions_in(conditions)["x"])
    number = data.draw(numbers)
    if found is None:
        assert kind == "float"  # two constants that a computer can hardly tell apart
        return
    answers = [[decide(c, {"x": value}) for c in conditions] for value in (number, *found)]
    assert answers[0] in answers[1:]


def test_numbers_and_texts_compared_with_constants_are_followed():
    score = derived(
        {"type": "tool_call", "tool": "act", "argument": "score"}, kind="int", default=0
    )
    found = explored_by(
        rule("A", "terminate", "score >= 8"),
        rule("A", "B", "score >= 9"),
        rule("A", "A"),
        variables={"score": score},
        tools=[tool("A")],
        code={"tools/act.py": "def act(score): ..."},
    )
    assert (found.status, found.unreachable_agents) == ("can end", ("B",))
