"""Older spellings: each read as the present one, pointed out at its place, never guessed at."""

from pathlib import Path

import pytest
import yaml

from weft.packages.edit.spellings import DIALECTS
from weft.packages.reader import open_document
from weft.packages.text.documents import dump, read_text

CORPUS = Path(__file__).parent / "corpus" / "dialect.yaml"
CASES = yaml.load(CORPUS.read_text(), Loader=yaml.CSafeLoader)
LISTS_BY_KIND = (
    "derived_variables",
    "environment_variables",
    "static_variables",
    "declarative_variables",
    "database_variables",
    "defined_variables",
    "runtime_variables",
)


def rewrite(stem, data):
    """Read a file in an older spelling."""
    text = read_text(f"{stem}.json", dump(data, "json"))
    return open_document(f"{stem}.json", text, stem).rewrite


def messages(read):
    return [change.message for change in read.changes]


def path(text):
    return tuple(int(step) if step.isdecimal() else step for step in text.split("."))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['file']}: {case['name']}")
def test_older_spelling_is_read_as_the_present_one(case):
    read = rewrite(case["file"], case["old"])
    assert read.data == case.get("new", case["old"])
    assert messages(read) == case.get("said", [])
    for now, before in case.get("origins", {}).items():
        assert read.origin_path(path(now)) == path(before)


@pytest.mark.parametrize("stem", DIALECTS)
@pytest.mark.parametrize("data", [[], "text", 3, None, {}])
def test_data_of_another_kind_is_left_alone(stem, data):
    expected = {"context_variables": {}} if stem == "context_variables" and data == {} else data
    read = rewrite(stem, data)
    assert (read.data, messages(read)) == (expected, [])


@pytest.mark.parametrize("key", LISTS_BY_KIND)
def test_an_empty_list_by_kind_declares_nothing(key):
    read = rewrite("context_variables", {"context_variables": {key: []}})
    assert read.data == {"context_variables": {"definitions": {}}}
    assert messages(read) == [f"{key} is now part of definitions"]
