"""What conditions mean: their answers for values, known or not."""

import pytest

from support.cases import read_cases
from weft.engine.variables.conditions import UNKNOWN, decide, evaluate, same
from weft.errors import ExpressionError
from weft.spec.condition_parser import parse_condition

CASES = read_cases(__file__)

VALUES = {
    "yes": True,
    "no": False,
    "one": 1,
    "zero": 0,
    "half": 0.5,
    "whole": 1.0,
    "text": "tech",
    "empty": "",
    "nothing": None,
    "tags": ["a", 1, None, [1]],
    "pair": {"a": 1},
    "bare_list": [],
    "bare_object": {},
}


@pytest.mark.parametrize("text", CASES["test_holds"])
def test_holds(text: str):
    condition = parse_condition(text)
    assert evaluate(condition, VALUES) is True
    assert decide(condition, VALUES) is True
    negated = parse_condition(f"not ({text})")
    assert evaluate(negated, VALUES) is False


@pytest.mark.parametrize(("text", "kinds"), CASES["test_kinds_that_do_not_fit_are_refused"])
def test_kinds_that_do_not_fit_are_refused(text: str, kinds: str):
    for answer in (evaluate, decide):
        with pytest.raises(ExpressionError, match=f"cannot be answered for {kinds}$") as caught:
            answer(parse_condition(text), VALUES)
        assert caught.value.hint


def test_messages_hold_no_values():
    condition = parse_condition("password < 5")
    with pytest.raises(ExpressionError) as caught:
        evaluate(condition, {"password": "hunter2"})
    assert str(caught.value).startswith("'password < 5' cannot be answered")
    assert "hunter2" not in str(caught.value) + str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "hint"), [("stages == 1", "did you mean 'stage'?"), ("w", "declare the variable")]
)
def test_a_name_without_a_value_is_refused(text: str, hint: str):
    for answer in (evaluate, decide):
        with pytest.raises(ExpressionError, match=r"the variable '\w+' has no value") as caught:
            answer(parse_condition(text), {"stage": 1})
        assert hint in (caught.value.hint or "")


def test_operands_behind_a_decided_one_are_not_asked():
    assert evaluate(parse_condition("no and missing"), VALUES) is False
    assert evaluate(parse_condition("yes or missing"), VALUES) is True
    with pytest.raises(ExpressionError, match="missing"):
        evaluate(parse_condition("missing or yes"), VALUES)


@pytest.mark.parametrize(("text", "expected"), CASES["test_decides_what_the_known_values_decide"])
def test_decides_what_the_known_values_decide(text: str, expected: bool | None):
    assert decide(parse_condition(text), {**VALUES, "maybe": UNKNOWN}) is expected


def test_known_values_that_do_not_fit_are_refused_behind_an_unknown_one():
    with pytest.raises(ExpressionError, match="a number and a text"):
        decide(parse_condition("maybe and one < 'a'"), {"maybe": UNKNOWN, "one": 1})


def test_unknown_value_stops_a_run():
    with pytest.raises(ExpressionError, match="'maybe or no' depends on a value that is not known"):
        evaluate(parse_condition("maybe or no"), {"maybe": UNKNOWN, "no": False})


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1, [True]], [1.0, [True]], True),
        ([1, [True]], [1, [1]], False),
        ([1], [1, 2], False),
        ((1, 2), [1, 2], True),
        ({"a": {"b": [0]}}, {"a": {"b": [0.0]}}, True),
        ({"a": {"b": [0]}}, {"a": {"b": [False]}}, False),
        ({"a": 1}, {"b": 1}, False),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ({"a": None}, {}, False),
        ([], {}, False),
        ([], None, False),
        ({}, [], False),
        ("1", 1, False),
        (2**70, 2.0**70, True),
    ],
)
def test_values_compare_as_json_does(left: object, right: object, expected: bool):
    assert same(left, right) is expected
    assert same(right, left) is expected


def test_deeply_nested_values_compare():
    left: object = 1
    right: object = 1.0
    for _ in range(100_000):
        left, right = [left], [right]
    assert same(left, right)
    # Unpacked by hand: Python would free such a value by recursion as well.
    while isinstance(left, list) and isinstance(right, list):
        left, right = left.pop(), right.pop()
