"""Questions for somebody: shown where and to whom the tools file says, answered once, by them."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from support.boundary_play import Kept, declared, derived, of
from support.run_play import ADA, read
from weft.adapters.sql import SqliteStore
from weft.context.audience import Audience
from weft.engine.events import (
    MessageShown,
    RequestAnswered,
    RequestOpened,
    RunEnded,
    ToolFailed,
    ToolReturned,
)
from weft.errors import AccessDenied, UsageError
from weft.ports.scope import Scope
from weft.runtime.signals import Answer
from weft.testing.hosts import host_for
from weft.testing.models import ScriptedModel, call
from weft.wire.events import user_event_data
from weft.wire.rows import request_data

CODE = {
    "tools/ask.py": b'''
from weft import use_ui_tool


async def approve() -> str:
    """Ask for approval."""
    return str(await use_ui_tool("approve", {"amount": 12}))
'''
}
MIA = Scope("app", "mia", roles=("manager",), groups=("board",))
BOB = Scope("app", "bob")
STRANGER = Scope("other", "mia", roles=("manager",), groups=("board",))
OPERATOR = Scope.operator("app")


TOOL = {
    "tool_type": "UI_Tool",
    "agent": "A",
    "file": "ask.py",
    "function": "approve",
    "ui": {"component": "ApprovalCard", "mode": "inline"},
}


def approving(for_=None, mode="inline", boss="mia"):
    tool = {**TOOL, "ui": {"component": "ApprovalCard", "mode": mode}}
    given = {} if for_ is None else {"for": for_}
    return declared(tools=[{**tool, **given}], variables={"boss": derived("optional[str]", boss)})


async def waiting(host):
    run = await host.start("W", scope=ADA, message="hi")
    await host.settled(run, scope=ADA)
    return run


def model():
    return ScriptedModel([call("approve"), "done"])


def play(story, spec, path=None):
    async def whole():
        kept = Kept() if path is None else await SqliteStore.open(path)
        async with host_for(spec, model(), code=CODE, store=kept) as host:
            return await story(host, await waiting(host))

    return asyncio.run(asyncio.wait_for(whole(), 20))


@pytest.mark.parametrize(
    ("for_", "addressee"),
    [
        ("user:mia", "user:mia"),
        ("role:manager", "role:manager"),
        ("group:board", "group:board"),
        ("user:{boss}", "user:mia"),
    ],
)
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_question_for_somebody_is_theirs_to_find_and_to_answer(for_, addressee, kind):
    async def story(host, run):
        assert await host.requests(scope=ADA) == [], "it is not for the user whose run it is"
        assert await host.requests(scope=BOB) == []
        assert await host.requests(scope=STRANGER) == []
        (asked,) = await host.requests(scope=MIA)
        assert asked.addressee == addressee
        assert await host.requests(scope=MIA, run=run) == [asked]
        (known,) = await host.requests(scope=ADA, run=run)
        assert known == asked, "the user sees what the run waits for"
        with pytest.raises(UsageError, match=f"is for {addressee}, not for ada") as refused:
            await host.deliver(run, Answer(asked.id, "yes"), scope=ADA)
        assert refused.value.hint == f"answer it as {addressee}"
        for other in (BOB, STRANGER):
            with pytest.raises(AccessDenied, match="there is no run"):
                await host.deliver(run, Answer(asked.id, "yes"), scope=other)
        assert [run.run for run in await host.runs(scope=MIA)] == [run]
        assert await host.runs(scope=MIA, status="ended") == []
        assert await host.runs(scope=BOB) == []
        assert (await host.run(run, scope=MIA)).status == "waiting"
        with pytest.raises(AccessDenied):
            await host.state(run, scope=BOB)
        seen = await host.state(run, scope=MIA)
        assert [(message.role, message.text) for message in seen.messages] == [("user", "hi")]
        assert list(seen.requests) == [asked.id]
        assert not seen.variables
        await host.deliver(run, Answer(asked.id, "yes"), scope=MIA)
        await host.settled(run, scope=ADA)
        with pytest.raises((UsageError, AccessDenied)):
            await host.deliver(run, Answer(asked.id, "no"), scope=MIA)
        return await read(host, run)

    if kind == "memory":
        played = play(story, approving(for_))
    else:
        with tempfile.TemporaryDirectory() as folder:
            played = play(story, approving(for_), Path(folder) / "journal.db")
    answered = of(played, RequestAnswered)[-1]
    role = "" if addressee.startswith("user:") else addressee
    assert (answered.value, answered.user, answered.role) == ("yes", "mia", role)
    assert played.at(ToolReturned).data.value == "yes"
    assert played.at(RunEnded).data.outcome == "completed"


TELLING = {
    "tools/ask.py": b'''
from weft import Refuse, use_ui_tool


async def approve() -> str:
    """Ask for approval."""
    answer = await use_ui_tool("approve", {"amount": 12})
    if answer["decision"] == "later":
        raise Refuse("a decision is needed now")
    return answer["decision"]
'''
}


@pytest.mark.parametrize("automatic", [False, True])
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"decision": "yes", "note": None, "days": 3}, ["Mia says yes. 3 days {left}."]),
        ({"decision": "yes", "note": " Hi.", "days": 3}, ["Mia says yes. Hi. 3 days {left}."]),
        ({"decision": "later", "note": None, "days": 3}, []),
    ],
)
def test_tell_says_the_answer_to_the_user_when_the_tool_has_returned(automatic, answer, told):
    tell = "Mia says {decision}.{note} {days} days {{left}}."
    tool = {**TOOL, "for": "role:manager", "tell": tell, "auto_invoke": automatic}
    structured = {
        "models": [{"name": "Asked", "fields": {"why": {"type": "str"}}}],
        "registry": [{"agent": "A", "model": "Asked"}],
    }
    spec = declared(
        {"agent_name": "A", "auto_tool_mode": automatic},
        tools=[tool],
        handoffs=[{"source_agent": "A", "target_agent": "terminate"}],
        **(structured if automatic else {}),
    )

    async def whole():
        replies = ScriptedModel([{"why": "x"} if automatic else call("approve"), "done"])
        async with host_for(spec, replies, code=TELLING, store=Kept()) as host:
            run = await waiting(host)
            (asked,) = await host.requests(scope=MIA, run=run)
            await host.deliver(run, Answer(asked.id, answer), scope=MIA)
            await host.settled(run, scope=ADA)
            return await read(host, run)

    played = asyncio.run(asyncio.wait_for(whole(), 20))
    audience = Audience(played.workflow.spec, "ada")
    seen = (
        user_event_data(event, played.run, played.workflow, audience) for event in played.events
    )
    shown = [each["data"]["text"] for each in seen if each and each["kind"] == "MessageShown"]
    assert shown == told


def test_tell_asked_says_that_somebody_is_asked_before_the_answer():
    tool = {**TOOL, "for": "role:manager", "tell_asked": "The manager is asked."}

    async def whole():
        spec = declared(
            {"agent_name": "A"},
            tools=[tool],
            handoffs=[{"source_agent": "A", "target_agent": "terminate"}],
        )
        async with host_for(spec, ScriptedModel([call("approve"), "done"]), code=TELLING) as host:
            run = await host.start("W", scope=ADA, message="hi")
            assert (await host.settled(run, scope=ADA)).status == "waiting"
            return await read(host, run)

    played = asyncio.run(asyncio.wait_for(whole(), 20))
    (told,) = [each for each in played.events if isinstance(each.data, MessageShown)]
    assert told.data.text == "The manager is asked."


def test_only_the_user_of_the_run_is_asked_by_default():
    async def story(host, run):
        (asked,) = await host.requests(scope=ADA)
        assert asked.addressee == ""
        assert await host.requests(scope=MIA) == []
        with pytest.raises(AccessDenied):
            await host.deliver(run, Answer(asked.id, "yes"), scope=MIA)
        await host.deliver(run, Answer(asked.id, "yes"), scope=ADA)

    play(story, approving())


def test_operator_may_answer_for_any_user():
    async def story(host, run):
        (asked,) = await host.requests(scope=OPERATOR)
        await host.deliver(run, Answer(asked.id, "yes"), scope=OPERATOR)
        await host.settled(run, scope=ADA)
        return await read(host, run)

    assert play(story, approving("role:manager")).at(ToolReturned).data.value == "yes"


@pytest.mark.parametrize("boss", ["", None])
def test_empty_addressee_fails_the_tool(boss):
    async def story(host, run):
        return await read(host, run)

    played = play(story, approving("user:{boss}", boss=boss))
    (failed,) = of(played, ToolFailed)
    assert "boss" in failed.error
    assert [event.kind for event in of(played, RequestOpened)] == ["chat"]


@pytest.mark.parametrize("for_", ["mia", "user:", "team:x", "role: x"])
def test_an_addressee_is_a_user_a_role_or_a_group(for_):
    with pytest.raises(ValueError, match="for"):
        approving(for_)


@pytest.mark.parametrize("mode", ["inline", "artifact"])
def test_an_open_question_says_what_draws_it_and_where(mode):
    async def story(host, run):
        (row,) = await host.requests(scope=ADA, run=run)
        return row, await read(host, run)

    row, played = play(story, approving(mode=mode))
    assert (row.component, row.mode) == ("ApprovalCard", mode)
    shown = request_data(row)
    assert (shown["component"], shown["mode"]) == ("ApprovalCard", mode)
    audience = Audience(played.workflow.spec)
    told = [
        user_event_data(event, played.run, played.workflow, audience) for event in played.events
    ]
    opened = [event["data"] for event in told if event and event["kind"] == "RequestOpened"][-1]
    assert (opened["component"], opened["mode"]) == ("ApprovalCard", mode)
    assert opened["payload"] == {"amount": 12}


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_after_a_restart_it_is_listed_again_as_it_was_and_a_second_answer_is_refused(kind):
    async def whole(folder):
        kept = Kept()
        path = Path(folder) / "journal.db"

        async def opened():
            return kept if kind == "memory" else await SqliteStore.open(path)

        spec = approving("role:manager", "artifact")
        async with host_for(spec, model(), code=CODE, store=await opened()) as host:
            run = await waiting(host)
            (before,) = await host.requests(scope=MIA)
        answering = ScriptedModel(["done"])
        async with host_for(spec, answering, code=CODE, store=await opened()) as host:
            (again,) = await host.requests(scope=MIA)
            assert again == before
            both = (host.deliver(run, Answer(again.id, name), scope=MIA) for name in ("yes", "no"))
            came = await asyncio.gather(*both, return_exceptions=True)
            await host.settled(run, scope=ADA)
            with pytest.raises((UsageError, AccessDenied)):
                await host.deliver(run, Answer(again.id, "late"), scope=MIA)
            return came, await read(host, run)

    with tempfile.TemporaryDirectory() as folder:
        came, played = asyncio.run(asyncio.wait_for(whole(folder), 20))
    assert came.count(None) == 1
    (refused,) = [item for item in came if item is not None]
    assert isinstance(refused, UsageError | AccessDenied)
    assert played.at(ToolReturned).data.value in ("yes", "no")
