"""Family TOOL."""

import pytest

from unit.check.builders_code import (
    only,
    subject,
)


@pytest.mark.parametrize("text", ["a\0b", "x = '\ud800'", "(" * 5000, "-" * 100_000 + "1"])
def test_TOOL003_anything_that_python_refuses(text: str):
    place = only("TOOL003", subject({"tools/x.py": text})).place
    assert place is not None
    assert (place.file, place.line) == ("tools/x.py", 1)
