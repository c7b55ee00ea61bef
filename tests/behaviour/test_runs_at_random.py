"""Whatever comes at whatever moment: nobody waits for ever, and nothing is left behind."""

import asyncio
import gc
import random
import sys
import warnings

import pytest

from behaviour.bad_run_play import ADA, play, spec
from support.effort import TIMES
from weft.adapters.memory import MemoryStore
from weft.engine.events import Event, ModelReplied, RequestOpened, StopRequested, ToolReturned
from weft.errors import ModelError, RunError, StoreError, UsageError
from weft.runtime.signals import Answer, Stop, UserMessage
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel, call

CODE = {
    "tools/work.py": b"""
import asyncio
import random

from weft import Ask, use_ui_tool


async def nap(most=5):
    for _ in range(random.randrange(most)):
        await asyncio.sleep(0)


async def quick() -> str:
    await nap()
    return "done"


async def stubborn() -> str:
    try:
        await nap(9)
    except asyncio.CancelledError:
        await nap()
    return "done"


async def cancelling() -> str:
    asyncio.current_task().cancel()
    await nap()
    return "done"


def threaded() -> str:
    return "done"


async def ask() -> str:
    await nap()
    answer = await use_ui_tool("ask", "tea?")
    await nap()
    if random.random() < 0.3:
        answer = await use_ui_tool("ask", "more?")
    return str(answer)


async def impatient() -> str:
    try:
        async with asyncio.timeout(0.002):
            await use_ui_tool("ask", "tea?")
    except TimeoutError:
        pass
    await nap()
    return "done"


def ask_first(context_variables) -> str:
    if not context_variables.answers:
        raise Ask("tea?")
    return "done"
"""
}
TOOLS = ("quick", "stubborn", "cancelling", "threaded")
ASKING = ("ask", "ask_first", "impatient")
TO_USER = [{"source_agent": "Clerk", "target_agent": "user"}]
REFUSED = (UsageError, RunError, StoreError)


async def nap(most=4):
    for _ in range(random.randrange(most)):
        await asyncio.sleep(0)


class Yielding(MemoryStore):
    """A journal whose answers take a moment, never the same one."""

    async def append(self, batch, *, owner):
        await nap()
        left = await super().append(batch, owner=owner)
        await nap()
        return left

    async def read(self, *what, **limits):
        await nap(3)
        return await super().read(*what, **limits)

    async def run(self, *what):
        await nap(3)
        return await super().run(*what)


async def reply(request):
    await nap(6)
    draw = random.random()
    if request.call < 4 and draw < 0.6:
        return [call(random.choice(TOOLS + ASKING)) for _ in range(random.randrange(1, 4))]
    if draw < 0.65:
        raise ModelError("bad")
    return "Done."


async def poke(host, run):
    """Send a run a few things that it may or may not be waiting for."""
    for _ in range(random.randrange(6)):
        await nap(30)
        draw = random.random()
        try:
            if draw < 0.2:
                await host.deliver(run, Stop("now" if draw < 0.12 else "after_turn"), scope=ADA)
            elif draw < 0.3:
                await host.resume(run, scope=ADA)
            elif draw < 0.5:
                await host.deliver(run, UserMessage("go"), scope=ADA)
            else:
                for asked in await host.requests(scope=ADA, run=run):
                    await host.deliver(run, Answer(asked.id, "yes"), scope=ADA)
        except REFUSED:
            continue


async def some_runs():
    """Let some runs go their way together and be disturbed; return what is left of them."""
    handoffs = random.choice([{}, {"handoffs": TO_USER}])
    desk = spec(*TOOLS, ui=ASKING, **handoffs)
    host = host_for(desk, FunctionModel(reply), code=CODE, store=Yielding())
    host._worker._performer.holding.seconds = random.choice([0.01, 0.003, 0.0])
    host._worker._performer.holding.most = random.choice([500, 0])
    runs, pokes = [], []
    for _ in range(random.randrange(1, 30)):
        runs.append(await host.start("Desk", scope=ADA, message="hi"))
        pokes.append(asyncio.create_task(poke(host, runs[-1])))
        await nap()
    if random.random() < 0.4:
        await nap(60)
    else:
        for run in runs:
            assert (await host.settled(run, scope=ADA)).status != "running"
        await asyncio.gather(*pokes)
    await asyncio.gather(host.close(), host.close())
    await asyncio.gather(*pokes)
    return len(host._worker), host._worker._performer.holding._held


@pytest.mark.parametrize("seed", range(15 * TIMES))
def test_no_waiter_hangs_after_closing(seed):
    random.seed(seed)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert play(some_runs) == (0, 0)
        gc.collect()
    assert [str(item.message) for item in warned if item.category is RuntimeWarning] == []


async def test_an_answer_in_the_moment_in_which_a_run_is_let_go():
    model = FunctionModel(
        lambda request: "Done." if request.messages[-1]["role"] == "tool" else call("ask")
    )
    async with host_for(spec(ui=("ask",)), model, code=CODE) as host:
        host._worker._performer.holding.most = 0  # All are let go at once.
        run = await host.start("Desk", scope=ADA, message="hi")
        async for event in host.events(run, scope=ADA, follow=True):
            asked = isinstance(event, Event) and isinstance(event.data, RequestOpened)
            if asked and event.data.kind == "ui":
                await host.deliver(run, Answer(event.data.id, "yes"), scope=ADA)
        assert (await host.settled(run, scope=ADA)).outcome == "completed"


class SlowToWrite(MemoryStore):
    """Takes a while for events of one kind."""

    def __init__(self, kind):
        super().__init__()
        self._kind = kind

    async def append(self, batch, *, owner):
        if any(isinstance(event.data, self._kind) for event in batch.events):
            await asyncio.sleep(0.05)
        return await super().append(batch, owner=owner)


async def test_a_result_that_waits_to_be_taken_in_is_not_asked_for_again():
    model = FunctionModel(
        lambda request: "Done." if request.messages[-1]["role"] == "tool" else call("quick")
    )
    journal = SlowToWrite(StopRequested)
    async with host_for(spec("quick"), model, code=COUNTED, store=journal) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        stopped = asyncio.create_task(host.deliver(run, Stop("after_turn"), scope=ADA))
        await asyncio.sleep(0.01)
        await host.resume(run, scope=ADA)  # The tool is done meanwhile, and nobody knows yet.
        await stopped
        await host.settled(run, scope=ADA)
        events = [event.data async for event in host.events(run, scope=ADA)]
        outcome = [event.value for event in events if isinstance(event, ToolReturned)]
    assert outcome == ["1"]


HASTY = {
    "tools/work.py": b"""
import asyncio

from weft import use_ui_tool

calls = []


async def hasty() -> str:
    calls.append(1)
    try:
        async with asyncio.timeout(0.02):
            return await use_ui_tool("hasty", "tea?")
    except TimeoutError:
        return "nobody was there"
"""
}


async def test_an_answer_that_is_taken_in_before_the_result_of_its_tool_calls_nothing_again():
    model = FunctionModel(
        lambda request: "Done." if request.messages[-1]["role"] == "tool" else call("hasty")
    )
    journal = SlowToWrite(StopRequested)
    async with host_for(spec(ui=("hasty",)), model, code=HASTY, store=journal) as host:
        run = await host.start("Desk", scope=ADA, message="hi")
        await host.settled(run, scope=ADA)
        (asked,) = await host.requests(scope=ADA, run=run)
        # Both wait for the journal, and so does the tool, which does not wait for an answer.
        stop, answer = Stop("after_turn"), Answer(asked.id, "yes")
        await asyncio.gather(*(host.deliver(run, item, scope=ADA) for item in (stop, answer)))
        await host.settled(run, scope=ADA)
        events = [event.data async for event in host.events(run, scope=ADA)]
        module = next(module for name, module in sys.modules.items() if name.endswith("tools.work"))
        outcome = (
            [event.value for event in events if isinstance(event, ToolReturned)],
            len(module.calls),
        )
    assert outcome == (["nobody was there"], 1)


COUNTED = {
    "tools/work.py": b"""
import asyncio
from itertools import count

calls = count(1)


async def quick() -> str:
    number = next(calls)
    await asyncio.sleep(0.02)
    return str(number) if next(calls) == 2 else "called twice"
"""
}


def test_tools_that_have_not_begun_when_a_run_is_stopped_leave_no_warning():
    async def scenario():
        model = FunctionModel(lambda _: [call("quick")] * 3)
        journal = SlowToWrite(ModelReplied)
        async with host_for(spec("quick"), model, code=CODE, store=journal) as host:
            run = await host.start("Desk", scope=ADA, message="hi")
            await asyncio.sleep(0.01)
            await host.deliver(run, Stop("now"), scope=ADA)
            return await host.settled(run, scope=ADA)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert play(scenario).outcome == "cancelled"
        gc.collect()
    assert [str(item.message) for item in warned] == []
