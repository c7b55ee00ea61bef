"""Variables that are read from files: whether the files are there."""

import json

import pytest

from weft.packages.review import review


def declared(folder, **source):
    """Write a package with a variable that is read from prices.txt."""
    folder.mkdir(parents=True)
    orchestrator = {"workflow_name": folder.name, "initial_agent": "A"}
    variable = {"type": "str", "source": {"type": "file", "path": "data/prices.txt", **source}}
    files = {
        "orchestrator": orchestrator,
        "agents": {"agents": [{"agent_name": "A"}]},
        "context_variables": {"context_variables": {"definitions": {"prices": variable}}},
    }
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def missing(folder):
    return [finding for finding in review(folder).findings if finding.code == "VAR022"]


def test_a_file_that_is_nowhere_is_named(tmp_path):
    (finding,) = missing(declared(tmp_path / "workflows/W"))
    assert finding.severity == "warning"
    assert finding.message == "prices is read from data/prices.txt, which does not exist"
    assert finding.place.line == 1


@pytest.mark.parametrize("where", ["workflows/W", "."])
def test_a_file_of_the_package_or_the_workspace_is_found(tmp_path, where):
    folder = declared(tmp_path / "workflows/W")
    (tmp_path / where / "data").mkdir()
    (tmp_path / where / "data/prices.txt").write_text("1")
    assert missing(folder) == []


def test_unreadable_variable_is_not_looked_up(tmp_path):
    assert missing(declared(tmp_path / "workflows/W", path="../../x.txt")) == []
