"""Folders to specs: what is read, and what is said about what cannot be."""

import json
import os

import pytest

from weft.findings import Place, RenameKey
from weft.ids import MAX_FOLDERS
from weft.packages.folder import MAX_FILES
from weft.packages.reader import read_package
from weft.packages.review import review_package

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
    return [(it.code, it.message) for it in read_package(folder).findings]


def only(folder):
    (finding,) = read_package(folder).findings
    return finding


def test_smallest_package(folder):
    package = read_package(folder)
    assert package.findings == ()
    assert package.name == "W"
    assert [agent.agent_name for agent in package.spec.agents] == ["A"]


def test_schema_pointer_is_no_part_of_the_spec(folder):
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


def test_unknown_key_is_refused_with_the_nearest_name(folder):
    write(folder, "orchestrator.json", {**ORCHESTRATOR, "max_turn": 3})
    finding = only(folder)
    assert (finding.code, finding.severity) == ("SCHEMA008", "error")
    assert finding.message == 'unknown key "max_turn"'
    assert finding.hint == ('did you mean "max_turns"?',)
    assert finding.place == Place(str(folder / "orchestrator.json"), 4, 3, len('"max_turn"'))
    assert finding.fix is None


def test_unknown_key_without_a_near_one_lists_what_is_known(folder):
    write(folder, "agents.json", {**AGENTS, "zzz": 1})
    assert only(folder).hint == ("known here: agents",)


def test_an_agent_that_is_to_make_images_is_refused_with_what_to_do(folder):
    write(folder, "agents.json", {"agents": [{"agent_name": "A", "generation_mode": "image"}]})
    finding = only(folder)
    said = 'agents[0]: generation_mode is "image", but agents make text only in this version'
    assert (finding.code, finding.severity, finding.message) == ("SCHEMA008", "error", said)
    assert finding.hint == ("take the key out; let a tool of the agent make what is not text",)
    assert finding.place == Place(str(folder / "agents.json"), 5, 7, len('"generation_mode"'))


def test_key_in_another_case_can_be_mended(folder):
    write(folder, "orchestrator.json", {**ORCHESTRATOR, "maxTurns": 3})
    fix = only(folder).fix
    assert fix is not None
    assert fix.edits == (RenameKey(("maxTurns",), "max_turns"),)
    assert fix.file == "orchestrator.json"


def test_misspelt_key_is_not_missing_as_well(folder):
    write(folder, "orchestrator.json", {"workflow_name": "W", "inital_agent": "A"})
    assert said(folder) == [("SCHEMA008", 'unknown key "inital_agent"')]


def test_unknown_key_does_not_hide_what_else_is_wrong(folder):
    agent = {"agent_name": "A", "colour": {"hue": 3}, "prompt_sctions": [PROMPT], "modl": "m:a"}
    write(folder, "agents.json", {"agents": [agent], "note": "mine"})
    package = read_package(folder)
    assert [(it.code, it.message) for it in package.findings] == [
        ("SCHEMA008", 'agents[0]: unknown key "colour"'),
        ("SCHEMA008", 'agents[0]: unknown key "prompt_sctions"'),
        ("SCHEMA008", 'agents[0]: unknown key "modl"'),
        ("SCHEMA008", 'unknown key "note"'),
    ]
    assert package.broken == set()
    # A misspelt key is read as what it was meant to be, so nothing is missing because of it.
    (read,) = package.spec.agents
    assert (read.prompt_sections[0].content, read.model) == (PROMPT["content"], "m:a")
    (fault,) = [it for it in review_package(package) if it.code == "EXPO001"]
    line = (folder / "agents.json").read_text().splitlines()[fault.place.line - 1]
    assert line[(fault.place.column or 0) - 1 :].startswith("nowhere}")


def test_unknown_key_beside_the_one_that_was_meant(folder):
    write(folder, "orchestrator.json", {**ORCHESTRATOR, "maxTurns": 3, "max_turns": 4})
    package = read_package(folder)
    assert [it.code for it in package.findings] == ["SCHEMA008"]
    assert package.spec.orchestrator.max_turns == 4


def test_misspelt_key_with_a_value_that_does_not_fit_is_told_once(folder):
    write(folder, "orchestrator.json", {**ORCHESTRATOR, "max_turn": "many"})
    assert said(folder) == [("SCHEMA008", 'unknown key "max_turn"')]
    assert read_package(folder).broken == {"orchestrator"}


def test_unknown_key_that_may_hold_all_a_file_declares(folder):
    write(folder, "handoffs.json", {"handoff_rules": [], "all_of_them": [{"source_agent": "A"}]})
    package = read_package(folder)
    assert said(folder) == [("SCHEMA008", 'unknown key "all_of_them"')]
    assert package.broken == {"handoffs"}


def test_missing_key(folder):
    write(folder, "orchestrator.json", {"initial_agent": "A"})
    assert said(folder) == [("SCHEMA009", 'the key "workflow_name" is missing')]


def test_unknown_keys_deep_inside_unions_know_their_model(folder):
    variable = {
        "type": "bool",
        "source": {
            "type": "derived",
            "triggers": [
                {"type": "agent_text", "agent": "A", "mtch": {"equals": "x"}},
                {"type": "agent_text", "agent": "A", "match": {"equals": "x", "colour": 1}},
            ],
        },
    }
    write(
        folder,
        "context_variables.json",
        {"context_variables": {"definitions": {"v": variable}, "agents": {"A": {"vars": []}}}},
    )
    assert [(it.code, it.hint) for it in read_package(folder).findings] == [
        ("SCHEMA008", ('did you mean "match"?',)),
        ("SCHEMA008", ("known here: equals",)),
        ("SCHEMA008", ("known here: variables",)),
    ]


def test_unknown_keys_in_optional_parts(folder):
    write(folder, "orchestrator.json", {**ORCHESTRATOR, "loop_guard": {"windo": 5}})
    assert only(folder).hint == ('did you mean "window"?',)


def test_kind_of_a_union_unknown_or_missing(folder):
    sources = {"a": {"type": "static", "value": 1}, "b": {"type": "statc"}, "c": {"value": 1}}
    definitions = {name: {"type": "any", "source": source} for name, source in sources.items()}
    write(folder, "context_variables.json", {"context_variables": {"definitions": definitions}})
    first, second = read_package(folder).findings
    assert first.hint == ('did you mean "static"?',)
    assert '"statc" is not one of static, environment' in first.message
    assert second.message == (
        'context_variables.definitions.c.source: the key "type" is missing; '
        "it says which kind this is"
    )


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        ("thirty", 'max_turns: expected a whole number, found "thirty"'),
        (1.5, "max_turns: expected a whole number, found 1.5"),
        (True, "max_turns: expected a whole number, found true"),
        (False, "max_turns: expected a whole number, found false"),
        (None, "max_turns: expected a whole number, found null"),
        ([1], "max_turns: expected a whole number, found a list"),
        ({}, "max_turns: expected a whole number, found an object"),
        ("x" * 61, "max_turns: expected a whole number, found a long text"),
        (0, "max_turns: expected a number of 1 or more and at most 500, found 0"),
    ],
)
def test_value_of_the_wrong_kind(folder, value, fact):
    write(folder, "orchestrator.json", {**ORCHESTRATOR, "max_turns": value})
    assert said(folder) == [("SCHEMA007", fact)]


def test_word_that_is_not_in_the_list(folder):
    write(folder, "orchestrator.json", {**ORCHESTRATOR, "startup_mode": 3})
    assert said(folder) == [
        ("SCHEMA007", "startup_mode: 3 is not one of AgentDriven, UserDriven, BackendOnly")
    ]


def test_bad_type_points_into_the_text(folder):
    definition = {"type": "list[strng]", "source": {"type": "derived"}}
    write(
        folder, "context_variables.json", {"context_variables": {"definitions": {"v": definition}}}
    )
    finding = only(folder)
    line = (folder / "context_variables.json").read_text().splitlines()[finding.place.line - 1]
    assert line[finding.place.column - 1 :].startswith("strng]")
    assert finding.code == "SCHEMA007"


@pytest.mark.parametrize(
    "match", [{"equals": "a", "regex": "b"}, {}, "DONE", 3, True, None, ["DONE"]]
)
def test_a_match_has_one_mode(folder, match):
    trigger = {"type": "user_text", "match": match}
    definition = {"type": "bool", "source": {"type": "derived", "triggers": [trigger]}}
    write(
        folder, "context_variables.json", {"context_variables": {"definitions": {"v": definition}}}
    )
    assert "exactly one of equals, exact, contains, regex" in only(folder).message
    assert only(folder).code == "SCHEMA007"


def test_whole_file_of_the_wrong_kind(folder):
    for data, found in (([], "a list"), ("3", "3")):
        write(folder, "agents.json", data)
        assert said(folder) == [("SCHEMA007", f"expected an object, found {found}")]


def test_two_files_of_one_kind(folder):
    write(folder, "agents.yaml", "agents: []\n")
    finding = only(folder)
    assert (finding.code, finding.place.file) == ("SCHEMA011", str(folder / "agents.yaml"))
    assert read_package(folder).broken == {"agents"}


def test_required_file_missing(folder):
    (folder / "agents.json").unlink()
    assert said(folder) == [("SCHEMA012", "agents.json is missing")]
    assert read_package(folder).broken == {"agents"}


def test_other_files_may_be_missing(folder):
    assert read_package(folder).broken == frozenset()


def test_file_with_almost_the_right_name(folder):
    write(folder, "handoff.json", {"handoffs": []})
    write(folder, "README.md", "hello")
    write(folder, "notes.json", {})
    finding = only(folder)
    assert (finding.code, finding.severity) == ("SCHEMA013", "error")
    assert finding.hint == ("rename it to handoffs.json",)
    assert finding.place == Place(str(folder / "handoff.json"), 1, 1)
    assert read_package(folder).broken == {"handoffs"}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("books.json", {"books": [{"title": "x"}]}),
        ("flows.yaml", "- steps\n"),
        ("boards.json", {"surfboards": 3}),
        ("handoff.json", "{,}"),
        ("context_variable.json", {"colour": "red"}),
    ],
)
def test_data_with_almost_the_name_of_a_declared_file_is_left_alone(folder, name, data):
    write(folder, name, data)
    assert read_package(folder).findings == ()


def test_misnamed_file_that_cannot_be_read_is_left_alone(folder, tmp_path):
    write(tmp_path, "elsewhere.json", {"hooks": []})
    (folder / "hook.json").symlink_to(tmp_path / "elsewhere.json")
    assert read_package(folder).findings == ()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("flows.yaml", "steps: []\n"),
        ("context-variables.json", {"ContextVariablesPlan": {"definitions": {}}}),
        ("context_variable.json", {"agents": {"A": []}}),
    ],
)
def test_misnamed_file_is_known_in_whatever_spelling(folder, name, data):
    write(folder, name, data)
    assert only(folder).code == "SCHEMA013"


@pytest.mark.parametrize("suffix", ["", "2"])
def test_keys_beside_a_wrapper_are_refused_and_not_lost(folder, suffix):
    write(
        folder, "handoffs.json", {"handoffs": {"handoff_rules": []}, "handoff_rules" + suffix: []}
    )
    write(folder, "structured_outputs.json", {"structured_outputs": {"models": []}, "registry": []})
    write(folder, "context_variables.json", {"ContextVariablesPlan": {}, "definitions": {}})
    package = read_package(folder)
    unknown = [it.message for it in package.findings if it.code == "SCHEMA008"]
    assert 'unknown key "definitions"' in unknown
    assert 'unknown key "structured_outputs"' in unknown
    assert package.broken >= {"handoffs", "models", "variables"}


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


def test_misnamed_required_file_is_told_once(folder):
    (folder / "agents.json").rename(folder / "Agent.yaml")
    assert [it.hint for it in read_package(folder).findings] == [("rename it to agents.yaml",)]
    assert read_package(folder).broken == {"agents"}


def test_file_beside_the_right_one_is_none_of_our_business(folder):
    write(folder, "agent.json", {})
    assert read_package(folder).findings == ()


def test_syntax_error_breaks_only_its_file(folder):
    write(folder, "tools.json", "{,}")
    package = read_package(folder)
    assert {finding.code for finding in package.findings} == {"SCHEMA002"}
    assert package.broken == {"tools", "lifecycle_tools", "mcp_servers"}
    assert len(package.spec.agents) == 1


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
    assert [it.message for it in package.findings] == [
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


def test_code_that_is_no_text(folder):
    (folder / "tools").mkdir()
    (folder / "tools" / "t.py").write_bytes(b"\xff\xfe")
    package = read_package(folder)
    assert package.findings[0].code == "SCHEMA001"
    assert package.broken == {"code"}


def test_tools_as_a_file_is_no_code(folder):
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


def test_what_cannot_be_told_from_a_folder_is_read_as_a_file(folder, monkeypatch):
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


def test_an_entry_with_another_name_than_its_key_is_refused(folder):
    write(folder, "agents.json", '{"agents": {"A": {},\n"X": {"agent_name": "B"}}}')
    package = read_package(folder)
    (finding,) = [it for it in package.findings if it.code == "SCHEMA007"]
    assert finding.message == 'agents.X: the key is "X", but agent_name is "B"'
    assert finding.place == Place(str(folder / "agents.json"), 2, 21, len('"B"'))
    assert package.broken >= {"agents"}
    write(folder, "agents.json", '{"agents": {"A": {"agent_name": "A"}}}')
    assert {it.code for it in read_package(folder).findings} == {"SCHEMA010"}


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
def test_code_that_python_reads_as_it_stands_is_taken(folder, text):
    tool = {"tool_type": "Agent_Tool", "agent": "A", "file": "look.py", "function": "look"}
    write(folder, "tools.json", {"tools": [{**tool, "description": "Looks."}]})
    (folder / "tools/").mkdir()
    (folder / "tools/look.py").write_bytes(text.encode())
    package = read_package(folder)
    assert package.code == {"tools/look.py": text.encode()}
    codes = {it.code for it in review_package(package)}
    assert not codes & {"SCHEMA001", "TOOL002", "TOOL003"}
