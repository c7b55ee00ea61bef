"""Tools that ask in more than one way: no answer goes astray."""

import asyncio

import pytest

from behaviour.bad_run_play import ADA, finished, open_host, play, spec
from weft.engine.events import ToolReturned
from weft.runtime.signals import Answer
from weft.testing.models import ScriptedModel, call

CODE = b'''
from weft import Ask, use_ui_tool


async def both_ways(context_variables) -> list:
    """Ask and wait, then ask to be called again."""
    await use_ui_tool("both_ways", "tea?")
    if len(context_variables.answers) < 2:
        raise Ask("milk?")
    return list(context_variables.answers)
'''
SPEC = spec(ui=("both_ways",))


async def answer(host, run, value):
    """Answer the one question that is open, once there is one."""
    while not (found := await host.requests(scope=ADA, run=run)):  # noqa: ASYNC110 - none tells
        await asyncio.sleep(0.01)
    (question,) = found
    await host.deliver(run, Answer(question.id, value), scope=ADA)
    return question.payload


def asking(path, tool):
    return open_host(path, SPEC, ScriptedModel([call(tool), "Done."]), CODE)


@pytest.mark.parametrize("hold", [300, 0.01])
def test_a_tool_may_wait_for_one_answer_and_be_called_again_for_the_next(tmp_path, hold):
    async def scenario():
        async with await asking(tmp_path / "j.db", "both_ways") as host:
            host._performer.holding.seconds = hold
            run = await host.start("Desk", scope=ADA, message="hi")
            assert (await host.settled(run, scope=ADA)).status == "waiting"
            await asyncio.sleep(0.05)
            assert await answer(host, run, "green") == "tea?"
            assert (await host.settled(run, scope=ADA)).status == "waiting"
            assert await answer(host, run, "much") == "milk?"
            return await finished(host, run)

    told = play(scenario)
    assert told.only(ToolReturned).value == ["green", "much"]
    assert told.row.outcome == "completed"
