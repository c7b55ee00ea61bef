"""The parts of seeing a run that only rare runs show."""

import asyncio
import io
import subprocess
import sys
from dataclasses import replace

import pytest

from support.desk_play import make_desk
from support.terminal_play import Terminal
from weft.app.hosts import LOCAL, open_host
from weft.cli.chat import person
from weft.cli.chat.conversation import AtTerminal, Session, converse, subscribed, view_for
from weft.cli.chat.follow_run import run_session
from weft.cli.chat.human_model import HumanModel
from weft.cli.hosting import JournalLocation, locate_journal
from weft.cli.pages.inspect import run_page, turn_page
from weft.cli.pages.runs import ListedRun, RunStatus, details_page, run_table
from weft.cli.settings import Settings
from weft.cli.streams import Streams
from weft.engine.events import Event, Usage, VariableSet
from weft.engine.rows import OpenRequest, RunRow
from weft.engine.state import Request
from weft.inspect.calls import ToolUse
from weft.inspect.run import inspect_run
from weft.inspect.turn import inspect_turn
from weft.inspect.turn_notes import ModelCall
from weft.inspect.variables import Cause, ValueRefused
from weft.ports.model import ModelRequest, OutputSchema, ToolSchema
from weft.runtime.signals import Answer, Stop
from weft.wire.events import event_data
from weft.wire.rows import run_data

ROW = RunRow(
    run="01m7hbrfyen97jxf8fradkd4wb",
    app="local",
    user="me",
    workflow="Desk",
    digest="0" * 64,
    status="waiting",
    seq=3,
    started_at=0,
    changed_at=0,
    turns=1,
    calls=2,
    input_tokens=1,
    output_tokens=2,
    cost_usd=0.5,
    unpriced_calls=1,
    unmetered_calls=1,
    preview="世界 " * 30,
    outcome=None,
    reason="",
    parent="",
)
ASKED = OpenRequest("r:1:0", ROW.run, "local", "me", "ui", "Clerk", "approve", {}, 0, 86_400_000)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A workflow and the events of a run of it."""
    workspace = tmp_path_factory.mktemp("desk")
    make_desk(workspace)

    async def play():
        async with await open_host(workspace, journal=":memory:") as host:
            run = await host.start("Desk", scope=LOCAL, message="hi", model="sample")
            await asyncio.wait_for(host.settled(run, scope=LOCAL), 30)
            events = [event async for event in host.events(run, scope=LOCAL)]
            return run, await host.workflow(run, scope=LOCAL), events

    return asyncio.run(play())


def streams(**settings) -> Streams:
    return Streams(Settings(**settings))


@pytest.mark.parametrize(("columns", "lines"), [(100, 3), (80, 3), (40, 4)])
def test_a_list_fits_the_terminal(columns: int, lines: int):
    runs = [ListedRun(ROW), ListedRun(ROW._replace(preview=""))]
    shown = run_table(runs, streams(terminal=True, columns=columns)).splitlines()
    assert len(shown) == lines
    assert max(len(line) for line in shown) <= columns


def test_one_run_at_a_glance(seen):
    place = JournalLocation(Settings().workspace, None)
    _, workflow, _ = seen
    run = RunStatus(row=ROW, requests=[ASKED], location=place)
    shown = details_page(run, workflow, streams())
    assert "cost      at least $0.5000: the price of 1 of 2 calls is unknown" in shown
    assert "calls     2, at least 1 token in, 2 out (1 of 2 calls not counted)" in shown
    assert "  expires   1970-01-0" in shown
    unknown = ASKED._replace(tool="gone", expires_at=None)
    assert "takes" not in details_page(replace(run, requests=[unknown]), workflow, streams())


def test_incomplete_sum_is_null_in_json():
    told = run_data(ROW, [])
    assert (told["input_tokens"], told["output_tokens"], told["cost_usd"]) == (None, None, None)
    assert (told["unmetered_calls"], told["unpriced_calls"]) == (1, 1)
    counted = run_data(ROW._replace(unmetered_calls=0), [])
    assert (counted["input_tokens"], counted["output_tokens"], counted["cost_usd"]) == (1, 2, None)
    assert run_data(ROW._replace(unpriced_calls=0), [])["cost_usd"] == 0.5


def test_a_page_of_troubles(seen):
    run, workflow, events = seen
    told = inspect_run(workflow, run, events)
    (turn, *_) = told.turns
    limit, done = told.variables
    call = ModelCall(1, 1, 0, 10)
    usage = Usage()
    troubled = replace(
        told,
        other_package=True,
        parent="p1",
        variables=(
            replace(limit, history=(), refused=(ValueRefused(9, 0, "engine", "start", "no int"),)),
            done,
        ),
        turns=(
            replace(
                turn,
                seconds=None,
                calls=(
                    call,
                    replace(
                        call,
                        answered=2,
                        seconds=1.0,
                        error="no answer",
                        attempts=3,
                        retries=("attempt 1 of 3: busy", "attempt 2 of 3: busy"),
                    ),
                    replace(
                        call,
                        answered=2,
                        seconds=1.0,
                        model="gpt",
                        answerer="model",
                        text="Hi",
                        usage=usage,
                        refused="not JSON",
                    ),
                    replace(call, answered=2, seconds=1.0, answerer="script"),
                    replace(
                        call, answered=2, seconds=1.0, answerer="model", finish_reason="length"
                    ),
                    replace(
                        call,
                        answered=2,
                        seconds=1.0,
                        model="gpt",
                        answerer="model",
                        text="Hi",
                        instead_of="a:b, which is busy",
                    ),
                ),
                tools=(ToolUse("a", "look_up", {}, 1, 0),),
                group="Readers",
                error="Clerk did not finish within 5 s",
            ),
        ),
        opening=tuple(turn.handoffs[:1]),
        requests=(Request("q", "ui", "Clerk", "approve", None, {}, "", None, None, (), 1, 0),),
    )
    page = run_page(troubled, streams())
    for line in (
        "shown with another version of the package",
        "forked from run p1",
        "refused at event 9 from start: no int",
        "; not set",
        "no answer yet",
        "  1  Clerk  in the group Readers\n",
        "     failed: Clerk did not finish within 5 s\n",
        "failed after 3 attempts: no answer\n         attempt 1 of 3: busy\n",
        'gpt, 1.00 s, says "Hi", rejected: not JSON',
        "model, 1.00 s, says nothing, was truncated (token limit)",
        "model (script), 1.00 s",
        'gpt, 1.00 s, says "Hi", gpt answers instead of a:b, which is busy',
        "tool look_up: open",
        "q: approve, since ",
    ):
        assert line in page
    assert "  none\n" in run_page(replace(told, variables=()), streams())


def test_a_prompt_that_is_not_what_was_sent(seen):
    run, workflow, events = seen
    told = inspect_turn(workflow, run, events, 1)
    (prompt, *_) = told.prompts
    other = replace(prompt, same=False, note="put together anew", recorded="f" * 64)
    page = turn_page(replace(told, prompts=(other,), values={}), streams())
    assert f"digest {prompt.digest[:12]} is not ffffffffffff: put together anew" in page
    assert "Variables when" not in page


def test_the_value_of_a_secret_is_not_in_the_data_of_an_event(seen, monkeypatch):
    _, workflow, _ = seen
    monkeypatch.setattr("weft.wire.events.is_secret", lambda *_: True)
    event = Event(1, 0, "engine", 0, 0, VariableSet("limit", 4711, "start"))
    assert "4711" not in str(event_data(event, "r", workflow))


def answered(request: ModelRequest, *lines: str, capsys) -> tuple[object, str]:
    left = list(lines)

    async def ask(_prompt: str) -> str:
        return left.pop(0)

    async def no_command(_text: str) -> None:
        raise AssertionError("no line was a command")

    reply = asyncio.run(HumanModel(ask, streams(), no_command)(request))
    return reply, capsys.readouterr().err


def test_a_person_answers_for_one_agent_after_the_other(capsys):
    asked: list[str] = []
    answers: dict[str, asyncio.Future[str]] = {}

    async def ask(prompt: str) -> str:
        asked.append(prompt)
        answers[prompt] = asyncio.get_running_loop().create_future()
        return await answers[prompt]

    async def no_command(_text: str) -> None:
        raise AssertionError("no line was a command")

    async def play():
        model = HumanModel(ask, streams(), no_command)
        requests = [
            ModelRequest("you", "r", name, 1, 1, "r:1", []) for name in ("Ann", "Bob", "Cid")
        ]
        ann, bob, cid = (asyncio.create_task(model(request)) for request in requests)
        for number in range(1, 3):
            await asyncio.sleep(0.01)
            assert len(asked) == number
            answers[asked[-1]].set_result(f"reply {number}")
            cid.cancel()  # Whoever is not wanted any more is not asked for.
        return [(await item).text for item in (ann, bob)]

    assert asyncio.run(asyncio.wait_for(play(), 30)) == ["reply 1", "reply 2"]
    assert asked == ["Ann says: ", "Bob says: "]
    assert "You answer for Cid" not in capsys.readouterr().err


def test_a_person_sees_what_a_model_would(capsys):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "\n".join(f"line {number}" for number in range(40))},
        *({"role": "user", "content": "early"} for _ in range(4)),
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    request = ModelRequest(
        "you", "r", "Clerk", 1, 1, "r:1", messages, output=OutputSchema("Verdict", schema)
    )
    reply, shown = answered(request, "{", '{"ok": 1}', "!none {}", '{"ok": true}', capsys=capsys)
    assert reply.text == '{"ok": true}'
    for line in (
        "  ... 1 earlier\n",
        "  assistant: calls f({})\n",
        "  The answer is a JSON object Verdict: ok\n",
        "invalid JSON",
        "the reply is not a valid Verdict: ok: 1 is not of type 'boolean'",
        "Clerk has no tool none; available: none",
    ):
        assert line in shown


def test_a_long_message_is_cut_and_a_tool_without_arguments_called(capsys):
    messages = [{"role": "user", "content": "\n".join("x" * 200 for _ in range(40))}]
    tool = ToolSchema("ping", "", {"type": "object"})
    request = ModelRequest("you", "r", "Clerk", 1, 1, "r:1", messages, (tool,))
    reply, shown = answered(request, "!ping", capsys=capsys)
    assert [request.tool for request in reply.tool_requests] == ["ping"]
    assert "... 28 more lines\n" in shown
    assert "parameters: none\n" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_lines_are_asked_for_where_the_person_looks(monkeypatch, capsys):
    class Keyboard(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Keyboard("one\n"))
    assert person.read_line("you: ") == "one"
    assert capsys.readouterr().err == "you: "
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda prompt: f"typed after {prompt}")
    assert person.read_line("you: ") == "typed after you: "


def test_unexpected_answer_is_dropped(monkeypatch):
    monkeypatch.setattr(person, "read_line", lambda _prompt: "late")

    async def work(asked: person.Person) -> str:
        question = asyncio.create_task(asked.line("first: "))
        await asyncio.sleep(0)
        question.cancel()
        return await asked.line("second: ")

    assert person.with_person(work) == "late"


def test_leaving_with_two_questions_open(monkeypatch):
    def read(_prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr(person, "read_line", read)

    async def work(asked: person.Person) -> None:
        await asyncio.gather(asked.line("first: "), asked.line("second: "))

    with pytest.raises(person.UserLeft) as left:
        person.with_person(work)
    assert left.value.how == "end"


def test_ctrl_c_before_there_is_a_run(monkeypatch):
    def read(_prompt: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(person, "read_line", read)
    session = place_session()

    async def work(asked: person.Person):
        await asked.line("early: ")

    with pytest.raises(KeyboardInterrupt):
        run_session(session, work)


def place_session():
    return Session(streams(), JournalLocation(Settings().workspace, None))


def test_a_question_of_a_tool_without_a_form(seen, capsys):
    _, workflow, _ = seen

    class Asked:
        async def line(self, _prompt: str) -> str:
            return "as you like"

    asking = AtTerminal(Asked(), streams(), workflow)
    signal = asyncio.run(asking(ASKED._replace(tool="gone", payload="Well?")))
    assert signal.value == "as you like"
    assert "  Well?\n" in capsys.readouterr().err
    assert asyncio.run(asking(ASKED._replace(kind="chat"))) == Answer("r:1:0", "as you like")


def test_details_are_logged_for_those_who_ask(tmp_path):
    assert locate_journal(streams(verbose=True, workspace=tmp_path), None).options.startswith(
        " --workspace "
    )


def test_two_people_answer_one_question(tmp_path, weft, monkeypatch):
    """The second is told that it is too late, and goes along with what the first has begun."""
    make_desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    with Terminal("chat", "Desk", "--model", "sample", cwd=tmp_path) as terminal:
        terminal.wait_for("you: ")
        assert weft("runs", "answer", "last", "I was first").code in {0, 4}
        terminal.type("and I second")
        terminal.wait_for("rejected: question ")
        terminal.wait_for("Clerk (sample): ")


def test_prompt_ends_when_another_process_ends_the_run(tmp_path, capsys):
    """Between waiting and asking somebody else may answer."""
    make_desk(tmp_path)

    async def ask(_request):
        raise AssertionError("nobody is to be asked")

    async def play():
        async with await open_host(tmp_path, journal=":memory:") as host:
            run = await host.start("Desk", scope=LOCAL, model="sample")
            waiting = await host.settled(run, scope=LOCAL)
            session = Session(streams(), JournalLocation(tmp_path, None), run=run)
            session.mark_printed(waiting.seq)
            async with subscribed(host, run, after=waiting.seq) as news:
                await host.deliver(run, Stop(), scope=LOCAL)
                view = view_for(session, await host.workflow(run, scope=LOCAL))
                return waiting, await converse(host, session, news, view, ask)

    waiting, row = asyncio.run(asyncio.wait_for(play(), 30))
    assert (waiting.status, row.status) == ("waiting", "ended")
    assert "me stops the run" in capsys.readouterr().err


class Keyboard(io.StringIO):
    """A terminal with lines that are typed already; what is called before a line is done first."""

    def __init__(self, *lines) -> None:
        super().__init__()
        self._left = list(lines)

    def isatty(self) -> bool:
        return True

    def readline(self, *_size: int) -> str:
        line = self._left.pop(0) if self._left else ""
        if callable(line):
            line = line()
        return f"{line}\n" if line != "" or self._left else ""


@pytest.fixture
def at_terminal(tmp_path, monkeypatch):
    make_desk(tmp_path)
    monkeypatch.chdir(tmp_path)

    def type_(*lines) -> None:
        monkeypatch.setattr(sys, "stdin", Keyboard(*lines))

    return type_


def interrupt() -> str:
    raise KeyboardInterrupt


def test_a_chat_at_a_terminal_and_another_that_comes_too_late(weft, at_terminal, capsys):
    def answer_elsewhere() -> str:
        command = [sys.executable, "-m", "weft", "runs", "answer", "last", "I was first"]
        subprocess.run(
            command, capture_output=True, check=False, timeout=60, stdin=subprocess.DEVNULL
        )
        return "I come second"

    at_terminal(answer_elsewhere, interrupt)
    result = weft("chat", "Desk", "--model", "sample")
    assert result.code == 130
    assert "Ctrl-C leaves, /help" in result.err
    assert "rejected: question " in result.err
    assert "left run " in result.err


def test_the_form_of_an_answer_at_a_terminal(weft, at_terminal):
    at_terminal('!approve {"what": "a"}')
    assert weft("run", "Desk", "hi", "--model", "you").code == 0
    at_terminal("y", "fine", "BYE")
    result = weft("runs", "answer", "last")
    assert result.code == 0
    assert 'approve returned {"approved": true, "note": "fine"}' in result.err


def test_a_message_that_is_missing_is_asked_for_again(weft, at_terminal):
    at_terminal("More?")
    weft("run", "Desk", "hi", "--model", "you")
    at_terminal(" ", "no", "BYE")
    assert weft("runs", "answer", "last").code == 0


@pytest.mark.parametrize(("line", "left"), [("n", 1), ("", 1), ("yes", 0)])
def test_pruning_asks_first(weft, at_terminal, line: str, left: int):
    at_terminal("BYE")
    weft("run", "Desk", "hi", "--model", "you")
    at_terminal(line)
    assert weft("runs", "delete", "--older-than", "0s").code == 0
    assert len(weft("runs", "list", "--json").data["runs"]) == left


def test_replay_of_a_run_that_began_without_words(weft, at_terminal):
    at_terminal("")
    weft("chat", "Desk")
    assert weft("replay", "last").out == ""
    assert weft("runs", "show", "last").out.count("waits for a message") == 1


def test_a_long_chain_of_causes_is_cut_in_its_middle(seen):
    run, workflow, events = seen
    told = inspect_run(workflow, run, events)
    causes = tuple(Cause(number, "HandedOff", "engine") for number in range(9, 0, -1))
    limit = replace(told.variables[0], causes=causes)
    page = run_page(replace(told, variables=(limit,)), streams())
    chain = "HandedOff 8 (engine) <- HandedOff 7 (engine) <- HandedOff 6 (engine)"
    assert f"because of {chain} <- ... <- HandedOff 1 (engine)" in page


def test_following_may_be_stopped_as_it_begins(tmp_path):
    """The first event is being read then, and must not be in the way of leaving."""

    class Slow:
        async def events(self, *_, **__):
            await asyncio.sleep(60)
            yield  # pragma: no cover - nothing ever comes

    async def follow():
        async with subscribed(Slow(), "run"):
            raise AssertionError("it was stopped before")

    async def main():
        task = asyncio.create_task(follow())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


async def test_following_ends_with_the_run(tmp_path):
    make_desk(tmp_path)
    async with await open_host(tmp_path, journal=":memory:") as host:
        run = await host.start("HelloWorld", scope=LOCAL, message="hi", model="sample")
        row = await host.settled(run, scope=LOCAL)
        if row.status != "ended":
            await host.deliver(run, Stop(), scope=LOCAL)
        told = []
        async with subscribed(host, run) as news:
            while (item := await news.item()) is not None:
                told.append(item)
        session = Session(streams(), JournalLocation(tmp_path, None), run=run)
        async with subscribed(host, run, after=len(told)) as news:
            # Nothing is left to be told, though the session does not know.
            row = await converse(host, session, news, None, None)
    assert [event.seq for event in told] == list(range(1, row.seq + 1))
