"""What the reader says to write instead."""

from typing import Annotated, Literal

import pytest

from support.cases import read_cases
from weft.check.problems import add_key, rewrite_as
from weft.packages.text.yaml_text import parse

CASES = read_cases(__file__)


@pytest.mark.parametrize(
    ("annotation", "sample"),
    [
        (str, '"..."'),
        (Annotated[str, "a name"], '"..."'),
        (bool, "true"),
        (int, "1"),
        (tuple[str, ...], "[]"),
        (dict[str, int], "{}"),
        (Literal["chat", "timer"], '"chat"'),
        (str | None, "..."),
        (set, "..."),
        (None, "..."),
    ],
)
def test_a_key_to_add_comes_with_a_value_to_begin_with(annotation, sample):
    assert add_key("k", annotation) == f'add "k": {sample}'


@pytest.mark.parametrize(("wanted", "found", "hint"), CASES["test_intended_value_is_written_out"])
def test_intended_value_is_written_out(wanted, found, hint):
    assert rewrite_as(wanted, found) == (hint,)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("true or false", "maybe"),
        ("a whole number", "thirty"),
        ("a whole number", 1.5),
        ("a number", "٣"),
        ("a list", "x" * 61),
        ("an object", "a"),
    ],
)
def test_ambiguous_spelling_is_not_guessed(wanted, found):
    assert rewrite_as(wanted, found) == ()


@pytest.mark.parametrize(
    "text", ["a: {name} wants help\n", "- {name} wants\n", "b: {c: {name} wants}\n", "{name} x\n"]
)
def test_yaml_text_that_begins_with_a_brace(text):
    (fault,) = parse(text).errors
    assert fault.message.startswith("text follows an object")
    assert fault.hint == ("put the whole text in quotes",)


def test_an_object_without_its_comma_is_something_else():
    (fault,) = parse("b: {c: 1 d: 2}\n").errors
    assert not fault.message.startswith("text follows an object")
