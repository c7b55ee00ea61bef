"""The page about retrieval: its examples work, and it is complete."""

import ast
import inspect
import re
import shlex

import pytest

import weft.retrieval
from support.page_play import BLOCK, DOCS, chapter
from support.retrieval_play import local_model
from weft.adapters.collections.texts import kind_of
from weft.cli.app import main
from weft.cli.commands.table import COMMANDS

PAGE = (DOCS / "retrieval.md").read_text(encoding="utf-8")
FILES = {name: text for name, _, text in BLOCK.findall(PAGE) if name.startswith("handbook/")}
SOURCES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The workspace of the page, and the current folder."""
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name, value in local_model().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("WEFT_EMBEDDINGS", raising=False)
    return tmp_path


@pytest.mark.parametrize("number", range(len(SOURCES)))
async def test_example_prints_the_stated_output(number, here, capsys):
    names = {"__name__": "__main__"}
    exec("from weft.retrieval import open_collections", names)
    made = compile(SOURCES[number], "retrieval.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waits = eval(made, names)
    if inspect.isawaitable(waits):
        await waits
    stated = re.findall(r"^# > (.*)$", SOURCES[number], re.MULTILINE)
    assert stated
    assert capsys.readouterr().out.splitlines() == stated


def test_the_commands_work(here, capsys):
    [commands] = re.findall(r"```console\n(.*?)```", chapter(PAGE, "Start"), re.DOTALL)
    install, *others = commands.splitlines()
    assert install == "weft embeddings install"  # it would leave this machine
    outputs = []
    for line in others:
        assert main(shlex.split(line)[1:]) == 0, capsys.readouterr().err
        outputs.append(capsys.readouterr())
    assert outputs[0].out == "Handbook: 2 added, 0 changed, 0 unchanged, 0 deleted; 2 passages\n"
    assert [output.err for output in outputs] == [""] * len(outputs)
    assert "handbook/leave.md:1" in outputs[1].out.splitlines()[0]
    assert "T-17" in outputs[2].out
    assert "2 passages" in outputs[3].out
    assert "kind, source, year" in outputs[4].out


def test_every_command_and_name_is_on_the_page():
    [group] = [command for command in COMMANDS if command.name == "collection"]
    assert [part.name for part in group.parts if f"weft collection {part.name}" not in PAGE] == []
    assert [name for name in weft.retrieval.__all__ if name not in PAGE] == []


def test_every_ending_is_in_the_table():
    named = re.findall(r"`(\.\w+)`", chapter(PAGE, "Files"))
    assert all(kind_of(ending) for ending in named)
    assert len(named) == 9
