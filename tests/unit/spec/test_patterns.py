"""The nine patterns."""

from weft.ids import slug
from weft.spec.patterns import PATTERNS, find_pattern


def test_name_and_title_of_a_pattern_stand_in_the_same_place():
    assert [pattern.id for pattern in PATTERNS] == list(range(1, 10))
    for pattern in PATTERNS:
        assert slug(pattern.name) == slug(pattern.title)
        assert find_pattern(pattern.title) is pattern
        assert pattern.summary
