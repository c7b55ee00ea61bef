"""The nine patterns."""

import pytest
from pydantic import TypeAdapter, ValidationError

from weft.ids import slug
from weft.spec.patterns import PATTERNS, PatternName, find_pattern, nearest_pattern


def test_name_and_title_of_a_pattern_have_the_same_slug():
    assert [pattern.id for pattern in PATTERNS] == list(range(1, 10))
    for pattern in PATTERNS:
        assert slug(pattern.name) == slug(pattern.title)
        assert find_pattern(pattern.title) is pattern
        assert pattern.summary


@pytest.mark.parametrize("value", [True, None, [6], "Conveyor", 10])
def test_other_values_are_refused(value):
    with pytest.raises(ValidationError):
        TypeAdapter(PatternName).validate_python(value)


@pytest.mark.parametrize(
    ("value", "name"), [("Pipelin", "Pipeline"), ("DefaultPatern", "DefaultPattern"), ("Zzz", None)]
)
def test_misspelt_name_has_a_nearest_one(value, name):
    assert nearest_pattern(value) == name
