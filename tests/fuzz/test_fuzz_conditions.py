"""Any text whatever is read as a condition or refused with a place in it; nothing else happens."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from weft.errors import ExpressionError
from weft.spec.condition_parser import mentions, parse_condition
from weft.spec.conditions import Condition, names, print_condition

VALID = [
    "When interview_complete is true AND mode is not 'fast'.",
    "${ stage } == 'done' and (count >= -3 or not ready)",
    "x not in [1, 'a', \"b\\u00e9\", null, 2.5e-3] or 'k' in tags",
    "not (a and b or not c) and d equals Tech",
]
PIECES = [
    *("and", "or", "not", "in", "is", "equals", "When", "true", "null", "None", "x", "${y}", "${"),
    *("==", "!=", "<", "<=", "=", "&&", "!", "(", ")", "[", "]", ",", ".", "'", '"', "\\", "\\u"),
    *("'a'", '"b"', "1", "-1", "1.5", "1e999", "0x", "-", "+", " ", "\n", "\x00", "\ud800", "é"),
]
every_character = st.characters(codec=None)


def read(text: str) -> Condition | ExpressionError:
    try:
        return parse_condition(text)
    except ExpressionError as error:
        return error


def check(text: str) -> None:
    result = read(text)
    if isinstance(result, ExpressionError):
        assert 0 <= result.offset <= len(text)
        assert result.hint
        # A message must survive being printed and stored.
        assert f"{result} {result.hint}".encode()
    else:
        assert read(print_condition(result)) == result
        assert set(names(result)) == {name for name, _ in mentions(text)}


@settings(max_examples=100 * TIMES)
@given(st.text(every_character))
@example("(" * 4000)
@example("not " * 1000)
@example("'" * 3999)
@example("9" * 4000)
@example("x == 1" + "e1" * 1990)
@example("${" + " " * 3998)
@example("x" * 4001)
def test_any_text(text: str):
    check(text)


@settings(max_examples=100 * TIMES)
@given(st.lists(st.sampled_from(PIECES), max_size=25), st.sampled_from(["", " "]))
def test_any_sequence_of_words_and_signs(pieces: list[str], between: str):
    check(between.join(pieces))


@settings(max_examples=100 * TIMES)
@given(
    st.sampled_from(VALID),
    st.lists(
        st.tuples(
            st.integers(0, 60),
            st.integers(0, 3),
            st.sampled_from(PIECES) | st.text(every_character, max_size=2),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_any_damage_to_a_valid_condition(text: str, edits: list[tuple[int, int, str]]):
    for place, removed, inserted in edits:
        text = text[:place] + inserted + text[place + removed :]
    check(text)


@pytest.mark.parametrize("text", VALID)
def test_the_texts_to_damage_are_valid(text: str):
    assert names(parse_condition(text))


@pytest.mark.parametrize("text", VALID)
def test_every_beginning_of_a_valid_condition(text: str):
    for end in range(len(text)):
        check(text[:end])
