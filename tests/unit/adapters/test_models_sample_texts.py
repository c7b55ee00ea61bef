"""Texts that meet a trigger's match."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from support.cases import read_cases
from weft.adapters.models.sample_values import is_free_text, matching_text, sample_text
from weft.engine.variables.patterns import pattern
from weft.spec.triggers import Match

CASES = read_cases(__file__)

MATCH = TypeAdapter(Match)


MEETS = {
    "equals": lambda text, wanted: text.strip().casefold() == wanted.strip().casefold(),
    "exact": lambda text, wanted: text == wanted,
    "contains": lambda text, wanted: wanted.casefold() in text.casefold(),
}


def text_for(**match: str) -> str | None:
    return matching_text(MATCH.validate_python(match))


@given(
    st.sampled_from(sorted(MEETS)),
    st.text(min_size=1).filter(lambda text: text.strip()),
)
def test_a_named_text_is_met(kind: str, wanted: str):
    text = text_for(**{kind: wanted})
    assert text is not None
    assert MEETS[kind](text, wanted)


def test_a_part_leaves_room_to_say_that_it_is_a_sample():
    assert text_for(contains="@critic") == "[sample] @critic"


@pytest.mark.parametrize(("regex", "example"), CASES["test_a_pattern_is_met_by_an_example"])
def test_a_pattern_is_met_by_an_example(regex: str, example: str):
    assert pattern(regex)(example)
    assert text_for(regex=regex) == example


@pytest.mark.parametrize("regex", [r"\Ba\B", r"a^b", r"(?=a)a", "(", r"[a&&b]", r"[a[b]]+"])
def test_pattern_without_an_example_gives_none(regex: str):
    assert text_for(regex=regex) is None


PIECES = st.sampled_from(
    ["a", ".", r"\d", r"\w+", "[a-f]*", "(x|y)", "(?:no)?", "^", "$", r"\b", "b{2}", r"\B", " "]
)


@given(st.lists(PIECES, max_size=8).map("".join).filter(str.strip))
def test_results_match_the_query(regex: str):
    text = text_for(regex=regex)
    assert text is None or pattern(regex)(text)


def test_a_text_fits_the_pattern_of_its_schema():
    assert sample_text({"pattern": "^[A-Z]{2}$", "examples": [7, "AB"]}, "x", Random(0)) == "AB"
    assert sample_text({"pattern": "^[A-Z]{2}$", "default": "CD"}, "x", Random(0)) == "CD"
    assert sample_text({"pattern": "^[A-Z]{2}$"}, "x", Random(0)) == "AA"
    assert sample_text({"pattern": "a^b"}, "x", Random(0)) == "[sample] x"


def test_texts_are_short_and_long():
    texts = {sample_text({}, "note", Random(seed)) for seed in range(20)}
    assert sorted(len(text.split()) > 20 for text in texts) == [False, True]
    assert all(is_free_text(text, "note") for text in texts)
    assert not any(is_free_text(text, "other") for text in texts)
    assert {len(sample_text({"maxLength": 5}, "note", Random(seed))) for seed in range(9)} == {5}
    assert sample_text({"minLength": 300}, "note", Random(1)).endswith("...")
    assert sample_text({"format": "date"}, "note", Random(1)) == "2025-01-15"
