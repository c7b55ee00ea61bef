"""Who works on a run: one process at a time, and another when that has closed or died."""

import asyncio

import pytest

from behaviour.bad_run_play import ADA, finished, play, spec
from support.killed_store import KilledStore
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.errors import RunError, StoreError, UsageError
from weft.runtime.runs.ownership import DEAD_AFTER, HEARTBEAT
from weft.runtime.signals import Stop, UserMessage
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel

SPEC = spec()


class Model:
    """Answers when it may; counts how often it was asked."""

    def __init__(self, *, answers=True):
        self.gate = asyncio.Event()
        self.asked = asyncio.Event()
        self.times = 0
        if answers:
            self.gate.set()

    async def reply(self, request, on_text=None):
        self.times += 1
        self.asked.set()
        await self.gate.wait()
        return await FunctionModel(lambda _: "Done.").reply(request, on_text)


@pytest.fixture
def opened(tmp_path):
    """Open one store as often as it is wanted, each time as another process would."""

    async def open_(clock):
        return KilledStore(await SqliteStore.open(tmp_path / "runs.db", clock=clock))

    return open_


def seconds(milliseconds):
    return milliseconds / 1000


async def dies(host):
    """Let a process die as with kill -9."""
    host._store.kill()
    await host.close()


async def begun(opened, clock, model=None):
    """Open a host that works on a run whose model has not answered."""
    model = model or Model(answers=False)
    host = host_for(SPEC, model, store=await opened(clock), clock=clock)
    await host.start("Desk", scope=ADA, message="hi", run="run")
    await model.asked.wait()
    return host


async def heartbeat_is_written(host, clock):
    """Wait until the heartbeat of this second is in the store: a thread writes it."""
    while clock.now() - (await host.run("run", scope=ADA)).heartbeat >= HEARTBEAT:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def test_run_of_another_process_is_refused_unless_taken_over(opened):
    async def scenario():
        clock, slow, quick = ManualClock(), Model(answers=False), Model()
        first = await begun(opened, clock, slow)
        second = host_for(SPEC, quick, store=await opened(clock), clock=clock)
        async with first, second:
            await clock.advance(4)
            await heartbeat_is_written(second, clock)
            with pytest.raises(
                UsageError, match="another process works on run run: its"
            ) as refused:
                await second.resume("run", scope=ADA)
            assert "its last heartbeat was 0 s ago" in str(refused.value)
            assert "--take-over" in refused.value.hint
            assert await second.recover() == []
            assert quick.times == 0
            await second.resume("run", scope=ADA, take_over=True)
            row = await second.settled("run", scope=ADA)
            slow.gate.set()
            assert (await first.settled("run", scope=ADA)).seq == row.seq
            return row, (await finished(second, "run")).events

    row, events = play(scenario)
    assert row.outcome == "completed"
    assert [event.seq for event in events] == list(range(1, row.seq + 1))


def test_a_worker_gives_signs_of_life_for_as_long_as_it_works(opened):
    async def scenario():
        clock = ManualClock()
        first = await begun(opened, clock)
        second = host_for(SPEC, Model(), store=await opened(clock), clock=clock)
        async with first, second:
            for _ in range(10):
                await clock.advance(seconds(HEARTBEAT))
                await heartbeat_is_written(second, clock)
            row = await second.run("run", scope=ADA)
            assert row.owner == first._worker.ownership.owner
            assert clock.now() - row.heartbeat <= HEARTBEAT
            assert await second.recover() == []

    play(scenario)


def test_run_of_a_closed_process_is_resumed_at_once(opened):
    async def scenario():
        clock, model = ManualClock(), Model()
        await (await begun(opened, clock)).close()
        async with host_for(SPEC, model, store=await opened(clock), clock=clock) as second:
            assert (await second.run("run", scope=ADA)).owner == ""
            await second.resume("run", scope=ADA)
            return await second.settled("run", scope=ADA), model.times

    row, times = play(scenario)
    assert (row.outcome, times) == ("completed", 1)


def test_run_of_a_killed_process_is_resumed_after_its_lease(opened):
    async def scenario():
        clock, model = ManualClock(), Model()
        await dies(await begun(opened, clock))
        async with host_for(SPEC, model, store=await opened(clock), clock=clock) as second:
            await clock.advance(seconds(DEAD_AFTER) - 1)
            assert await second.recover() == []
            await clock.advance(2)
            return await second.settled("run", scope=ADA), model.times

    row, times = play(scenario)
    assert (row.outcome, times) == ("completed", 1)


def test_recover_takes_up_the_runs_of_dead_processes_only(opened):
    async def scenario():
        clock, model = ManualClock(), Model()
        dead, slow = await begun(opened, clock), Model(answers=False)
        await dies(dead)
        await clock.advance(seconds(DEAD_AFTER) + 1)
        alive = host_for(SPEC, slow, store=await opened(clock), clock=clock)
        async with alive:
            await alive.start("Desk", scope=ADA, message="hi", run="worked-on")
            await slow.asked.wait()
            async with host_for(SPEC, model, store=await opened(clock), clock=clock) as second:
                assert await second.recover() == ["run"]
                await second.settled("run", scope=ADA)
                return model.times

    assert play(scenario) == 1


def test_of_two_processes_that_recover_at_the_same_moment_one_takes_up_each_run(opened):
    async def scenario():
        clock, model = ManualClock(), Model(answers=False)
        for number in range(5):
            host = host_for(SPEC, Model(answers=False), store=await opened(clock), clock=clock)
            await host.start("Desk", scope=ADA, message="hi", run=f"run-{number}")
            await dies(host)
        await clock.advance(seconds(DEAD_AFTER) + 1)
        hosts = [host_for(SPEC, model, store=await opened(clock), clock=clock) for _ in range(2)]
        async with hosts[0], hosts[1]:
            taken = await asyncio.gather(*(host.recover() for host in hosts))
            # Though nothing was written since: whoever asks later sees that they are worked on.
            assert [await host.recover() for host in hosts] == [[], []]
            model.gate.set()
            rows = [await hosts[0].settled(f"run-{number}", scope=ADA) for number in range(5)]
            return sorted(taken[0] + taken[1]), {row.outcome for row in rows}, model.times

    taken, outcomes, times = play(scenario)
    assert taken == [f"run-{number}" for number in range(5)]
    assert (outcomes, times) == ({"completed"}, 5)


def test_a_host_takes_up_again_what_it_has_given_up_itself():
    class FullDisk(MemoryStore):
        full = False

        async def append(self, batch, *, owner):
            if self.full:
                raise StoreError("the disk is full")
            return await super().append(batch, owner=owner)

    async def scenario():
        journal, model = FullDisk(), Model(answers=False)
        async with host_for(SPEC, model, store=journal, clock=ManualClock()) as host:
            await host.start("Desk", scope=ADA, message="hi", run="run")
            await model.asked.wait()
            journal.full = True
            model.gate.set()
            with pytest.raises(RunError, match="the disk is full"):
                await host.settled("run", scope=ADA)
            journal.full = False
            assert await host.recover() == ["run"]
            assert await host.recover() == [], "it is worked on"
            return await host.settled("run", scope=ADA)

    assert play(scenario).outcome == "completed"


def test_closing_succeeds_although_runs_cannot_be_released(opened, caplog):
    async def scenario():
        await dies(await begun(opened, ManualClock()))

    play(scenario)
    assert "could not be released: this process is dead" in caplog.text


def test_waiting_run_has_no_owner(opened):
    chat = spec(handoffs=[{"source_agent": "Clerk", "target_agent": "user"}])

    async def scenario():
        clock = ManualClock()
        async with host_for(chat, Model(), store=await opened(clock), clock=clock) as first:
            await first.start("Desk", scope=ADA, message="hi", run="run")
            row = await first.settled("run", scope=ADA)
            assert (row.status, row.owner) == ("waiting", "")
            async with host_for(chat, Model(), store=await opened(clock), clock=clock) as second:
                await second.deliver("run", UserMessage("more"), scope=ADA)
                await second.settled("run", scope=ADA)
                # What the first keeps in memory is behind; it finds out when it writes.
                await first.deliver("run", UserMessage("even more"), scope=ADA)
                await first.settled("run", scope=ADA)
                await second.deliver("run", Stop(), scope=ADA)
                return await finished(first, "run")

    told = play(scenario)
    assert told.row.outcome == "cancelled"
    assert [entry.value for entry in told.answered] == ["more", "even more"]
