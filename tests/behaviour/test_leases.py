"""Who works on a run: one process at a time, and another when that has closed or died."""

import asyncio

import pytest

from behaviour.bad_run_play import ADA, finished, play, spec
from weft.adapters.memory import MemoryJournal
from weft.adapters.sqlite import SqliteJournal
from weft.errors import RunError, StoreError, UsageError
from weft.runtime.signals import Stop, UserMessage
from weft.runtime.worker import HEARTBEAT, LEASE
from weft.testing.clock import ManualClock
from weft.testing.hosts import host_for
from weft.testing.models import FunctionModel

SPEC = spec()


class Shared:
    """One of several ways to a journal that outlives its hosts."""

    def __init__(self, journal):
        self._shared = journal

    def __getattr__(self, name):
        return getattr(self._shared, name)

    async def close(self):
        pass


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


@pytest.fixture(params=["memory", "sqlite"])
def opened(request, tmp_path):
    """Open one store as often as it is wanted."""
    kept = MemoryJournal()

    async def open_():
        if request.param == "memory":
            return Shared(kept)
        return await SqliteJournal.open(tmp_path / "journal.db")

    return open_


def seconds(milliseconds):
    return milliseconds / 1000


async def dies(host):
    """Let a process die as with kill -9: nothing is written any more, and nobody is told."""

    async def gone(*_given, **_named):
        raise StoreError("this process is dead")

    host._journal.claim = host._journal.beat = gone
    await host.close()


async def begun(opened, clock, model=None):
    """Open a host that works on a run whose model has not answered."""
    model = model or Model(answers=False)
    host = host_for(SPEC, model, journal=await opened(), clock=clock)
    await host.start("Desk", scope=ADA, message="hi", run="run")
    await model.asked.wait()
    return host


def test_a_run_that_another_process_works_on_is_not_taken_up_but_may_be_taken_over(opened):
    async def scenario():
        clock, slow, quick = ManualClock(), Model(answers=False), Model()
        first = await begun(opened, clock, slow)
        second = host_for(SPEC, quick, journal=await opened(), clock=clock)
        async with first, second:
            await clock.advance(4)
            with pytest.raises(UsageError, match="another process works on run run: its") as it:
                await second.resume("run", scope=ADA)
            assert "its last sign of life was 4 s ago" in str(it.value)
            assert "--take-over" in it.value.hint
            assert await second.recover() == []
            assert quick.times == 0
            await second.resume("run", scope=ADA, take_over=True)
            row = await second.settled("run", scope=ADA)
            slow.gate.set()
            assert (await first.settled("run", scope=ADA)).seq == row.seq
            return row, (await finished(second, "run")).events

    row, events = play(scenario)
    assert row.outcome == "completed"
    assert [it.seq for it in events] == list(range(1, row.seq + 1))


def test_a_worker_gives_signs_of_life_for_as_long_as_it_works(opened):
    async def scenario():
        clock = ManualClock()
        first = await begun(opened, clock)
        second = host_for(SPEC, Model(), journal=await opened(), clock=clock)
        async with first, second:
            for _ in range(10):
                await clock.advance(seconds(HEARTBEAT))
                await asyncio.sleep(0.02)
            row = await second.run("run", scope=ADA)
            assert row.owner == first._batches.owner
            assert clock.now() - row.heartbeat <= HEARTBEAT
            assert await second.recover() == []

    play(scenario)


def test_a_run_whose_process_has_closed_is_taken_up_at_once(opened):
    async def scenario():
        clock, model = ManualClock(), Model()
        await (await begun(opened, clock)).close()
        async with host_for(SPEC, model, journal=await opened(), clock=clock) as second:
            assert (await second.run("run", scope=ADA)).owner == ""
            await second.resume("run", scope=ADA)
            return await second.settled("run", scope=ADA), model.times

    row, times = play(scenario)
    assert (row.outcome, times) == ("completed", 1)


def test_a_run_whose_process_was_killed_is_taken_up_when_its_lease_is_over(opened):
    async def scenario():
        clock, model = ManualClock(), Model()
        await dies(await begun(opened, clock))
        async with host_for(SPEC, model, journal=await opened(), clock=clock) as second:
            await clock.advance(seconds(LEASE) - 1)
            assert await second.recover() == []
            await clock.advance(2)
            assert await second.recover() == ["run"]
            return await second.settled("run", scope=ADA), model.times

    row, times = play(scenario)
    assert (row.outcome, times) == ("completed", 1)


def test_recover_takes_up_the_runs_of_dead_processes_only(opened):
    async def scenario():
        clock, model = ManualClock(), Model()
        dead, slow = await begun(opened, clock), Model(answers=False)
        await dies(dead)
        await clock.advance(seconds(LEASE) + 1)
        alive = host_for(SPEC, slow, journal=await opened(), clock=clock)
        async with alive:
            await alive.start("Desk", scope=ADA, message="hi", run="worked-on")
            await slow.asked.wait()
            async with host_for(SPEC, model, journal=await opened(), clock=clock) as second:
                assert await second.recover() == ["run"]
                await second.settled("run", scope=ADA)
                return model.times

    assert play(scenario) == 1


def test_of_two_processes_that_recover_at_the_same_moment_one_takes_up_each_run(opened):
    async def scenario():
        clock, model = ManualClock(), Model(answers=False)
        for number in range(5):
            host = host_for(SPEC, Model(answers=False), journal=await opened(), clock=clock)
            await host.start("Desk", scope=ADA, message="hi", run=f"run-{number}")
            await dies(host)
        await clock.advance(seconds(LEASE) + 1)
        hosts = [host_for(SPEC, model, journal=await opened(), clock=clock) for _ in range(2)]
        async with hosts[0], hosts[1]:
            taken = await asyncio.gather(*(it.recover() for it in hosts))
            # Though nothing was written since: whoever asks later sees that they are worked on.
            assert [await it.recover() for it in hosts] == [[], []]
            model.gate.set()
            rows = [await hosts[0].settled(f"run-{it}", scope=ADA) for it in range(5)]
            return sorted(taken[0] + taken[1]), {it.outcome for it in rows}, model.times

    taken, outcomes, times = play(scenario)
    assert taken == [f"run-{it}" for it in range(5)]
    assert (outcomes, times) == ({"completed"}, 5)


def test_a_host_takes_up_again_what_it_has_given_up_itself():
    class FullDisk(MemoryJournal):
        full = False

        async def append(self, batch):
            if self.full:
                raise StoreError("the disk is full")
            await super().append(batch)

    async def scenario():
        journal, model = FullDisk(), Model(answers=False)
        async with host_for(SPEC, model, journal=journal, clock=ManualClock()) as host:
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


def test_closing_is_no_failure_though_runs_cannot_be_released(opened, caplog):
    async def scenario():
        await dies(await begun(opened, ManualClock()))

    play(scenario)
    assert "could not be released: this process is dead" in caplog.text


def test_a_run_that_waits_for_a_person_belongs_to_nobody(opened):
    chat = spec(handoffs=[{"source_agent": "Clerk", "target_agent": "user"}])

    async def scenario():
        clock = ManualClock()
        async with host_for(chat, Model(), journal=await opened(), clock=clock) as first:
            await first.start("Desk", scope=ADA, message="hi", run="run")
            row = await first.settled("run", scope=ADA)
            assert (row.status, row.owner) == ("waiting", "")
            async with host_for(chat, Model(), journal=await opened(), clock=clock) as second:
                await second.deliver("run", UserMessage("more"), scope=ADA)
                await second.settled("run", scope=ADA)
                # What the first keeps in memory is behind; it finds out when it writes.
                await first.deliver("run", UserMessage("even more"), scope=ADA)
                await first.settled("run", scope=ADA)
                await second.deliver("run", Stop(), scope=ADA)
                return await finished(first, "run")

    told = play(scenario)
    assert told.row.outcome == "cancelled"
    assert [it.value for it in told.answered] == ["more", "even more"]
