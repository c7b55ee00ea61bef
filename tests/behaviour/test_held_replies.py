"""A structured reply is shown to users only after its automatic tool has accepted it."""

import asyncio

import pytest

from support.boundary_play import Kept, declared, derived, in_turns, of, rest
from support.run_play import ADA, play
from weft.context.audience import Audience
from weft.engine.events import MessageSent, ModelReplied, OutputRefused, TurnFailed
from weft.inspect.replay import check_replay
from weft.ports.scope import Scope
from weft.runtime.signals import Answer
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call
from weft.wire.events import user_event_data

CODE = {
    "tools/desk.py": b'''
from weft import Ask, Context, Refuse, RetryModel, show_ui_tool, use_ui_tool


def book(people: int) -> str:
    """Book a table."""
    if people > 100:
        raise Refuse("we have no room for so many")
    if people > 8:
        raise RetryModel("at most 8 people")
    return "booked"


async def confirm(people: int) -> str:
    """Ask the user."""
    answer = await use_ui_tool("confirm", {"people": people})
    if not answer["ok"]:
        raise RetryModel("the user wants another table")
    return "confirmed"


async def sign(people: int) -> str:
    """Ask the user in the other way."""
    raise Ask({"people": people})


async def show(people: int) -> str:
    """Show the table, then look whether it is free."""
    await show_ui_tool("show", {"people": people})
    if people > 8:
        raise RetryModel("at most 8 people")
    return "shown"
''',
    "hooks/style.py": b"""
def sign(message):
    return message.replace("Done", "Done, dear guest")
""",
}
TABLE = {
    "models": [
        {"name": "Table", "fields": {"people": {"type": "int"}, "agent_message": {"type": "str"}}}
    ],
    "registry": [{"agent": "A", "model": "Table"}],
}
AGENT = {"agent_name": "A", "auto_tool_mode": True, "structured_outputs_required": True}
END = [{"source_agent": "A", "target_agent": "terminate"}]
SEND = {"hook_type": "process_message_before_send", "file": "style.py", "function": "sign"}


def desk(function="book", **rest):
    tool = {
        "tool_type": "Agent_Tool" if function == "book" else "UI_Tool",
        "agent": "A",
        "file": "desk.py",
        "function": function,
        "auto_invoke": True,
    }
    if function != "book":
        tool |= {"ui": {"component": "Card", "mode": "inline"}}
    return declared(AGENT, tools=[tool], **{"handoffs": END, **TABLE, **rest})


def table(people, text):
    return {"people": people, "agent_message": text}


def seen(played):
    """Return what the user of a run is sent of it: kinds, and texts of agents."""
    audience = Audience(played.workflow.spec, ADA.user)
    told = (
        user_event_data(event, played.run, played.workflow, audience) for event in played.events
    )
    return [each["data"].get("text", each["kind"]) for each in told if each]


def said(played):
    kinds = ("RunStarted", "TurnStarted", "TurnEnded", "RunEnded", "RequestAnswered")
    return [each for each in seen(played) if each not in kinds]


HOOKS = pytest.mark.parametrize(
    ("hooks", "signed"), [([], "Done."), ([SEND], "Done, dear guest.")], ids=["plain", "hooked"]
)


@HOOKS
def test_a_refused_reply_is_never_shown_and_the_accepted_one_after_its_tool(hooks, signed):
    model = ScriptedModel([table(30, "Done: 30."), table(3, "Done.")])
    played = play(desk(hooks=hooks), model, code=CODE)
    assert of(played, OutputRefused) == [OutputRefused(1, "at most 8 people")]
    assert said(played)[1:] == [signed]
    kinds = [type(event.data).__name__ for event in played.events]
    last = len(kinds) - 1 - kinds[::-1].index("MessageSent")
    assert kinds[last - 1] == "ToolReturned"
    assert [reply.held for reply in of(played, ModelReplied)] == [True, True]
    assert check_replay(played.workflow, played.run, played.events) == []


@HOOKS
def test_a_declined_reply_is_never_shown(hooks, signed):
    played = play(desk(hooks=hooks), ScriptedModel([table(300, "Done.")]), code=CODE)
    assert "no room" in of(played, TurnFailed)[0].error
    assert said(played)[1:] == []
    assert signed not in str(seen(played))


@pytest.mark.parametrize("function", ["confirm", "sign"])
@HOOKS
def test_a_reply_is_shown_before_the_question_of_its_tool(function, hooks, signed):
    played = play(desk(function, hooks=hooks), ScriptedModel([table(3, "Done.")]), code=CODE)
    assert said(played)[1:] == [signed, "RequestOpened"]


def test_a_reply_is_shown_once_though_its_tool_refuses_it_after_the_answer():
    async def answers(host, run):
        for value in ({"ok": False}, {"ok": True}):
            (request,) = await host.requests(scope=ADA, run=run)
            await host.deliver(run, Answer(request.id, value), scope=ADA)
            await host.settled(run, scope=ADA)

    model = ScriptedModel([table(3, "Three?"), table(4, "Four?")])
    played = play(desk("confirm"), model, code=CODE, after=answers)
    assert said(played)[1:] == ["Three?", "RequestOpened", "Four?", "RequestOpened"]
    assert check_replay(played.workflow, played.run, played.events) == []


def test_a_reply_is_shown_before_what_its_tool_shows():
    played = play(desk("show"), ScriptedModel([table(30, "30?"), table(3, "3?")]), code=CODE)
    assert said(played)[1:] == ["30?", "SurfaceShown", "3?", "SurfaceShown"]


def test_a_reply_held_back_when_its_host_stops_is_shown_by_the_next():
    model = ScriptedModel([table(3, "Three?")])

    async def answer(host, run):
        (request,) = await host.requests(scope=ADA, run=run)
        await host.deliver(run, Answer(request.id, {"ok": True}), scope=ADA)
        await rest(host, run)

    played = asyncio.run(
        in_turns(desk("confirm"), [rest, answer], [model, ScriptedModel([])], code=CODE)
    )
    assert said(played)[1:] == ["Three?", "RequestOpened"]
    assert of(played, MessageSent) == [MessageSent("A", '{"people": 3, "agent_message": "Three?"}')]


def test_an_addressee_of_a_later_question_does_not_see_a_refused_reply():
    ask = {
        "tool_type": "UI_Tool",
        "agent": "B",
        "file": "desk.py",
        "function": "confirm",
        "ui": {"component": "Card", "mode": "inline"},
        "for": "user:mia",
    }
    book = {
        "tool_type": "Agent_Tool",
        "agent": "A",
        "file": "desk.py",
        "function": "book",
        "auto_invoke": True,
    }
    spec = declared(
        AGENT,
        "B",
        tools=[book, ask],
        variables={"done": derived("bool", False)},
        handoffs=[{"source_agent": "A", "target_agent": "B"}],
        **TABLE,
    )

    async def whole():
        replies = [table(30, "Done: 30."), table(3, "Done."), call("confirm", people=3)]
        async with host_for(spec, ScriptedModel(replies), code=CODE, store=Kept()) as host:
            run = await host.start("W", scope=ADA, message="hi")
            await host.settled(run, scope=ADA)
            mia = await host.state(run, scope=Scope("app", "mia"))
            return [message.text for message in mia.messages]

    texts = asyncio.run(asyncio.wait_for(whole(), 20))
    assert texts == ["hi", "Done."]
