"""Questions to others than the user, secrets that are typed, and what tools show and tell."""

import json
import subprocess
import sys

import pytest

from support.terminal_play import Terminal

TOOLS = '''
import time

from weft import use_ui_tool
from weft.runtime.tools.tool_api import show_ui_tool


async def sign(sum: int):
    """Have a sum signed."""
    answer = await use_ui_tool("sign", {"sum": sum})
    return "signed" if answer["approved"] else "not signed"


async def log_in(context_variables):
    """Log in."""
    answer = await use_ui_tool("log_in", {"where": "bank"})
    return f"{answer['name']} has {len(answer['password'])} letters: {answer['password']}"


async def scan(context_variables) -> str:
    """Scan."""
    for share in (0.25, 0.5, 1):
        context_variables.progress(share, f"page {round(share * 4)}")
        time.sleep(0.1)
    await show_ui_tool("board", {"pages": 4, "names": ["a", "b"]})
    return "scanned"


async def board():
    """Show."""
'''

HOOK = """
def polite(sender, message, recipient, silent):
    return f"Dear user, {message}"
"""


def ui(function, component, **more):
    tool = {"tool_type": "UI_Tool", "agent": "Clerk", "file": "office.py", "function": function}
    return {**tool, "description": "d", "ui": {"component": component, "mode": "inline"}, **more}


APPROVED = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}},
    "required": ["approved"],
}
LOGIN = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "password": {"type": "string", "writeOnly": True, "minLength": 6},
    },
    "required": ["name", "password"],
}

FILES = {
    "orchestrator.json": {"workflow_name": "Office", "initial_agent": "Clerk", "max_turns": 6},
    "agents.json": {
        "agents": [
            {
                "agent_name": "Clerk",
                "prompt_sections": [{"id": "role", "content": "Help."}],
                "human_interaction": "context",
            }
        ]
    },
    "tools.json": {
        "tools": [
            ui("sign", "Sign", response_schema=APPROVED, **{"for": "role:manager"}),
            ui("log_in", "LogIn", response_schema=LOGIN),
            ui("board", "Board"),
            {
                "tool_type": "Agent_Tool",
                "agent": "Clerk",
                "file": "office.py",
                "function": "scan",
                "description": "d",
            },
        ]
    },
    "hooks.json": {
        "hooks": [
            {
                "hook_type": "process_message_before_send",
                "agent": "Clerk",
                "file": "office.py",
                "function": "polite",
            }
        ]
    },
    "handoffs.json": {"handoff_rules": [{"source_agent": "Clerk", "target_agent": "user"}]},
}


@pytest.fixture
def office(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    folder = tmp_path / "workflows" / "Office"
    code = {
        "tools/office.py": TOOLS,
        "tools/Board.jsx": "export default () => null",
        "hooks/office.py": HOOK,
    }
    for name, content in {**FILES, **code}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def asked(weft, office, typed):
    """A run that asks the manager."""
    typed('!sign {"sum": 3}')
    result = weft("run", "Office", "hi", "--model", "you")
    assert result.code == 4
    typed()
    return result


def the_run(weft):
    (row,) = weft("runs", "list", "--json").data["runs"]
    return row


def test_a_run_that_asks_others_names_the_command_by_which_they_answer(weft, asked):
    run = the_run(weft)["run"]
    assert f"run {run} waits for an answer to sign from role:manager" in asked.err
    command = f"weft runs answer {run} --json-value JSON --as role:manager\n"
    assert command in asked.err
    shown = weft("runs", "show", run).out
    assert "\nClerk: sign asks role:manager\n" in shown
    assert command in shown


def test_programs_read_who_is_asked_what_shows_it_and_what_answers(weft, asked):
    (request,) = the_run(weft)["requests"]
    assert (request["addressee"], request["component"], request["mode"]) == (
        "role:manager", "Sign", "inline",
    )  # fmt: skip
    assert request["response_schema"] == APPROVED
    assert (request["payload"], request["sets"]) == ({"sum": 3}, [])


def test_only_who_is_asked_answers(weft, asked, typed):
    refused = weft("runs", "answer", "last", "--json-value", '{"approved": true}')
    assert refused.code == 2
    assert "asks role:manager, not you" in refused.err
    assert "answer as one of them: --as role:manager" in refused.err
    other = weft("runs", "answer", "last", "--json-value", "{}", "--as", "group:manager")
    assert other.code == 2
    assert "asks role:manager, not user:me, group:manager" in other.err
    typed("All is well.")
    answer = ["runs", "answer", "last", "--json-value", '{"approved": true}']
    answered = weft(*answer, "--as", "role:clerk", "--as", "role:manager")
    assert answered.code == 4
    assert 'sign returned "signed"' in answered.err
    assert answered.out == "Clerk (you): Dear user, All is well.\n"
    assert [request["kind"] for request in the_run(weft)["requests"]] == ["chat"]


def test_lists_are_of_what_somebody_is_asked(weft, asked, typed):
    typed("What else?")
    weft("run", "Office", "other", "--model", "you")
    typed()
    assert len(weft("runs", "list", "--json").data["runs"]) == 2
    (row,) = weft("runs", "list", "--as", "role:manager", "--json").data["runs"]
    assert [request["tool"] for request in row["requests"]] == ["sign"]
    assert weft("runs", "list", "--as", "role:manager").out.count("\n") == 1
    nobody = weft("runs", "list", "--as", "user:bob", "--status", "waiting")
    assert nobody.err == "no waiting runs with requests for user:bob; list all: weft runs list\n"
    assert weft("runs", "show", row["run"], "--as", "user:bob", "--json").data["run"][
        "requests"
    ] == []  # fmt: skip


@pytest.mark.parametrize(
    ("who", "told"),
    [
        (["manager"], 'invalid value "manager" for --as'),
        (["role:"], 'invalid value "role:" for --as'),
        (["team:a"], 'invalid value "team:a" for --as'),
        (["user:a", "user:b"], "--as names 2 users"),
    ],
)
def test_empty_user_is_refused(weft, asked, who, told):
    words = [word for item in who for word in ("--as", item)]
    for command in (["list"], ["show", "last"], ["answer", "last", "x"]):
        refused = weft("runs", *command, *words)
        assert (refused.code, told in refused.err) == (2, True)


def test_chat_names_the_addressee_and_continues_after_the_answer(office):
    with Terminal("chat", "Office", "--model", "you", cwd=office) as terminal:
        terminal.wait_for("you: ")
        terminal.type("hello")
        terminal.wait_for("Clerk says: ")
        terminal.type('!sign {"sum": 3}')
        terminal.wait_for("Clerk asks role:manager (sign); that person answers:\n")
        words = terminal.wait_for("--as role:manager")
        run = words.split()[3]
        answer = [sys.executable, "-m", "weft", "runs", "answer", run, "--as", "role:manager"]
        words = [*answer, "--json-value", '{"approved": true}']
        # It follows the run, which the chat continues to work on.
        with subprocess.Popen(words, cwd=office, stderr=subprocess.DEVNULL) as answering:
            terminal.wait_for('sign returned "signed"')
            answering.kill()
        terminal.press(b"\x03")
        terminal.end()


def test_a_chat_without_a_terminal_leaves_a_run_that_asks_others(weft, office, typed):
    typed("hello")
    result = weft("chat", "Office", "--model", "you")
    typed("hello", '!sign {"sum": 3}')
    result = weft("chat", "Office", "--model", "you")
    assert result.code == 4
    assert "Clerk asks role:manager (sign); that person answers:\n" in result.err


def test_secret_field_is_neither_shown_nor_stored(office):
    with Terminal("run", "Office", "hi", "--model", "you", cwd=office) as terminal:
        terminal.wait_for("Clerk says: ")
        terminal.type("!log_in {}")
        terminal.wait_for("name: ")
        terminal.type("ada")
        terminal.wait_for("password: ")
        terminal.type("oops")
        terminal.wait_for("password: the typed value is invalid")
        terminal.wait_for("password: ")
        terminal.type("hush-hush")
        terminal.wait_for("ada has 9 letters: (secret)")
        terminal.press(b"\x03")
        terminal.end()
    assert "hush" not in terminal.shown
    assert "oops" not in terminal.shown
    for file in (office / ".weft").iterdir():
        assert b"hush" not in file.read_bytes()


def test_a_wrong_secret_on_the_command_line_is_not_repeated(weft, office, typed):
    typed("!log_in {}")
    weft("run", "Office", "hi", "--model", "you")
    typed()
    given = json.dumps({"name": "ada", "password": "oops"})
    result = weft("runs", "answer", "last", "--json-value", given)
    assert result.code == 2
    assert "password: the typed value is invalid" in result.err
    assert "oops" not in result.err


def test_progress_is_one_line_that_is_written_anew(office):
    with Terminal("run", "Office", "hi", "--model", "you", cwd=office, columns=60) as terminal:
        terminal.wait_for("Clerk says: ")
        terminal.type("!scan {}")
        terminal.wait_for("\r    scan: 25% page 1")
        terminal.wait_for("\r    scan: 100% page 4")
        terminal.wait_for("+- board shows Board\n    |  pages: 4\n    |  names:\n    |    - a\n")
        terminal.wait_for('scan returned "scanned" (100% page 4)')
        terminal.wait_for("Clerk says: ")
        terminal.type("All is well.")
        terminal.wait_for("Clerk (you): Dear user, All is well.")
        terminal.press(b"\x03")
        terminal.end()
    assert terminal.shown.count("All is well.") == 2, "once as it was typed"


def test_progress_is_a_line_of_json_for_programs(weft, office, typed):
    typed("!scan {}", "All is well.")
    result = weft("run", "Office", "hi", "--model", "you", "--json")
    lines = [json.loads(line) for line in result.out.splitlines()]
    told = [line["progress"] for line in lines if "progress" in line]
    assert [(entry["tool"], entry["share"], entry["text"]) for entry in told] == [
        ("scan", 0.25, "page 1"), ("scan", 0.5, "page 2"), ("scan", 1.0, "page 4"),
    ]  # fmt: skip
    sent = [
        line["event"]["data"]
        for line in lines
        if line.get("event", {}).get("kind") == "MessageSent"
    ]
    assert sent == [{"agent": "Clerk", "text": "Dear user, All is well.", "held": False}]


def test_progress_without_a_terminal_is_reported_with_the_result(weft, office, typed):
    typed("!scan {}", "All is well.")
    result = weft("run", "Office", "hi", "--model", "you")
    assert result.out == "Clerk (you): Dear user, All is well.\n"
    assert result.err.count("page") == 2, "its last word, and what it shows"
    assert 'scan returned "scanned" (100% page 4)' in result.err
