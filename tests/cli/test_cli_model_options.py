"""The options about models read the same in every verb that has them."""

import pytest


@pytest.mark.parametrize("option", ["--model", "--seed"])
def test_an_option_is_explained_the_same_everywhere(weft, option: str):
    verbs = [["run"], ["chat"], ["replay"], ["runs", "answer"], ["runs", "resume"]]
    pages = [weft(*verb, "--help").out for verb in verbs]
    lines = [line.split() for page in pages for line in page.splitlines()]
    explained = [line for line in lines if line[:1] == [option]]
    assert len(explained) == (3 if option == "--model" else 5)
    assert all(line == explained[0] for line in explained)
