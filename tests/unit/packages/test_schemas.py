"""The published schemas are current, valid, and agree with the reader."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from support import seed_examples as seed
from weft.packages.layout import FILE_KINDS
from weft.packages.writer import SCHEMA_NAMES, schema, schema_files

FOLDER = Path(__file__).parents[3] / "schemas"


def test_there_is_a_schema_for_every_file():
    assert set(SCHEMA_NAMES) == {*FILE_KINDS, "pack", "action_plan", "form", "scenario"}


@pytest.mark.parametrize("name", schema_files())
def test_published_schema_is_current(name):
    published = (FOLDER / name).read_text(encoding="utf-8")
    assert published == schema_files()[name], "run: make generate"


def test_nothing_else_is_published():
    assert {path.name for path in FOLDER.iterdir()} == set(schema_files())


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_schema_is_valid_and_allows_its_own_pointer(name):
    Draft202012Validator.check_schema(schema(name))
    assert schema(name)["properties"]["$schema"]["type"] == "string"
    assert schema(name)["additionalProperties"] is False


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("orchestrator", seed.ORCHESTRATOR),
        ("agents", seed.AGENTS),
        ("handoffs", seed.HANDOFFS),
        ("structured_outputs", seed.STRUCTURED_OUTPUTS),
    ],
)
def test_seed_examples_in_the_present_spelling_fit(name, data):
    Draft202012Validator(schema(name)).validate(data)


def test_unknown_keys_do_not_fit():
    data = json.loads(json.dumps(seed.AGENTS))
    data["agents"][0]["colour"] = "red"
    assert not Draft202012Validator(schema("agents")).is_valid(data)
