"""Selectors and conditions in code become data, or are refused with the right spelling."""

import pytest

from support.flows import Mood
from weft.dsl.selectors import condition_of, is_in, not_, path_of
from weft.errors import CheckFailed
from weft.spec.condition_parser import parse_condition


@pytest.mark.parametrize(
    ("selector", "path"),
    [
        (lambda s: s.topic, "topic"),
        (lambda s: s.document.summary, "document.summary"),
        (lambda s: s.marks["first"], "marks.first"),
        ("document.summary", "document.summary"),
    ],
)
def test_a_selector_is_the_path_it_asks_for(selector, path):
    assert path_of(selector) == path


@pytest.mark.parametrize(
    ("test", "text"),
    [
        (lambda s: s.paid, "paid"),
        (lambda s: s.total > 10, "total > 10"),
        (lambda s: s.total >= s.document.score, "total >= document.score"),
        (lambda s: s.total < 1.5, "total < 1.5"),
        (lambda s: s.total >= 3, "total >= 3"),
        (lambda s: s.total <= 3, "total <= 3"),
        (lambda s: s.kind == "bill", 'kind == "bill"'),
        (lambda s: s.mood != Mood.BAD, 'mood != "bad"'),
        (lambda s: s.document == None, "document == null"),  # noqa: E711 - recorded, not compared
        (lambda s: s.kind.in_(["bill", "offer"]), 'kind in ["bill", "offer"]'),
        (lambda s: s.kind.in_({"b", "a"}), 'kind in ["a", "b"]'),
        (lambda s: s.kind.in_(s.notes), "kind in notes"),
        (lambda s: is_in("x", s.notes), '"x" in notes'),
        (lambda s: ~s.paid, "not paid"),
        (lambda s: not_(s.total > 3), "not total > 3"),
        (lambda s: s.paid & (s.total > 3) & ~s.kind.in_(["bill"]),
         'paid and total > 3 and not kind in ["bill"]'),
        (lambda s: s.paid & ((s.total > 3) & s.topic), "paid and total > 3 and topic"),
        (lambda s: (s.paid | (s.total > 3)) & s.topic, "(paid or total > 3) and topic"),
        ("document.score > 3", "document.score > 3"),
    ],
)  # fmt: skip
def test_a_condition_is_what_its_text_says(test, text):
    assert condition_of(test) == text
    assert parse_condition(condition_of(test), paths=True) == parse_condition(text, paths=True)


def refused(call, given):
    with pytest.raises(CheckFailed) as raised:
        call(given)
    (finding,) = raised.value.findings
    assert finding.severity == "error"
    assert finding.hint
    return finding


@pytest.mark.parametrize(
    ("test", "told"),
    [
        (lambda s: s.paid and s.total > 3, "and, or, not"),
        (lambda s: s.paid or s.topic, "and, or, not"),
        (lambda s: not s.paid, "and, or, not"),
        (lambda s: 1 < s.total < 5, "and, or, not"),
        (lambda s: s.kind in ["bill", "offer"], "and, or, not"),
        (lambda s: "x" in s.notes, "and, or, not"),
    ],
)
def test_python_spelling_is_refused_with_the_right_one(test, told):
    found = refused(condition_of, test)
    assert found.code == "FLOW033"
    assert told in found.message
    assert "& | ~" in found.hint[0]
    assert ".in_(" in found.hint[0]
    assert found.place.file.endswith("test_selectors.py")
    assert found.place.line == test.__code__.co_firstlineno


@pytest.mark.parametrize(
    "test",
    [
        lambda s: f"{s.topic}!",
        lambda s: str(s.topic),
        lambda s: s.topic.upper(),
        lambda s: s.notes[0],
        lambda s: len(s.notes),
        lambda s: list(s.notes),
        lambda s: s.total + 1,
        lambda s: s._secret,
        lambda s: {s.topic},
        lambda s: s,
        lambda s: s.topic and 3,
        lambda s, t: s.topic,
        lambda s: "topic",
    ],
)
def test_a_selector_that_asks_for_no_field_is_refused(test):
    assert refused(path_of, test).code == "FLOW033"


@pytest.mark.parametrize(
    "test",
    [
        lambda s: True,
        lambda s: s,
        lambda s: s.total > [1],
        lambda s: s.total > float("inf"),
        lambda s: s.total > 3 & s.paid,
        lambda s: 3 & s.paid,
        lambda s: 3 | s.paid,
        lambda s: s.kind.in_([s.topic]),
    ],
)
def test_a_condition_that_asks_nothing_is_refused(test):
    assert refused(condition_of, test).code == "FLOW033"


def test_a_comparison_is_not_a_field():
    assert "a condition" in refused(path_of, lambda s: s.total > 3).message


def test_a_value_that_is_not_a_function_is_refused():
    assert refused(path_of, 3).code == "FLOW034"
