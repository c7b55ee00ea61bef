"""weft doctor: each check in each of its states."""

import shutil
import sqlite3
import sys
from collections import namedtuple

import pytest
import yaml

from weft.cli import doctor_checks
from weft.cli.doctor_checks import Diagnosis


def test_a_healthy_setup(weft, workspace):
    weft("schema", "--write", "schemas")
    result = weft("doctor")
    assert result.code == 0
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[1] for row in rows] == [
        "python",
        "pydantic",
        "pyyaml",
        "sqlite",
        "watch",
        "encoding",
        "templates",
        "folder",
        "disk",
        "workspace",
        "schemas",
    ]
    assert {row[0] for row in rows} == {"ok"}
    assert "1 package, 0 errors, 0 warnings" in result.out


def test_quiet_shows_only_what_is_not_well(weft, workspace):
    (row,) = weft("doctor", "-q").out.splitlines()
    assert row.split("\t") == [
        "warn",
        "schemas",
        "schemas is missing: editors cannot help",
        "weft schema --write schemas",
    ]


def test_doctor_as_json(weft, workspace):
    data = weft("doctor", "--json").data
    assert data["ok"] is True
    assert data["checks"][0] == {
        "state": "ok",
        "subject": "python",
        "fact": sys.version.split()[0],
        "remedy": "",
    }


def test_a_failure_exits_3(weft, workspace, monkeypatch, tmp_path):
    monkeypatch.setattr(doctor_checks, "shipped_folder", lambda: tmp_path / "nowhere")
    result = weft("doctor")
    assert result.code == 3
    assert "fail\ttemplates\tmissing: HelloWorld" in result.out
    assert "pip install --force-reinstall weft" in result.out
    assert weft("doctor", "--json").data["ok"] is False


def test_yaml_without_its_fast_reader(monkeypatch):
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    assert doctor_checks.libyaml().state == "warn"


def test_python_without_sqlite(monkeypatch):
    monkeypatch.setattr(doctor_checks, "find_spec", lambda _: None)
    assert doctor_checks.sqlite().fact == "this Python has no sqlite3 module"


def test_sqlite_without_full_text_search(monkeypatch):
    class Poor(sqlite3.Connection):
        def execute(self, statement, *rest):
            if "fts5" in statement:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(statement, *rest)

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name: real(name, factory=Poor))
    found = doctor_checks.sqlite()
    assert found.state == "warn"
    assert found.fact.endswith(" without FTS5")


def test_no_watching(monkeypatch):
    monkeypatch.setattr(doctor_checks, "find_spec", lambda _: None)
    assert doctor_checks.watching().remedy == "pip install 'weft[watch]'"


@pytest.mark.parametrize(("name", "state"), [("UTF-8", "ok"), ("utf8", "ok"), ("ascii", "warn")])
def test_encoding(monkeypatch, name: str, state: str):
    class Stream:
        encoding = name

    monkeypatch.setattr(sys, "stdout", Stream())
    assert doctor_checks.encoding().state == state


def test_a_folder_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda *_: False)
    found = doctor_checks.writable(tmp_path)
    assert found.state == "fail"
    assert found.remedy == f"chmod u+wx {tmp_path}"


def test_little_room(monkeypatch, tmp_path):
    usage = namedtuple("usage", "total used free")  # noqa: PYI024
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 1024 * 1024))
    assert doctor_checks.free_space(tmp_path) == Diagnosis(
        "warn", "disk", "1 MiB free", "make room on the disk of the workspace"
    )


def test_no_workspace(tmp_path):
    found = doctor_checks.packages(tmp_path)
    assert (found.state, found.remedy) == ("warn", "weft init my-workspace")


def test_a_workspace_without_packages(tmp_path):
    (tmp_path / "workflows").mkdir()
    found = doctor_checks.packages(tmp_path)
    assert (found.state, found.remedy) == ("warn", "weft new Example --pattern 1")


def test_a_workspace_with_errors(support, workspace):
    (support / "agents.json").unlink()
    found = doctor_checks.packages(workspace)
    assert (found.state, found.remedy) == ("warn", "weft check")


def test_a_workspace_that_cannot_be_read(workspace, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", "workflows/Support")

    monkeypatch.setattr(doctor_checks, "review", refuse)
    found = doctor_checks.packages(workspace)
    assert (found.state, found.fact) == (
        "fail",
        "workflows/Support cannot be used: permission denied",
    )
    assert found.remedy == f"chmod -R u+rX {workspace}"


def test_one_check_that_fails_does_not_end_the_others(weft, workspace, monkeypatch):
    def refuse(path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("shutil.disk_usage", refuse)
    result = weft("doctor")
    assert result.code == 3
    fact = "fail\tfree_space\t. cannot be used: no space left on device\tmake room on the disk\n"
    assert fact in result.out
    assert "\nok\tworkspace\t" in result.out
    assert "weft doctor" not in result.out + result.err


def test_schemas_of_another_version(weft, workspace):
    weft("schema", "--write", "schemas")
    (workspace / "schemas" / "agents.schema.json").write_text("{}")
    (workspace / "schemas" / "tools.schema.json").unlink()
    found = doctor_checks.schemas(workspace)
    assert found.state == "warn"
    assert found.fact == "not of this version: agents.schema.json, tools.schema.json"
