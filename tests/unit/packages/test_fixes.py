"""Safe fixes reach the files they concern, whatever spelling these are in."""

import json

import pytest

from weft.findings import AppendItem, Finding, Fix, Place, Remove, RenameKey, SetValue
from weft.packages.edit import fixes
from weft.packages.edit.fixes import apply_fixes, fix_package
from weft.packages.reader import read_package


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "W"
    folder.mkdir()
    write(folder, "orchestrator.json", {"workflow_name": "W", "initial_agent": "A"})
    write(folder, "agents.json", {"agents": [{"agent_name": "A"}]})
    write(folder, "context_variables.json", {"definitions": {}, "agents": {"A": ["x", "y"]}})
    return folder


def write(folder, name, data):
    (folder / name).write_text(json.dumps(data, indent=2))


def finding(*edits, file=None):
    fix = Fix("fix it", edits, file=file)
    return Finding("EXPO002", "error", "x", Place("f"), fix=fix)


def apply(folder, *findings):
    return apply_fixes(read_package(folder), findings)


def load(folder, name):
    return json.loads((folder / name).read_text())


def test_append_goes_to_the_list_the_author_wrote(folder):
    assert len(apply(folder, finding(AppendItem(("exposure", "A"), "z")))) == 1
    assert load(folder, "context_variables.json")["agents"] == {"A": ["x", "y", "z"]}


def test_set_rename_and_remove(folder):
    apply(folder, finding(SetValue(("orchestrator", "initial_agent"), "B")))
    apply(folder, finding(Remove(("exposure", "A", 0))))
    apply(folder, finding(RenameKey(("orchestrator", "workflow_name"), "name")))
    assert load(folder, "orchestrator.json") == {"name": "W", "initial_agent": "B"}
    assert load(folder, "context_variables.json")["agents"] == {"A": ["y"]}


def test_edit_of_a_named_file(folder):
    apply(folder, finding(RenameKey(("workflow_name",), "name"), file="orchestrator.json"))
    assert "name" in load(folder, "orchestrator.json")


def test_one_fix_to_a_file_at_a_time(folder):
    first = finding(AppendItem(("exposure", "A"), "z"))
    second = finding(AppendItem(("exposure", "A"), "w"))
    other = finding(SetValue(("orchestrator", "initial_agent"), "B"))
    assert apply(folder, first, second, other) == (first.fix, other.fix)


def test_findings_without_a_fix_and_fixes_without_a_file(folder):
    nothing = Finding("X", "error", "x", Place("f"))
    nowhere = finding(SetValue(("hooks", 0, "file"), "x"))
    removal = finding(Remove(("exposure", "A")))
    (folder / "context_variables.json").unlink()
    assert apply(folder, nothing, nowhere, removal) == ()
    assert not (folder / "hooks.json").exists()
    assert not (folder / "context_variables.json").exists()


def test_rename_and_removal_of_a_whole_entry(folder):
    apply(folder, finding(RenameKey(("exposure", "A"), "B")))
    assert load(folder, "context_variables.json")["agents"] == {"B": ["x", "y"]}
    apply(folder, finding(Remove(("exposure", "B"))))
    assert load(folder, "context_variables.json")["agents"] == {}


def test_a_missing_file_is_begun(folder):
    (folder / "context_variables.json").unlink()
    applied = apply(folder, finding(AppendItem(("exposure", "A"), "z")))
    assert len(applied) == 1
    assert load(folder, "context_variables.json") == {
        "$schema": "../../schemas/context_variables.schema.json",
        "context_variables": {"agents": {"A": {"variables": ["z"]}}},
    }
    assert read_package(folder).spec.exposure == {"A": ("z",)}
    assert read_package(folder).findings == ()


def test_a_file_that_is_there_and_not_read_is_not_replaced(folder):
    package = read_package(folder)
    write(folder, "tools.json", {"tools": []})
    assert apply_fixes(package, [finding(AppendItem(("tools",), {}))]) == ()
    assert load(folder, "tools.json") == {"tools": []}


def test_fixes_are_applied_until_none_is_left(folder):
    def review(package):
        if package.spec.orchestrator.initial_agent == "A":
            return [finding(SetValue(("initial_agent",), "B"), file="orchestrator.json")]
        if "z" not in package.files["context_variables"].document.text:
            return [finding(AppendItem(("exposure", "A"), "z"))]
        return []

    found = fix_package(folder, review, lambda _: True)
    names = ("orchestrator.json", "context_variables.json")
    assert [file for file, _ in found] == [str(folder / name) for name in names]


def test_fixes_that_undo_each_other_end(folder, monkeypatch):
    def review(package):
        other = {"A": "B", "B": "A"}[package.spec.orchestrator.initial_agent]
        return [finding(SetValue(("orchestrator", "initial_agent"), other))]

    assert len(fix_package(folder, review, lambda _: True)) == 2
    monkeypatch.setattr(fixes, "MAX_ROUNDS", 1)
    assert len(fix_package(folder, review, lambda _: True)) == 1
