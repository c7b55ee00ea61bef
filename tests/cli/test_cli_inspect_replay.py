"""weft inspect and weft replay: what happened, exactly what was sent, and once more."""

import json
import sqlite3

import pytest

from support.cases import read_cases
from support.terminal_play import Terminal
from weft.runtime.workflow import cache_seed

CASES = read_cases(__file__)


@pytest.fixture
def told(weft, desk, typed, prepared):
    """A run of two turns with a tool, an approval and an end."""
    lines = (
        "hello",
        '!look_up {"name": "nobody"}',
        '!approve {"what": "a"}',
        "y",
        "",
        "And now?",
        "that is all",
        "BYE",
    )

    def chat():
        typed(*lines)
        assert weft("chat", "Desk", "--model", "you", "--set", "limit=7").code == 0
        typed()
        return weft("runs", "list", "--json").data["runs"][0]["run"]

    return prepared("told", chat)


def test_inspect_a_run(weft, told):
    result = weft("inspect", told)
    assert result.code == 0
    for line in (
        f"run {told} of Desk: completed",
        "  All is done.",
        "  limit = 7",
        "      derived, int; set by start at event 1",
        "  done = true",
        "     tool look_up: refused there is nobody of that name",
        "     set done",
        "     Clerk -> terminate, because done",
        "     Clerk -> user, because no other rule applies",
    ):
        assert f"\n{line}" in f"\n{result.out}"
    assert "because of ModelReplied " in result.out
    assert 'says "BYE"' in result.out
    assert f"weft inspect {told}@1" in result.err


def test_inspect_names_where_a_first_value_comes_from(weft, desk, typed, monkeypatch):
    file = desk / "workflows" / "Desk" / "context_variables.json"
    content = json.loads(file.read_text())
    definitions = content["context_variables"]["definitions"]
    definitions["shop"] = {"type": "str", "source": {"type": "static", "value": "Corner"}}
    outside = {"type": "environment", "env_var": "DESK_FLOOR"}
    definitions["floor"] = {"type": "int", "source": outside}
    content["context_variables"]["agents"]["Clerk"]["variables"] += ["shop", "floor"]
    file.write_text(json.dumps(content))
    monkeypatch.setenv("DESK_FLOOR", "3")
    typed("BYE")
    assert weft("run", "Desk", "hello", "--model", "you").code == 0
    lines = weft("inspect", "last").out.splitlines()
    for name, told in (
        ("limit = 10", "derived, int; set by default at event 1"),
        ('shop = "Corner"', "static, str; set by the package at event 1"),
        ("floor = 3", "environment, int; set by environment DESK_FLOOR at event 1"),
    ):
        assert lines[lines.index(f"  {name}") + 1] == f"      {told}"


def test_inspect_as_json(weft, told):
    data = weft("inspect", told, "--json").data
    assert data["schema_version"] == 1
    names = [variable["name"] for variable in data["inspection"]["variables"]]
    assert names == ["limit", "done"]
    assert [turn["number"] for turn in data["inspection"]["turns"]] == [1, 2]


def test_inspect_a_turn(weft, told):
    result = weft("inspect", f"{told}@1")
    assert result.code == 0
    for line in (
        "Variables when the turn began",
        "  limit = 7",
        "Call 1: sent about ",
        "    You may spend 7.",
        "Left out of call 1",
        "  nothing",
    ):
        assert f"\n{line}" in result.out
    assert "  [prompt role] system, " in result.out
    assert " matches: this is exactly what was sent\n" in result.out
    assert "Call 3: sent" in result.out
    prompts = weft("inspect", f"{told}@1", "--json").data["turn"]["prompts"]
    assert [prompt["same"] for prompt in prompts] == [True] * 3


def test_values_set_in_a_turn_are_shown(weft, told):
    assert "\nSet in this turn\n  done = true  (by trigger, " in weft("inspect", f"{told}@2").out


def test_two_turns_compared(weft, told):
    result = weft("inspect", f"{told}@2", "--against", "1")
    assert result.code == 0
    assert result.out.startswith(f"{told}@1 compared with {told}@2\n")
    assert "\nhistory: changed\n" in result.out
    assert "  +user: that is all\n" in result.out
    same = weft("inspect", f"{told}@2", "--against", "2")
    assert "both agents were sent the same" in same.out
    data = weft("inspect", f"{told}@2", "--against", "1", "--json").data["comparison"]
    assert data["slices"]


def test_different_values_are_shown(weft, told, typed):
    typed("BYE")
    weft("replay", told, "--fork", "1", "--set", "limit=99", "--model", "you")
    out = weft("inspect", "last@1").out
    assert "limit = 99" in out


def test_omissions_are_shown(weft, desk, typed):
    file = desk / "workflows" / "Desk" / "agents.json"
    content = json.loads(file.read_text())
    content["agents"][0]["context"] = [{"kind": "history", "max_messages": 1}]
    file.write_text(json.dumps(content))
    typed("one", "1", "two", "2", "three", "BYE")
    assert weft("chat", "Desk", "--model", "you").code == 0
    out = weft("inspect", "last@3").out
    assert "\nLeft out of call 1\n  history context[0] " in out
    compared = weft("inspect", "last@3", "--against", "1").out
    assert "Left out only in the second\n" in compared
    other_way = weft("inspect", "last@1", "--against", "3").out
    assert "Left out only in the first\n" in other_way


@pytest.mark.parametrize(
    ("words", "code", "fact"),
    [
        (["last@x"], 2, 'invalid turn "x"'),
        (["last@9"], 2, "has no turn 9"),
        (["last", "--against", "1"], 2, "--against compares two turns"),
        (["zzz"], 6, 'there is no run "zzz"'),
    ],
)
def test_runs_that_cannot_be_inspected(weft, told, words: list[str], code: int, fact: str):
    result = weft("inspect", *words)
    assert result.code == code
    assert fact in result.err


def test_run_without_messages(weft, desk, typed):
    weft("run", "CustomerSupportRouter")
    out = weft("inspect", "last").out
    assert "  no agent has taken a turn yet\n" in out
    assert "\nOpen requests\n" in out
    assert ": a message, since " in out


@pytest.mark.parametrize("columns", [80, 40])
def test_a_page_fits_the_terminal(desk, told, columns: int):
    with Terminal("inspect", told, cwd=desk, columns=columns) as terminal:
        assert terminal.end() == 0
    body = terminal.shown.partition("\nsee what an agent")[0]
    # The identity of a run is never cut, since it is there to be copied.
    assert max(len(line) for line in body.splitlines() if told not in line) <= columns


def test_replay_tells_it_again_without_any_call(weft, told):
    result = weft("replay", told)
    assert result.code == 0
    assert result.out == (
        "you: hello\n"
        'you: {"approved": true}\n'
        "Clerk (you): And now?\n"
        "you: that is all\n"
        "Clerk (you): BYE\n"
    )
    assert "    approve asks a person: " in result.err
    end = f"run {told} completed: All is done.\n  inspect: weft inspect {told}\n"
    assert result.err.endswith(end)
    lines = [json.loads(line) for line in weft("replay", told, "--json").out.splitlines()]
    assert lines[-2]["event"]["kind"] == "RunEnded"
    assert lines[-1]["run"]["outcome"] == "completed"


def test_replay_of_an_open_run_names_the_command_to_continue(weft, desk, typed):
    typed("What else?")
    weft("run", "Desk", "hi", "--model", "you")
    run = weft("runs", "list", "--json").data["runs"][0]["run"]
    waiting = weft("replay", run)
    assert waiting.code == 0
    answer = f"  answer: weft runs answer {run} TEXT\n"
    assert waiting.err.endswith(f"run {run} waits for a message\n{answer}")
    asked = json.loads(weft("replay", run, "--json").out.splitlines()[-1])["run"]["requests"]
    assert [event["kind"] for event in asked] == ["chat"]
    typed()
    weft("run", "Desk", "hi", "--model", "you")
    run = weft("runs", "list", "--json").data["runs"][0]["run"]
    resume = f"  no process works on it; continue: weft runs resume {run}\n"
    fact = f"run {run} is unfinished and has no open request\n"
    assert weft("replay", run).err.endswith(fact + resume)


def test_replay_check(weft, told):
    result = weft("replay", told, "--check")
    assert result.code == 0
    assert "replay is identical" in result.out
    assert weft("replay", told, "--check", "--json").data["mismatches"] == []


def test_replay_check_names_the_first_differences(weft, told):
    connection = sqlite3.connect(".weft/journal.db")
    connection.execute(
        'UPDATE events SET data = replace(data, \'"target":"user"\', \'"target":"Clerk"\') '
        "WHERE kind = 'HandedOff'"
    )
    connection.commit()
    connection.close()
    result = weft("replay", told, "--check")
    assert result.code == 1
    assert result.out.startswith("event ")
    assert "  recorded: {" in result.out
    assert f"error[CLI001]: replay of run {told} differs from event " in result.err
    assert weft("replay", told, "--check", "--json").code == 1


@pytest.mark.parametrize(("which", "number"), [("seq = 5", 5), ("seq > 6", 7)])
@pytest.mark.parametrize(
    "words", [("replay", "--check"), ("replay",), ("inspect",), ("runs", "tail"), ("chat", "--run")]
)
def test_an_event_that_is_lost_is_named(weft, told, which: str, number: int, words):
    connection = sqlite3.connect(".weft/journal.db")
    connection.execute(f"DELETE FROM events WHERE {which}")
    connection.commit()
    connection.close()
    result = weft(*words, told)
    assert (result.code, result.out) == (3, "")
    assert f"error[CLI003]: the store lacks event {number} of run {told}, " in result.err
    assert "  hint:  find the cause: weft doctor\n" in result.err
    assert f"lacks event {number} of " in weft("doctor").out
    assert weft(*words, told, "--json").data["error"]["code"] == "CLI003"


def test_fork_takes_a_turn_anew(weft, told, typed):
    typed("BYE")
    result = weft("replay", told, "--fork", "1", "--set", "limit=99", "--model", "you")
    assert result.code == 0
    assert "user: hello" in result.err
    assert "You may spend 99." in result.err
    assert f"continues from turn 1 of {told}\n" in result.err
    assert "limit = 99 (by edit)" in result.err
    assert result.out == "Clerk (you): BYE\n"
    page = weft("inspect", "last").out
    assert f"  forked from run {told}\n" in page


@pytest.mark.parametrize(("words", "fact"), CASES["test_runs_that_cannot_be_replayed"])
def test_runs_that_cannot_be_replayed(weft, told, words: list[str], fact: str):
    result = weft("replay", told, *words)
    assert result.code == 2
    assert fact in result.err


def test_secrets_are_not_printed(weft, desk, typed, monkeypatch):
    file = desk / "workflows" / "Desk" / "context_variables.json"
    content = json.loads(file.read_text())
    definitions = content["context_variables"]["definitions"]
    source = {"type": "environment", "env_var": "DESK_PIN", "required": True}
    definitions["pin"] = {"type": "int", "description": "d", "source": source, "secret": True}
    file.write_text(json.dumps(content))
    monkeypatch.setenv("DESK_PIN", "4711")
    typed("BYE")
    result = weft("run", "Desk", "hi", "--model", "you", "--json")
    assert result.code == 0, result.err
    shown = result.out + weft("inspect", "last").out + weft("inspect", "last@1").out
    shown += weft("replay", "last", "--json").out + weft("inspect", "last", "--json").out
    assert "4711" not in shown
    assert "pin = (secret)" in shown


def test_inspect_says_how_the_model_was_asked(weft, desk):
    file = desk / "workflows" / "Desk" / "orchestrator.json"
    settings = {"temperature": 0.2, "seed": "cache_seed", "stop": ["END"]}
    file.write_text(json.dumps({**json.loads(file.read_text()), "model_settings": settings}))
    weft("run", "Desk", "hello")
    run = weft("runs", "list", "--json").data["runs"][0]["run"]
    seed = cache_seed("local", "Desk", run)
    said = f'     settings temperature 0.2, seed {seed}, stop ["END"]\n'
    assert said in weft("inspect", run).out
    assert said in weft("inspect", f"{run}@1").out
    told = weft("inspect", f"{run}@1", "--json").data["turn"]["record"]["settings"]
    assert told == {**settings, "seed": seed}
