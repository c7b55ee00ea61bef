"""Family UI."""

import time

import pytest

from weft.check.rules.ui import default_exports


@pytest.mark.parametrize(
    "piece", ["/*", "`'", '"\\"', "=/[", "export{", "export {a as default ", "return /x", "('"]
)
def test_UI005_takes_time_in_proportion_to_the_text(piece: str):
    start = time.process_time()
    assert list(default_exports(piece * (500_000 // len(piece)))) == []
    assert time.process_time() - start < 5
