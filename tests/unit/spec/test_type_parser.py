"""The type language: what its words mean, its normal form, and its messages."""

import pytest

from support.cases import read_cases
from weft.errors import ExpressionError
from weft.spec.type_parser import parse_type
from weft.spec.types import (
    ANY,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_LENGTH,
    DictOf,
    ListOf,
    LiteralOf,
    OptionalOf,
    Ref,
    Scalar,
    UnionOf,
    print_type,
)

CASES = read_cases(__file__)

STR, INT, FLOAT, BOOL = Scalar("str"), Scalar("int"), Scalar("float"), Scalar("bool")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("str", STR),
        ("int", INT),
        ("float", FLOAT),
        ("bool", BOOL),
        ("any", ANY),
        ("list", ListOf(ANY)),
        ("list[str]", ListOf(STR)),
        ("dict", DictOf(ANY)),
        ("dict[list[int]]", DictOf(ListOf(INT))),
        ("dict[str, int]", DictOf(INT)),
        ("optional[int]", OptionalOf(INT)),
        ("int | null", OptionalOf(INT)),
        ("None | int", OptionalOf(INT)),
        ("str | int", UnionOf((STR, INT))),
        ("union[str, int]", UnionOf((STR, INT))),
        ("Invoice", Ref("Invoice")),
        (" list [\n Invoice ] ", ListOf(Ref("Invoice"))),
        ("literal[\"a\", 'b', 3, -4, true, False]", LiteralOf(("a", "b", 3, -4, True, False))),
        ("str | int | list | dict | bool", UnionOf((STR, INT, ListOf(ANY), DictOf(ANY), BOOL))),
    ],
)
def test_every_form_reads(text, expected):
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    ("older", "written"), CASES["test_older_spellings_read_and_are_written_in_one_way"]
)
def test_older_spellings_read_and_are_written_in_one_way(older, written):
    assert print_type(parse_type(older)) == written


@pytest.mark.parametrize(("text", "normal"), CASES["test_normal_form"])
def test_normal_form(text, normal):
    assert print_type(parse_type(text)) == normal
    assert parse_type(normal) == parse_type(text)


@pytest.mark.parametrize(
    ("text", "offset", "message", "hint"), CASES["test_errors_have_place_and_remedy"]
)
def test_errors_have_place_and_remedy(text, offset, message, hint):
    with pytest.raises(ExpressionError) as caught:
        parse_type(text)
    assert (caught.value.offset, str(caught.value), caught.value.hint) == (offset, message, hint)


@pytest.mark.parametrize(
    ("text", "offset", "part"),
    [
        ("literal[]", 8, "expected text in quotes, a whole number, true or false, found ]"),
        ("literal[a]", 8, "expected text in quotes"),
        ("literal[1.5]", 8, "found 1.5"),
        ("literal[007]", 8, "found 007"),
        ("literal['x]", 8, "no closing quote"),
        ('literal["\\x41"]', 8, "unknown escape"),
        ('literal["\\ud800"]', 8, "half of a character"),
        (f"literal[{'9' * (MAX_DIGITS + 1)}]", 8, f"at most {MAX_DIGITS} digits"),
        pytest.param(f"literal[-{'9' * 5000}]", 8, f"at most {MAX_DIGITS} digits", id="long"),
    ],
)
def test_wrong_literals(text, offset, part):
    with pytest.raises(ExpressionError, match=part.replace("]", r"\]")) as caught:
        parse_type(text)
    assert caught.value.offset == offset


def test_long_names_are_cut_in_messages():
    with pytest.raises(ExpressionError) as caught:
        parse_type("x" * 5000)
    assert len(str(caught.value)) < 80


def test_the_longest_number_reads():
    assert parse_type(f"literal[{'9' * MAX_DIGITS}]") == LiteralOf((10**MAX_DIGITS - 1,))


def nested(levels):
    return "list[" * levels + "int" + "]" * levels


def test_depth_is_limited():
    assert print_type(parse_type(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(ExpressionError, match="levels deep") as caught:
        parse_type(nested(MAX_DEPTH + 1))
    assert caught.value.offset == len("list[") * (MAX_DEPTH + 1)


def test_depth_counts_in_the_normal_form():
    text = nested(MAX_DEPTH).replace("int", "int | null")
    with pytest.raises(ExpressionError, match="levels deep"):
        parse_type(text)


def test_length_is_limited_in_the_text_and_in_the_normal_form():
    with pytest.raises(ExpressionError, match=f"longer than {MAX_LENGTH}"):
        parse_type("int" + " " * MAX_LENGTH)
    tight = "|".join(f"A{number}" for number in range(1800))
    assert len(tight) < MAX_LENGTH
    with pytest.raises(ExpressionError, match=f"longer than {MAX_LENGTH}"):
        parse_type(tight)


def test_one_and_true_are_read_as_different_literals():
    assert parse_type("literal[1]") != parse_type("literal[true]")
    assert parse_type("literal[1] | literal[true]") == UnionOf(
        (LiteralOf((1,)), LiteralOf((True,)))
    )
