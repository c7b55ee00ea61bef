"""What conditions mean: their answers for values, known or not."""

import pytest

from weft.engine.variables.conditions import UNKNOWN, decide, evaluate, same
from weft.errors import ExpressionError
from weft.spec.condition_parser import parse_condition

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


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "one",
        "half",
        "text",
        "tags",
        "pair",
        "not no",
        "not zero",
        "not empty",
        "not nothing",
        "not bare_list",
        "not bare_object",
        "yes == true",
        "yes != 1",
        "no != 0",
        "one != true",
        "one == 1.0",
        "whole == 1",
        "whole == one",
        "one != '1'",
        "nothing == null",
        "nothing != false",
        "nothing != 0",
        "nothing != ''",
        "text == 'tech'",
        "text is tech",
        "text != 'Tech'",
        "tags == tags",
        "tags != pair",
        "bare_list != bare_object",
        "one < 2",
        "one <= 1",
        "one > half",
        "one >= whole",
        "not one < 1",
        "text < 'text'",
        "text >= 'tech'",
        "not nothing < 1",
        "not 1 < nothing",
        "not nothing >= null",
        "'a' in tags",
        "1.0 in tags",
        "null in tags",
        "true not in tags",
        "'b' not in tags",
        "one in [3, 1]",
        "yes not in [1, 'true']",
        "text in ['tech', 'law']",
        "one not in []",
        "'ec' in text",
        "'x' not in text",
        "'a' in pair",
        "'b' not in pair",
        "not 'a' in nothing",
        "'a' not in nothing",
        "yes and one and text",
        "no or zero or text",
        "not (yes and no)",
        "not (no or zero)",
        "1 == 1",
    ],
)
def test_holds(text: str):
    condition = parse_condition(text)
    assert evaluate(condition, VALUES) is True
    assert decide(condition, VALUES) is True
    negated = parse_condition(f"not ({text})")
    assert evaluate(negated, VALUES) is False


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("one < 'a'", "a number and a text"),
        ("text >= 1", "a text and a number"),
        ("yes < 2", "true or false and a number"),
        ("yes < no", "true or false and true or false"),
        ("tags < tags", "a list and a list"),
        ("pair > 1", "an object and a number"),
        ("1 in text", "a number and a text"),
        ("nothing in text", "null and a text"),
        ("1 in pair", "a number and an object"),
        ("tags in pair", "a list and an object"),
        ("'a' in one", "a text and a number"),
        ("'a' not in yes", "a text and true or false"),
    ],
)
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("maybe", None),
        ("not maybe", None),
        ("maybe == 1", None),
        ("1 < maybe", None),
        ("maybe in one", None),
        ("tags not in maybe", None),
        ("maybe == maybe", None),
        ("maybe and no", False),
        ("no and maybe", False),
        ("maybe and yes", None),
        ("yes and maybe and no", False),
        ("maybe or yes", True),
        ("yes or maybe", True),
        ("maybe or no", None),
        ("not (maybe and no)", True),
        ("(maybe or yes) and one == 1", True),
    ],
)
def test_decides_what_the_known_values_decide(text: str, expected: bool | None):
    assert decide(parse_condition(text), {**VALUES, "maybe": UNKNOWN}) is expected


def test_known_values_that_do_not_fit_are_refused_behind_an_unknown_one():
    with pytest.raises(ExpressionError, match="a number and a text"):
        decide(parse_condition("maybe and one < 'a'"), {"maybe": UNKNOWN, "one": 1})


def test_a_run_cannot_go_on_with_an_unknown_value():
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
