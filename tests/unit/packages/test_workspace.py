"""Workspaces: finding packages, reading packs, checking all of it together."""

import json
import os
import pathlib

import pytest

from weft.errors import UsageError
from weft.packages.review import review
from weft.packages.workspace import find_packages, is_package, read_packs


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


def test_packages_in_a_plain_folder(tmp_path):
    make(tmp_path / "A", "A")
    assert [folder.name for folder in find_packages(tmp_path)] == ["A"]
    assert said(tmp_path) == []


def test_folder_with_one_required_file_is_a_package(tmp_path):
    write(tmp_path / "W" / "agents.yml", "agents: []")
    assert is_package(tmp_path / "W")


@pytest.mark.parametrize(
    ("name", "fact"), [("gone", "does not exist"), ("file", "is not a folder")]
)
def test_path_that_is_not_a_folder(tmp_path, name, fact):
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
    # An unknown key is no reason not to look at the rest.
    assert [read.pack is not None for read in read_packs(tmp_path)] == [False, True, False]


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
    (finding,) = [finding for finding in review(folder).findings if finding.code == "CODE003"]
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


def test_folder_whose_name_is_not_valid_text(tmp_path):
    folder = tmp_path / os.fsdecode(b"W\xff")
    folder.mkdir()
    (folder / "agents.json").write_text("{")
    assert {finding.code for finding in review(folder).findings} == {"SCHEMA002", "SCHEMA012"}


def test_code_in_the_package_folder_can_be_referred_to(tmp_path):
    folder = make(tmp_path / "W")
    source = {"type": "computed", "computation": "rules:compute", "inputs": []}
    variables = {"definitions": {"v": {"type": "bool", "source": source}}}
    write(folder / "context_variables.json", {"context_variables": variables})
    assert "CODE002" in {finding.code for finding in review(folder).findings}
    write(folder / "rules.py", "def compute() -> bool:\n    return True\n")
    write(folder / "unused.py", "")
    found = {finding.code for finding in review(folder).findings}
    assert "CODE002" not in found


# What is not looked at


def said(path):
    return [(finding.code, finding.message) for finding in review(path).findings]


@pytest.fixture
def workspace(tmp_path):
    make(tmp_path / "workflows" / "W")
    return tmp_path


def test_folders_that_are_not_packages_are_not_reported(workspace):
    write(workspace / "workflows" / "notes" / "plan.txt", "x")
    write(workspace / "workflows" / "README.md", "x")
    write(workspace / "docs" / "tools.json", "{}")
    make(workspace / "workflows" / "W.bak")
    make(workspace / "workflows" / ".hidden")
    assert said(workspace) == []
    assert len(review(workspace).packages) == 1


@pytest.mark.parametrize("name", ["Handoffs.JSON", "agent.yaml", "structured-outputs.json"])
def test_folder_of_misnamed_files_counts_as_a_package(workspace, name):
    write(workspace / "workflows" / "Empty" / name, "")
    assert ("SCHEMA012", "orchestrator.json is missing") in said(workspace)


def test_misnamed_file_is_named_in_the_remedy(workspace):
    write(workspace / "workflows" / "Empty" / "agent.YAML", "")
    hints = [hint for finding in review(workspace).findings for hint in finding.hint]
    assert "if this is agent.YAML, rename it to agents.yaml" in hints


def test_wrong_case_in_a_whole_package(workspace):
    write(workspace / "workflows" / "W" / "Handoffs.JSON", {"handoff_rules": []})
    (finding,) = review(workspace).findings
    assert finding.message == "Handoffs.JSON is not read: no file of a package has this name"
    assert finding.hint == ("rename it to handoffs.json",)


def test_package_beside_workflows(workspace):
    make(workspace / "Pkg one")
    (finding,) = review(workspace).findings
    assert finding.code == "PACK006"
    assert finding.message == (
        "Pkg one was not checked: it is a package, but lies beside workflows and not in it"
    )
    folder = workspace / "Pkg one"
    assert finding.hint == (
        f"check it: weft check '{folder}'",
        f"or move it: mv '{folder}' {workspace / 'workflows'}",
    )


@pytest.mark.parametrize("start", ["", "workflows"])
def test_package_too_deep_and_files_astray(workspace, start):
    make(workspace / "workflows" / "team" / "Deep")
    write(workspace / "workflows" / "agents.json", "{}")
    (workspace / "workflows" / "gone").symlink_to("nowhere")
    place = workspace / start
    if start:
        # `workflows/agents.json` makes that folder a package when it is named itself.
        (workspace / "workflows" / "agents.json").rename(workspace / "workflows" / "hooks.json")
    found = said(place)
    assert ("PACK006", "Deep was not checked: it is a package, but lies too deep") in found
    assert ("SCHEMA001", "gone is a link that leads nowhere") in found
    assert len(found) == 3


def test_packages_in_a_folder_that_is_one_itself(workspace):
    write(workspace / "agents.json", {"agents": []})
    (finding,) = [finding for finding in review(workspace).findings if finding.code == "PACK006"]
    assert finding.hint == (f"check them: weft check {workspace / 'workflows'}",)
    assert "PACK006" not in {
        finding.code for finding in review(workspace / "workflows" / "W").findings
    }


def test_pack_with_another_ending(workspace):
    write(workspace / "packs" / "shop.JSON", "{}")
    write(workspace / "packs" / "notes.txt", "")
    (finding,) = review(workspace).findings
    assert finding.message == (
        "shop.JSON was not checked: it is not read as a pack, because of its ending"
    )
    assert finding.hint == ("rename it to shop.json",)


@pytest.fixture
def locked(monkeypatch):
    """Let folders of a name be entered and not be listed."""

    def lock(name):
        real = pathlib.Path.iterdir

        def listed(path):
            if path.name == name:
                raise PermissionError(13, "Permission denied", str(path))
            return real(path)

        monkeypatch.setattr("pathlib.Path.iterdir", listed)

    return lock


@pytest.mark.parametrize("files", [True, False])
def test_package_folder_that_cannot_be_listed(workspace, locked, files):
    folder = workspace / "workflows" / "X"
    make(folder) if files else folder.mkdir()
    locked("X")
    (finding,) = review(workspace).findings
    assert (finding.code, finding.place.file) == ("SCHEMA001", str(folder))
    assert finding.message == "X cannot be looked into: permission denied"
    assert finding.hint == (f"let yourself read it: chmod u+rX {folder.parent} {folder}",)


def test_packs_that_cannot_be_listed(workspace, locked):
    (workspace / "packs").mkdir()
    locked("packs")
    assert said(workspace) == [("SCHEMA001", "packs cannot be looked into: permission denied")]


def test_workspace_that_cannot_be_listed(workspace, locked):
    locked(workspace.name)
    message = f"{workspace.name} cannot be looked into: permission denied"
    assert said(workspace) == [("SCHEMA001", message)]


def test_file_that_vanishes_before_it_is_read(workspace, monkeypatch):
    def gone(path, *_args, **_more):
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr("pathlib.Path.open", gone)
    hints = {hint for finding in review(workspace).findings for hint in finding.hint}
    assert hints == {"check that it is still there and can be opened"}
