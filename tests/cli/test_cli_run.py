"""weft run: starting a workflow, and every way in which that can end."""

import io
import json
import re
import shlex
import sqlite3
from pathlib import Path

import pytest

from support.cases import scenario_tests
from support.desk_play import make_desk
from support.retrieval_play import local_model
from weft.cli.commands.table import COMMANDS


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    return make_desk(tmp_path)


def lines_of(outcome) -> list[dict]:
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_words_go_to_stdout_and_work_to_stderr(weft, desk, typed):
    typed('!look_up {"name": "Ann"}', "BYE")
    result = weft("run", "Desk", "hello", "--model", "you")
    assert result.code == 0
    assert result.out == "Clerk (you): BYE\n"
    for told in (
        "turn 1: Clerk\n",
        '    tool look_up(name="Ann")\n',
        '    look_up returned "Ann is here"\n',
        "    done = true (by trigger)\n",
        "    Clerk -> terminate, because done\n",
        " completed: All is done.\n",
        "  inspect: weft inspect ",
    ):
        assert told in result.err
    assert result.err.index("turn 1") < result.err.index("You answer for Clerk")


def test_made_up_replies_carry_a_badge_and_structured_ones_show_their_message(weft, desk):
    result = weft("run", "CustomerSupportRouter", "I was charged twice", "--model", "sample")
    assert result.code in {0, 4}
    assert "\nRouterAgent (sample): [sample] agent_message" in result.out
    assert '"domain"' not in result.out


@pytest.mark.parametrize(
    "example",
    [
        example
        for verb in COMMANDS
        if verb.name in ("run", "chat")
        for example in verb.page().examples
        if example.startswith("weft ") and ":" not in example and "--run" not in example
    ],
)
def test_the_examples_of_the_help_page_work(weft, desk, typed, example: str):
    typed()
    words = shlex.split(example.partition("      ")[0])[1:]
    result = weft(*words)
    assert result.code in (0, 4), result.err


def test_nothing_is_created_without_a_package(weft, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert weft("run", "Foo", "hi").code == 6
    assert weft("chat", "Foo").code == 6
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def broken(desk) -> Path:
    """The code of the package, to be broken; it stands in the workspace."""
    return desk / "tools" / "desk.py"


def test_failed_tool_is_logged_once_with_its_file(weft, broken, typed):
    broken.write_text(broken.read_text().replace("raise Refuse(", "raise ValueError("))
    typed('!look_up {"name": "nobody"}', "BYE")
    result = weft("run", "Desk", "hi", "--model", "you", "-v")
    line = 1 + broken.read_text()[: broken.read_text().index("raise ValueError(")].count("\n")
    told = f"look_up failed: ValueError at tools/desk.py:{line}: there is nobody of that name\n"
    assert f"    {told}" in result.err
    assert f"ValueError at tools/desk.py:{line}: " in weft("inspect", "last").out
    assert 'File "workflows/Desk/tools/desk.py", line ' in result.err
    typed('!look_up {"name": "nobody"}', "BYE")
    assert "File " not in weft("run", "Desk", "hi", "--model", "you").err


def test_a_package_that_changes_meanwhile_keeps_the_names_of_its_code(weft, broken, typed):
    broken.write_text(broken.read_text().replace("raise Refuse(", "raise ValueError("))
    typed("And?")
    weft("run", "Desk", "hi", "--model", "you")
    broken.write_text("MORE = 1\n\n" + broken.read_text())
    typed('!look_up {"name": "nobody"}', "BYE")
    result = weft("runs", "answer", "last", "so", "-v")
    assert result.code == 0
    assert 'File "workflows/' not in result.err
    assert '/tools/desk.py", line ' in result.err


def test_code_that_cannot_be_loaded_is_named_by_its_path(weft, broken):
    broken.write_text("1 / 0\n" + broken.read_text())
    result = weft("run", "Desk", "hi")
    assert result.code == 1
    assert "error[LINK001]: tools/desk.py cannot be imported: ZeroDivisionError" in result.err
    assert "  --> workflows/Desk/tools/desk.py:1\n" in result.err


def test_a_tool_that_reads_what_is_typed_is_refused(weft, broken, typed):
    broken.write_text(broken.read_text().replace('return f"', 'return input("More? ") + f"'))
    typed('!look_up {"name": "Ann"}', "BYE")
    result = weft("run", "Desk", "hi", "--model", "you")
    assert result.out == "Clerk (you): BYE\n"
    refused = "input() cannot be used in a tool; ask a person with use_ui_tool"
    assert f"    look_up failed: {refused}\n" in result.err


def test_another_seed_gives_another_run(weft, desk):
    texts = {
        weft("run", "CustomerSupportRouter", "hi", "--model", "sample", "--seed", seed).out
        for seed in range(4)
    }
    assert len(texts) > 1


def test_a_run_that_waits_says_how_to_answer(weft, desk):
    result = weft("run", "CustomerSupportRouter", "--model", "sample")
    assert result.code == 4
    head, answer, chat, more = result.err.splitlines()[-4:]
    run = head.split()[2]
    assert head == f"waiting[CLI004]: run {run} waits for a message"
    assert answer == f"  answer: weft runs answer {run} TEXT"
    assert chat == f"  chat:   weft chat --run {run}"
    assert more == "  more:   weft explain CLI004"


def test_the_named_commands_lead_to_the_same_place(weft, desk, tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    journal = tmp_path / "my runs.db"
    result = weft("run", "CustomerSupportRouter", "--workspace", tmp_path, "--journal", journal)
    assert f"TEXT --workspace {tmp_path} --journal '{journal}'\n" in result.err
    assert not (tmp_path / ".weft").exists()


def test_events_as_lines_of_json(weft, desk, typed):
    typed("BYE")
    result = weft("run", "Desk", "hello", "--model", "you", "--json")
    *events, last = lines_of(result)
    assert result.code == 0
    assert [event["event"]["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [events[0]["event"]["kind"], events[-1]["event"]["kind"]] == ["RunStarted", "RunEnded"]
    assert last["run"]["outcome"] == "completed"
    assert last["run"]["requests"] == []


def test_waiting_as_json(weft, desk):
    result = weft("run", "CustomerSupportRouter", "--json")
    assert result.code == 4
    assert result.err == ""
    last = lines_of(result)[-1]["run"]
    assert last["status"] == "waiting"
    assert [request["kind"] for request in last["requests"]] == ["chat"]


def test_a_failed_run_exits_with_1(weft, desk, typed):
    typed("first")
    weft("run", "Desk", "hello", "--model", "you")
    result = weft("run", "Desk", "other", "--model", "replay:last")
    assert result.code == 1
    assert "error[CLI001]: run " in result.err
    assert "failed: " in result.err
    assert "  hint:  see what happened: weft inspect " in result.err
    as_data = weft("run", "Desk", "other", "--model", "replay:last", "--json")
    assert as_data.code == 1
    assert lines_of(as_data)[-1]["run"]["outcome"] == "failed"


def test_failed_run_names_the_turn_to_fork(weft, desk, typed):
    typed("first")
    weft("run", "Desk", "hello", "--model", "you")
    weft("run", "Desk", "hello", "--model", "replay:last")
    failed = weft("runs", "answer", "last", "more")
    assert failed.code == 1
    run = weft("runs", "show", "last", "--json").data["run"]["run"]
    hint = f"repeat turn 2: weft replay {run} --fork 2\n"
    assert f"  hint:  {hint}" in failed.err
    assert f"  hint:  {hint}" in weft("runs", "resume", "last").err
    assert f"  {hint}" in weft("chat", "--run", "last").err
    typed("BYE")
    anew = weft("replay", run, "--fork", "2", "--model", "you")
    assert (anew.code, anew.out) == (0, "Clerk (you): BYE\n")
    assert "repeat turn" not in anew.err


def test_values_are_read_as_their_types_want_them(weft, desk, typed):
    typed("BYE")
    result = weft("run", "Desk", "hi", "--model", "you", "--set", "limit=25", "--json")
    assert lines_of(result)[0]["event"]["data"]["values"]["limit"] == 25


def test_a_package_with_errors_shows_its_findings(weft, desk):
    (desk / "handoffs.json").write_text('{"handoff_rules": [{"source_agent": "Nobody"}]}')
    result = weft("run", "Desk", "hi")
    assert result.code == 1
    assert "  --> workflows/Desk/handoffs.json:1:" in result.err
    assert "error[CLI001]: the package Desk has " in result.err
    assert weft("run", "Desk", "hi", "--json").data["error"]["findings"]


LOUD = """
import contextlib, io, logging, sys

logging.getLogger("loud").addHandler(logging.StreamHandler(sys.stdout))
sys.stdout.write("loading\\n")


def look_up(name: str) -> str:
    print("printed", file=sys.stdout)
    sys.stdout.buffer.write(b"raw\\n")
    logging.getLogger("loud").warning("logged")
    contextlib.redirect_stdout(io.StringIO()).__enter__()
    return f"{name} is here"
"""


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_stdout_of_package_code_goes_to_stderr(shell, desk, words):
    tool = desk / "tools" / "desk.py"
    tool.write_text(tool.read_text().replace("def look_up", "def former") + LOUD)
    typed = b'!look_up {"name": "Ann"}\nBYE\n'
    result = shell("run", "Desk", "hello", "--model", "you", *words, input=typed)
    assert result.code == 0
    # Without the ends of lines: a thread prints these, and what the run tells may come between.
    for told in ("loading", "printed", "raw", "logged"):
        assert told in result.err, result.err
    if words:
        assert lines_of(result)[-1]["run"]["outcome"] == "completed"
    else:
        assert result.out == "Clerk (you): BYE\n"


def test_a_damaged_journal_is_named(weft, desk, tmp_path):
    journal = tmp_path / "runs.db"
    journal.write_text("not a database, but long enough to be looked at" * 100)
    result = weft("run", "Desk", "hi", "--journal", journal)
    assert result.code == 3
    assert f"error[CLI003]: store {journal}: the file is not a database" in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    "words", [("run", "Desk", "hi"), ("chat", "Desk"), ("runs", "list"), ("inspect", "last")]
)
def test_a_journal_in_memory_is_refused(weft, desk, words: tuple[str, ...]):
    result = weft(*words, "--journal", ":memory:")
    assert result.code == 2
    assert "--journal :memory: keeps nothing" in result.err
    assert not (desk / ":memory:").exists()


def test_journal_failure_is_also_a_json_line(weft, desk, tmp_path, typed):
    """The disk fills up while the run is under way: what was written is kept."""
    journal = tmp_path / "runs.db"

    class Spoiling(io.StringIO):
        def readline(self, *_sizes: int) -> str:
            with sqlite3.connect(journal) as connection:
                connection.execute("DROP TABLE events")
            connection.close()
            return "BYE\n"

    import sys

    for words in ((), ("--json",)):
        journal.unlink(missing_ok=True)
        before, sys.stdin = sys.stdin, Spoiling()
        try:
            result = weft("run", "Desk", "hi", "--model", "you", "--journal", journal, *words)
        finally:
            sys.stdin = before
        assert result.code == 3
        if words:
            assert lines_of(result)[-1]["error"]["code"] == "CLI003"
        else:
            assert "error[CLI003]: " in result.err
            assert "Traceback" not in result.err
            assert f"weft doctor --journal {journal}\n" in result.err


def test_a_run_that_cannot_be_written_is_gone_on_with_in_its_journal(weft, desk, monkeypatch):
    journal = desk / "my runs.db"

    class Filling(io.StringIO):
        def readline(self, *_sizes: int) -> str:
            with sqlite3.connect(journal) as connection:
                full = "BEGIN SELECT RAISE(ABORT, 'no room'); END"
                connection.execute(f"CREATE TRIGGER full BEFORE INSERT ON events {full}")
            connection.close()
            return "BYE\n"

    monkeypatch.setattr("sys.stdin", Filling())
    result = weft("run", "Desk", "hi", "--model", "you", "--journal", journal)
    assert result.code == 3
    assert re.search(
        r"error\[CLI003\]: run (\w+) stopped: .*no room\. Recorded events are safe\n"
        rf"  hint:  find the cause: weft doctor --journal '{journal}'\n"
        rf"  hint:  after fixing this, continue with: weft runs resume \1 --journal '{journal}'\n",
        result.err,
    )
    journal.unlink()
    error = lines_of(weft("run", "Desk", "hi", "--model", "you", "--journal", journal, "--json"))[
        -1
    ]
    assert f"run {error['error']['run']} stopped: " in error["error"]["message"]


def test_invalid_answer_for_the_model_is_explained(weft, desk, typed):
    typed("", "!look_ip", "!look_up [1]", "!look_up {", '!tool look_up {"name": "nobody"}', "BYE")
    result = weft("run", "Desk", "hello", "--model", "you")
    assert result.code == 0
    for said in (
        "write a reply, or call a tool",
        "Clerk has no tool look_ip; did you mean look_up?",
        "look_up: [1] is not of type 'object'",
        "invalid JSON",
        "look_up refused: there is nobody of that name",
    ):
        assert said in result.err


def test_agents_that_users_do_not_see_speak_on_stderr(weft, desk, typed):
    file = desk / "orchestrator.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "visual_agents": []}))
    typed("BYE")
    result = weft("run", "Desk", "hello", "--model", "you")
    assert result.out == ""
    assert "    Clerk says (hidden from users): BYE\n" in result.err


def test_a_sign_to_a_trigger_is_not_shown_to_users(weft, desk, typed):
    file = desk / "context_variables.json"
    file.write_text(file.read_text().replace('"match"', '"ui_hidden": true, "match"'))
    typed("BYE")
    result = weft("run", "Desk", "hello", "--model", "you")
    assert result.out == ""
    assert "    Clerk says (hidden from users): BYE\n" in result.err


def test_nothing_is_left_behind_where_nothing_was_started(weft, desk, tmp_path: Path):
    assert weft("runs", "list").code == 0
    assert not (tmp_path / ".weft").exists()


def test_failed_source_is_reported_once(weft, tmp_path, monkeypatch):
    folder = tmp_path / "workflows" / "Shop"
    source = {"type": "file", "path": "hours.json", "format": "json"}
    files = {
        "orchestrator.json": {"workflow_name": "Shop", "initial_agent": "Clerk"},
        "agents.json": {"agents": [{"agent_name": "Clerk"}]},
        "context_variables.json": {
            "definitions": {"hours": {"type": "int", "source": source}},
            "agents": {"Clerk": {"variables": ["hours"]}},
        },
        # Where something is called at the end, the end is told before as well.
        "hooks.json": {"hooks": [{"hook_type": "on_fail", "file": "end.py", "function": "end"}]},
        "hours.json": "none",
    }
    (folder / "hooks").mkdir(parents=True)
    (folder / "hooks" / "end.py").write_text("def end():\n    pass\n")
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    result = weft("run", "Shop", "hello", "--model", "sample")
    assert result.code == 1
    reason = 'hours could not be read: it has the wrong shape: hours: expected int, got "none"'
    told = [line.strip() for line in result.err.splitlines() if reason in line]
    assert told[0] == f"fetched {reason}"
    assert len(told) == 2
    assert told[1].endswith(f"failed: {reason}")
    assert "    the turn failed\nabout to end, failed\n" in result.err


def make_router(folder: Path) -> None:
    package = folder / "workflows" / "Router"
    package.mkdir(parents=True)
    agents = [
        {"agent_name": name, "description": "Answers."} for name in ("Front", "Refunds", "Shops")
    ]
    rules = [
        {
            "source_agent": "Front",
            "target_agent": target,
            "condition": words,
            "condition_type": "nearest",
        }
        for target, words in (
            ("Refunds", "I want my money back"),
            ("Shops", "Where a shop is, and when it is open"),
        )
    ]
    ends = [
        {"source_agent": agent["agent_name"], "target_agent": "terminate", "reason": "Done."}
        for agent in agents
    ]
    for name, content in {
        "orchestrator": {
            "workflow_name": "Router",
            "initial_agent": "Front",
            "human_in_the_loop": False,
        },
        "agents": {"agents": agents},
        "handoffs": {"handoff_rules": [*rules, *ends]},
    }.items():
        (package / f"{name}.json").write_text(json.dumps(content))


def test_without_embeddings_a_router_by_meaning_checks_clean_and_does_not_begin(
    weft, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_EMBEDDINGS", "none")
    make_router(tmp_path)
    assert weft("check", "workflows/Router").code == 0
    result = weft("run", "Router", "Can I have a refund?", "--model", "sample")
    assert result.code == 3
    assert (
        "error[CLI003]: Router: a handoff of Front is of the type nearest, and there are no "
        "embeddings to compare meanings with\n"
    ) in result.err
    assert "weft embeddings install" in result.err
    assert "WEFT_EMBEDDINGS" in result.err
    assert weft("runs", "list").out.strip() == ""


def test_with_the_local_model_a_router_by_meaning_routes(weft, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in local_model().items():
        monkeypatch.setenv(name, value)
    make_router(tmp_path)
    result = weft("run", "Router", "When do you close on Sundays?", "--model", "sample")
    assert result.code == 0
    assert "compared the messages with the descriptions of Refunds 0." in result.err
    assert "Front -> Shops" in result.err


test_scenarios = scenario_tests(__file__)


test_scenarios = scenario_tests(__file__)
