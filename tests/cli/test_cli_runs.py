"""weft runs: looking at runs that are kept, and going on with them."""

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from support.cases import read_cases, scenario_tests
from support.desk_play import let_leases_end
from support.terminal_play import IMPATIENT, Terminal
from weft.runtime.host import Host

CASES = read_cases(__file__)


@pytest.fixture
def runs(weft, desk, typed, prepared):
    """Three runs: one that has ended, one that waits for the user, one for an approval."""

    def run_three():
        for message, reply in (
            ("first", "BYE"),
            ("second\nwords", "What else?"),
            ("third", '!approve {"what": "shoes"}'),
        ):
            typed(reply)
            weft("run", "Desk", message, "--model", "you", "--quiet")
        typed()
        with closing(sqlite3.connect(".weft/journal.db")) as journal:
            rows = journal.execute("SELECT run FROM runs ORDER BY started_at, run")
            return [run for (run,) in rows]

    return list(prepared("three runs", run_three))


def test_list(weft, runs):
    result = weft("runs", "list")
    rows = [line.split("\t") for line in result.out.splitlines()]
    assert [row[0] for row in rows] == runs[::-1]
    assert [row[1] for row in rows] == ["waiting", "waiting", "completed"]
    assert [row[-1] for row in rows] == ["third", "second words", "first"]
    assert result.err == ""


def test_list_shows_what_each_run_waits_for(weft, runs):
    def waits():
        return [line.split("\t")[5] for line in weft("runs", "list").out.splitlines()]

    assert waits() == ["person", "person", ""]
    with closing(sqlite3.connect(".weft/journal.db", isolation_level=None)) as journal:
        journal.execute("UPDATE requests SET addressee = 'role:boss' WHERE run = ?", (runs[2],))
        journal.execute("DELETE FROM requests WHERE run = ?", (runs[1],))
        assert waits() == ["role:boss", "mail", ""]
        journal.execute("UPDATE work SET due_at = 1900000000000 WHERE run = ?", (runs[1],))
        assert waits()[1].startswith("timer at 2030-03-17T")
        journal.execute("UPDATE runs SET status = 'running' WHERE run = ?", (runs[1],))
        assert waits()[1] == "worker"


def test_list_shows_the_owner_and_the_age_of_its_heartbeat(weft, desk):
    with working(desk):
        owner = weft("runs", "list", "--json").data["runs"][0]["owner"]
        shown = weft("runs", "list").out.split("\t")
    assert re.fullmatch(rf"{owner[-5:]} [0-4]s", shown[4])
    assert shown[5] == ""


def test_list_for_programs_asks_once_for_all_requests(weft, runs, monkeypatch):
    real, asked = Host.requests, []

    async def requests(self: Host, **given):
        asked.append(given)
        return await real(self, **given)

    monkeypatch.setattr(Host, "requests", requests)
    assert len(weft("runs", "list", "--json").data["runs"]) == len(runs)
    assert len(asked) == 1


def test_list_for_programs_tells_what_each_run_asks(weft, runs):
    listed = {run["run"]: run["requests"] for run in weft("runs", "list", "--json").data["runs"]}
    asked = [[(event["kind"], event["tool"]) for event in listed[run]] for run in runs]
    assert asked == [[], [("chat", None)], [("ui", "approve")]]
    for run in runs:
        assert weft("runs", "show", run, "--json").data["run"]["requests"] == listed[run]


@pytest.mark.parametrize(
    ("words", "number"),
    [
        (["--status", "waiting"], 2),
        (["--status", "ended"], 1),
        (["--limit", "1"], 1),
        (["--workflow", "Desk"], 3),
        (["--workflow", "Other"], 0),
    ],
)
def test_list_less(weft, runs, words: list[str], number: int):
    data = weft("runs", "list", *words, "--json").data
    assert data["schema_version"] == 1
    assert len(data["runs"]) == number


def test_list_without_runs(weft, desk):
    result = weft("runs", "list")
    assert (result.code, result.out) == (0, "")
    assert result.err == "no runs; start one: weft run CustomerSupportRouter hello\n"
    assert "  hint:  start one: weft run CustomerSupportRouter hello\n" in weft("inspect", "x").err
    assert weft("runs", "list", "--limit", "0").code == 2
    assert weft("runs", "list", "--journal", "no.db").code == 6
    assert not Path("no.db").exists()


def test_a_list_that_stops_at_its_limit_says_so(weft, runs):
    result = weft("runs", "list", "--limit", "2")
    assert len(result.out.splitlines()) == 2
    assert result.err == "there are more runs than these 2: use --limit N\n"
    assert weft("runs", "list", "--limit", "3").err == ""


@contextmanager
def working(desk: Path):
    """A run that another process works on, which asks a person for the model's answer."""
    with Terminal("run", "Desk", "hi", "--model", "you", cwd=desk) as terminal:
        terminal.wait_for("Clerk says: ")
        yield terminal


def killed(desk: Path) -> None:
    """Leave a run behind whose process was killed, and that so long ago that it counts as dead."""
    with working(desk) as terminal:
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.end()
    let_leases_end(desk)


def test_stopped_run_is_distinguished_from_a_running_one(weft, desk, typed):
    with working(desk):
        run = weft("runs", "list", "--json").data["runs"][0]["run"]
        command = f"weft runs resume {run}"
        alive = weft("runs", "list")
        assert (alive.out.split("\t")[1], alive.err) == ("running", "")
        shown = weft("runs", "show", run).out
        assert "  status    running\n" in shown
        assert command not in shown
        refused = weft("runs", "answer", run, "so")
        assert f"hint:  wait for a request: weft runs tail {run}\n" in refused.err
        assert command not in refused.err
    killed(desk)
    typed("/quit")
    weft("run", "Desk", "hi", "--model", "you")
    left, dead, _ = (run["run"] for run in weft("runs", "list", "--json").data["runs"])
    # One was left, one was killed; of the third nobody knows yet that it was killed just now.
    statuses = [line.split("\t")[1] for line in weft("runs", "list").out.splitlines()]
    assert statuses[:2] == ["queued", "stopped"]
    assert "runs wait for a worker; start one: weft worker\n" in weft("runs", "list").err
    one = weft("runs", "list", "--limit", "1").err
    resume = f"continue it here: weft runs resume {left}\n"
    assert one.startswith(f"run {left[-8:]} waits for a worker; {resume}")
    assert "  status    queued: it waits for a worker\n" in weft("runs", "show", left).out
    since = "  status    stopped: no process has worked on it since 20"
    assert since in weft("runs", "show", dead).out
    for run in (left, dead):
        shown = weft("runs", "show", run).out
        assert f"  resume    weft runs resume {run}\n" in shown
        # What it was to do is to be done first.
        refused = weft("runs", "answer", run, "so")
        assert refused.code == 2
        hint = f"hint:  no process works on it; continue: weft runs resume {run}\n"
        assert hint in refused.err


def test_a_live_run_is_resumed_only_by_taking_it_over(weft, desk, typed):
    with working(desk) as terminal:
        typed("BYE")
        refused = weft("runs", "resume", "last")
        assert (refused.code, refused.out) == (2, "")
        assert re.search(r"another process works on run \w+: its last heartbeat was", refused.err)
        assert "take it over with --take-over" in refused.err
        assert "continues" not in refused.err
        typed("BYE")
        taken = weft("runs", "resume", "last", "--take-over")
        assert (taken.code, taken.out) == (0, "Clerk (you): BYE\n")
        # What the other process comes to is too late, and does not count.
        terminal.type("And?")
        terminal.end()
    assert weft("runs", "show", "last", "--json").data["run"]["outcome"] == "completed"
    assert weft("replay", "last", "--check").code == 0


def test_resume_all_continues_with_the_others_if_one_fails(weft, desk, typed):
    typed("/quit")
    weft("run", "Desk", "hi", "--model", "you")
    (left,) = (run["run"] for run in weft("runs", "list", "--json").data["runs"])
    result = weft("runs", "resume", "--all")
    assert result.code == 1
    assert result.out == ""
    reason = "the model you needs a person"
    assert f"1 run to resume\ncannot resume run {left}: {reason}; " in result.err


def test_resume_all_leaves_those_alone_that_are_alive_or_wait(weft, desk, runs):
    with working(desk):
        before = weft("runs", "list", "--json").data["runs"]
        none = weft("runs", "resume", "--all", "--json")
        assert (none.code, none.data["runs"]) == (0, [])
        after = weft("runs", "list", "--json").data["runs"]
        assert [event["seq"] for event in after] == [event["seq"] for event in before]


def test_resume_needs_a_run_or_all(weft, runs):
    for words in ((), (runs[0], "--all")):
        refused = weft("runs", "resume", *words)
        assert refused.code == 2
        assert "name a run, or --all" in refused.err


@pytest.mark.parametrize("verb", [["runs", "answer", "last", "so"], ["chat", "--run", "last"]])
def test_package_changed_since_the_run_is_reported(weft, desk, typed, verb: list[str]):
    typed("What else?")
    weft("run", "Desk", "hi", "--model", "you")
    digest = weft("runs", "list", "--json").data["runs"][0]["digest"]
    typed("What else?")
    assert "has changed since" not in weft(*verb).err
    code = desk / "workflows" / "Desk" / "tools" / "desk.py"
    code.write_text(code.read_text() + "\n\nMORE = 1\n")
    note = f"the package Desk has changed; this run continues with version {digest[:8]}\n"
    typed("What else?")
    assert note in weft(*verb).err
    assert note in weft("replay", "last", "--fork", "1").err
    (code.parents[1] / "agents.json").write_text("{")
    assert note in weft("replay", "last", "--fork", "1").err
    shutil.rmtree(code.parents[1])
    assert "has changed since" not in weft("replay", "last", "--fork", "1").err


@pytest.mark.parametrize("columns", [80, 40])
def test_list_in_a_terminal(desk, runs, columns: int):
    with Terminal("runs", "list", cwd=desk, columns=columns) as terminal:
        assert terminal.end() == 0
    lines = terminal.shown.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(runs[0][-8:] in line for line in lines)
    assert ("FIRST WORDS" in terminal.shown) == (columns == 80)


@pytest.mark.parametrize("name", [lambda run: run, lambda run: run[-6:], lambda _: "LAST"])
def test_a_run_is_named_by_its_end_or_as_the_last(weft, runs, name):
    assert weft("runs", "show", name(runs[2]), "--json").data["run"]["run"] == runs[2]


def test_more_candidates_than_can_be_named(weft, runs, typed):
    for _ in range(2):
        typed("BYE")
        weft("run", "Desk", "hi", "--model", "you")
    assert "and 1 more" in weft("runs", "show", "01").err


def test_the_last_of_none(weft, runs):
    weft("runs", "cancel", runs[1])
    weft("runs", "cancel", runs[2])
    weft("runs", "delete", "--older-than", "0s", "--yes")
    result = weft("runs", "show", "last")
    assert result.code == 6
    assert "there is no run yet" in result.err


def test_show_says_what_the_workflow_is_for(weft, desk):
    file = desk / "workflows" / "Desk" / "orchestrator.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "description": "Buys\n things."}))
    weft("run", "Desk", "hello")
    assert "\n  about     Buys things.\n" in weft("runs", "show", "last").out


def test_show(weft, runs):
    out = weft("runs", "show", runs[2]).out
    assert out.startswith(f"run {runs[2]}\n  workflow  Desk ")
    assert "  status    waiting\n" in out
    assert "\nClerk: approve asks\n" in out
    assert '  shows     {"what": "shoes", "prices": [1, 2]}\n' in out
    assert '  takes     {"type": "object"' in out
    assert f"  answer    weft runs answer {runs[2]} --json-value JSON\n" in out
    assert "  status    completed: All is done.\n" in weft("runs", "show", runs[0]).out
    (asked,) = weft("runs", "show", runs[2], "--json").data["run"]["requests"]
    assert (asked["tool"], asked["addressee"]) == ("approve", "")
    assert asked["response_schema"]["type"] == "object"


def test_tail(weft, runs):
    result = weft("runs", "tail", runs[0])
    assert result.code == 0
    lines = result.out.splitlines()
    assert re.match(r" +1  \d\d:\d\d:\d\d  RunStarted         Desk starts$", lines[0])
    assert re.search(r"  RequestAnswered    me answers: \"first\"$", result.out, re.MULTILINE)
    assert lines[-1].endswith("RunEnded           completed: All is done.")
    later = weft("runs", "tail", runs[0], "--after", "3", "--json").out.splitlines()
    assert json.loads(later[0])["event"]["seq"] == 4
    assert len(later) == len(lines) - 3


def test_tail_of_an_ended_run_that_was_read_to_its_end_ends(weft, runs):
    last = weft("runs", "show", runs[0], "--json").data["run"]["seq"]
    result = weft("runs", "tail", runs[0], "--after", last)
    assert (result.code, result.out) == (0, "")


def test_tail_as_a_user_shows_what_users_may_see(weft, desk, typed):
    typed('!look_up {"name": "Ann"}', "BYE")
    weft("run", "Desk", "first", "--model", "you")
    result = weft("runs", "tail", "last", "--as-user")
    assert result.code == 0
    events = [json.loads(line)["event"] for line in result.out.splitlines()]
    first, nothing = f"{events[0]['run']}:1", dict.fromkeys(("tool", "payload", "expires_at"))
    shown = dict.fromkeys(("component", "mode", "addressee"), "")
    assert [(event["kind"], event["data"]) for event in events] == [
        ("RunStarted", {"workflow": "Desk"}),
        ("RequestOpened", {**nothing, **shown, "id": first, "kind": "chat", "agent": "Clerk"}),
        ("RequestAnswered", {"id": first, "value": "first", "user": "me"}),
        ("TurnStarted", {"agent": "Clerk"}),
        ("ModelReplied", {"call": 2, "text": "BYE", "answerer": "you"}),
        ("TurnEnded", {"agent": "Clerk"}),
        ("RunEnded", {"outcome": "completed"}),
    ]
    shape = ["v", "seq", "ts", "run", "turn", "kind", "actor", "cause", "data"]
    assert all(list(event) == shape for event in events)
    assert "Ann" in weft("runs", "tail", "last", "--json").out
    assert "Ann" not in result.out


def test_tail_follows_until_ctrl_c(desk, runs):
    with Terminal("runs", "tail", runs[1], cwd=desk, columns=60) as terminal:
        terminal.wait_for("waits for the user\n")
        subprocess.run(
            [sys.executable, "-m", "weft", "runs", "cancel", "--drain", runs[2]], check=True
        )
        terminal.wait_for("waiting[CLI004]: ")
        terminal.press(b"\x03")
        assert terminal.end() == 130
    assert terminal.shown.endswith("stopped\n")
    assert max(map(len, terminal.shown.partition("waiting[")[0].splitlines())) <= 60


def test_tail_ends_with_the_run(desk, runs):
    with Terminal("runs", "tail", runs[1], cwd=desk) as terminal:
        terminal.wait_for("waits for the user\n")
        subprocess.run([sys.executable, "-m", "weft", "runs", "cancel", runs[1]], check=True)
        assert terminal.end() == 0
    assert "me stops the run\n" in terminal.shown


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_tail_of_a_waiting_run_ends_without_a_terminal(weft, runs, form, monkeypatch):
    monkeypatch.setattr("weft.cli.commands.runs.PATIENCE", 0.2)
    result = weft("runs", "tail", runs[2], *form)
    assert result.code == 4
    assert (
        len(result.out.splitlines()) == weft("runs", "show", runs[2], "--json").data["run"]["seq"]
    )
    assert f"waiting[CLI004]: run {runs[2]} waits for an answer to approve\n" in result.err
    assert f"  answer: weft runs answer {runs[2]} --json-value JSON\n" in result.err


def test_tail_of_a_stopped_run_says_so_and_continues(desk, typed, weft):
    typed("/quit")
    weft("run", "Desk", "hi", "--model", "you")
    run = weft("runs", "show", "last", "--json").data["run"]["run"]
    with Terminal("runs", "tail", "last", cwd=desk) as terminal:
        terminal.wait_for(f"run {run} is not moving: no process works on it; ")
        terminal.wait_for(f"continue: weft runs resume {run}\n")
        typed("BYE")
        assert weft("runs", "resume", run).code == 0
        assert terminal.end() == 0
    assert "completed: All is done." in terminal.shown


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_tail_of_a_stopped_run_ends_without_a_terminal(weft, desk, typed, form, monkeypatch):
    monkeypatch.setattr("weft.cli.commands.runs.PATIENCE", 0.2)
    typed("/quit")
    weft("run", "Desk", "hi", "--model", "you")
    run = weft("runs", "show", "last", "--json").data["run"]
    result = weft("runs", "tail", "last", *form)
    assert result.code == 4
    assert len(result.out.splitlines()) == run["seq"]
    how = f"no process works on it; continue: weft runs resume {run['run']}"
    assert result.err == f"run {run['run']} is not moving: {how}\n"


def test_tail_continues_while_a_process_may_work_on_the_run(weft, desk, typed, monkeypatch):
    """One that died a moment ago still looks alive: tail says so once, and looks again."""
    for module in ("chat.conversation", "commands.runs"):
        monkeypatch.setattr(f"weft.cli.{module}.PATIENCE", 0.1)
    typed("/quit")
    weft("run", "Desk", "hi", "--model", "you")
    looks = iter([True] * 4)  # Two looks.

    def alive(_row, _now):
        return next(looks, False)

    monkeypatch.setattr("weft.cli.hosting.is_alive", alive)
    result = weft("runs", "tail", "last")
    assert result.code == 4
    first, second = result.err.splitlines()
    assert first.startswith("no event of run ")
    assert " for 0.1 s" in first
    assert "no process works on it; continue: " in second


def test_cancel(weft, runs):
    result = weft("runs", "cancel", runs[1])
    assert result.code == 0
    assert result.out.startswith(f"run {runs[1]} was stopped: ")
    again = weft("runs", "cancel", runs[1])
    assert again.code == 2
    assert "has ended already" in again.err
    assert weft("runs", "cancel", runs[2], "--json").data["run"]["outcome"] == "cancelled"


def test_draining_a_turn_that_waits(weft, runs):
    result = weft("runs", "cancel", runs[2], "--drain")
    assert result.out == f"run {runs[2]} stops after the turn that waits for a person\n"


def test_draining_without_running_effects(weft, desk, typed, monkeypatch):
    typed()
    weft("run", "Desk", "hi", "--model", "you")
    monkeypatch.setattr("weft.cli.commands.runs._MOMENT", 0.2)
    result = weft("runs", "cancel", "last", "--drain")
    run = weft("runs", "list", "--json").data["runs"][0]
    assert run["status"] == "running"
    fact = f"run {run['run']} stops after its turn; no process works on it; continue"
    assert (result.code, result.out) == (0, f"{fact}: weft runs resume {run['run']}\n")
    typed("What else?")
    weft("runs", "resume", "last")
    assert weft("runs", "show", "last", "--json").data["run"]["outcome"] == "cancelled"


def test_draining_a_turn_of_another_process_leaves_the_run_to_it(weft, desk, monkeypatch):
    monkeypatch.setattr("weft.cli.commands.runs._MOMENT", 0.2)
    with working(desk) as terminal:
        before = weft("runs", "show", "last", "--json").data["run"]["owner"]
        result = weft("runs", "cancel", "last", "--drain")
        assert f"stops after its turn; worker {before} works on it; watch: weft runs" in result.out
        assert weft("runs", "show", "last", "--json").data["run"]["owner"] == before
        terminal.type("And?")
        terminal.end()
    assert weft("runs", "show", "last", "--json").data["run"]["outcome"] == "cancelled"


def test_resume_of_what_needs_none(weft, runs):
    ended = weft("runs", "resume", runs[0])
    assert ended.code == 2
    assert f"run {runs[0]} completed: All is done." in ended.err
    assert "--fork 1" in ended.err
    assert ended.err.endswith("  more:  weft runs resume --help\n")
    waiting = weft("runs", "resume", runs[1])
    assert waiting.code == 4
    assert waiting.out == ""


def test_resume_after_the_process_was_killed(weft, desk, typed):
    killed(desk)
    assert weft("runs", "list", "--status", "running", "--json").data["runs"]
    typed("BYE")
    assert weft("runs", "resume", "last").code == 0


def test_a_chat_leaves_a_run_alone_that_another_process_may_work_on(desk):
    with Terminal("run", "Desk", "hi", "--model", "you", cwd=desk) as terminal:
        terminal.wait_for("Clerk says: ")
        with Terminal(*IMPATIENT, "chat", "--run", "last", cwd=desk, module=False) as other:
            other.wait_for("no event of run ")
            other.wait_for(" is alive\n")
            terminal.type("BYE")
            assert terminal.end() == 0
            assert other.end() == 0
        assert "Clerk (you): BYE\n" in other.shown


def test_answer_a_message(weft, runs, typed):
    typed("BYE")
    result = weft("runs", "answer", runs[1], "that is all")
    assert result.code == 0
    assert "user: that is all" in result.err
    assert result.out == "Clerk (you): BYE\n"


TOLD = "the answer is delivered as JSON; as text: --text\n"


@pytest.mark.parametrize(
    ("words", "taken", "told"), CASES["test_an_answer_to_a_tool_that_takes_anything"]
)
def test_an_answer_to_a_tool_that_takes_anything(
    weft, desk, typed, words: list[str], taken: str, told: bool
):
    folder = desk / "workflows" / "Desk"
    (folder / "tools" / "Approval.jsx").write_text("export default function Approval() {}\n")
    file = folder / "tools.json"
    content = json.loads(file.read_text())
    del content["tools"][0]["response_schema"]
    file.write_text(json.dumps(content))
    typed('!approve {"what": "a"}')
    weft("run", "Desk", "hello", "--model", "you")
    typed("BYE")
    result = weft("runs", "answer", "last", *words)
    assert result.code == 0
    assert f"approve returned {taken}\n" in result.err
    assert (TOLD in result.err) is told


def test_an_answer_that_does_not_fit_names_the_command_that_shows_what_does(weft, runs):
    result = weft("runs", "answer", "last", '{"approved": 1}', "--workspace", Path.cwd())
    takes, hint = [line for line in result.err.splitlines() if line.startswith("  hint:")]
    assert takes == "  hint:  it takes: approved, note"
    command = hint.partition("weft ")[2]
    assert command == f"runs show {runs[2]} --workspace {Path.cwd()}"
    assert '"required": ["approved"]' in weft(*command.split()).out


def test_an_answer_with_an_unknown_key_or_without_json_says_what_is_taken(weft, runs):
    misspelled = weft("runs", "answer", "last", '{"aproved": true}')
    assert 'hint:  unknown key "aproved": did you mean approved?' in misspelled.err
    word = weft("runs", "answer", "last", "come_now")
    assert "hint:  it takes: approved" in word.err


@pytest.mark.parametrize(
    ("text", "fact"),
    [("  ", "the message is empty"), ("caf\udcc3\udca9", "hint:  use UTF-8: export ")],
)
def test_a_message_that_says_nothing(weft, runs, text: str, fact: str):
    for words in (["run", "Desk"], ["runs", "answer", runs[1]]):
        result = weft(*words, text)
        assert result.code == 2
        assert fact in result.err
    assert len(weft("runs", "list", "--json").data["runs"]) == 3
    assert weft("runs", "show", runs[1], "--json").data["run"]["status"] == "waiting"


def test_answer_in_a_binary_file(weft, runs):
    Path("answer.json").write_bytes(b"\xff\xfe{}")
    result = weft("runs", "answer", "last", "--json-value", "@answer.json")
    assert result.code == 2
    assert "answer.json is not UTF-8 text\n  hint:  save the file as UTF-8\n" in result.err


def test_nothing_is_asked(weft, runs):
    result = weft("runs", "answer", runs[0], "hello")
    assert result.code == 2
    assert f"run {runs[0]} has ended" in result.err


def test_two_questions_at_once(weft, desk, typed):
    """A model may ask for several tools in one reply."""
    import asyncio

    from weft.app.hosts import LOCAL, open_host
    from weft.engine.events import ToolRequest
    from weft.ports.model import ModelReply

    async def twice(request):
        calls = tuple(ToolRequest(str(n), "approve", {"what": str(n)}) for n in range(2))
        return ModelReply("", calls)

    async def scenario():
        async with await open_host(desk, person=twice) as host:
            run = await host.start("Desk", scope=LOCAL, message="hi", model="you")
            await asyncio.wait_for(host.settled(run, scope=LOCAL), 30)

    asyncio.run(scenario())
    ambiguous = weft("runs", "answer", "last", '{"approved": true}')
    assert ambiguous.code == 2
    assert "has 2 open requests" in ambiguous.err
    commands = [
        line for line in weft("runs", "show", "last").out.splitlines() if "  answer " in line
    ]
    question = commands[0].split()[5]
    typed()
    result = weft("runs", "answer", "last", question, "--json-value", '{"approved": true}')
    assert result.code == 4
    assert "waits for an answer to approve" in result.err


def test_a_form_asks_for_the_answer_in_a_terminal(desk, runs):
    with Terminal("runs", "answer", runs[2], cwd=desk) as terminal:
        terminal.wait_for("approved (y/n): ")
        terminal.type("n")
        terminal.wait_for("Note (may be empty): ")
        terminal.type("too dear")
        terminal.wait_for("Clerk says: ")
        terminal.type("BYE")
        assert terminal.end() == 0
    with Terminal("runs", "answer", runs[1], cwd=desk) as terminal:
        terminal.wait_for("you: ")
        terminal.type("")
        terminal.wait_for("you: ")
        terminal.type("so long")
        terminal.wait_for("Clerk says: ")
        terminal.type("BYE")
        assert terminal.end() == 0


def test_prune(weft, runs):
    assert weft("runs", "delete", "--older-than", "1h", "--yes").out.startswith(
        "to delete: 0 runs, 0 events"
    )
    looked = weft("runs", "delete", "--older-than", "0s", "--dry-run")
    assert looked.out.startswith("to delete: 1 run, ")
    refused = weft("runs", "delete", "--older-than", "0s")
    assert refused.code == 2
    assert "deleting runs cannot be undone" in refused.err
    data = weft("runs", "delete", "--older-than", "0s", "--yes", "--json").data
    assert (data["runs"], data["deleted"]) == (1, True)
    assert data["bytes"] > 0
    assert len(weft("runs", "list", "--json").data["runs"]) == 2
    assert weft("runs", "delete", "--older-than", "soon").code == 2


def test_prune_asks_in_a_terminal(weft, desk, runs):
    for key, left, told in (
        (b"n\n", 3, "nothing deleted\n"),
        (b"\x04", 3, "nothing deleted\n"),
        (b"y\n", 2, "deleted: 1 run, "),
    ):
        with Terminal("runs", "delete", "--older-than", "0s", cwd=desk) as terminal:
            terminal.wait_for("? (y/n): ")
            terminal.press(key)
            assert terminal.end() == 0
        assert told in terminal.shown
        assert len(weft("runs", "list", "--json").data["runs"]) == left


def test_a_locked_journal_is_named(weft, runs):
    import sqlite3

    connection = sqlite3.connect(".weft/journal.db")
    connection.execute("DROP TABLE runs")
    connection.commit()
    connection.close()
    result = weft("runs", "list")
    assert result.code == 3
    assert "error[CLI003]: store .weft/journal.db: " in result.err


def test_a_reader_that_leaves_early(runs):
    command = f'"{sys.executable}" -m weft runs tail {runs[0]} | head -1'
    result = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("words", "page"),
    [
        (["runs", "show"], "runs show"),
        (["--workspace", ".", "runs", "list", "--nope"], "runs list"),
        (["runs"], None),
        (["run"], "run"),
        (["--nope"], ""),
    ],
)
def test_wrong_usage_names_the_page(weft, desk, words: list[str], page: str | None):
    result = weft(*words)
    assert result.code == 2
    if page is not None:
        command = " ".join(["weft", *page.split(), "--help"])
        assert result.err.endswith(f"  more:  {command}\n")


test_scenarios = scenario_tests(__file__)


test_scenarios = scenario_tests(__file__)
