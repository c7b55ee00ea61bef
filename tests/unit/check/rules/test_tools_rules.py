"""Code that Python refuses."""

import pytest

from unit.check.builders_code import subject
from weft.check.run import check


@pytest.mark.parametrize("text", ["a\0b", "x = '\ud800'", "(" * 5000, "-" * 100_000 + "1"])
def test_anything_that_python_refuses_is_found(text):
    (found,) = [it for it in check(subject({"tools/x.py": text})) if it.code == "CODE003"]
    assert (found.place.file, found.place.line) == ("tools/x.py", 1)
