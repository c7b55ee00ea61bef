"""Faults that new users found at the command line, each with the test that shows it is gone."""

import os
import signal
import sqlite3
from pathlib import Path

import pytest

from support.cases import scenario_tests
from support.terminal_play import Terminal
from weft.cli.chat.human_model import HumanModel
from weft.cli.command_line import build_app
from weft.cli.commands.table import COMMANDS
from weft.cli.streams import Streams
from weft.ports.model import ModelRequest
from weft.spec.patterns import PATTERNS


def pages() -> list[str]:
    groups = [(command.name, part.name) for command in COMMANDS for part in command.parts]
    return [*(command.name for command in COMMANDS if not command.parts), *map(" ".join, groups)]


@pytest.mark.parametrize("page", pages())
def test_usage_line_names_the_arguments(weft, page: str):
    out = weft(*page.split(), "--help").out
    usage = out.splitlines()[0].removeprefix(f"Usage: weft {page} ")
    words = [word.strip("[]").removesuffix("...") for word in usage.split()]
    listed = out.partition("\nArguments:\n")[2].partition("\n\n")[0].splitlines()
    names = [line.split()[0] for line in listed if line[2:3].strip()]
    assert [word for word in words if word in names] == names


@pytest.mark.parametrize("words", [["runs", "list"], ["inspect"], ["run"]])
def test_journal_option_does_not_promise_to_keep_runs(weft, words):
    help_text = " ".join(weft(*words, "--help").out.split())
    assert (
        "--journal FILE Journal file or postgresql:// address; default: WEFT_STORE, " in help_text
    )


def test_as_and_deleting_have_one_meaning():
    app = build_app()
    names = [argument.names[0] for argument in app["board"]["list"].assemble_argument_collection()]
    assert "--visible-to" in names
    assert "--as" not in names
    verbs = {part.name for command in COMMANDS for part in command.parts}
    assert "delete" in verbs
    assert not verbs & {"remove", "prune"}


def test_new_lists_the_patterns_and_has_a_blank_template(weft, workspace):
    out = weft("new", "--help").out
    for pattern in PATTERNS:
        assert f"  {pattern.id}  {pattern.name:<21}{pattern.summary}\n" in out
    made = weft("new", "Empty", "--pattern", "blank")
    assert made.out.splitlines() == [
        "created workflows/Empty/agents.json",
        "created workflows/Empty/orchestrator.json",
    ]
    assert weft("check", "Empty", "--strict").code == 0
    assert weft("run", "Empty", "hello", "--model", "sample").code in (0, 4)


def test_check_says_that_errors_prevent_the_exploration(weft, workspace):
    weft("new", "Empty", "--pattern", "blank")
    said = "Not checked yet: which agents a run reaches and whether it can end."
    assert said not in weft("check", "Empty").out
    handoffs = Path("workflows/Empty/handoffs.json")
    handoffs.write_text('{"handoff_rules": [{"source_agent": "Nobody", "target_agent": "user"}]}')
    checked = weft("check", "Empty")
    assert checked.code == 1
    assert said in checked.out + checked.err


@pytest.mark.parametrize("model", ["smaple", "http://u:secret@localhost:1#m"])
def test_misspelt_model_and_password_in_an_address(weft, workspace, model: str):
    err = weft("run", "Support", "hello", "--model", model).err
    assert "secret@" not in err
    assert "openai:smaple" not in err
    assert ("sample" in err) == (model == "smaple")


def test_backup_has_the_events_of_runs_in_progress(weft, desk, typed):
    typed("And?")
    weft("run", "Desk", "hi", "--model", "you")
    held = sqlite3.connect(".weft/journal.db")  # keeps recent events in the second file
    held.execute("BEGIN").connection.execute("SELECT count(*) FROM runs").fetchone()
    saved = weft("store", "backup", "copy.db")
    held.close()
    assert saved.code == 0
    assert saved.out.startswith("wrote copy.db (")
    listed = weft("runs", "list", "--journal", "copy.db", "--json").data["runs"]
    assert listed[0]["seq"] == weft("runs", "list", "--json").data["runs"][0]["seq"]
    assert weft("store", "backup", "copy.db").code == 7
    assert not Path("copy.db.partial").exists()


def test_list_shows_model_and_fork_and_filters_by_outcome(weft, desk, typed):
    typed("BYE")
    weft("run", "Desk", "hi", "--model", "you")
    first = weft("runs", "list", "--json").data["runs"][0]["run"]
    typed("BYE")
    weft("replay", "last", "--fork", "1", "--model", "you")
    rows = [line.split("\t") for line in weft("runs", "list").out.splitlines()]
    assert [row[6] for row in rows] == ["you", "you"]
    assert rows[0][7].startswith(f"(fork of {first[-8:]})")
    assert weft("runs", "list", "--status", "failed").err == (
        "no failed runs; list all: weft runs list\n"
    )
    assert len(weft("runs", "list", "--status", "completed", "--json").data["runs"]) == 2


def test_sigterm_prints_how_to_continue(desk):
    with Terminal("run", "Desk", "hi", "--model", "you", cwd=desk) as terminal:
        terminal.wait_for("Clerk says: ")
        os.kill(terminal.process.pid, signal.SIGTERM)
        assert terminal.end() == 143
        assert "  continue: weft runs resume " in terminal.shown


def test_doctor_leaves_the_database_of_another_program_alone(weft, workspace):
    sqlite3.connect("other.db").execute("CREATE TABLE notes (text)").connection.close()
    line = next(
        row for row in weft("doctor", "--journal", "other.db").out.splitlines() if "journal" in row
    )
    assert line.startswith("fail\tjournal\t")
    assert line.endswith("\tuse another file: --journal FILE")


def test_person_sees_the_instructions_of_every_request(capsys):
    long = "Be kind. " * 40
    talk = [{"role": "user", "content": f"message {number}"} for number in range(9)]
    messages = [{"role": "system", "content": long}, *talk]
    lines = iter(["/prompt", "Hello."])

    async def ask(_prompt: str) -> str:
        return next(lines)

    async def command(_text: str) -> None:
        raise AssertionError

    model = HumanModel(ask, Streams(), command)
    request = ModelRequest("you", "r", "Clerk", 1, 1, "r:1", messages)
    with pytest.raises(StopIteration) as done:
        model(request).send(None)
    assert done.value.value.text == "Hello."
    shown = capsys.readouterr().err
    first, _, rest = shown.partition("user: message 0")
    assert long.strip() in first
    assert "message 8" in rest


test_scenarios = scenario_tests(__file__)
