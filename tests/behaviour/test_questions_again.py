"""Tools that give up a question, and tools that ask in both ways: no answer goes astray."""

import asyncio

import pytest

from behaviour.bad_run_play import ADA, finished, open_host, spec
from weft.engine.events import Event, ToolFailed, ToolReturned, TurnEnded
from weft.runtime.signals import Answer
from weft.testing.models import ScriptedModel, call

CODE = b'''
import asyncio

from weft import Ask, use_ui_tool


async def give_up() -> None:
    """Ask, but not wait for long."""
    try:
        async with asyncio.timeout(0.01):
            await use_ui_tool("another", "tea?")
    except TimeoutError:
        pass


async def another() -> str:
    """Give a question up, and ask another one."""
    await give_up()
    return str(await use_ui_tool("another", "delete everything?"))


async def the_same() -> str:
    """Give a question up, and wait for it once more."""
    await give_up()
    return str(await use_ui_tool("another", "tea?"))


async def later() -> list:
    """Give a question up, work until it is answered, and ask it again and another one."""
    await give_up()
    await asyncio.sleep(0.5)
    return [await use_ui_tool("another", what) for what in ("tea?", "milk?")]


async def in_time() -> str:
    """Ask for a moment."""
    return str(await use_ui_tool("another", "tea?", timeout=0.01))


async def both_ways(context_variables) -> list:
    """Ask and wait, then ask to be called again."""
    await use_ui_tool("another", "tea?")
    if len(context_variables.answers) < 2:
        raise Ask("milk?")
    return list(context_variables.answers)
'''
TOOLS = ("another", "the_same", "later", "in_time", "both_ways")
SPEC = spec(ui=TOOLS)
CHAT = spec(ui=TOOLS, handoffs=[{"source_agent": "Clerk", "target_agent": "user"}])


async def answer(host, run, value):
    """Answer the one question that is open, once there is one."""
    while not (found := await host.requests(scope=ADA, run=run)):  # noqa: ASYNC110 - none tells
        await asyncio.sleep(0.01)
    (question,) = found
    await host.deliver(run, Answer(question.id, value), scope=ADA)
    return question.payload


def questions(told):
    return [question.payload for question in told.questions]


def asking(path, tool, declared=SPEC):
    return open_host(path, declared, ScriptedModel([call(tool), "Done."]), CODE)


async def test_answer_to_an_abandoned_question_answers_no_other(tmp_path):
    async with await asking(tmp_path / "j.db", "another") as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        async for event in host.events(run, scope=ADA, follow=True):
            del event  # until it has ended: nobody answers
        told = await finished(host, run)
    assert "a second question before the first is answered" in told.only(ToolFailed).error
    assert questions(told) == ["tea?"]
    assert told.state.requests == {}
    assert told.row.outcome == "completed"


async def test_a_question_that_was_given_up_can_be_waited_for_once_more(tmp_path):
    async with await asking(tmp_path / "j.db", "the_same") as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        await asyncio.sleep(0.1)
        await answer(host, run, "green")
        told = await finished(host, run)
    assert told.only(ToolReturned).value == "green"
    assert questions(told) == ["tea?"]


async def test_an_answer_that_comes_when_a_tool_does_not_wait_is_kept_for_it(tmp_path):
    async with await asking(tmp_path / "j.db", "later") as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        await asyncio.sleep(0.1)  # It has given up, and is at work.
        assert await answer(host, run, "green") == "tea?"
        assert await answer(host, run, "much") == "milk?"
        told = await finished(host, run)
    assert told.only(ToolReturned).value == ["green", "much"]
    assert questions(told) == ["tea?", "milk?"]


@pytest.mark.parametrize("hold", [300, 0.01])
async def test_a_tool_may_wait_for_one_answer_and_be_called_again_for_the_next(tmp_path, hold):
    async with await asking(tmp_path / "j.db", "both_ways") as host:
        host._worker._performer.holding.seconds = hold
        run = await host.start("Desk", scope=ADA, message="hi")
        assert (await host.settled(run, scope=ADA)).status == "waiting"
        await asyncio.sleep(0.05)
        assert await answer(host, run, "green") == "tea?"
        assert (await host.settled(run, scope=ADA)).status == "waiting"
        assert await answer(host, run, "much") == "milk?"
        told = await finished(host, run)
    assert told.only(ToolReturned).value == ["green", "much"]
    assert told.row.outcome == "completed"


async def test_tool_without_an_answer_in_time_continues(tmp_path):
    async with await asking(tmp_path / "j.db", "in_time", CHAT) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        async for event in host.events(run, scope=ADA, follow=True):
            if isinstance(event, Event) and isinstance(event.data, TurnEnded):
                break
        told = await finished(host, run)
        assert not host._worker, "there is nothing to do but to wait for the user"
    assert told.only(ToolFailed).error == "no answer in time"
    assert told.row.status == "waiting"
