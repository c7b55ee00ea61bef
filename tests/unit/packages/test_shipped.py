"""Templates are found by any name of their pattern, and by no other."""

import pytest

from weft.errors import UsageError
from weft.packages.workspace import template_files
from weft.spec.patterns import PATTERNS, find_pattern


def test_a_pattern_is_found_by_id_name_and_title():
    for pattern in PATTERNS:
        for value in (pattern.id, str(pattern.id), pattern.name, pattern.title):
            assert find_pattern(value) == pattern
    assert find_pattern(len(PATTERNS) + 1) is None


def test_a_pattern_that_does_not_exist():
    with pytest.raises(UsageError, match='unknown pattern "Nothing"') as caught:
        template_files("Nothing", "New")
    assert PATTERNS[0].title in str(caught.value.hint)
