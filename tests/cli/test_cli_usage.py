"""What is said when a command was not understood, and that every way to say a thing works."""

import runpy

import pytest
from cyclopts import CycloptsError

from weft import __version__
from weft.cli.commands.table import COMMAND_NAMES
from weft.cli.error_reports import usage_failure


def test_bare_weft_prints_help_and_exits_2(weft):
    result = weft()
    assert result.code == 2
    assert result.out == weft("--help").out
    assert result.err == ""


def test_only_global_options_is_as_good_as_nothing(weft):
    assert weft("--quiet").code == 2


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
    ("words", "fact", "hint"),
    [
        (["chekc"], 'unknown command "chekc"', "did you mean weft check?"),
        (["validate"], 'unknown command "validate"', "did you mean weft check?"),
        (["--josn", "check"], "unknown option --josn", "did you mean --json?"),
        (["check", "--josn"], "unknown option --josn", "did you mean --json?"),
        (["check", "--fxi"], "unknown option --fxi", "did you mean --fix?"),
        (["check", "--format", "ful"], 'invalid value "ful" for --format', "did you mean full?"),
        (
            ["completion", "tcsh"],
            'invalid value "tcsh"',
            "choose one of: bash, zsh, fish, powershell, json",
        ),
        (["check", "--strict", "--strict"], "--strict is given twice", "keep one of them"),
        (["check", "-qv"], "--quiet and --verbose exclude each other", "keep one of them"),
    ],
)
def test_a_misunderstanding_says_what_was_meant(weft, words: list[str], fact: str, hint: str):
    result = weft(*words)
    assert result.code == 2
    assert result.err.startswith(f"error[CLI002]: {fact}\n")
    assert f"  hint:  {hint}\n" in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (["xyzzy"], 'unknown command "xyzzy"'),
        (["check", "--format"], "--format needs a value"),
        (["diagram"], "NAME is missing"),
        (["diagram", "A", "B"], 'unexpected argument "B"'),
        (["check", "--xyzzy"], "unknown option --xyzzy"),
    ],
)
def test_a_misunderstanding_without_a_guess(weft, words: list[str], fact: str):
    result = weft(*words)
    assert result.code == 2
    assert result.err.startswith(f"error[CLI002]: {fact}\n")


def test_the_page_to_read_is_that_of_the_verb(weft):
    assert weft("check", "--fxi").err.endswith("  more:  weft check --help\n")
    assert weft("new", "returns").err.endswith("  more:  weft new --help\n")
    assert weft("chekc").err.endswith("  more:  weft --help\n")


def test_a_flag_that_takes_no_value_says_so(weft):
    result = weft("check", "--fix=maybe")
    assert result.code == 2
    assert result.err.startswith('error[CLI002]: invalid value "maybe" for --fix\n')
    assert "hint:  write --fix alone\n" in result.err


def test_what_weft_cannot_do_yet_is_said(weft):
    result = weft("serve")
    assert result.code == 2
    assert "this version has no server" in result.err


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


def test_a_workspace_that_is_no_folder(weft, tmp_path, monkeypatch):
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


@pytest.mark.parametrize("words", [["run"], ["runs", "tail"], ["check"]])
def test_what_json_prints_is_said_for_every_verb(weft, words: list[str]):
    assert "Print JSON: one document, or one line per event.\n" in weft(*words, "--help").out
