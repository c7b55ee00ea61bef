"""Workspaces: finding packages, reading packs, checking all of it together."""

import json
import os

import pytest

from weft.errors import UsageError
from weft.packages.review import review
from weft.packages.workspace import find_package, find_packages, is_package, read_packs


def make(folder, name="W", **orchestrator):
    folder.mkdir(parents=True)
    data = {"workflow_name": name, "initial_agent": "A", "human_in_the_loop": True, **orchestrator}
    (folder / "orchestrator.json").write_text(json.dumps(data))
    (folder / "agents.json").write_text(json.dumps({"agents": [{"agent_name": "A"}]}))
    return folder


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    return path


def test_a_package_is_found_by_itself(tmp_path):
    assert find_packages(make(tmp_path / "W")) == [tmp_path / "W"]
    assert is_package(tmp_path / "W")


def test_packages_of_a_workspace(tmp_path):
    for name in ("B", "A"):
        make(tmp_path / "workflows" / name, name)
    (tmp_path / "workflows" / "notes").mkdir()
    (tmp_path / "workflows" / "file.txt").write_text("")
    assert [folder.name for folder in find_packages(tmp_path)] == ["A", "B"]
    assert find_package(tmp_path, "B") == tmp_path / "workflows" / "B"
    assert find_package(tmp_path, "C") is None


def test_packages_in_a_plain_folder(tmp_path):
    make(tmp_path / "A", "A")
    assert [folder.name for folder in find_packages(tmp_path)] == ["A"]


def test_folder_with_only_one_telling_file_is_a_package(tmp_path):
    write(tmp_path / "W" / "agents.yml", "agents: []")
    assert is_package(tmp_path / "W")


@pytest.mark.parametrize(
    ("name", "fact"), [("gone", "does not exist"), ("file", "is not a folder")]
)
def test_path_that_is_no_folder(tmp_path, name, fact):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=fact) as caught:
        find_packages(tmp_path / name)
    assert caught.value.hint == "name a package folder or a workspace"


def test_no_packs(tmp_path):
    assert read_packs(tmp_path) == []


def test_packs_are_read(tmp_path):
    pack = {"pack_name": "P", "workflows": [{"name": "W", "role": "primary"}]}
    write(tmp_path / "packs" / "p.json", pack)
    write(tmp_path / "packs" / "notes.txt", "x")
    (read,) = read_packs(tmp_path)
    assert read.pack is not None
    assert read.pack.workflows[0].role == "primary"
    assert read.findings == ()


def test_bad_packs_give_findings(tmp_path):
    write(tmp_path / "packs" / "a.json", "{")
    write(tmp_path / "packs" / "b.json", {"pack_name": "P", "workflows": [], "x": 1})
    (tmp_path / "packs" / "c.json").symlink_to(write(tmp_path / "outside.json", "{}"))
    codes = [[finding.code for finding in read.findings] for read in read_packs(tmp_path)]
    assert codes == [["SCHEMA002"], ["SCHEMA008"], ["SCHEMA001"]]
    assert [read.pack for read in read_packs(tmp_path)] == [None, None, None]


def test_review_of_a_workspace_joins_packages_and_packs(tmp_path):
    needs = {"workflow_dependencies": {"required_workflows": ["Gone"]}}
    make(tmp_path / "workflows" / "W", **needs)
    pack = {"pack_name": "P", "workflows": [{"name": "V", "role": "primary"}]}
    write(tmp_path / "packs" / "p.json", pack)
    result = review(tmp_path)
    places = {finding.code: finding.place.file for finding in result.findings}
    assert places["PACK001"] == str(tmp_path / "workflows" / "W" / "orchestrator.json")
    assert places["PACK003"] == str(tmp_path / "packs" / "p.json")
    assert not result.ok
    assert result.files == 3
    assert [package.name for package in result.packages] == ["W"]


def test_review_puts_code_findings_into_the_folder(tmp_path):
    folder = make(tmp_path / "W")
    tool = {"agent": "A", "file": "t.py", "function": "t", "description": "Does it."}
    write(folder / "tools.json", {"tools": [{"tool_type": "Agent_Tool", **tool}]})
    write(folder / "tools" / "t.py", "def t(:\n")
    (finding,) = [it for it in review(folder).findings if it.code == "TOOL003"]
    assert finding.place.file == str(folder / "tools" / "t.py")
    assert finding.place.line == 1


def test_package_that_cannot_be_read_is_left_out_of_the_joint_check(tmp_path):
    write(make(tmp_path / "workflows" / "W") / "orchestrator.json", "{")
    assert {finding.code for finding in review(tmp_path).findings} == {"SCHEMA002"}


def test_package_alone_is_not_asked_for_the_others(tmp_path):
    needs = {"workflow_dependencies": {"required_workflows": ["Gone"]}}
    folder = make(tmp_path / "workflows" / "W", **needs)
    assert "PACK001" not in {finding.code for finding in review(folder).findings}


def test_package_that_cannot_be_read_is_there_for_those_that_need_it(tmp_path):
    write(make(tmp_path / "workflows" / "V", "V") / "orchestrator.json", "{")
    make(tmp_path / "workflows" / "W", workflow_dependencies={"required_workflows": ["V"]})
    assert {finding.code for finding in review(tmp_path).findings} == {"SCHEMA002"}


def test_folder_one_may_not_look_into_is_reported(tmp_path, monkeypatch):
    folder = make(tmp_path / "workflows" / "W")
    (tmp_path / "workflows" / "X").mkdir()
    real = type(folder).stat

    def refuse(path, **options):
        if path.parent.name == "X":
            raise PermissionError(13, "Permission denied")
        return real(path, **options)

    monkeypatch.setattr("pathlib.Path.stat", refuse)
    assert [found.name for found in find_packages(tmp_path)] == ["W", "X"]


def test_folder_whose_name_is_no_text(tmp_path):
    folder = tmp_path / os.fsdecode(b"W\xff")
    folder.mkdir()
    (folder / "agents.json").write_text("{")
    assert {finding.code for finding in review(folder).findings} == {"SCHEMA002", "SCHEMA012"}


def test_code_in_the_package_folder_can_be_referred_to(tmp_path):
    folder = make(tmp_path / "W")
    source = {"type": "computed", "computation": "rules:compute", "inputs": []}
    variables = {"definitions": {"v": {"type": "bool", "source": source}}}
    write(folder / "context_variables.json", {"context_variables": variables})
    assert "VAR004" in {it.code for it in review(folder).findings}
    write(folder / "rules.py", "def compute() -> bool:\n    return True\n")
    write(folder / "unused.py", "")
    found = {it.code for it in review(folder).findings}
    assert found.isdisjoint({"VAR004", "TOOL007", "HOOK004"})
