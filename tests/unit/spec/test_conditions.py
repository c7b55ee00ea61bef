"""Conditions as text and as trees: reading, refusing, writing, the strict profile."""

from itertools import combinations

import pytest

from support.cases import read_cases
from weft.errors import ExpressionError
from weft.spec.condition_parser import MAX_DEPTH, MAX_LENGTH, mentions, parse_condition
from weft.spec.conditions import (
    And,
    Compare,
    Condition,
    ListOf,
    Name,
    Not,
    Or,
    Value,
    names,
    print_condition,
    strict_violations,
)

CASES = read_cases(__file__)

X, Y, Z = Name("x"), Name("y"), Name("z")


def equals(name: str, value: str | float | bool | None) -> Compare:
    return Compare("==", Name(name), Value(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", X),
        ("${x}", X),
        ("${  x\t}", X),
        ("${and}", Name("and")),
        ("_a1", Name("_a1")),
        ("x == y", Compare("==", X, Y)),
        ("x==5", equals("x", 5)),
        ("x != 5", Compare("!=", X, Value(5))),
        ("x < 5", Compare("<", X, Value(5))),
        ("x <= 5", Compare("<=", X, Value(5))),
        ("x > 5", Compare(">", X, Value(5))),
        ("x >= -5", Compare(">=", X, Value(-5))),
        ("5 < x", Compare("<", Value(5), X)),
        ("x == 0.5", equals("x", 0.5)),
        ("x == -0.5", equals("x", -0.5)),
        ("x == 1e3", equals("x", 1000.0)),
        ("x == 1E-2", equals("x", 0.01)),
        ("x == 1.5e+2", equals("x", 150.0)),
        ("x == TRUE", equals("x", True)),
        ("x == False", equals("x", False)),
        ("x == null", equals("x", None)),
        ("x == None", equals("x", None)),
        ("x == 'a b'", equals("x", "a b")),
        ('x == "a b"', equals("x", "a b")),
        ("x == ''", equals("x", "")),
        (r"x == 'it\'s'", equals("x", "it's")),
        (r'x == "\"\\\/\b\f\n\r\t"', equals("x", '"\\/\b\f\n\r\t')),
        (r"x == 'caf\u00e9'", equals("x", "café")),
        ("x == 'two\nlines'", equals("x", "two\nlines")),
        ("x in [1, 'a', null]", Compare("in", X, ListOf((Value(1), Value("a"), Value(None))))),
        ("x in []", Compare("in", X, ListOf(()))),
        ("x NOT IN [true]", Compare("not in", X, ListOf((Value(True),)))),
        ("'x' in y", Compare("in", Value("x"), Y)),
        ("x in 'text'", Compare("in", X, Value("text"))),
        ("x and y", And((X, Y))),
        ("x AND y And z", And((X, Y, Z))),
        ("x or y OR z", Or((X, Y, Z))),
        ("x or y and z", Or((X, And((Y, Z))))),
        ("(x or y) and z", And((Or((X, Y)), Z))),
        ("(x and y) and z", And((And((X, Y)), Z))),
        ("((x))", X),
        ("not x", Not(X)),
        ("not not x", Not(Not(X))),
        ("not x == 5", Not(equals("x", 5))),
        ("not x in y", Not(Compare("in", X, Y))),
        ("not x and y", And((Not(X), Y))),
        ("not (x and y)", Not(And((X, Y)))),
        ("  x\n and\ty  ", And((X, Y))),
        ("x\u00a0== 5", equals("x", 5)),
    ],
)
def test_reads_the_expression_form(text: str, expected: Condition):
    assert parse_condition(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("When x is true", equals("x", True)),
        ("x is true", equals("x", True)),
        ("WHEN x IS TRUE AND y Is False.", And((equals("x", True), equals("y", False)))),
        ("when x is true OR y is 'a b'", Or((equals("x", True), equals("y", "a b")))),
        ("x is not true", Compare("!=", X, Value(True))),
        ("x is not null .", Compare("!=", X, Value(None))),
        ("x equals 5", equals("x", 5)),
        ("x equals 5.", equals("x", 5)),
        ("x is 2.5.", equals("x", 2.5)),
        ("x is tech", equals("x", "tech")),
        ("x equals Tech.", equals("x", "Tech")),
        ("x is not tech", Compare("!=", X, Value("tech"))),
        ("x is ${y}", Compare("==", X, Y)),
        ("when x", X),
        ("When x.", X),
        ("When (x is a or y) and not z", And((Or((equals("x", "a"), Y)), Not(Z)))),
    ],
)
def test_reads_the_english_form(text: str, expected: Condition):
    assert parse_condition(text) == expected


@pytest.mark.parametrize(
    ("text", "offset", "found", "remedy"),
    [
        ("", 0, "empty", "write a test"),
        (" \n", 0, "empty", "write a test"),
        ("When", 4, "the end", "write a name"),
        ("x = 5", 2, "'='", "write =="),
        ("x === 5", 2, "'==='", "write =="),
        ("x !== 5", 2, "'!=='", "write !="),
        ("x <> 5", 2, "'<>'", "write !="),
        ("x => 5", 2, "'=>'", "write >="),
        ("x =< 5", 2, "'=<'", "write <="),
        ("x && y", 2, "'&&'", "write and"),
        ("x & y", 2, "'&'", "write and"),
        ("x || y", 2, "'||'", "write or"),
        ("x and !y", 6, "'!'", "write not"),
        ("x + 1 == 2", 2, "'+'", "does not calculate"),
        ("x ** 2 == 4", 2, "'**'", "does not calculate"),
        ("x == -y", 5, "'-'", "does not calculate"),
        ("x-1 == 2", 1, "'-1'", "does not calculate"),
        ("len(x) == 2", 3, "'('", "cannot call functions"),
        ("x.y == 2", 1, "'.'", "for a part of a value"),
        ("x is a.b", 6, "'.'", "for a part of a value"),
        ("x == 5.", 6, "'.'", "only the English form"),
        ("x[0] == 2", 1, "'['", "cannot pick"),
        ("x is very good", 10, "'good'", "in quotes"),
        ("x y", 2, "'y'", "join tests"),
        ("x 'y'", 2, "'y'", "join tests"),
        ("x, y", 1, "','", "join tests"),
        ("x)", 1, "')'", "remove it"),
        ("y and (x", 6, "'('", "add ')'"),
        ("(x y)", 3, "'y'", "join tests"),
        ("()", 1, "')'", "write a name"),
        ("(x) == 5", 4, "'=='", "without parentheses"),
        ("x == (5)", 5, "'('", "without parentheses"),
        ("x in ('a', 'b')", 5, "'('", "square brackets"),
        ("x == [1]", 5, "'['", "only after 'in'"),
        ("[1] == x", 0, "'['", "only after 'in'"),
        ("x in [[1]]", 6, "'['", "plain values"),
        ("x in [1, y]", 9, "'y'", "'y'"),
        ("x in [1 2]", 8, "'2'", "with commas"),
        ("x in [1,]", 8, "']'", "write a name"),
        ("x in [1, 2", 5, "'['", "add ']'"),
        ("x in [", 6, "the end", "write a name"),
        ("a < b < c", 6, "chained", "a < b and b < c"),
        ("a == b in c", 7, "chained", "write two"),
        ("x not y", 2, "'not'", "not in"),
        ("x == not y", 5, "'not'", "before the whole test"),
        ("x is in [1]", 5, "'in'", "directly after"),
        ("x and or y", 6, "'or'", "${or}"),
        ("x and", 5, "the end", "write a name"),
        ("x ==", 4, "the end", "write a name"),
        ("x and when y", 6, "'when'", "${when}"),
        ("5", 0, "'5'", "compare it"),
        ("x and 'text'", 6, "'text'", "compare it"),
        ("true", 0, "'true'", "leave the condition out"),
        ("x == 'abc", 5, "never closed", "same quote"),
        ('x == "abc\\"', 5, "never closed", "same quote"),
        ("x == \u201ca\u201d", 5, "'\u201c'", "straight quotes"),
        ("x == `a`", 5, "'`'", "straight quotes"),
        ("x == 'ab\\q'", 8, "'\\q'", "backslash"),
        ("x == '\\u12'", 6, "'\\u'", "backslash"),
        ("x == '\\ud83d\\ude00'", 5, "half of a character", "character itself"),
        ("x == '\ud800'", 5, "half of a character", "character itself"),
        ("$x", 0, "'$'", "${name}"),
        ("x and ${}", 6, "'$'", "${name}"),
        ("${a b}", 0, "'$'", "${name}"),
        ("{x}", 0, "'{'", "${name}"),
        ("gr\u00f6sse", 2, "'\u00f6'", "a-z"),
        ("x ? y", 2, "'?'", "use names"),
        ("x == \x00", 5, "<U+0000>", "use names"),
        ("x == 007", 5, "'007'", "a number like"),
        ("x == 0x10", 5, "'0x10'", "a number like"),
        ("x == 1.2.3", 5, "'1.2.3'", "a number like"),
        ("x == 1_000", 5, "'1_000'", "a number like"),
        ("x == .5", 5, "'.'", "write a name"),
        ("x == 1e999", 5, "not finite", "1.7e308"),
        ("x == -" + "9" * 101, 5, "100 digits", "exponent"),
        ("x " + "y" * 99, 2, "y" * 27 + "...", "join tests"),
    ],
)
def test_refuses_with_the_place_and_the_remedy(text: str, offset: int, found: str, remedy: str):
    with pytest.raises(ExpressionError) as caught:
        parse_condition(text)
    assert caught.value.offset == offset
    assert found in str(caught.value)
    assert remedy in (caught.value.hint or "")


@pytest.mark.parametrize("nesting", ["(", "not ", "(not (", "not("])
def test_depth_is_limited(nesting: str):
    levels = nesting.count("(") + nesting.count("not")
    closing = ")" * nesting.count("(")
    fits = MAX_DEPTH // levels
    assert names(parse_condition(nesting * fits + "x" + closing * fits)) == ("x",)
    deep = nesting * (MAX_LENGTH // len(nesting))
    openings = [place for place, char in enumerate(deep) if char in "(n"]
    with pytest.raises(ExpressionError, match="nested more than 50") as caught:
        parse_condition(deep)
    assert caught.value.offset == openings[MAX_DEPTH]


def test_depth_counts_nesting_not_repetition():
    text = " and ".join(["not (x)"] * 200)
    assert parse_condition(text) == And((Not(X),) * 200)


def test_length_is_limited():
    assert parse_condition("x".ljust(MAX_LENGTH)) == X
    with pytest.raises(ExpressionError, match="longer than 4000 characters") as caught:
        parse_condition("x".ljust(MAX_LENGTH + 1))
    assert caught.value.offset == MAX_LENGTH


def test_values_of_different_kinds_are_different_conditions():
    texts = ["x == 1", "x == 1.0", "x == true", "x == '1'", "x == null"]
    for one, other in combinations(texts, 2):
        assert parse_condition(one) != parse_condition(other)
    assert len({parse_condition(text) for text in texts}) == len(texts)
    assert Value(1) != 1
    assert Value("a") == Value("a")
    assert hash(Value("a")) == hash(Value("a"))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 10**100, "\udfff"])
def test_values_that_cannot_be_written_cannot_be_built(value: float | str):
    with pytest.raises(ExpressionError):
        Value(value)


def test_the_largest_numbers_can_be_built_and_written():
    for value in (10**100 - 1, 1 - 10**100, 1.7976931348623157e308, 5e-324):
        condition = equals("x", value)
        assert parse_condition(print_condition(condition)) == condition


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "é", "a\n"])
def test_names_that_cannot_be_written_cannot_be_built(name: str):
    with pytest.raises(ExpressionError, match="cannot name a variable"):
        Name(name)


def test_trees_that_cannot_be_written_cannot_be_built():
    with pytest.raises(ExpressionError, match="'and' needs at least two"):
        And((X,))
    with pytest.raises(ExpressionError, match="'or' needs at least two"):
        Or(())
    with pytest.raises(ExpressionError, match="'==' cannot compare with a list"):
        Compare("==", X, ListOf(()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", ("x",)),
        ("b and a or not b", ("b", "a")),
        ("x == y and 'z' in w", ("x", "y", "w")),
        ("x in ['y'] and x is y", ("x",)),
        ("1 == 1", ()),
    ],
)
def test_names_in_order_of_first_use(text: str, expected: tuple[str, ...]):
    assert names(parse_condition(text)) == expected


def test_mentions_give_the_place_of_every_name():
    text = "When ${ a } is a AND not (bb == 'bb' or a in ${bb})."
    found = mentions(text)
    assert found == (("a", 8), ("bb", 26), ("a", 40), ("bb", 47))
    assert [text[offset : offset + len(name)] for name, offset in found] == ["a", "bb", "a", "bb"]


def test_mentions_refuse_what_does_not_parse():
    with pytest.raises(ExpressionError):
        mentions("x = 5")


@pytest.mark.parametrize(("text", "expected"), CASES["test_prints_one_spelling"])
def test_prints_one_spelling(text: str, expected: str):
    assert print_condition(parse_condition(text)) == expected
    assert parse_condition(expected) == parse_condition(text)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "When interview_complete is true",
        "When monetization_enabled is true AND interview_complete is true",
        "x == 0 and y",
        "stage is 'done' and mode == null",
    ],
)
def test_strict_profile_allows_positive_tests_joined_once(text: str):
    assert strict_violations(parse_condition(text)) == ()


@pytest.mark.parametrize(
    ("text", "words"), CASES["test_strict_profile_says_every_violation_in_words"]
)
def test_strict_profile_says_every_violation_in_words(text: str, words: list[str]):
    found = strict_violations(parse_condition(text))
    assert len(found) == len(words)
    for violation, word in zip(found, words, strict=True):
        assert word in violation
