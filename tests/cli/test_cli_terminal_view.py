"""Telling what happens: words as they come, and every kind of event in one line."""

import json
from dataclasses import replace

import pytest

from support.desk_play import make_desk
from weft.app.hosts import open_host
from weft.cli.chat import terminal_view
from weft.cli.chat.terminal_view import JsonLines, TerminalView
from weft.cli.pages.events import summary
from weft.cli.settings import Settings
from weft.cli.starting import models_line
from weft.cli.streams import Streams, at_time
from weft.engine.events import (
    KINDS,
    ArtifactArrived,
    ArtifactPublished,
    BatchesFlushed,
    Branched,
    ConditionJudged,
    ContextAssembled,
    ContextFetched,
    DeliveryDeferred,
    DeliveryMissed,
    DocumentWritten,
    Event,
    Forked,
    HandedOff,
    Joined,
    MessageSent,
    MessageShown,
    ModelConsulted,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    RequestAnswered,
    RequestExpired,
    RequestOpened,
    RunEnded,
    RunEnding,
    RunForked,
    RunStarted,
    StopRequested,
    SurfaceShown,
    TimerFired,
    TimerSet,
    ToolCalled,
    ToolFailed,
    ToolRequest,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    TurnStarted,
    VariableRefused,
    VariableSet,
)
from weft.ports.live import ModelRetry, TextDelta, ToolProgress
from weft.wire.events import event_data


@pytest.fixture(scope="module")
def workflow(tmp_path_factory):
    import asyncio

    from weft.app.hosts import LOCAL

    workspace = tmp_path_factory.mktemp("desk")
    make_desk(workspace)

    async def link():
        async with await open_host(workspace, journal=":memory:") as host:
            run = await host.start("Desk", scope=LOCAL, model="sample")
            return await host.workflow(run, scope=LOCAL)

    return asyncio.run(link())


MADE = "0123456789abcdef0123456789abcdef"
STOOD_IN = "answers instead of a:b, which is busy"

CASES = [
    (RunStarted("Desk", "d", "local", "me", {}), "Desk starts"),
    (RunForked("r1", 5), "forked from run r1 after event 5"),
    (MessageShown("Hello"), "Hello"),
    (TurnStarted("Clerk"), "turn 2: Clerk"),
    (
        ContextAssembled("Clerk", 1, {"tokens": 7}, "d"),
        "call 1 of Clerk is sent about 7 tokens",
    ),
    (
        ContextAssembled("Clerk", 1, {"tokens": 1}, "d"),
        "call 1 of Clerk is sent about 1 token",
    ),
    (ModelReplied(1, "Hi"), "Hi"),
    (ModelReplied(1, "Hi", (ToolRequest("a", "look_up", {}),)), "Hi; asks for look_up"),
    (ModelReplied(1, "", (ToolRequest("a", "look_up", {}),)), "asks for look_up"),
    (ModelReplied(1, " \n"), "says nothing"),
    (ModelReplied(1, "Onc", finish_reason="length"), "Onc; the reply was truncated (token limit)"),
    (
        ModelReplied(1, "", finish_reason="content_filter"),
        "says nothing; the reply was truncated by the provider's content filter",
    ),
    (ModelReplied(1, "Hi", finish_reason="pause"), "Hi; the reply ended with pause"),
    (ModelReplied(1, "Hi", instead_of="a:b, which is busy"), "another model " + STOOD_IN),
    (ModelReplied(1, '{"a": 1}', shown="a: 1"), "a: 1"),
    (ModelReplied(1, "GARBAGE", shown=""), "has nothing to show"),
    (ModelReplied(1, "Hi", retries=("attempt 1 of 4: busy",)), "Hi; attempt 1 of 4: busy"),
    (ModelFailed(1, "no"), "the model gave no answer: no"),
    (
        ModelFailed(1, "no", 2, ("attempt 1 of 2: busy", "attempt 2 of 2: no")),
        "the model gave no answer: no; attempt 1 of 2: busy; attempt 2 of 2: no",
    ),
    (OutputRefused(1, "bad"), "the reply is rejected: bad"),
    (ToolCalled("a", "look_up", {"name": "Ann"}), 'tool look_up(name="Ann")'),
    (ToolReturned("a", [1]), "look_up returned [1]"),
    (ToolFailed("a", "no"), "look_up failed: no"),
    (ToolFailed("a", "no", "refused"), "look_up refused: no"),
    (ToolFailed("a", "look_up failed: KeyError"), "look_up failed: KeyError"),
    (VariableSet("limit", 3, "start"), "limit = 3 (by start)"),
    (VariableSet("plan", "p" * 5_000, "start"), f'plan = "{"p" * 76}... (by start)'),
    (VariableSet("plan", "a\nb", "start"), 'plan = "a\\nb" (by start)'),
    (
        ToolCalled("a", "look_up", {"password": "hunter2", "at": [{"api_key": "9f2c81d07be4"}]}),
        'tool look_up(password="(secret)", at=[{"api_key": "(secret)"}])',
    ),
    (ToolReturned("a", ["p" * 5_000]), f'look_up returned ["{"p" * 75}...'),
    (VariableRefused("plan", "start", "p" * 5_000), f"is not set by start: {'p' * 197}..."),
    (RequestOpened("q", "ui", "Clerk", "approve", payload="p" * 90), f'"{"p" * 76}...'),
    (RequestAnswered("q", "p" * 90, "me"), f'me answers: "{"p" * 76}...'),
    (VariableRefused("limit", "start", "no int"), "limit is not set by start: no int"),
    (RequestOpened("q", "chat", "Clerk"), "waits for the user"),
    (RequestOpened("q", "ui", "Clerk", "approve", payload=1), "approve asks a person: 1"),
    (RequestAnswered("q", {"a": 1}, "me"), 'me answers: {"a": 1}'),
    (RequestExpired("q"), "no answer in time"),
    (TurnEnded("Clerk"), ""),
    (HandedOff("Clerk", "terminate", "rule", 0), "Clerk -> terminate, because done"),
    (HandedOff("Clerk", "user", "reply_limit"), "because it reached its limit of replies in a row"),
    (TurnFailed("Clerk", "no answer", "model"), "the turn failed: no answer"),
    (Forked("Readers", ("Ann", "Bob")), "Readers: Ann, Bob in parallel"),
    (Joined("Readers", 4, (1, 2)), "Readers is done: turns 1, 2 count"),
    (Joined("Readers", 4, (2,)), "Readers is done: turn 2 counts"),
    (Joined("Readers", 4, (1, 2), "both agree"), "Readers is done: both agree"),
    (TimerSet("deadline:4", 5000, "deadline"), ":05"),
    (
        TimerSet("window:Editor.0:7", 5000, "board"),
        f"the window of Editor.0 closes at {at_time(5000)}",
    ),
    (TimerSet("idle", 5000, "board"), f"checks for activity at {at_time(5000)}"),
    (
        ArtifactPublished("Lead", {"title": "Rain"}, "Scout", MADE, ("a", "b"), delay=1500),
        'Scout publishes Lead 89abcdef (2 tags, visible in 1.5 s): {"title": "Rain"}',
    ),
    (
        ArtifactPublished(
            "Lead", 1, "user:ada", "x", direct="Editor", forwarded_to={"N~A.0": "A.0"}
        ),
        "user:ada publishes Lead x (only for Editor, collected in N~A.0): 1",
    ),
    (
        ArtifactArrived("l", MADE, "Lead", 1, "Scout", "A.0", "", "c", 0),
        "Lead 89abcdef of Scout arrives from c for A.0",
    ),
    (
        DeliveryMissed("Editor.0", ("r.1", "r.2"), "expired", "the others did not come"),
        "not delivered to Editor.0: expired: the others did not come (r.1, r.2)",
    ),
    (
        DeliveryMissed("Editor.0", ("r.1",), "failed", "as told before"),
        "not delivered to Editor.0: the turn failed (r.1)",
    ),
    (DeliveryMissed("", (), "blocked", "Lead by Gate"), "not published: blocked: Lead by Gate"),
    (
        DeliveryDeferred("Editor.0", ("r.1",), 5000),
        f"Editor.0 is deferred until {at_time(5000, '%H:%M:%S')} (r.1)",
    ),
    (BatchesFlushed("ada"), "ada processes all pending batches now"),
    (TurnStarted("Editor", step="Editor.0", inputs=("r.1",)), "Editor is woken by r.1"),
    (
        ContextFetched({}, {}, board={"verdict": "skip"}),
        "fetched nothing: components say skip",
    ),
    (ToolCalled("a", "tools.work:f", {}, hook="engine"), "tools.work:f works"),
    (TimerFired("deadline:4"), "timer deadline fired"),
    (StopRequested("now", "me"), "me stops the run"),
    (StopRequested("after_turn", "me"), "me stops the run after this turn"),
    (RunEnded("completed", "done"), "completed: done"),
    (ToolCalled("p", "hooks/a.py:f", {}, hook="before_agent"), "hooks/a.py:f (before_agent)"),
    (ToolCalled("p", "a.b:f", {}, hook="computed", variable="sum"), "a.b:f computes sum"),
    (ToolCalled("p", "a.b:f", {}, hook="trigger", variable="sum"), "a.b:f decides sum"),
    (ToolCalled("p", "hand_off_to_B", {}, hook="handoff"), "tool hand_off_to_B()"),
    (ToolReturned("a", 1, progress=(0.4, "reading")), "look_up returned 1 (40% reading)"),
    (ToolReturned("a", "x" * 500), f'look_up returned "{"x" * 76}...'),
    (ModelConsulted("a", "d", "low"), 'look_up asked the model: "low"'),
    (
        SurfaceShown("a", 0, "board", "Board", "inline", {"a": 1}),
        'board shows Board (inline): {"a": 1}',
    ),
    (MessageSent("Clerk", "Dear you"), "Dear you"),
    (MessageSent("Clerk", " "), "says nothing"),
    (MessageSent("Clerk", "Dear you", held=True), "Dear you (not shown to users yet)"),
    (
        ModelReplied(1, '{"a": 1}', shown="a: 1", held=True),
        "a: 1 (not shown to users yet)",
    ),
    (
        ContextFetched({"limit": {"collection": "c", "query": {"a": 1}, "ms": 2.0}}, {}),
        'fetched limit from derived c {"a":1} (2 ms)',
    ),
    (
        ContextFetched({"x": {"default": True, "ms": 3.0}}, {"x": "down", "y": "gone"}),
        "fetched x: its default, because down (3 ms); y could not be read: gone",
    ),
    (
        ContextFetched({"x": {"path": "a.txt", "found": False}}, {}, {"shop": [{"name": "stock"}]}),
        "fetched x: nothing in a.txt; mcp:shop: 1 tool",
    ),
    (
        ContextFetched(
            {"x": {"service": "s", "operation": "o", "cached": True, "attempts": 2}}, {}
        ),
        "fetched x from s.o, as it was kept, after 2 attempts",
    ),
    (DocumentWritten("order", 3), "the document of order was written"),
    (DocumentWritten("order", 3, "full"), "the document of order was not written: full"),
    (
        ConditionJudged(0, holds=True, text='{"holds": true, "reason": "It is."}'),
        "judged whether done: yes, because It is",
    ),
    (ConditionJudged(0, holds=False, text='{"holds": false}'), "judged whether done: no"),
    (ConditionJudged(0, holds=False, text="x", error="no JSON"), "whether done: no JSON"),
    (VariableSet("limit", 3, "source:database"), "limit = 3 (from the database source)"),
    (VariableSet("limit", 3, "computed"), "limit = 3 (computed)"),
    (
        RequestOpened("q", "ui", "Clerk", "approve", payload=1, addressee="role:boss"),
        "approve asks role:boss: 1",
    ),
    (HandedOff("Clerk", "Bob", "chosen"), "Clerk -> Bob, because its model chose so"),
    (RunEnding("failed", "no"), "about to end, failed: no"),
    (Branched("ByKind", "Pay", "case"), "branch ByKind -> Pay"),
]


@pytest.mark.parametrize(("data", "line"), CASES)
def test_every_kind_of_event_has_its_line(workflow, data, line: str):
    event = Event(1, 0, "tool:look_up", 0, 2, data)
    assert summary(event, workflow).endswith(line)
    assert event_data(event, "r", workflow)["kind"] == type(data).__name__


def test_no_kind_of_event_is_forgotten():
    assert {type(data) for data, _ in CASES} == set(KINDS.values())


def test_a_tool_that_failed_before_it_was_called(workflow):
    event = Event(1, 0, "engine", 0, 1, ToolFailed("a", "no", "unknown"))
    assert summary(event, workflow) == "the tool failed: no"


@pytest.fixture
def teller(workflow):
    return TerminalView(Streams(Settings(terminal=True)), workflow, model="openai:gpt-5")


def assembled(seq: int) -> Event:
    return Event(seq, 0, "engine", 0, 1, ContextAssembled("Clerk", 1, {}, ""))


def replied(seq: int, text: str) -> Event:
    return Event(seq + 1, 0, "agent:Clerk", seq, 1, ModelReplied(1, text))


def test_text_is_streamed_and_not_repeated(teller, capsys):
    teller.show(assembled(4))
    teller.show(TextDelta("r", 4, 0, "Hel"))
    assert capsys.readouterr().out == "Clerk: Hel"
    teller.show(TextDelta("r", 4, 3, "lo\x1b"))
    teller.show(replied(4, "Hello\x1b you"))
    teller.show(TextDelta("r", 4, 5, "late"))
    assert capsys.readouterr().out == "lo\\x1b you\n"


def test_words_that_are_cut_off_end_their_line(teller, capsys):
    teller.show(assembled(4))
    teller.show(TextDelta("r", 4, 0, "Hel"))
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, ModelFailed(1, "cut off")))
    printed = capsys.readouterr()
    assert printed.out == "Clerk: Hel\n"
    assert "the model gave no answer: cut off" in printed.err


CUT = "    the reply of Clerk was truncated (token limit)\n"


@pytest.mark.parametrize(
    ("reply", "out", "err"),
    [
        (ModelReplied(1, ""), "", "    Clerk says nothing\n"),
        (ModelReplied(1, " \n", finish_reason="length"), "", f"    Clerk says nothing\n{CUT}"),
        (ModelReplied(1, "Once", finish_reason="length"), "Clerk: Once\n", CUT),
        (ModelReplied(1, "", (ToolRequest("a", "look_up", {}),)), "", ""),
        (ModelReplied(1, '{"agent_message": ""}', shown=""), "", ""),
    ],
)
def test_empty_or_truncated_reply_is_reported(teller, capsys, reply, out: str, err: str):
    teller.show(assembled(4))
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, reply))
    assert tuple(capsys.readouterr()) == (out, err)


def test_a_reply_that_is_refused_is_not_the_agents_words(teller, capsys):
    teller.show(assembled(4))
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, ModelReplied(1, "GARBAGE", shown="")))
    teller.show(Event(6, 0, "engine", 5, 1, OutputRefused(1, "no JSON")))
    teller.show(assembled(7))
    teller.show(Event(8, 0, "agent:Clerk", 7, 1, ModelReplied(2, '{"a": 1}', shown="a: 1")))
    teller.show(assembled(9))
    told = "    the reply is rejected: no JSON\n    Clerk tries again\n"
    assert tuple(capsys.readouterr()) == ("Clerk: a: 1\n", told)


def test_a_reply_is_printed_when_its_automatic_tool_has_accepted_it(teller, capsys):
    teller.show(assembled(4))
    held = ModelReplied(1, '{"a": 1}', shown="a: 1", held=True)
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, held))
    teller.show(Event(6, 0, "engine", 5, 1, MessageSent("Clerk", '{"a": 1}', held=True)))
    assert capsys.readouterr().out == ""
    teller.show(Event(7, 0, "engine", 6, 1, MessageSent("Clerk", '{"a": 1}')))
    assert "a" in capsys.readouterr().out


def test_fallback_model_is_reported_once(teller, capsys):
    def reply(instead_of: str = "a:b, which is busy") -> tuple[str, ...]:
        data = ModelReplied(1, "Hi", model="sample", answerer="sample", instead_of=instead_of)
        teller.show(assembled(4))
        teller.show(Event(5, 0, "agent:Clerk", 4, 1, data))
        return tuple(capsys.readouterr())

    said = "Clerk (sample): Hi\n"
    assert reply() == (said, f"    sample {STOOD_IN}\n")
    assert reply() == (said, "")
    assert reply("") == (said, "")
    assert reply() == (said, f"    sample {STOOD_IN}\n")


def test_streamed_fallback_model(teller, capsys):
    data = ModelReplied(1, "Hi", model="b", instead_of="a:b, which is busy")
    teller.show(assembled(4))
    teller.show(TextDelta("r", 4, 0, "H"))
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, data))
    assert tuple(capsys.readouterr()) == ("Clerk: Hi\n", f"    b {STOOD_IN}\n")


def test_truncated_streamed_reply_is_marked(teller, capsys):
    teller.show(assembled(4))
    teller.show(TextDelta("r", 4, 0, "Onc"))
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, ModelReplied(1, "Once", finish_reason="length")))
    assert tuple(capsys.readouterr()) == ("Clerk: Once\n", CUT)


def test_pieces_of_an_unknown_call_are_dropped(teller, capsys):
    teller.show(TextDelta("r", 9, 0, "what?"))
    assert capsys.readouterr().out == ""


def test_words_of_somebody_else_than_expected_carry_their_badge_at_the_end(teller, capsys):
    teller.show(assembled(4))
    teller.show(TextDelta("r", 4, 0, "Hel"))
    reply = ModelReplied(1, "Hello", answerer="sample")
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, reply))
    assert capsys.readouterr().out == "Clerk: Hello (sample)\n"


@pytest.mark.parametrize(("usual", "badge"), [("sample", " (sample)"), ("you", " (you)")])
def test_the_usual_model_has_its_badge_in_a_terminal(
    workflow, capsys, monkeypatch, usual: str, badge: str
):
    monkeypatch.setenv("WEFT_MODEL", usual)
    teller = TerminalView(Streams(Settings(terminal=True)), workflow)
    teller.show(assembled(4))
    teller.show(TextDelta("r", 4, 0, "Hel"))
    reply = ModelReplied(1, "Hello", answerer=badge.strip(" ()"))
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, reply))
    assert capsys.readouterr().out == f"Clerk{badge}: Hello\n"


@pytest.mark.parametrize(
    ("named", "declared", "begins", "line"),
    [
        (None, None, True, ""),
        ("sample", None, True, "model: sample (made-up replies; choose another with --model)"),
        ("you", "openai:a", False, "model: you (you type the replies)"),
        ("replay:r", None, False, "model: replay:r (replies of an earlier run)"),
        (None, "openai:a", True, "model: openai:a"),
    ],
)
def test_the_model_is_named(workflow, monkeypatch, named, declared, begins: bool, line: str):
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    other = replace(workflow, models={"Clerk": declared})
    assert models_line(other, named, begins=begins) == line


def test_several_models_are_named(workflow, monkeypatch):
    monkeypatch.delenv("WEFT_MODEL", raising=False)
    two = replace(workflow, models={"Clerk": "openai:a", "Other": "sample"})
    assert models_line(two, None, begins=False) == "models: openai:a, sample (made-up replies)"


@pytest.mark.parametrize("model", ["sample", "you", "replay:r1"])
def test_words_that_are_there_at_once_come_whole(workflow, capsys, model: str):
    teller = TerminalView(Streams(Settings(terminal=True)), workflow, model=model)
    teller.show(assembled(4))
    teller.show(TextDelta("r", 4, 0, "Hel"))
    assert capsys.readouterr().out == ""


def test_notes_fit_the_terminal(workflow, capsys, monkeypatch):
    monkeypatch.setattr(terminal_view.sys.stderr, "isatty", lambda: True)
    teller = TerminalView(Streams(Settings(columns=30)), workflow)
    teller.show(Event(1, 0, "engine", 0, 1, ToolCalled("a", "look_up", {"name": "x" * 99})))
    assert capsys.readouterr().err == '    tool look_up(name="xxxx...\n'
    teller.show(Event(1, 0, "engine", 0, 1, HandedOff("Clerk", "user", "reply_limit")))
    assert capsys.readouterr().err == (
        "    Clerk -> user, because it\n      reached its limit of\n      replies in a row\n"
    )


def test_streamed_pieces_are_not_json_lines(workflow, capsys):
    lines = JsonLines(Streams(Settings(json=True)), workflow, "r")
    lines.show(TextDelta("r", 4, 0, "Hel"))
    lines.show(replied(4, "Hello"))
    assert [json.loads(line)["event"]["seq"] for line in capsys.readouterr().out.splitlines()] == [
        5
    ]


def test_a_structured_reply_is_shown_in_words_and_a_rejected_one_is_not(teller, capsys):
    teller.show(assembled(4))
    said = ModelReplied(1, '{"agent_message": "Hi", "done": true}', shown="Hi")
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, said))
    assert tuple(capsys.readouterr()) == ("Clerk: Hi\n", "")
    teller.show(assembled(6))
    teller.show(Event(7, 0, "agent:Clerk", 6, 1, ModelReplied(1, '{"name": 1}', shown="")))
    teller.show(Event(8, 0, "engine", 7, 1, OutputRefused(1, "age is missing")))
    assert tuple(capsys.readouterr()) == ("", "    the reply is rejected: age is missing\n")


def test_a_retry_is_shown_when_it_happens_and_again_in_a_replay(workflow, teller, capsys):
    reply = ModelReplied(1, "Hi", retries=("attempt 1 of 4: busy",))
    teller.show(assembled(4))
    teller.show(ModelRetry("r", 4, "attempt 2 of 4 in 0.5 s, after: busy"))
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, reply))
    live = "    Clerk: attempt 2 of 4 in 0.5 s, after: busy\n"
    assert tuple(capsys.readouterr()) == ("Clerk: Hi\n", live)
    replayed = TerminalView(Streams(Settings(terminal=True)), workflow, echo=True)
    replayed.show(assembled(4))
    replayed.show(Event(5, 0, "agent:Clerk", 4, 1, reply))
    assert tuple(capsys.readouterr()) == ("Clerk: Hi\n", "    attempt 1 of 4: busy\n")


def test_a_retry_ends_the_words_that_it_takes_back(teller, capsys):
    teller.show(assembled(4))
    teller.show(TextDelta("r", 4, 0, "Hel"))
    teller.show(ModelRetry("r", 4, "attempt 2 of 4 in 0.5 s, after: cut off"))
    teller.show(replied(4, "Good day"))
    assert capsys.readouterr().out == "Clerk: Hel\nClerk: Good day\n"


def test_a_model_that_steps_in_with_other_words_begins_anew(teller, capsys):
    teller.show(assembled(4))
    teller.show(TextDelta("r", 4, 0, "Hel"))
    reply = ModelReplied(1, "Good day", model="b", instead_of="a:b, which is busy")
    teller.show(Event(5, 0, "agent:Clerk", 4, 1, reply))
    printed = capsys.readouterr()
    assert printed.out == "Clerk: Hel\nClerk: Good day\n"
    assert printed.err == f"    b {STOOD_IN}\n"


def turn_event(seq: int, turn: int, data: object, cause: int = 0) -> Event:
    return Event(seq, 0, "agent:Clerk", cause, turn, data)  # pyright: ignore[reportArgumentType]


def test_one_of_several_parallel_replies_is_streamed(teller, capsys):
    for turn, seq in ((1, 4), (2, 5)):
        teller.show(turn_event(seq, turn, ContextAssembled("Clerk", 1, {}, "")))
    teller.show(TextDelta("r", 4, 0, "One "))
    teller.show(TextDelta("r", 5, 0, "Two "))
    teller.show(turn_event(6, 2, ModelReplied(1, "Two are here."), cause=5))
    teller.show(ModelRetry("r", 5, "attempt 2 of 4"))
    teller.show(turn_event(7, 2, TurnEnded("Clerk")))
    teller.show(TextDelta("r", 4, 4, "is "))
    assert tuple(capsys.readouterr()) == ("Clerk: One is ", "")
    teller.show(turn_event(8, 1, ModelReplied(1, "One is here."), cause=4))
    printed = capsys.readouterr()
    assert printed.out == "here.\nClerk: Two are here.\n"
    assert "attempt 2 of 4" in printed.err


def test_parallel_agents_are_named(teller, capsys):
    teller.show(turn_event(4, 0, Forked("Readers", ("Ann", "Bob"))))
    for turn, agent in ((1, "Ann"), (2, "Bob")):
        teller.show(turn_event(4 + turn, turn, TurnStarted(agent)))
    teller.show(turn_event(7, 2, ToolCalled("c", "look_up", {})))
    teller.show(turn_event(8, 2, TurnEnded("Bob")))
    teller.show(turn_event(9, 1, ToolCalled("c", "look_up", {})))
    teller.show(turn_event(10, 1, TurnFailed("Ann", "too late", "deadline")))
    teller.show(turn_event(11, 0, Joined("Readers", 4, (2,))))
    assert capsys.readouterr().err == (
        "Readers: Ann, Bob in parallel\nturn 1: Ann\nturn 2: Bob\n"
        "    Bob: tool look_up()\n    tool look_up()\n    the turn failed: too late\n"
        "Readers is done: turn 2 counts\n"
    )


def test_joint_reply_of_a_group_is_text(teller, capsys):
    teller.show(turn_event(11, 0, Joined("Readers", 4, (1, 2), "both agree")))
    assert tuple(capsys.readouterr()) == ("Readers: both agree\n", "")


def at_turn(seq: int, data, actor: str = "tool:board") -> Event:
    return Event(seq, 0, actor, 0, 1, data)


def test_hooks_replace_the_reply_of_an_agent(teller, capsys):
    hidden = ModelReplied(1, "hello", answerer="sample", shown="")
    teller.show(at_turn(5, hidden, "agent:Clerk"))
    assert tuple(capsys.readouterr()) == ("", "")
    teller.show(at_turn(6, MessageSent("Clerk", "Dear you"), "engine"))
    assert tuple(capsys.readouterr()) == ("Clerk (sample): Dear you\n", "")
    teller.show(at_turn(7, MessageSent("Clerk", " "), "engine"))
    assert tuple(capsys.readouterr()) == ("", "    Clerk says nothing\n")


def test_surface_is_shown_in_a_frame(teller, capsys):
    teller.show(at_turn(5, SurfaceShown("a", 0, "board", "Board", "inline", {"a\x1b": [1, "b"]})))
    assert capsys.readouterr().err == (
        "    +- board shows Board\n    |  a\\x1b:\n    |    - 1\n    |    - b\n    +-\n"
    )


def test_hook_functions_are_shown_where_they_act(teller, capsys):
    quiet = ToolCalled("p", "hooks/a.py:f", {}, hook="update_agent_state")
    teller.show(at_turn(5, quiet, "engine"))
    teller.show(at_turn(6, ToolReturned("p", None), "tool:hooks/a.py:f"))
    assert tuple(capsys.readouterr()) == ("", "")
    teller.show(at_turn(7, ToolReturned("p", {"last": "x"}), "tool:hooks/a.py:f"))
    teller.show(at_turn(8, ToolFailed("p", "no ink"), "tool:hooks/a.py:f"))
    assert capsys.readouterr().err == (
        '    hooks/a.py:f returned {"last": "x"}\n    hooks/a.py:f failed: no ink\n'
    )
    chosen = ToolCalled("h", "hand_off_to_B", {}, hook="handoff")
    teller.show(at_turn(9, chosen, "engine"))
    assert capsys.readouterr().err == "    tool hand_off_to_B()\n"


def test_progress_is_shown_on_a_terminal_and_taken_away_again(workflow, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    settings = Settings(terminal=True, columns=30)
    view = TerminalView(Streams(settings), workflow, model="openai:gpt-5")
    progress = ToolProgress("r", 4, "scan", 0.5, "page \x1b two, which has a long name")
    view.show(progress)
    shown = capsys.readouterr().err
    assert shown == "\r    scan: 50% page \\x1b tw..."
    view.show(assembled(4))
    assert capsys.readouterr().err == "\r" + " " * 29 + "\r"
    view.show(TextDelta("r", 4, 0, "Hel"))
    capsys.readouterr()
    view.show(progress)
    assert capsys.readouterr().err == "", "words are not interrupted"


def test_progress_is_not_shown_where_it_could_not_be_taken_away(workflow, capsys):
    progress = ToolProgress("r", 4, "scan", 0.5, "page two")
    TerminalView(Streams(Settings(terminal=True)), workflow).show(progress)
    assert tuple(capsys.readouterr()) == ("", "")
    JsonLines(Streams(Settings(json=True)), workflow, "r").show(progress)
    assert json.loads(capsys.readouterr().out)["progress"]["share"] == 0.5


def test_silent_model_is_shown_with_the_seconds(workflow, monkeypatch):
    shown: list[str] = []
    monkeypatch.setattr(Streams, "status", lambda _self, text: shown.append(text))
    view = TerminalView(Streams(), workflow, model="openai:gpt")
    view.tick()
    assert shown == []
    view.show(Event(1, 0, "agent:Clerk", 0, 1, ContextAssembled("Clerk", 1, {}, "")))
    view.tick()
    assert shown == ["    Clerk: waiting for the model (0 s)"]
