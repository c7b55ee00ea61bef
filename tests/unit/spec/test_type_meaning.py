"""What types mean: which values fit, as finite sets and as text."""

import time

import pytest

from support.cases import read_cases
from weft.errors import ExpressionError
from weft.spec.type_meaning import (
    MAX_VALUE_DEPTH,
    coerce_text,
    finite_values,
    references,
    validation_error,
)
from weft.spec.type_parser import parse_type

CASES = read_cases(__file__)

MODELS = {
    "Item": {"name": parse_type("str"), "count": parse_type("int")},
    "Order": {
        "items": parse_type("list[Item]"),
        "note": parse_type("optional[str]"),
        "free": parse_type("any"),
    },
    "Node": {"next": parse_type("optional[Node]")},
    "Left": {"c": parse_type("Left | Right | int")},
    "Right": {"c": parse_type("Left | Right | int")},
}


def explain(text, value):
    return validation_error(parse_type(text), value, MODELS)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("str", ""),
        ("int", 3),
        ("int", 3.0),
        ("int", 10**400),
        ("float", 3),
        ("float", 2.5),
        ("float", 10**400),
        ("bool", False),
        ("any", {"a": [None]}),
        ("list[int]", []),
        ("list[int]", [1, 2]),
        ("dict[bool]", {"odd key": True}),
        ("optional[int]", None),
        ("optional[int]", 1),
        ('literal["a", 1]', 1.0),
        ("literal[true]", True),
        ("str | list[str]", ["x"]),
        ("Item", {"count": 1, "name": "x"}),
        ("Order", {"items": [{"name": "x", "count": 1}], "free": None}),
        ("Order", {"items": [], "free": 1, "note": None}),
        ("Node", {"next": {"next": {}}}),
    ],
)
def test_values_that_fit(text, value):
    assert explain(text, value) is None


@pytest.mark.parametrize(
    ("text", "value", "sentence"),
    [
        ("int", "x", 'expected int, got "x"'),
        ("int", True, "expected int, got true"),
        ("int", 1.5, "expected int, got 1.5"),
        ("int", None, "expected int, got null"),
        ("float", False, "expected float, got false"),
        ("float", float("nan"), "expected float, got NaN"),
        ("int", float("inf"), "expected int, got Infinity"),
        ("str", 5, "expected str, got 5"),
        ("str", {1}, "expected str, got a set, which JSON cannot hold"),
        ("bool", 1, "expected bool, got 1"),
        ("str", ["x"], "expected str, got a list"),
        ("list", {}, "expected list, got an object"),
        ("list[int]", (1,), "expected list[int], got a tuple, which JSON cannot hold"),
        ("dict", [], "expected dict, got a list"),
        ("dict[int]", {"a": 1, "b c": "x"}, 'expected int, got "x" at ["b c"]'),
        ("dict[int]", {"b": "x"}, 'expected int, got "x" at b'),
        ('literal["a", 1]', True, 'expected literal["a", 1], got true'),
        ("literal[true]", 1, "expected literal[true], got 1"),
        ("optional[int]", "x", 'expected int, got "x"'),
        ("str | int", None, "expected str | int, got null"),
        ("Item", 5, "expected Item, got 5"),
        ("list[Item]", [{"name": "x"}], "the field count is missing at [0]"),
        ("Item", {"nam": "x"}, "unknown field nam, did you mean name?"),
        ("Item", {"qqq": "x"}, "unknown field qqq"),
        (
            "Order",
            {"items": [{"name": 1, "count": 1}], "free": 0},
            "expected str, got 1 at items[0].name",
        ),
        ("Ghost", {}, "the model Ghost is not declared"),
    ],
)
def test_values_that_do_not_fit_are_explained_in_one_sentence(text, value, sentence):
    assert explain(text, value) == sentence


@pytest.mark.parametrize(
    ("text", "value", "sentence"),
    [
        ("str | list[int]", [1, "x"], 'expected int, got "x" at [1]'),
        ("str | Item", {"name": "x"}, "the field count is missing"),
        ("Item | list[list[int]]", [[1, "x"]], 'expected int, got "x" at [0][1]'),
        ("dict[int] | dict[list[int]]", {"a": ["x"]}, 'expected int, got "x" at a[0]'),
        ("int | str", [], "expected int | str, got a list"),
    ],
)
def test_a_union_reports_the_member_that_comes_closest(text, value, sentence):
    assert explain(text, value) == sentence


def test_long_texts_are_cut():
    assert explain("str", 10**5000) == "expected str, got a very long number"
    sentence = explain("int", "x" * 1000)
    assert len(sentence) < 100
    assert sentence.endswith("...")
    assert len(explain("dict[int]", {"k" * 1000: "x"})) < 150


def chain(levels):
    value = {}
    for _ in range(levels):
        value = {"next": value}
    return value


def test_values_of_recursive_models_are_limited_in_depth():
    assert explain("Node", chain(MAX_VALUE_DEPTH)) is None
    assert f"nested more than {MAX_VALUE_DEPTH} levels deep at next." in explain(
        "Node", chain(5000)
    )


def test_unions_of_recursive_models_are_not_tried_in_every_combination():
    value: object = "wrong"
    for _ in range(20):
        value = {"c": value}
    start = time.process_time()
    assert explain("Left", value).startswith('expected Left | Right | int, got "wrong" at c.c.c')
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("bool", [False, True]),
        ('literal["a", 2]', ["a", 2]),
        ("optional[bool]", [None, False, True]),
        ('bool | literal["x", true, 1]', [False, True, "x", 1]),
        ("optional[literal[1] | literal[1, 2]]", [None, 1, 2]),
    ],
)
def test_finite_types_list_their_values(text, values):
    found = finite_values(parse_type(text))
    assert found == tuple(values)
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    "text", ["str", "int", "any", "list[bool]", "dict", "Item", "optional[str]", "bool | str"]
)
def test_other_types_have_no_finite_values(text):
    assert finite_values(parse_type(text)) is None


def test_finite_values_are_limited():
    sixteen = parse_type(f"literal[{', '.join(map(str, range(16)))}]")
    assert len(finite_values(sixteen)) == 16
    assert finite_values(sixteen, limit=15) is None
    assert finite_values(parse_type("bool"), limit=1) is None


def test_references_are_listed_once_in_order_of_first_use():
    assert references(parse_type("list[B] | dict[optional[A]] | B | str")) == ("B", "A")
    assert references(parse_type('literal["A"]')) == ()


@pytest.mark.parametrize(("type_text", "text", "value"), CASES["test_values_read_from_text"])
def test_values_read_from_text(type_text, text, value):
    found = coerce_text(parse_type(type_text), text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("type_text", "text"),
    [
        ("bool", "s3cret"),
        ("int", ""),
        ("int", "1.0"),
        ("int", "1_000"),
        pytest.param("int", "9" * 5000, id="long"),
        ("float", "nan"),
        ("float", "inf"),
        ("float", "1e999"),
        ("float", "1_0"),
        ("any", "plain words"),
        ("any", "NaN"),
        ("list", "[1e999]"),
        pytest.param("list", "[" * 200_000, id="deep"),
        ("list[int]", '["s3cret"]'),
        ("dict", "s3cret"),
        ('literal["dev"]', "s3cret"),
        ("optional[int]", "s3cret"),
        ("Item", '{"name": "x", "count": 1}'),
    ],
)
def test_text_that_fits_no_value_is_refused_without_repeating_it(type_text, text):
    with pytest.raises(ExpressionError, match="the text is not a valid") as caught:
        coerce_text(parse_type(type_text), text)
    assert caught.value.hint.startswith("write ")
    assert "s3cret" not in str(caught.value) + caught.value.hint


def test_text_of_a_model_reads_when_the_models_are_given():
    text = '{"name": "x", "count": 1}'
    assert coerce_text(parse_type("Item"), text, models=MODELS) == {"name": "x", "count": 1}
