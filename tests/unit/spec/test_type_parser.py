"""The type language: what its words mean, its normal form, and its messages."""

import pytest

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
    ("older", "written"),
    [
        ("string", "str"),
        ("String", "str"),
        ("INTEGER", "int"),
        ("number", "float"),
        ("Boolean", "bool"),
        ("array", "list"),
        ("Array[String]", "list[str]"),
        ("object", "dict"),
        ("document", "dict"),
        ("Document[int]", "dict[int]"),
        ("Optional[List[Any]]", "optional[list]"),
        ("Dict[str, Any]", "dict"),
        ("Document | object", "Document | dict"),
        ("Number", "Number"),
    ],
)
def test_older_spellings_read_and_are_written_in_one_way(older, written):
    assert print_type(parse_type(older)) == written


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("optional[optional[int]]", "optional[int]"),
        ("optional[int | null]", "optional[int]"),
        ("optional[int] | str", "optional[int | str]"),
        ("str | null | int", "optional[str | int]"),
        ("optional[int] | optional[str]", "optional[int | str]"),
        ("union[str, union[int, bool]]", "str | int | bool"),
        ("list[list[any]]", "list[list]"),
        ("literal['it\\'s', \"\\u00e9\"]", 'literal["it\'s", "é"]'),
        ("literal['say \"hi\"']", 'literal["say \\"hi\\""]'),
        ("literal['\\\\', 'a\\nb', '\n']", 'literal["\\\\", "a\\nb", "\\n"]'),
        ('literal["\\ud83d\\ude00"]', 'literal["\U0001f600"]'),
        ("literal[1, true]", "literal[1, true]"),
    ],
)
def test_normal_form(text, normal):
    assert print_type(parse_type(text)) == normal
    assert parse_type(normal) == parse_type(text)


@pytest.mark.parametrize(
    ("text", "offset", "message", "hint"),
    [
        ("strng", 0, '"strng" is not a type', "did you mean str?"),
        ("list[integr]", 5, '"integr" is not a type', "did you mean int?"),
        ("optonal[int]", 0, '"optonal" is not a type', "did you mean optional?"),
        ("int | nul", 6, '"nul" is not a type', "did you mean null?"),
        ("q_z", 0, '"q_z" is not a type', "a model is named like MyModel"),
        ("My_Model", 0, '"My_Model" is not a type', "a model is named like MyModel"),
        ("", 0, "expected a type, found the end", None),
        ("  ", 2, "expected a type, found the end", None),
        ("list[", 5, "expected a type, found the end", None),
        ("list[int", 8, "expected ] or a comma, found the end", None),
        ("list[int,]", 9, "expected a type, found ]", None),
        ("int]", 3, "expected the end, or | and another type, found ]", None),
        ("int str", 4, "expected the end, or | and another type, found str", None),
        ("int |", 5, "expected a type, found the end", None),
        ("(int)", 0, "expected a type, found (", None),
        (
            'str | "a"',
            6,
            'expected a type, found "a"',
            'to allow certain values write literal["a"]',
        ),
        ("3", 0, "expected a type, found 3", "to allow certain values write literal[3]"),
        ("null", 0, "null is not a type on its own", "write optional[T], or T | null"),
        ("list[ null ]", 6, "null is not a type on its own", "write optional[T], or T | null"),
        ("int | null | str | null", 19, "duplicate null in the union", "remove one of them"),
        ("int | str | int", 12, "duplicate int in the union", "remove one of them"),
        ("optional[int | str] | str", 22, "duplicate str in the union", "remove one of them"),
        ('literal["a", 1, "a"]', 16, 'duplicate "a" in the literal', "remove one of them"),
        ("list[int, str]", 10, "list takes one type", "for either of two types write list[A | B]"),
        (
            "dict[str, int, int]",
            10,
            "dict takes one type",
            "for either of two types write dict[A | B]",
        ),
        ("dict[int, str]", 5, "the keys of a dict are always text", "write dict[T]"),
        ("optional", 0, "optional needs brackets", 'write optional[T], literal["a", "b"] or A | B'),
        ("Invoice[int]", 7, "Invoice takes no brackets", None),
        ("str [int]", 4, "str takes no brackets", None),
        ("enum[a, b]", 0, '"enum" is not a type', 'write the allowed values as literal["a", "b"]'),
        ("Enum[a]", 4, "Enum takes no brackets", 'write the allowed values as literal["a", "b"]'),
        (
            "literal[a]",
            8,
            "expected text in quotes, a whole number, true or false, found a",
            'put a text in quotes: "a"',
        ),
        (
            "literal[null]",
            8,
            "a literal lists only text, whole numbers, true and false",
            "write optional[literal[...]] to allow null",
        ),
    ],
)
def test_what_is_wrong_is_said_with_place_and_remedy(text, offset, message, hint):
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
