"""What is said when a command was not understood, and that every way to say a thing works."""

import runpy
from importlib import import_module

import pytest
from cyclopts import CycloptsError

from support.cases import scenario_tests
from weft import __version__
from weft.cli.commands.table import COMMAND_NAMES, COMMANDS
from weft.cli.error_reports import usage_failure


def test_bare_weft_prints_help_and_exits_2(weft):
    result = weft()
    assert result.code == 2
    assert result.out == weft("--help").out
    assert result.err == ""


def test_help_lists_every_verb_in_order(weft):
    result = weft("--help")
    assert result.code == 0
    lines = result.out.partition("Commands:\n")[2].partition("\n\n")[0].splitlines()
    # The rest of a long description is indented.
    assert [line.split()[0] for line in lines if line[2] != " "] == list(COMMAND_NAMES)
    assert result.out == weft("-h").out


@pytest.mark.parametrize("verb", COMMAND_NAMES)
def test_every_verb_has_a_page_with_examples_and_global_options(weft, verb: str):
    result = weft(verb, "--help")
    assert result.code == 0
    assert result.out.startswith(f"Usage: weft {verb} ")
    assert "Examples:\n  " in result.out
    assert "--workspace" in result.out
    assert "  --json " in result.out
    assert "streams" not in result.out.lower()


def test_version(weft):
    assert weft("--version").out == f"weft {__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        ["--json", "explain", "NOPE1"],
        ["explain", "--json", "NOPE1"],
        ["explain", "NOPE1", "--json"],
        ["chekc", "--json"],
        ["check", "--format", "json", "--fxi"],
        ["check", "--format=json", "--fxi"],
    ],
)
def test_failures_are_json_when_json_was_asked_for(weft, words: list[str]):
    result = weft(*words)
    assert result.code in {2, 6}
    assert result.data["schema_version"] == 1
    assert result.data["error"]["message"]
    assert result.err == ""


def test_whatever_else_the_library_refuses_is_passed_on():
    error = CycloptsError(msg="It does not work.")
    assert usage_failure(error, commands=[], options=[]).message == "It does not work"


def test_python_can_start_it(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["weft", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("weft", run_name="__main__")
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"weft {__version__}\n"
    runpy.run_module("weft.__main__", run_name="weft.__main__")


def test_workspace_that_is_not_a_folder(weft, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "api.py").touch()
    result = weft("--workspace", "api.py", "check")
    assert result.code == 6
    assert "  hint:  name the folder that contains workflows\n" in result.err
    assert "  hint:  create one: weft init shop\n" in weft("--workspace", "shop", "check").err


def test_the_version_for_programs(weft):
    version = weft("--version").out.split()[1]
    for words in (["--version", "--json"], ["--json", "--version"]):
        assert weft(*words).data == {"schema_version": 1, "version": version}


@pytest.mark.parametrize("command", [part for each in COMMANDS for part in each.parts or (each,)])
def test_docstring_describes_no_unknown_option(command):
    module, _, name = command.target.partition(":")
    known = str(getattr(import_module(module), name).__annotations__)
    for label, text in command.page().options.items():
        assert f"help={text!r}" in known, label


test_scenarios = scenario_tests(__file__)
