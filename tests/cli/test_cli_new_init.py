"""weft new, weft init and weft schema: what they make, and what they leave alone."""

import json
from pathlib import Path

import pytest

from support.cases import read_cases, scenario_tests
from weft.cli.commands import create
from weft.errors import PackageError
from weft.generator.forms.form import read_form
from weft.packages.workspace import EXAMPLES
from weft.packages.writer import SCHEMA_NAMES, schema_files
from weft.spec.patterns import PATTERNS

CASES = read_cases(__file__)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda part: part.name)
def test_every_pattern_makes_a_package_that_checks_clean(weft, here, pattern):
    made = weft("new", "Returns", "--pattern", pattern.id)
    assert made.code == 0
    folder = here / "workflows" / "Returns"
    assert made.out.splitlines() == [
        f"created workflows/Returns/{file}" for file in sorted(tree(folder))
    ]
    orchestrator = json.loads((folder / "orchestrator.json").read_text())
    assert orchestrator["workflow_name"] == "Returns"
    assert orchestrator["orchestration_pattern"] == pattern.name
    checked = weft("check", "--strict")
    assert checked.code == 0, checked.out


def test_new_in_another_workspace(weft, here):
    (here / "shop").mkdir()
    assert weft("new", "Returns", "--workspace", "shop").code == 0
    assert (here / "shop" / "workflows" / "Returns" / "agents.json").exists()


def test_new_refuses_a_name_that_is_taken(weft, workspace):
    before = tree(workspace)
    result = weft("new", "Support")
    assert result.code == 7
    assert result.err.startswith("error[CLI007]: workflows/Support already exists\n")
    assert tree(workspace) == before


@pytest.mark.parametrize(("name", "hint"), CASES["test_new_refuses_an_invalid_name"])
def test_new_refuses_an_invalid_name(weft, here, name: str, hint: str):
    result = weft("new", name)
    assert result.code == 2
    assert hint in result.err
    assert tree(here) == {}


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("0", "choose one of: 1 ContextAwareRouting"),
        ("Pipelin", "did you mean Pipeline?"),
        ("xyzzy", "choose one of: 1 ContextAwareRouting"),
    ],
)
def test_new_refuses_an_unknown_pattern(weft, here, pattern: str, hint: str):
    result = weft("new", "Returns", "--pattern", pattern)
    assert result.code == 2
    assert hint in result.err
    assert tree(here) == {}


def test_init_makes_a_workspace_that_checks_clean(weft, here):
    result = weft("init", "shop")
    assert result.code == 0
    assert result.out.splitlines() == [
        "created shop/workflows/HelloWorld",
        "created shop/workflows/CustomerSupportRouter",
        "created shop/workflows/OrderProcessing",
        "created shop/workflows/NewsDesk",
        "created shop/schemas",
        "created shop/documents",
        "created shop/.weft/documents.db",
    ]
    assert "  cd shop\n  weft chat CustomerSupportRouter\n" in result.err
    assert "  weft run OrderProcessing --model sample\n  weft board publish NewsDesk" in result.err
    checked = weft("check", "shop", "--strict", "--json")
    assert checked.code == 0
    assert checked.data["summary"]["packages"] == len(EXAMPLES)
    assert {path.name for path in (here / "shop" / "schemas").iterdir()} == set(schema_files())


def test_init_as_json(weft, here):
    data = weft("init", "shop", "--json").data
    assert data["folder"] == "shop"
    made = (name for name in tree(here / "shop") if not name.startswith(".weft/"))
    assert data["files"] == sorted(f"shop/{name}" for name in made)


def test_init_brings_documents(weft, here):
    weft("init", "shop")
    listed = weft("documents", "list", "--workspace", "shop").out.splitlines()
    assert listed == ["Concepts\t1 document", "Customers\t2 documents", "Orders\t2 documents"]
    query = '{"enterprise_id": "local"}'
    found = weft("documents", "find", "Concepts", query, "--workspace", "shop", "--json").data
    assert found["document"]["ConceptOverview"].startswith("A small shop")


def test_init_leaves_documents_alone_that_are_elsewhere(weft, here, monkeypatch):
    monkeypatch.setenv("WEFT_DOCUMENTS", str(here / "elsewhere.db"))
    result = weft("init", "shop")
    assert result.code == 0
    assert ".weft" not in result.out
    assert not (here / "elsewhere.db").exists()
    assert not (here / "shop" / ".weft").exists()


@pytest.mark.parametrize(("folder", "named"), [(".", "the current folder"), ("shop", "shop")])
def test_init_refuses_a_folder_with_content(weft, here, folder: str, named: str):
    (here / "shop").mkdir()
    (here / "shop" / "notes.txt").write_text("mine")
    before = tree(here)
    result = weft("init", folder)
    assert result.code == 7
    assert f"error[CLI007]: {named} is not empty" in result.err
    assert f"weft init {folder} --force" in result.err
    assert tree(here) == before


def test_init_force_replaces_only_what_it_writes(weft, here):
    weft("init", "shop")
    fresh = tree(here / "shop")
    (here / "shop" / "notes.txt").write_text("mine")
    (here / "shop" / "workflows" / "HelloWorld" / "agents.json").write_text("spoilt")
    assert weft("init", "shop", "--force").code == 0
    assert tree(here / "shop") == {**fresh, "notes.txt": b"mine"}


def test_init_leaves_nothing_when_it_fails_half_way(weft, here, monkeypatch):
    real = create.create_folder

    def fail_at_schemas(folder, files):
        if folder.name == "schemas":
            raise PackageError(f"{folder} cannot be written: no space left on device")
        real(folder, files)

    monkeypatch.setattr(create, "create_folder", fail_at_schemas)
    result = weft("init")
    assert result.code == 3
    assert list(here.iterdir()) == []


def test_schema_lists_names(weft):
    result = weft("schema")
    assert result.out.splitlines() == list(SCHEMA_NAMES)
    assert "weft schema agents" in result.err
    assert list(weft("schema", "--json").data["schemas"]) == list(SCHEMA_NAMES)


@pytest.mark.parametrize("name", ["agents", "agents.json", "x/agents.yaml", "agents.schema.json"])
def test_schema_prints_one(weft, name: str):
    result = weft("schema", name)
    assert result.out == schema_files()["agents.schema.json"]
    data = weft("schema", name, "--json").data
    assert data == {"schema_version": 1, "schemas": {"agents": json.loads(result.out)}}


def test_schema_writes_all(weft, here):
    result = weft("schema", "--write", "new/schemas")
    assert result.code == 0
    assert tree(here / "new" / "schemas") == {
        name: text.encode() for name, text in schema_files().items()
    }
    assert result.out.splitlines() == [f"wrote new/schemas/{name}" for name in schema_files()]


def test_schema_writes_one(weft, here):
    data = weft("schema", "tools", "--write", "s", "--json").data
    assert data["files"] == ["s/tools.schema.json"]
    assert list(tree(here)) == ["s/tools.schema.json"]


def test_init_prints_names_that_cannot_steer_a_terminal_and_can_be_typed(
    weft, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = weft("init", "a\x1fb")
    assert "created a\\x1fb/schemas\n" in result.out
    assert "\x1f" not in result.out + result.err
    assert "  cd 'my shop'\n" in weft("init", "my shop").err


@pytest.mark.parametrize(
    "words",
    [
        ("diagram", "Support", "-o", "a\x1fb"),
        ("export", "Support", "-o", "a\x1fb"),
        ("explain", "--write", "a\x1fb"),
        ("schema", "agents", "--write", "a\x1fb"),
        ("check", "--workspace", "a\x1fb", "-v"),
    ],
)
def test_no_verb_prints_a_control_character(weft, workspace, make_package, words: tuple[str, ...]):
    if "--workspace" in words:
        make_package(workspace / "a\x1fb" / "workflows" / "Support")
    result = weft(*words)
    assert result.code == 0
    assert "a\\x1fb" in result.out + result.err
    assert "\x1f" not in result.out + result.err


def test_board_commands_of_the_readme_work_in_a_new_workspace(weft, here, monkeypatch):
    text = (Path(__file__).parents[2] / "README.md").read_text()
    assert weft("init", "shop").code == 0
    monkeypatch.chdir(here / "shop")
    commands = [line for line in text.splitlines() if line.startswith("weft board ")]
    for line in commands:
        words = line.partition("  ")[0].split()[1:]
        result = weft(*words)
        assert result.code == 0, (line, result.err)
    assert "Story" in result.out


test_scenarios = scenario_tests(__file__)


def test_new_form_is_an_example_that_can_be_read(weft, here):
    made = weft("new", "Returns", "--form")
    assert (made.code, made.out) == (0, "created forms/Returns.yaml\n")
    assert "  weft generate --form forms/Returns.yaml --approve\n" in made.err
    file = here / "forms" / "Returns.yaml"
    assert read_form(str(file), file.read_text("utf-8")).workflow == "Returns"
    assert weft("new", "Orders", "--form").code == 0
    before = tree(here)
    assert weft("new", "Returns", "--form").code == 7
    assert weft("new", "Other", "--form", "--pattern", "1").code == 2
    assert tree(here) == before
