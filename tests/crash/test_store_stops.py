"""A process that dies at any append, played without a process: its store stops, and it is left.

Another host takes the run over and goes on as if nothing had been: what was recorded is not done
again, and what the run comes to is the same.
"""

import asyncio

import pytest

from behaviour.bad_run_play import ADA
from support.effort import TIMES
from support.group_play import CODE, team
from support.stopping_store import LaterClock, StoppingStore, work_until_stopped
from weft.adapters.sql import SqliteStore
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


async def stopped_at(path, at, written):
    """Let a host work until its store stops; tell whether it did."""
    clock = LaterClock(0)
    stopping = StoppingStore(await SqliteStore.open(path, clock=clock), at, after=written)
    host = host_for(team(), script(), code=CODE, store=stopping, clock=clock)

    async def whole():
        await started(host)
        await lead(host)

    return await work_until_stopped(host, stopping, whole())


async def finished(path):
    """Let another host take the run over, and return its end."""
    clock = LaterClock(1)
    store = await SqliteStore.open(path, clock=clock)
    host = host_for(team(), script(), code=CODE, store=store, clock=clock)
    async with host:
        await started(host)
        await host.recover()
        row = await lead(host)
        state = await host.state("run", scope=ADA)
        events = [
            event async for event in host.events("run", scope=ADA) if isinstance(event, Event)
        ]
        return (
            row,
            state,
            events,
            check_replay(await host.workflow("run", scope=ADA), "run", events),
        )


def outcome(state):
    """Return what a run has come to, without the numbers of its events."""
    said = [(message.role, message.agent, message.text) for message in state.messages]
    return state.outcome, dict(state.variables), said, state.turns


@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(1, APPENDS + 1))
def test_run_continues_after_a_process_dies_at_an_append(tmp_path, at, written):
    async def scenario(first, number=0):
        path = tmp_path / f"store{first}-{number}.db"
        stopped = await stopped_at(path, first, written) if first else False
        row, state, events, mismatches = await finished(path)
        assert stopped is bool(first)
        assert row.outcome == "completed"
        assert mismatches == []
        called = [event.data.id for event in events if isinstance(event.data, ToolCalled)]
        returned = [event.data.id for event in events if isinstance(event.data, ToolReturned)]
        assert sorted(called) == sorted(set(called)) == sorted(returned)
        return outcome(state)

    async def both():
        undisturbed = await scenario(0)
        for number in range(TIMES):
            assert await scenario(at, number) == undisturbed

    asyncio.run(asyncio.wait_for(both(), 60 * TIMES))
