"""Parts of values in the conditions of flows: `document.score > 3`."""

import pytest

from weft.engine.variables.conditions import UNKNOWN, decide, evaluate, value_at
from weft.errors import ExpressionError
from weft.spec.condition_parser import mentions, parse_condition
from weft.spec.conditions import Name, print_condition

VALUES = {"document": {"score": 5, "author": {"name": "Ada"}, "editor": None}, "total": 3}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("document.score > total", True),
        ("document.author.name == 'Ada'", True),
        ("document.author.name in ['Bob']", False),
        ("document.editor.name == 'Ada'", False),
        ("not document.editor", True),
        ("When ${document}.score is 5.", True),
    ],
)
def test_parts_are_values(text, holds):
    condition = parse_condition(text, paths=True)

    assert evaluate(condition, VALUES) is holds
    assert parse_condition(print_condition(condition), paths=True) == condition


def test_a_part_of_what_is_not_known_is_not_known():
    assert decide(parse_condition("document.score", paths=True), {"document": UNKNOWN}) is None


@pytest.mark.parametrize("path", ["document.scor", "total.score", "nothing", "document.score.x"])
def test_missing_value_has_no_answer(path):
    with pytest.raises(ExpressionError):
        value_at(VALUES, path)


def test_mentions_are_whole_paths():
    assert mentions("a and document.score", paths=True) == (("a", 0), ("document.score", 6))


def test_only_flows_have_parts():
    with pytest.raises(ExpressionError, match="cannot follow"):
        parse_condition("document.score > 3")


def test_a_full_stop_ends_a_sentence():
    assert parse_condition("When done is true.", paths=True) is not None
    assert parse_condition("x", paths=True) == Name("x")
