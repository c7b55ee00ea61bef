"""weft diagram, weft migrate, weft export and weft import."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from support.cases import scenario_tests
from weft.packages.archive import exporting


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


def test_diagram_draws_a_graph_in_mermaid_by_default(weft, workspace):
    plain = weft("diagram", "Support").out
    assert plain == weft("diagram", "Support", "--kind", "graph", "--format", "mermaid").out


def test_diagram_of_a_path(weft, workspace):
    assert weft("diagram", "workflows/Support").out == weft("diagram", "Support").out


@pytest.mark.parametrize("option", ["-o", "--output"])
def test_diagram_to_a_file(weft, workspace, option: str):
    drawn = weft("diagram", "Support").out
    (workspace / "out").mkdir()
    result = weft("diagram", "Support", option, "out/support.mmd")
    assert (result.code, result.out) == (0, "wrote out/support.mmd\n")
    assert (workspace / "out" / "support.mmd").read_text() == drawn


@pytest.mark.parametrize(("verb", "file"), [("diagram", "it.mmd"), ("export", "it.zip")])
def test_a_file_in_no_folder(weft, workspace, verb: str, file: str):
    missing = weft(verb, "Support", "-o", f"my out/{file}")
    assert missing.code == 6
    assert (
        "the folder my out does not exist\n  hint:  create it: mkdir -p 'my out'\n" in missing.err
    )
    assert not (workspace / "my out").exists()
    (workspace / "file").touch()
    blocked = weft(verb, "Support", "-o", f"file/{file}")
    assert blocked.code == 2
    assert "file is a file, not a folder\n" in blocked.err


def test_diagram_as_json(weft, workspace):
    data = weft("diagram", "Support", "--json").data
    assert data["text"] + "\n" == weft("diagram", "Support").out
    assert (data["name"], data["kind"], data["format"]) == ("Support", "graph", "mermaid")
    assert data["file"] is None
    assert weft("diagram", "Support", "--json", "-o", "f").data["file"] == "f"


def test_migrate_rewrites_and_says_what_changed(weft, older):
    result = weft("migrate")
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "workflows/Support/context_variables.json"
    assert all(line.startswith("  line ") for line in lines[1:-1])
    assert lines[-1] == "  it now names its schema, for editors"
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
    assert weft("migrate", "--json").data["written"] is True
    assert weft("migrate", "--json").data == {"schema_version": 1, "written": False, "files": []}


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
    # The files are new, so their names are enough.
    assert result.out == "+ agents.json\n+ orchestrator.json\n"
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
def other(weft, support, write, tmp_path):
    """A workspace into which the package was imported before it was changed."""
    (tmp_path / "other").mkdir()
    weft("export", "Support", "-o", "old.zip")
    weft("import", "old.zip", "--workspace", "other")
    text = (support / "orchestrator.json").read_text()
    write(support, "orchestrator.json", text.replace("10", "99"))
    weft("export", "Support", "-o", "s.zip")
    return tmp_path / "other" / "workflows" / "Support"


@pytest.fixture
def edited(other, write):
    """The imported package with a file changed by hand."""
    text = (other / "orchestrator.json").read_text()
    write(other, "orchestrator.json", text.replace("10", "77"))
    return other


def test_import_shows_the_difference_and_updates(weft, other):
    dry = weft("import", "s.zip", "--workspace", "other", "--dry-run")
    assert dry.code == 0
    assert '-  "max_turns": 10\n+  "max_turns": 99\n' in dry.out
    assert "Would update other/workflows/Support: 1 changed." in dry.err
    assert "10" in (other / "orchestrator.json").read_text()
    real = weft("import", "s.zip", "--workspace", "other")
    assert real.out == dry.out
    assert real.err == "Updated other/workflows/Support: 1 changed.\n"
    assert "99" in (other / "orchestrator.json").read_text()


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_import_stops_before_own_work_is_lost(weft, edited, more):
    result = weft("import", "s.zip", "--workspace", "other", *more)
    assert result.code == 7
    assert '-  "max_turns": 77\n+  "max_turns": 99\n' in result.out
    assert result.err.startswith(
        "error[CLI007]: other/workflows/Support has files that no import has written"
    )
    assert "cause: 1 file would be lost: orchestrator.json\n" in result.err
    assert "weft import s.zip --force\n" in result.err
    assert "77" in (edited / "orchestrator.json").read_text()


def test_import_by_force_says_where_the_former_folder_is(weft, edited):
    words = ["import", "s.zip", "--workspace", "other", "--force"]
    assert "would be kept as other/workflows/Support.bak\n" in weft(*words, "--dry-run").err
    result = weft(*words)
    assert result.code == 0
    assert "The previous folder is kept as other/workflows/Support.bak\n" in result.err
    assert "77" in (edited.with_name("Support.bak") / "orchestrator.json").read_text()
    assert "99" in (edited / "orchestrator.json").read_text()


def test_a_refused_import_as_json(weft, edited):
    result = weft("import", "s.zip", "--workspace", "other", "--json")
    assert (result.code, result.err) == (7, "")
    assert result.data["lost"] == ["orchestrator.json"]
    assert (result.data["written"], result.data["backup"]) == (False, None)
    assert result.data["error"]["code"] == "CLI007"
    forced = weft("import", "s.zip", "--workspace", "other", "--json", "--force").data
    assert (forced["written"], forced["backup"]) == (True, "other/workflows/Support.bak")
    assert "error" not in forced


def test_import_as_json(weft, other):
    data = weft("import", "s.zip", "--dry-run", "--json", "--workspace", "other").data
    assert (data["name"], data["written"], data["created"]) == ("Support", False, False)
    assert data["changed"] == ["orchestrator.json"]
    assert data["old_digest"] != data["new_digest"]


def test_import_of_a_new_package_dry(weft, other, tmp_path):
    (tmp_path / "third").mkdir()
    result = weft("import", "s.zip", "--dry-run", "--workspace", "third")
    assert "Would install third/workflows/Support: 2 added." in result.err
    assert list((tmp_path / "third").iterdir()) == []


def test_export_refuses_a_package_with_errors(weft, support, write, workspace):
    write(support, "orchestrator.json", {"workflow_name": "Support", "initial_agent": "Nobody"})
    refused = weft("export", "Support")
    assert refused.code == 1
    assert "Nobody" in refused.err
    assert "is not exported: the package has errors; nothing was written" in refused.err
    assert not (workspace / "Support.zip").exists()
    assert weft("export", "Support", "--no-check").code == 2


def test_file_that_is_not_an_archive_is_refused(weft, workspace):
    (workspace / "x.zip").write_bytes(b"\x00\xffnot a zip")
    result = weft("import", "x.zip")
    assert result.code == 1
    assert result.err.startswith("error[SCHEMA015]")
    assert sorted(file.name for file in (workspace / "workflows").iterdir()) == ["Support"]


def test_import_tells_what_the_checker_says(weft, support, write):
    warned = '{"agents": [{"agent_name": "Helper"}], /* a comment */}'
    write(support, "agents.json", warned)
    weft("export", "Support", "-o", "s.zip")
    write(support, "agents.json", warned.replace("Helper", "Other"))
    result = weft("import", "s.zip", "--dry-run", "--force")
    assert result.code == 0
    assert "It has 1 warning: weft check Support\n" in result.err
    codes = [
        finding["code"] for finding in weft("import", "s.zip", "--json", "--force").data["findings"]
    ]
    assert codes == ["SCHEMA006"]


def test_import_refuses_a_package_that_could_not_run(weft, support, write, monkeypatch):
    sound = (support / "agents.json").read_text()
    write(support, "agents.json", sound.replace("Helper", "Nobody"))
    with monkeypatch.context() as careless:
        careless.setattr(exporting, "review_package", lambda _: ())
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
    ("name", "start"),
    [
        ("a.txt", ""),
        ("a.mmd", "flowchart"),
        ("a", "flowchart"),
        ("A.MMD", "flowchart"),
    ],
)
def test_the_ending_of_the_file_tells_the_language(weft, workspace, tmp_path, name, start):
    assert weft("diagram", "Support", "-o", str(tmp_path / name)).code == 0
    assert (tmp_path / name).read_text().startswith(start)


@pytest.mark.parametrize("name", ["a.png", "a.pdf", "a.md"])
def test_an_ending_that_no_language_goes_with_is_refused(weft, workspace, tmp_path, name: str):
    file = tmp_path / name
    result = weft("diagram", "Support", "-o", file)
    assert result.code == 2
    assert f'unknown drawing format "{file.suffix}"\n' in result.err
    assert ".mmd (mermaid), .mermaid (mermaid), .txt (ascii)" in result.err
    assert not file.exists()
    assert weft("diagram", "Support", "-o", file, "--format", "mermaid").code == 0
    assert file.read_text().startswith("flowchart")


test_scenarios = scenario_tests(__file__)
