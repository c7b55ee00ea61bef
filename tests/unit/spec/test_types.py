"""Types as values: how they compare, how they are written, and which names models may have."""

import pytest

from support.cases import read_cases
from weft.spec.types import (
    ANY,
    DictOf,
    ListOf,
    LiteralOf,
    OptionalOf,
    Ref,
    Scalar,
    UnionOf,
    is_model_name,
    print_type,
    word_of,
)

CASES = read_cases(__file__)

STR, INT = Scalar("str"), Scalar("int")


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (STR, "str"),
        (ANY, "any"),
        (Ref("Invoice"), "Invoice"),
        (ListOf(ANY), "list"),
        (ListOf(INT), "list[int]"),
        (DictOf(ANY), "dict"),
        (DictOf(ListOf(ANY)), "dict[list]"),
        (OptionalOf(UnionOf((STR, INT))), "optional[str | int]"),
        (LiteralOf(("é", 'say "hi"', 3, True)), 'literal["é", "say \\"hi\\"", 3, true]'),
    ],
)
def test_every_type_is_written_in_one_way(type_, text):
    assert print_type(type_) == text


def test_one_and_true_are_different_literals():
    assert LiteralOf((1,)) != LiteralOf((True,))
    assert LiteralOf((1,)) == LiteralOf((1,))
    assert LiteralOf((1,)) != STR
    assert len({LiteralOf(("a",)), LiteralOf(("a",)), LiteralOf((1,)), LiteralOf((True,))}) == 3


@pytest.mark.parametrize(("name", "word"), CASES["test_words_have_several_spellings"])
def test_words_have_several_spellings(name, word):
    assert word_of(name) == word


def test_model_names():
    assert is_model_name("Invoice")
    assert is_model_name("Document")
    assert not any(map(is_model_name, ("invoice", "My_Model", "List", "Optional", "String", "")))
