"""The page about tests describes every key of a scenario, and its example is a shipped file."""

import re

import pytest

from support.page_play import read_pages
from weft.packages.workspace import shipped_folder
from weft.spec.scenario import Expected, Scenario, ScenarioCase, ScenarioStep

PAGE = read_pages("testing.md")


@pytest.mark.parametrize("model", [ScenarioCase, Scenario, ScenarioStep, Expected])
def test_every_key_has_a_row(model):
    rows = re.findall(r"^\| (`[^|]+`) \| [^|]+ \|$", PAGE, re.MULTILINE)
    documented = {key for row in rows for key in re.findall(r"`(\w+)`", row)}
    assert {field.alias or name for name, field in model.model_fields.items()} <= documented


def test_example_is_a_shipped_scenario():
    path, text = re.search(r"`workflows/(\S+)`\n```yaml\n(.+?)```", PAGE, re.DOTALL).groups()
    pointer, shipped = (shipped_folder() / path).read_text("utf-8").split("\n", 1)
    assert pointer.startswith("# yaml-language-server")
    assert text == shipped
