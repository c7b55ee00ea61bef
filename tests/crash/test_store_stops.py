"""A process that dies at any append, played without a process: its store stops, and it is left.

Another host takes the run over and goes on as if nothing had been: what was recorded is not done
again, and what the run comes to is the same.
"""

import asyncio

import pytest

from behaviour.bad_run_play import ADA
from support.effort import TIMES
from support.group_play import CODE, team
from support.run_play import Seconds
from support.stopping_journal import StoppingJournal
from weft.adapters.memory import MemoryJournal
from weft.adapters.sqlite import SqliteJournal
from weft.engine.events import Event, ToolCalled, ToolReturned
from weft.inspect.replay import check_replay
from weft.runtime.signals import Answer
from weft.testing import FunctionModel, call, host_for

#: Appends of the run below, at least.
APPENDS = 9


LINES = {
    "Lead": ["go"],
    "Ann": [call("count"), "one"],
    "Ben": [call("ask", what="tea"), "two"],
    "Cas": ["three"],
    "Editor": ["over"],
}


def script():
    """Answer by the number of the call, whichever process asks."""
    return FunctionModel(lambda request: LINES[request.agent][request.call - 1])


async def lead(host):
    """Take the run to its end from wherever it stands."""
    while (row := await host.settled("run", scope=ADA)).status == "waiting":
        for asked in await host.requests(scope=ADA, run="run"):
            await host.deliver("run", Answer(asked.id, "green"), scope=ADA)
    return row


async def started(host):
    """Begin the run unless it has begun."""
    if not await host.runs(scope=ADA):
        await host.start("Side", scope=ADA, message="write", run="run")


async def killed(journal, at, written):
    """Let a host work until its store stops, and leave it as a killed process leaves its runs."""
    stopping = StoppingJournal(journal, at, after=written)
    host = host_for(team(), script(), code=CODE, journal=stopping, clock=Seconds())

    async def whole():
        await started(host)
        await lead(host)

    work = asyncio.create_task(whole())
    stopped = asyncio.create_task(stopping.stopped.wait())
    await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
    was_stopped = stopping.stopped.is_set()
    for task in (work, stopped):
        task.cancel()
    await asyncio.gather(work, stopped, return_exceptions=True)
    await host.close()
    return was_stopped


async def finished(journal):
    """Let another host take the run over, and return what became of it."""
    host = host_for(team(), script(), code=CODE, journal=journal, clock=Seconds())
    async with host:
        await started(host)
        if (await host.run("run", scope=ADA)).status == "running":
            await host.resume("run", scope=ADA, take_over=True)
        row = await lead(host)
        state = await host.state("run", scope=ADA)
        events = [it async for it in host.events("run", scope=ADA) if isinstance(it, Event)]
        return (
            row,
            state,
            events,
            check_replay(await host.workflow("run", scope=ADA), "run", events),
        )


def outcome(state):
    """Return what a run has come to, without the numbers of its events."""
    said = [(it.role, it.agent, it.text) for it in state.messages]
    return state.outcome, dict(state.variables), said, state.turns


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, APPENDS + 1))
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_whoever_dies_at_an_append_leaves_a_run_that_goes_on(tmp_path, kind, at, written):
    async def scenario(first):
        path = tmp_path / f"j{first}.db"
        journal = MemoryJournal() if kind == "memory" else await SqliteJournal.open(path)
        stopped = await killed(journal, first, written) if first else False
        row, state, events, mismatches = await finished(journal)
        assert stopped is bool(first)
        assert row.outcome == "completed"
        assert mismatches == []
        called = [it.data.id for it in events if isinstance(it.data, ToolCalled)]
        returned = [it.data.id for it in events if isinstance(it.data, ToolReturned)]
        assert sorted(called) == sorted(set(called)) == sorted(returned)
        return outcome(state)

    async def both():
        undisturbed = await scenario(0)
        for _ in range(TIMES):
            assert await scenario(at) == undisturbed

    asyncio.run(asyncio.wait_for(both(), 60 * TIMES))
