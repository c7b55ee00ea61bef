"""weft diagram, weft migrate, weft export and weft import."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest


@pytest.fixture
def broken(workspace, make_package, write):
    """A second package, which cannot be read."""
    folder = make_package(workspace / "workflows" / "Broken")
    write(folder, "agents.json", '{"agents": [}')
    return folder


@pytest.fixture
def older(support, write):
    """The package with an older spelling in it."""
    variables = {
        "tier": {
            "type": "str",
            "description": "The tier.",
            "source": {"type": "config", "env_var": "TIER", "default_value": "free"},
        }
    }
    write(support, "context_variables.json", {"context_variables": {"definitions": variables}})
    return support


@pytest.mark.parametrize(
    ("kind", "form", "sign"),
    [
        ("graph", "mermaid", "flowchart "),
        ("graph", "svg", "<svg "),
        ("graph", "ascii", "+--"),
        ("sequence", "mermaid", "sequenceDiagram\n"),
        ("sequence", "svg", "<svg "),
        ("sequence", "ascii", "--"),
    ],
)
def test_every_kind_in_every_format(weft, workspace, kind: str, form: str, sign: str):
    result = weft("diagram", "Support", "--kind", kind, "--format", form)
    assert result.code == 0
    assert sign in result.out
    assert "Helper" in result.out
    assert result.err == ""


def test_diagram_draws_a_graph_in_mermaid_by_default(weft, workspace):
    plain = weft("diagram", "Support").out
    assert plain == weft("diagram", "Support", "--kind", "graph", "--format", "mermaid").out


def test_diagram_of_a_path(weft, workspace):
    assert weft("diagram", "workflows/Support").out == weft("diagram", "Support").out


@pytest.mark.parametrize("option", ["-o", "--output"])
def test_diagram_to_a_file(weft, workspace, option: str):
    drawn = weft("diagram", "Support").out
    result = weft("diagram", "Support", option, "out/support.mmd")
    assert (result.code, result.out) == (0, "wrote out/support.mmd\n")
    assert (workspace / "out" / "support.mmd").read_text() == drawn


@pytest.mark.parametrize(
    ("verb", "example"), [("diagram", "workflows/out.txt"), ("export", "workflows/Support.zip")]
)
def test_a_folder_is_no_file(weft, workspace, verb: str, example: str):
    result = weft(verb, "Support", "-o", "workflows")
    assert result.code == 2
    assert result.err.startswith("error[CLI002]: workflows is a folder\n")
    assert f"hint:  name a file in it, such as {example}\n" in result.err


def test_diagram_as_json(weft, workspace):
    data = weft("diagram", "Support", "--json").data
    assert data["text"] + "\n" == weft("diagram", "Support").out
    assert (data["name"], data["kind"], data["format"]) == ("Support", "graph", "mermaid")
    assert data["file"] is None
    assert weft("diagram", "Support", "--json", "-o", "f").data["file"] == "f"


def test_diagram_refuses_a_package_it_cannot_read(weft, broken):
    result = weft("diagram", "Broken", "-o", "f")
    assert result.code == 1
    assert result.out == ""
    assert result.err.startswith("error[SCHEMA002]: ")
    assert "error[CLI001]: workflows/Broken cannot be drawn before it can be read" in result.err
    data = weft("diagram", "Broken", "--json").data
    assert data["error"]["code"] == "CLI001"
    assert data["error"]["findings"][0]["code"] == "SCHEMA002"


def test_diagram_of_a_workspace(weft, workspace):
    result = weft("diagram", ".")
    assert result.code == 6
    assert "the current folder is not a package" in result.err
    assert "name one of those in it: Support" in result.err


def test_diagram_of_a_folder_without_packages(weft, workspace):
    (workspace / "empty").mkdir()
    assert "empty is not a package" in weft("diagram", "empty").err


def test_migrate_rewrites_and_says_what_changed(weft, older):
    result = weft("migrate")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "workflows/Support/context_variables.json"
    assert all(line.startswith("  line ") for line in lines[1:])
    assert any("environment" in line for line in lines)
    assert result.err == "Rewrote 1 file of 1 package.\n"
    written = json.loads((older / "context_variables.json").read_text())
    source = written["context_variables"]["definitions"]["tier"]["source"]
    assert source["type"] == "environment"
    again = weft("migrate")
    assert (again.code, again.out) == (0, "")
    assert again.err == "Nothing to rewrite in 1 package.\n"


def test_migrate_dry_run_writes_nothing(weft, older):
    before = (older / "context_variables.json").read_bytes()
    result = weft("migrate", "--dry-run")
    assert "environment" in result.out
    assert result.err == "Would rewrite 1 file of 1 package.\n"
    assert (older / "context_variables.json").read_bytes() == before


def test_migrate_as_json(weft, older):
    data = weft("migrate", "Support", "--json", "--dry-run").data
    assert data["written"] is False
    (file,) = data["files"]
    assert file["file"] == "workflows/Support/context_variables.json"
    assert file["changes"]


def test_migrate_writes_nothing_anywhere_when_one_package_cannot_be_read(weft, older, broken):
    before = (older / "context_variables.json").read_bytes()
    result = weft("migrate")
    assert result.code == 1
    assert "error[SCHEMA002]" in result.err
    assert "nothing was written" in result.err
    assert (older / "context_variables.json").read_bytes() == before


def test_export_and_import_bring_a_package_to_another_workspace(weft, support, tmp_path):
    exported = weft("export", "Support")
    assert (exported.code, exported.out) == (0, "Support.zip\n")
    assert "Support with 2 files, digest " in exported.err
    (tmp_path / "other").mkdir()
    result = weft("import", "Support.zip", "--workspace", "other")
    assert result.code == 0
    assert "Installed other/workflows/Support: 2 added." in result.err
    assert (tmp_path / "other/workflows/Support/agents.json").read_bytes() == (
        support / "agents.json"
    ).read_bytes()


def test_export_to_a_file_and_as_json(weft, workspace):
    data = weft("export", "Support", "-o", "s.zip", "--json").data
    assert data["file"] == "s.zip"
    assert data["name"] == "Support"
    assert sorted(data["files"]) == ["agents.json", "orchestrator.json"]
    assert zipfile.is_zipfile(workspace / "s.zip")


def test_export_of_the_package_one_stands_in(weft, support, monkeypatch):
    monkeypatch.chdir(support)
    refused = weft("export", ".")
    assert refused.code == 2
    assert "hint:  weft export . -o ../Support.zip\n" in refused.err
    assert weft("export", ".", "-o", "../Support.zip").code == 0
    assert "-o workflows/x.zip\n" in weft("export", support, "-o", support / "x.zip").err.replace(
        str(support.parents[1]) + "/", ""
    )


def test_export_refuses_a_package_it_cannot_read(weft, broken, workspace):
    result = weft("export", "Broken")
    assert result.code == 1
    assert "SCHEMA002" in result.err
    assert not (workspace / "Broken.zip").exists()


@pytest.fixture
def changed(weft, support, write):
    """An export, after which the package was changed."""
    weft("export", "Support", "-o", "s.zip")
    text = (support / "orchestrator.json").read_text()
    write(support, "orchestrator.json", text.replace("10", "99"))
    return support


def test_import_shows_the_difference_and_updates(weft, changed):
    dry = weft("import", "s.zip", "--dry-run")
    assert dry.code == 0
    assert '-  "max_turns": 99\n+  "max_turns": 10\n' in dry.out
    assert "Would update workflows/Support: 1 changed." in dry.err
    assert "99" in (changed / "orchestrator.json").read_text()
    real = weft("import", "s.zip")
    assert real.out == dry.out
    assert real.err == "Updated workflows/Support: 1 changed.\n"
    assert "99" not in (changed / "orchestrator.json").read_text()


def test_importing_twice_changes_nothing(weft, changed):
    weft("import", "s.zip")
    again = weft("import", "s.zip")
    assert (again.code, again.out) == (0, "")
    assert "nothing to do" in again.err


def test_import_as_json(weft, changed):
    data = weft("import", "s.zip", "--dry-run", "--json").data
    assert (data["name"], data["written"], data["created"]) == ("Support", False, False)
    assert data["changed"] == ["orchestrator.json"]
    assert data["old_digest"] != data["new_digest"]


def test_import_of_a_new_package_dry(weft, changed, tmp_path):
    (tmp_path / "other").mkdir()
    result = weft("import", "s.zip", "--dry-run", "--workspace", "other")
    assert "Would install other/workflows/Support: 2 added." in result.err
    assert list((tmp_path / "other").iterdir()) == []


@pytest.mark.parametrize("name", ["nothing.zip", "workflows"])
def test_import_of_no_file(weft, workspace, name: str):
    result = weft("import", name)
    assert result.code == 6
    assert f"there is no file {name}" in result.err


def test_import_of_a_file_that_is_no_archive(weft, workspace):
    (workspace / "x.zip").write_bytes(b"\x00\xffnot a zip")
    result = weft("import", "x.zip")
    assert result.code == 1
    assert result.err.startswith("error[SCHEMA015]")
    assert sorted(it.name for it in (workspace / "workflows").iterdir()) == ["Support"]


def test_import_tells_what_the_checker_says(weft, support, write):
    warned = '{"agents": [{"agent_name": "Helper"}], /* a comment */}'
    write(support, "agents.json", warned)
    weft("export", "Support", "-o", "s.zip")
    write(support, "agents.json", warned.replace("Helper", "Other"))
    result = weft("import", "s.zip", "--dry-run")
    assert result.code == 0
    assert "It has 1 warning: weft check Support\n" in result.err
    codes = [it["code"] for it in weft("import", "s.zip", "--json").data["findings"]]
    assert codes == ["SCHEMA006"]


def test_import_refuses_a_package_that_could_not_run(weft, support, write):
    sound = (support / "agents.json").read_text()
    write(support, "agents.json", sound.replace("Helper", "Nobody"))
    weft("export", "Support", "-o", "s.zip")
    write(support, "agents.json", sound)
    for words in (["import", "s.zip"], ["import", "s.zip", "--dry-run"]):
        result = weft(*words)
        assert (result.code, result.out) == (1, "")
        assert "s.zip cannot be imported: the package has errors; nothing was changed" in result.err
        assert "s.zip/orchestrator.json" in result.err
    assert (support / "agents.json").read_text() == sound


def test_migrate_of_several_packages_writes_all_or_none(weft, older, monkeypatch):
    other = older.parent / "Other"
    shutil.copytree(older, other)
    before = {path: path.read_bytes() for path in older.parent.rglob("*.json")}
    real = Path.replace

    def fail(self, target):
        if Path(target).parent.name == older.name:
            raise OSError(28, "No space left on device")
        return real(self, target)

    monkeypatch.setattr("pathlib.Path.replace", fail)
    result = weft("migrate")
    assert result.code != 0
    assert "nothing was changed" in result.err
    assert {path: path.read_bytes() for path in older.parent.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", "<svg"), ("a.txt", ""), ("a.mmd", "flowchart")]
)
def test_the_ending_of_the_file_tells_the_language(weft, workspace, tmp_path, name, start):
    assert weft("diagram", "Support", "-o", str(tmp_path / name)).code == 0
    assert (tmp_path / name).read_text().startswith(start)
