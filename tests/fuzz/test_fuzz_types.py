"""Whatever is given as a type: a type or an ExpressionError, never anything else."""

import string

from hypothesis import example, given, settings
from hypothesis import strategies as st

from weft.errors import ExpressionError
from weft.spec.type_field import read_type
from weft.spec.type_meaning import coerce_text, validation_error
from weft.spec.type_parser import parse_type
from weft.spec.types import MAX_DEPTH, print_type

# Time is no part of what is tested here, and other work may run beside the tests.
untimed = settings(deadline=None)

WORDS = [
    "str",
    "int",
    "any",
    "list",
    "dict",
    "optional",
    "literal",
    "union",
    "null",
    "Item",
    "strng",
]
MARKS = ["[", "]", ",", "|", " ", "\n", '"', "'", "\\", '"a"', "'b'", "3", "-1", "1.5", "true", "é"]
BITS = ["list[", "optional[", "literal[", "dict[str, ", '"\\u00', '"\\ud800"', "\x00", "(", "${x}"]
PIECES = st.sampled_from([*WORDS, *MARKS, *BITS])
TEXTS = st.text() | st.lists(PIECES, max_size=30).map("".join)
VALID = st.sampled_from(
    [
        "optional[list[str | int]]",
        "literal[\"a\", 'b', 3, true] | Item",
        "dict[str, union[int, null]]",
        "list[dict[optional[Item]]]",
    ]
)


def outcome(read, *given_values):
    try:
        return read(*given_values)
    except ExpressionError as error:
        return error


def check_text(text):
    found = outcome(parse_type, text)
    if isinstance(found, ExpressionError):
        assert 0 <= found.offset <= len(text)
        assert 0 < len(str(found)) < 200
    else:
        assert parse_type(print_type(found)) == found


@untimed
@given(TEXTS)
@example("[" * 10_000)
@example("list[" * 2_000)
@example("optional[" * MAX_DEPTH + "int" + "]" * MAX_DEPTH)
@example("int |" * 2_000)
@example('"' * 9_999)
@example("literal['" + "\\" * 9_000)
@example("literal[" + "9" * 9_000 + "]")
@example("x" * 1_000_000)
def test_any_text_is_a_type_or_refused_with_its_place(text):
    check_text(text)


@untimed
@given(VALID, st.data())
def test_a_damaged_type_is_a_type_or_refused_with_its_place(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 4)))
    check_text(text[:start] + data.draw(TEXTS) + text[end:])


FORM_KEYS = st.sampled_from(
    ["type", "items", "values", "enum", "variants", "options", "of", "inner", "item", "description"]
)
KINDS = st.sampled_from(["list", "dict", "optional", "literal", "union", "str", "null", "Array"])
FORMS = st.recursive(
    TEXTS | KINDS | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(FORM_KEYS | st.integers(), inner, max_size=3),
        st.builds(lambda kind, key, value: {"type": kind, key: value}, KINDS, FORM_KEYS, inner),
    ),
    max_leaves=8,
)


@untimed
@given(FORMS)
def test_any_object_is_a_type_or_refused(form):
    found = outcome(read_type, form)
    if isinstance(found, ExpressionError):
        assert 0 < len(str(found)) < 400
    else:
        assert parse_type(print_type(found)) == found


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@untimed
@given(VALID, VALUES)
def test_any_value_is_judged(text, value):
    models = {"Item": {"name": parse_type("str"), "more": parse_type("optional[Item]")}}
    sentence = validation_error(parse_type(text), value, models)
    assert sentence is None or sentence.startswith(("expected", "unknown", "the field"))


TYPE_TEXTS = st.sampled_from(
    [
        "str",
        "int",
        "float",
        "bool",
        "any",
        "optional[int]",
        "list[int]",
        'literal["a", 1]',
        "int | str",
    ]
)


@untimed
@given(TYPE_TEXTS, st.text() | st.text(string.digits + '+-.eE_[]{}",: ') | VALUES.map(str))
@example("any", "[" * 200_000)
@example("int", "1" * 10_000)
@example("float", "1" * 10_000)
def test_any_text_of_a_variable_gives_a_value_that_fits_or_is_refused(type_text, text):
    type_ = parse_type(type_text)
    found = outcome(coerce_text, type_, text)
    if isinstance(found, ExpressionError):
        assert found.hint
    else:
        assert validation_error(type_, found, {}) is None
