"""Family NAME."""

from hypothesis import given
from hypothesis import strategies as st

from weft.check.spelling import listed, pascal_case, snake_case
from weft.ids import AGENT_NAME, SNAKE_NAME


@given(st.text(max_size=20))
def test_suggested_spellings_are_good_names_or_nothing(name: str):
    pascal, snake = pascal_case(name), snake_case(name)
    assert pascal == "" or AGENT_NAME.match(pascal)
    assert snake == "" or SNAKE_NAME.match(snake)


def test_listed_reads_like_a_sentence():
    assert [listed(names) for names in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]
