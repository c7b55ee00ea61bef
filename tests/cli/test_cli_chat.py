"""weft chat: with a person at a terminal, and with lines that come in through a pipe."""

import json
import os
import subprocess
import sys

import pytest

from support.cases import scenario_tests
from support.terminal_play import IMPATIENT, Terminal


def test_every_line_is_a_message(weft, desk, typed):
    typed("hi", "Hello there", "thanks", "GOODBYE")
    result = weft("chat", "HelloWorld", "--model", "you")
    assert result.code == 0
    assert "GreeterAgent (you): Hello there\n" in result.out
    assert result.err.count("you: hi\n") == 1


def told(result):
    """Return what a program reads: the events, and what comes beside and after them."""
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert {line["schema_version"] for line in lines} == {1}
    events = [line["event"] for line in lines if "event" in line]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    return events, [line for line in lines if "event" not in line]


def test_a_program_reads_events_and_the_run_at_last(weft, desk, typed):
    typed("hi", '!approve {"what": "x"}', '{"approved": true, "note": "fine"}', "BYE")
    result = weft("chat", "Desk", "--model", "you", "--json")
    events, (last,) = told(result)
    assert result.code == 0
    answers = [event["data"]["value"] for event in events if event["kind"] == "RequestAnswered"]
    assert answers == ["hi", {"approved": True, "note": "fine"}]
    assert events[-1]["kind"] == "RunEnded"
    assert (last["run"]["outcome"], last["run"]["requests"]) == ("completed", [])


def test_end_of_input_reports_what_the_run_waits_for(weft, desk, typed):
    typed("hi", "Hello there")
    result = weft("chat", "HelloWorld", "--model", "you", "--json")
    events, (last,) = told(result)
    assert result.code == 4
    assert events[-1]["kind"] == "RequestOpened"
    assert last["run"]["status"] == "waiting"
    assert [request["id"] for request in last["run"]["requests"]] == [events[-1]["data"]["id"]]
    typed()
    again = weft("chat", "--run", "last", "--json")
    assert (again.code, told(again)) == (4, told(result))


def test_a_program_may_inspect_and_stop(weft, desk, typed):
    typed("/inspect", "/stop")
    result = weft("chat", "HelloWorld", "--json")
    events, (inspected, last) = told(result)
    assert result.code == 0
    assert inspected["inspection"]["run"] == last["run"]["run"]
    assert (events[-1]["kind"], last["run"]["outcome"]) == ("RunEnded", "cancelled")


def test_a_field_that_does_not_fit_is_asked_again_alone(weft, desk, typed):
    file = desk / "workflows" / "Desk" / "tools.json"
    tools = json.loads(file.read_text())
    tools["tools"][0]["response_schema"]["properties"] = {
        "approved": {"type": "boolean"},
        "copies": {"$ref": "#/$defs/Copies"},
        "day": {"type": "string", "format": "date"},
    }
    tools["tools"][0]["response_schema"]["$defs"] = {"Copies": {"type": "integer", "minimum": 1}}
    file.write_text(json.dumps(tools))
    typed("hi", '!approve {"what": "x"}', "y", "0", "2", "tomorrow", "2026-03-01", "BYE")
    result = weft("chat", "Desk", "--model", "you")
    assert result.code == 0
    assert "copies: 0 is less than the minimum of 1\n" in result.err
    assert "day: 'tomorrow' is not a 'date'\n" in result.err
    answer = '{"approved": true, "copies": 2, "day": "2026-03-01"}'
    assert f"approve returned {answer}" in result.err


@pytest.mark.parametrize(
    ("words", "code", "fact"),
    [
        ([], 2, "name a package, or a run with --run"),
        (["Desk", "--run", "last"], 2, "name a package, or a run with --run"),
        (["--run", "last", "--model", "you"], 2, "--set and --model apply to new runs only"),
        (["--run", "last"], 6, "there are no runs: .weft/journal.db does not exist"),
    ],
)
def test_impossible_requests_are_explained(weft, desk, words: list[str], code: int, fact: str):
    result = weft("chat", *words)
    assert result.code == code
    assert fact in result.err + result.out


def test_closed_stdin_is_the_end(weft, desk, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert weft("chat", "Desk").code == 4


def test_a_pipe_that_stays_open_does_not_keep_a_chat_that_has_ended(desk):
    command = [sys.executable, "-m", "weft", "chat", "Desk", "--model", "you"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write("hi\nBYE\nmore\n")
        process.stdin.flush()
        assert process.wait(30) == 0
        err = process.stderr.read()
    assert err.endswith("\n1 line of the input was not used: the run has ended\n")


def test_pasted_text_is_one_message(desk):
    with Terminal("chat", "Desk", "--model", "you", cwd=desk) as terminal:
        terminal.wait_for("you: ")
        terminal.press(b"\x1b[200~first\rsecond\x1b[201~\r")
        shown = terminal.wait_for("Clerk says: ")
        assert "  user: first\n      second\n" in shown
        terminal.type("BYE")
        assert terminal.end() == 0


@pytest.mark.parametrize(("kind", "told"), [("xterm", True), ("dumb", False)])
def test_bracketed_paste_is_enabled_only_where_supported(desk, kind: str, told: bool):
    with Terminal("chat", "Desk", cwd=desk, environment={"TERM": kind}) as terminal:
        terminal.wait_for("you: ")
        terminal.press(b"\x04")
        assert terminal.end() == 0
    assert ("\x1b[?2004h" in terminal.shown) == told


def test_commands_where_the_person_answers_for_the_model(weft, desk, typed):
    typed("hi", "/help", "/nonsense", "/inspect", "//slash", "more", "/stop", "not a reply")
    result = weft("chat", "Desk", "--model", "you")
    assert result.code == 0
    assert result.err.count("  /stop      stop the run\n") == 2
    assert "unknown command /nonsense; available:\n" in result.err
    assert "of Desk: running\n" in result.out
    assert "Clerk (you): /slash\n" in result.out
    assert "Clerk (you): /stop" not in result.out
    assert " was stopped: " in result.err


@pytest.fixture
def stuck(weft, desk, typed, monkeypatch) -> str:
    """A run that is under way and that nobody works on."""
    typed("hi", "/quit")
    weft("chat", "Desk", "--model", "you")
    typed("hello?", "anybody?")
    monkeypatch.setattr("weft.cli.chat.conversation.PATIENCE", 0.2)
    return weft("runs", "list", "--json").data["runs"][0]["run"]


def test_a_run_that_does_not_move_is_left(weft, stuck):
    result = weft("chat", "--run", "last")
    assert result.code == 4
    assert result.err.endswith(
        f"run {stuck} is not moving: no process works on it; continue: weft runs resume {stuck}\n"
    )


def test_a_person_who_types_where_nothing_is_asked(weft, stuck, monkeypatch):
    reader, writer = os.pipe()
    os.write(writer, b"are you there?\n")
    os.close(writer)
    with os.fdopen(reader) as keyboard:
        monkeypatch.setattr("sys.stdin", keyboard)
        monkeypatch.setattr("weft.cli.chat.person.stdin_is_terminal", lambda: True)
        monkeypatch.setattr("weft.cli.chat.conversation.stdin_is_terminal", lambda: True)
        result = weft("chat", "--run", "last")
    assert result.code == 4
    assert "the run has no open request at present; Ctrl-C leaves\n" in result.err
    assert f"  continue: weft runs resume {stuck}\n" in result.err


@pytest.mark.parametrize(("key", "code"), [(b"\x04", 4), (b"\x03", 130)])
def test_a_person_can_leave_a_run_that_does_not_move(desk, stuck, key: bytes, code: int):
    with Terminal(*IMPATIENT, "chat", "--run", "last", cwd=desk, module=False) as terminal:
        terminal.wait_for(" is not moving: ")
        terminal.type("are you there?")
        terminal.wait_for("the run has no open request at present; Ctrl-C leaves\n")
        terminal.press(key)
        assert terminal.end() == code
        assert f"  continue: weft runs resume {stuck}\n" in terminal.shown


def test_a_run_that_moves_on_after_all_asks_its_question(desk, stuck):
    with Terminal(*IMPATIENT, "chat", "--run", "last", cwd=desk, module=False) as terminal:
        terminal.wait_for(" is not moving: ")
        command = [sys.executable, "-m", "weft", "runs", "resume", stuck]
        subprocess.run(command, input=b"And?\n", capture_output=True, check=False, timeout=60)
        terminal.wait_for("Clerk (you): And?\n")
        terminal.wait_for("you: ")
        terminal.type("nothing more")
        terminal.wait_for("Clerk says: ")
        terminal.type("BYE")
        assert terminal.end() == 0


def test_in_a_terminal(desk):
    with Terminal("chat", "Desk", "--model", "you", cwd=desk) as terminal:
        terminal.wait_for("Ctrl-C leaves, /help lists the commands.\n")
        terminal.wait_for("you: ")
        terminal.type("buy 世界")
        shown = terminal.wait_for("Clerk says: ")
        assert "  user: buy 世界\n" in shown
        assert "!approve {...}    calls a tool; parameters: what" in shown
        terminal.type('!approve {"what": "shoes"}')
        terminal.wait_for("Clerk asks you (approve):")
        terminal.wait_for("approved (y/n): ")
        terminal.type("y")
        terminal.wait_for("Note (may be empty): ")
        terminal.type("")
        terminal.wait_for("Clerk says: ")
        terminal.type("Bought.")
        terminal.wait_for("you: ")
        terminal.press(b"\x03")
        assert terminal.end() == 130
        assert "  continue: weft chat --run " in terminal.shown
    with Terminal("chat", "--run", "last", cwd=desk, columns=40) as terminal:
        terminal.wait_for("Clerk (you): Bought.\n")
        terminal.wait_for("you: ")
        terminal.press(b"\x04")
        assert terminal.end() == 0
        notes = [line for line in terminal.shown.splitlines() if line.startswith("    ")]
        assert notes
        assert max(map(len, notes)) <= 40


def test_leaving_a_form_is_explicit(desk):
    with Terminal("chat", "Desk", "--model", "you", cwd=desk) as terminal:
        terminal.wait_for("you: ")
        terminal.type("buy shoes")
        terminal.wait_for("Clerk says: ")
        terminal.type('!approve {"what": "shoes"}')
        terminal.wait_for("approved (y/n): ")
        terminal.press(b"\x04")
        assert terminal.end() == 0
        assert "  continue: weft chat --run " in terminal.shown


def test_ctrl_c_while_a_model_thinks(desk):
    with Terminal("run", "Desk", "hi", "--model", "you", cwd=desk) as terminal:
        terminal.wait_for("Clerk says: ")
        terminal.press(b"\x03")
        assert terminal.end() == 130
        assert "  continue: weft runs resume " in terminal.shown
        assert "Traceback" not in terminal.shown


def test_ctrl_c_twice_at_once(desk):
    with Terminal("run", "Desk", "hi", "--model", "you", cwd=desk) as terminal:
        terminal.wait_for("Clerk says: ")
        terminal.press(b"\x03\x03")
        assert terminal.end() == 130
        assert "Traceback" not in terminal.shown


def test_a_run_in_a_terminal_asks_its_questions(desk):
    with Terminal("run", "Desk", "hi", "--model", "you", cwd=desk) as terminal:
        terminal.wait_for("Clerk says: ")
        terminal.type("And?")
        terminal.wait_for("you: ")
        terminal.type("/stop is no command here")
        terminal.wait_for("Clerk says: ")
        terminal.type("BYE")
        assert terminal.end() == 0
        assert "user: /stop is no command here" in terminal.shown


def test_prompts_go_to_stderr_where_stdout_is_a_file(desk):
    program = (
        "import sys; sys.stdout = open('out', 'w'); from weft.cli.app import main\n"
        "code = main(['chat', 'Desk', '--model', 'you']); sys.stdout.close(); sys.exit(code)"
    )
    with Terminal("-c", program, cwd=desk, module=False) as terminal:
        terminal.wait_for("you: ")
        terminal.type("hi")
        terminal.wait_for("Clerk says: ")
        terminal.type("BYE")
        assert terminal.end() == 0
    assert (desk / "out").read_text() == "Clerk (you): BYE\n"


def test_a_line_that_is_not_unicode_is_rejected(weft, desk, typed):
    typed("caf\udce9", "hi", "BYE")
    result = weft("chat", "Desk", "--model", "you")
    assert result.code == 0
    assert "rejected: the message is not valid Unicode text\n" in result.err
    assert "you: hi\n" in result.err


test_scenarios = scenario_tests(__file__)
