"""Folders to specs: what is read, and what is said about what cannot be."""

import json
import os
from pathlib import Path

import pytest
import yaml

from weft.catalogue import CATALOGUE
from weft.findings import Place, RenameKey
from weft.ids import MAX_FOLDERS
from weft.packages.folder import MAX_FILES
from weft.packages.reader import read_package
from weft.packages.review import review_package

CORPUS = Path(__file__).parent / "corpus" / "reader.yaml"
CASES = yaml.load(CORPUS.read_text(), Loader=yaml.CSafeLoader)
ORCHESTRATOR = {"workflow_name": "W", "initial_agent": "A"}
AGENTS = {"agents": [{"agent_name": "A"}]}
PROMPT = {"id": "role", "heading": "Role", "content": "Say {nowhere}."}


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "W"
    folder.mkdir()
    write(folder, "orchestrator.json", ORCHESTRATOR)
    write(folder, "agents.json", AGENTS)
    return folder


def write(folder, name, data):
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    text = data if isinstance(data, str) else json.dumps(data, indent=2)
    (folder / name).write_text(text)


def said(folder):
    return [(finding.code, finding.message) for finding in read_package(folder).findings]


def only(folder):
    (finding,) = read_package(folder).findings
    return finding


def described(finding):
    place = finding.place
    spot = f":{place.line}:{place.column}" if place.line else ""
    text = f"{finding.code} {Path(place.file).name}{spot} {finding.message}"
    return f"{text} | {'; '.join(finding.hint)}" if finding.hint else text


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_reading_reports_what_is_wrong_and_where(folder, case):
    for name, data in case["files"].items():
        if data is None:
            (folder / name).unlink()
        else:
            write(folder, name, data)
    package = read_package(folder)
    assert [described(finding) for finding in package.findings] == case.get("found", [])
    assert sorted(package.broken) == case.get("broken", [])
    assert all(finding.severity == CATALOGUE[finding.code].severity for finding in package.findings)


def test_smallest_package(folder):
    package = read_package(folder)
    assert package.findings == ()
    assert package.name == "W"
    assert [agent.agent_name for agent in package.spec.agents] == ["A"]


def test_schema_pointer_is_not_part_of_the_spec(folder):
    plain = read_package(folder).digest
    write(folder, "agents.json", {"$schema": "x", **AGENTS})
    assert read_package(folder).digest == plain


def test_json_and_yaml_mean_the_same(folder):
    before = read_package(folder)
    (folder / "agents.json").unlink()
    write(folder, "agents.yml", "agents:\n  - agent_name: A\n")
    after = read_package(folder)
    assert after.spec == before.spec
    assert after.digest == before.digest


def test_code_changes_the_digest(folder):
    before = read_package(folder).digest
    write(folder, "tools/t.py", "x = 1\n")
    assert read_package(folder).digest != before


def test_key_in_another_case_can_be_mended(folder):
    write(folder, "orchestrator.json", {**ORCHESTRATOR, "maxTurns": 3})
    fix = only(folder).fix
    assert fix is not None
    assert fix.edits == (RenameKey(("maxTurns",), "max_turns"),)
    assert fix.file == "orchestrator.json"


def test_unknown_key_does_not_hide_what_else_is_wrong(folder):
    agent = {"agent_name": "A", "colour": {"hue": 3}, "prompt_sctions": [PROMPT], "modl": "m:a"}
    write(folder, "agents.json", {"agents": [agent], "note": "mine"})
    package = read_package(folder)
    assert [(finding.code, finding.message) for finding in package.findings] == [
        ("SCHEMA008", 'agents[0]: unknown key "colour"'),
        ("SCHEMA008", 'agents[0]: unknown key "prompt_sctions"'),
        ("SCHEMA008", 'agents[0]: unknown key "modl"'),
        ("SCHEMA008", 'unknown key "note"'),
    ]
    assert package.broken == set()
    # A misspelt key is read as what it was meant to be, so nothing is missing because of it.
    (read,) = package.spec.agents
    assert (read.prompt_sections[0].content, read.model) == (PROMPT["content"], "m:a")
    (fault,) = [finding for finding in review_package(package) if finding.code == "NAME001"]
    line = (folder / "agents.json").read_text().splitlines()[fault.place.line - 1]
    assert line[(fault.place.column or 0) - 1 :].startswith("nowhere}")


def test_unknown_key_beside_the_one_that_was_meant(folder):
    write(folder, "orchestrator.json", {**ORCHESTRATOR, "maxTurns": 3, "max_turns": 4})
    package = read_package(folder)
    assert [finding.code for finding in package.findings] == ["SCHEMA008"]
    assert package.spec.orchestrator.max_turns == 4


def test_two_files_of_one_kind(folder):
    write(folder, "agents.yaml", "agents: []\n")
    finding = only(folder)
    assert (finding.code, finding.place.file) == ("SCHEMA011", str(folder / "agents.yaml"))
    assert read_package(folder).broken == {"agents"}


def test_other_files_may_be_missing(folder):
    assert read_package(folder).broken == frozenset()


def test_misnamed_file_that_cannot_be_read_is_not_reported(folder, tmp_path):
    write(tmp_path, "elsewhere.json", {"hooks": []})
    (folder / "hook.json").symlink_to(tmp_path / "elsewhere.json")
    assert read_package(folder).findings == ()


def test_code_in_the_package_folder_itself(folder):
    without = read_package(folder).digest
    write(folder, "rules.py", "def compute(): ...\n")
    write(folder, ".hidden.py", "")
    (folder / "folder.py").mkdir()
    package = read_package(folder)
    assert (list(package.code), package.findings) == (["rules.py"], ())
    assert package.digest != without
    (folder / "rules.py").write_bytes(b"\xff")
    assert read_package(folder).broken == {"code"}
    assert only(folder).place == Place(str(folder / "rules.py"), 1, 1)


def test_value_places_lead_into_the_files(folder):
    package = read_package(folder)
    name = Place(str(folder / "agents.json"), 4, 21, len('"A"'))
    assert package.locate(("agents", 0, "agent_name")) == name
    assert package.locate(("handoffs", 0)) == Place(str(folder / "handoffs.json"))


def test_link_out_of_the_folder(folder, tmp_path):
    (tmp_path / "secret.json").write_text("{}")
    (folder / "tools.json").symlink_to(tmp_path / "secret.json")
    assert said(folder) == [
        ("SCHEMA001", "tools.json is a link that leads out of the folder or nowhere")
    ]


def test_link_inside_the_folder(folder):
    write(folder, "real.txt", '{"handoff_rules": []}')
    (folder / "handoffs.json").symlink_to(folder / "real.txt")
    assert read_package(folder).findings == ()


def test_code_folder_that_is_a_link_out(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (folder / "tools").symlink_to(tmp_path / "elsewhere")
    assert said(folder) == [
        ("SCHEMA001", "tools is a link that leads out of the folder or nowhere")
    ]


def test_dangling_and_circular_links(folder):
    (folder / "tools.json").symlink_to("tools.json")
    (folder / "hooks.json").symlink_to("nowhere")
    assert said(folder) == [
        ("SCHEMA001", f"{name} is a link that leads out of the folder or nowhere")
        for name in ("tools.json", "hooks.json")
    ]


def test_pipe_is_not_waited_for(folder):
    os.mkfifo(folder / "hooks.json")
    assert said(folder) == [("SCHEMA001", "hooks.json is not a regular file")]
    assert read_package(folder).broken == {"hooks"}


def test_folder_in_place_of_a_file(folder):
    (folder / "tools.json").mkdir()
    assert said(folder) == [("SCHEMA001", "tools.json is not a regular file")]


def test_file_that_vanishes_or_is_forbidden(folder, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    package = read_package(folder)
    assert [finding.message for finding in package.findings] == [
        "orchestrator.json cannot be read: permission denied",
        "agents.json cannot be read: permission denied",
    ]
    assert package.broken == {"orchestrator", "agents"}


def test_large_file_is_not_read(folder):
    with (folder / "tools.json").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    ((code, message),) = said(folder)
    assert code == "SCHEMA001"
    assert "2 MiB" in message


def test_code_files_are_collected(folder):
    for name in ("tools/b.py", "tools/a.jsx", "tools/sub/c.py", "hooks/h.py"):
        write(folder, name, "")
    for name in ("tools/__pycache__/b.py", "tools/notes.txt", "hooks/x.jsx", "other.py"):
        write(folder, name, "")
    assert list(read_package(folder).code) == [
        "other.py",
        "tools/a.jsx",
        "tools/b.py",
        "tools/sub/c.py",
        "hooks/h.py",
    ]


def test_code_that_is_not_text(folder):
    (folder / "tools").mkdir()
    (folder / "tools" / "t.py").write_bytes(b"\xff\xfe")
    package = read_package(folder)
    assert package.findings[0].code == "SCHEMA001"
    assert package.broken == {"code"}


def test_a_file_named_tools_is_not_code(folder):
    write(folder, "tools", "x")
    assert read_package(folder).code == {}


def test_too_many_code_files(folder):
    (folder / "tools").mkdir()
    for number in range(MAX_FILES + 1):
        (folder / "tools" / f"t{number}.py").touch()
    ((code, message),) = said(folder)
    assert code == "SCHEMA001"
    assert str(MAX_FILES) in message


@pytest.mark.parametrize("name", [".x.py", "._x.py", ".ipynb_checkpoints/x.py", "#x.py#", "x.py~"])
def test_code_that_is_never_packed_is_not_read(folder, name):
    before = read_package(folder).digest
    write(folder, f"tools/{name}", "import nothing")
    package = read_package(folder)
    assert (package.code, package.findings, package.digest) == ({}, (), before)


def test_an_entry_of_unknown_kind_is_read_as_a_file(folder, monkeypatch):
    write(folder, "tools/t.py", "")
    usual = type(folder).is_dir

    def refuse(path):
        if path.name == "t.py":
            raise PermissionError(13, "Permission denied")
        return usual(path)

    monkeypatch.setattr("pathlib.Path.is_dir", refuse)
    assert list(read_package(folder).code) == ["tools/t.py"]


def test_code_folders_nested_too_deep(folder):
    write(folder, "tools/" + "d/" * (MAX_FOLDERS + 1) + "t.py", "")
    ((code, message),) = said(folder)
    assert code == "SCHEMA001"
    assert "deep" in message


def test_code_folder_that_cannot_be_listed(folder, monkeypatch):
    write(folder, "tools/t.py", "")
    listing = type(folder).iterdir

    def refuse(path):
        if path.name == "tools":
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)
    assert said(folder) == [("SCHEMA001", "tools cannot be looked into: permission denied")]


def test_package_folder_that_cannot_be_listed(folder, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.iterdir", refuse)
    assert said(folder) == [("SCHEMA001", "W cannot be looked into: permission denied")]


CODE = "def look(): return 'é'\n"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("# coding: nowhere", CODE),
        ("# coding: latin-1", CODE),
        ("# coding: ascii", CODE),
        ("# coding: hex", ""),
        ("\ufeff# coding: latin-1", ""),
    ],
)
def test_code_that_python_reads_otherwise_is_refused(folder, line, code):
    (folder / "tools").mkdir()
    (folder / "tools/look.py").write_bytes(f"{line}\n{code}".encode())
    finding = only(folder)
    assert finding.code == "SCHEMA001"
    assert finding.message == (
        "look.py is UTF-8 text, but begins with a line by which Python reads it otherwise"
    )
    assert finding.hint == ("remove the line with the word coding",)
    assert finding.place == Place(str(folder / "tools/look.py"), 1, 1)
    assert read_package(folder).code == {}


@pytest.mark.parametrize(
    "text",
    [
        CODE,
        f"# -*- coding: UTF-8 -*-\n{CODE}",
        "# coding: latin-1\ndef look(): return 'e'\n",
        f"\ufeff{CODE}",
    ],
)
def test_code_that_python_reads_as_utf8_is_accepted(folder, text):
    tool = {"tool_type": "Agent_Tool", "agent": "A", "file": "look.py", "function": "look"}
    write(folder, "tools.json", {"tools": [{**tool, "description": "Looks."}]})
    (folder / "tools/").mkdir()
    (folder / "tools/look.py").write_bytes(text.encode())
    package = read_package(folder)
    assert package.code == {"tools/look.py": text.encode()}
    codes = {finding.code for finding in review_package(package)}
    assert not codes & {"SCHEMA001", "CODE002", "CODE003"}
