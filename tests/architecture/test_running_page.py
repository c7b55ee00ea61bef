"""The Python on the pages about running, tools and testing works, and settings are complete."""

import ast
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import weft
import weft.testing
from support.page_play import BLOCK, chapter, open_desk, read_pages
from support.server_play import serving
from weft.adapters.models.providers import COMPATIBLE, THROUGH_LIBRARY
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.app.settings import SETTINGS, Setting
from weft.packages.workspace import shipped_folder

PAGES = read_pages("running.md", "tools.md", "testing.md")
BLOCKS = [text for name, kind, text in BLOCK.findall(PAGES) if kind == "python" and not name]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    shutil.copytree(shipped_folder() / "HelloWorld", tmp_path / "shop/workflows/HelloWorld")
    monkeypatch.chdir(tmp_path)


def test_number_of_examples():
    assert len(BLOCKS) == 6


async def test_documents_of_a_test_are_read(tmp_path, monkeypatch):
    names: dict[str, Any] = {}
    exec(compile(BLOCKS[5], "testing.md", "exec"), names)
    source = {
        "type": "database",
        "collection": "Customers",
        "search_by": "user_id",
        "field": "limit",
    }
    open_desk(tmp_path, monkeypatch).write({"limit": {"type": "int", "source": source}}, {})
    package = weft.testing.read_package(tmp_path / "workflows" / "Desk")
    model = weft.testing.ScriptedModel({"Clerk": "Hello.", "Helper": "Bye."})
    ada = weft.Scope("shop", "ada")
    documents = names["documents"]
    async with weft.testing.host_for(
        package.spec, model, code=package.code, documents=documents
    ) as host:
        run = await host.start("Desk", scope=ada, message="hello")
        await host.settled(run, scope=ada)
        outcome = (await host.state(run, scope=ada)).variables
    assert outcome == {"limit": 50}


@pytest.mark.parametrize("number", [0, 1])
def test_example_programs_run(number, shop, capsys):
    exec(compile(BLOCKS[number], f"page: {number}", "exec"), {"__name__": "example"})
    out = capsys.readouterr().out
    assert "agent" in out


def test_example_client_runs_on_a_server(shop, capsys, monkeypatch):
    with serving(Path("shop")) as server:
        monkeypatch.setenv("WEFT_SERVER_KEY", server.key("ada", "developer", "end_user"))
        program = BLOCKS[2].replace("http://127.0.0.1:8765", server.url)
        exec(compile(program, "running.md", "exec"), {"__name__": "example"})
    assert " RunEnded\n" in capsys.readouterr().out


def test_example_tools_can_be_loaded():
    names = [node.name for node in ast.parse(BLOCKS[3]).body if hasattr(node, "name")]
    assert names == ["find_order", "refund", "choose_date"]
    loader = PythonToolLoader()
    try:
        functions = {name: ("tools/desk.py", name) for name in names}
        tools = loader.load("digest", {"tools/desk.py": BLOCKS[3].encode()}, functions)
        assert list(tools.schema("refund").parameters["properties"]) == ["amount"]
    finally:
        loader.close()


def test_the_test_passes(shop):
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(BLOCKS[4], "testing.md", "exec"), names)
    [test] = [function for name, function in names.items() if name.startswith("test_")]
    test()


def test_the_test_can_fail(shop):
    greeter = Path("shop/workflows/HelloWorld/tools/greet.py")
    greeter.write_text(greeter.read_text().replace('"Hello"', '"Hi"'))
    with pytest.raises(AssertionError):
        test_the_test_passes(shop)


def test_every_name_for_tests_is_on_the_page():
    section = chapter(PAGES, "Tests in Python")
    assert [name for name in weft.testing.__all__ if not re.search(rf"\b{name}\b", section)] == []


def test_every_name_on_the_page_is_public():
    used = set(re.findall(r"weft\.([A-Z]\w+|open_host|run)\b", "".join(BLOCKS)))
    assert used <= set(weft.__all__)


def test_settings_page_lists_every_setting_with_its_default():
    page = read_pages("settings.md")
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*) \| (.*) \|$", page, re.MULTILINE)
    assert {name: Setting(*rest) for name, *rest in rows} == SETTINGS


def test_settings_page_lists_the_variables_of_every_provider():
    page = read_pages("settings.md")
    rows = dict(re.findall(r"^\| `([a-z]+)` \| (.*) \|$", page, re.MULTILINE))
    assert list(rows) == [*COMPATIBLE, *THROUGH_LIBRARY]
    for name, provider in COMPATIBLE.items():
        variables = {provider.url_setting, provider.host_setting, provider.key_setting} - {None}
        assert set(re.findall(r"`([A-Z_]+)`", rows[name])) == variables
        assert ("(optional)" in rows[name]) is not provider.key_needed
        assert f"{provider.base_url or 'none'}" in rows[name]
    for name, library in THROUGH_LIBRARY.items():
        assert set(re.findall(r"`([A-Z_]+)`", rows[name])) == set(dict(library.arguments).values())
