"""The id under which a process owns runs, its heartbeat, and the time of the store."""

import asyncio
import logging

import pytest

from support.run_play import ADA
from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.errors import RunOwned, StoreError
from weft.runtime.runs.ownership import DEAD_AFTER, HEARTBEAT, Ownership, StoreClock
from weft.runtime.signals import UserMessage
from weft.spec.workflow import WorkflowSpec
from weft.testing import FunctionModel, host_for
from weft.testing.clock import ManualClock
from weft.testing.store.samples import APP, SCOPE, SampleRun

MINUTES = 60_000
SECONDS_DEAD = DEAD_AFTER / 1000


class StallingStore(MemoryStore):
    """A store that this process cannot reach for a while, and that counts heartbeats."""

    def __init__(self, clock):
        super().__init__(clock)
        self.is_shared = True
        self.is_stalled = False
        self.beats = 0

    async def beat(self, owner):
        if self.is_stalled:
            raise StoreError("the connection broke", retryable=True)
        self.beats += 1
        return await super().beat(owner)


class Process:
    """An owner with its heartbeats."""

    def __init__(self, store, clock):
        self.store = store
        self.clock = StoreClock(clock)
        self.is_needed = True
        self.renamed = []
        self.ownership = Ownership(
            store,
            self.clock,
            is_needed=lambda: self.is_needed,
            on_renamed=lambda runs: self.renamed.append(list(runs)),
            on_freed=lambda: None,
        )

    async def hold(self, *names):
        self.ownership.begin()
        for name in names:
            await self.store.append(SampleRun(name).batch(held=True), owner=self.ownership.owner)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(clock):
    return StallingStore(clock)


@pytest.fixture
def process(store, clock):
    return Process(store, clock)


@pytest.fixture
def later(monkeypatch):
    """Return a function that moves the monotonic clock."""

    def move(seconds):
        loop = asyncio.get_running_loop()
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + seconds)

    return move


async def until(condition):
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(0.005)


async def pass_seconds(clock, store, seconds):
    """Let time pass second by second, with the heartbeats of each."""
    for _ in range(seconds):
        beats = store.beats
        await clock.advance(1)
        await until(lambda: store.beats > beats or store.is_stalled)  # noqa: B023 - at once


async def owner_of(store, name):
    return (await store.run(SCOPE, name)).owner


# -- heartbeats


async def test_heartbeats_keep_the_runs(process, store, clock):
    await process.hold("r1")
    owner = process.ownership.owner
    await pass_seconds(clock, store, 12)
    assert store.beats >= 12000 // HEARTBEAT
    assert (process.ownership.owner, process.renamed) == (owner, [])
    await store.beat("other")
    assert await owner_of(store, "r1") == owner
    assert (await store.claim("other")).runs == []


async def test_heartbeats_end_when_they_are_not_needed_and_begin_under_another_id(
    process, store, clock
):
    await process.hold("r1")
    first = process.ownership.owner
    process.is_needed = False
    await clock.advance(1)
    await until(lambda: not process.ownership.is_begun)
    assert (store.beats, clock.sleepers) == (0, 0)
    assert process.ownership.owner != first, "the next heartbeat would come too late"
    process.is_needed = True
    await process.hold("r2")
    await pass_seconds(clock, store, 1)
    assert process.renamed == []


async def test_a_store_of_one_process_needs_no_heartbeats(clock):
    process = Process(MemoryStore(clock), clock)
    await process.hold("r1")
    assert process.ownership.is_begun
    assert process.ownership.is_safe
    await clock.advance(60)
    assert clock.sleepers == 0
    await process.ownership.wait_until_safe()
    await process.ownership.close()


async def test_the_answer_to_a_heartbeat_is_kept(process, store):
    await process.hold("r1")
    await store.append(SampleRun("r2").batch(held=True), owner="other")
    beat = await process.ownership.beat()
    assert beat is process.ownership.last_beat
    assert (beat.alive, set(beat.others)) == (True, {"other"})


async def test_a_store_that_cannot_be_reached_is_only_logged(process, store, caplog):
    store.is_stalled = True
    with caplog.at_level(logging.WARNING):
        assert await process.ownership.beat() is None
    assert "the heartbeat could not be written: the connection broke" in caplog.text


# -- a heartbeat that is refused


async def test_a_late_heartbeat_renames_the_owner_and_keeps_its_runs(process, store, clock):
    await process.hold("r1", "r2")
    first = process.ownership.owner
    store.is_stalled = True
    await clock.advance(SECONDS_DEAD + 1)
    store.is_stalled = False
    await pass_seconds(clock, store, 1)
    second = process.ownership.owner
    assert second != first
    assert process.renamed == [[(APP, "r1"), (APP, "r2")]]
    assert {await owner_of(store, name) for name in ("r1", "r2")} == {second}
    with pytest.raises(RunOwned):
        await store.append(SampleRun("r1", seq=1).batch(), owner=first)
    await pass_seconds(clock, store, 3)
    assert process.ownership.owner == second


async def test_a_late_heartbeat_drops_the_runs_that_others_have(process, store, clock):
    await process.hold("r1", "r2")
    store.is_stalled = True
    await clock.advance(SECONDS_DEAD + 1)
    await MemoryStore.beat(store, "other")
    assert len((await store.claim("other", limit=1)).runs) == 1
    store.is_stalled = False
    await process.ownership.beat()
    assert process.renamed == [[]], "a heartbeat of another process has freed both"
    await store.take("third", APP, "r1", force=True)
    assert await owner_of(store, "r1") == "third"


async def test_a_rename_that_fails_is_repeated_with_the_next_heartbeat(
    process, store, clock, monkeypatch
):
    await process.hold("r1")
    first = process.ownership.owner
    store.is_stalled = True
    await clock.advance(SECONDS_DEAD + 1)
    store.is_stalled = False
    with monkeypatch.context() as patch:
        patch.setattr(store, "rename", _fail)
        assert await process.ownership.beat() is None
    assert (process.ownership.owner, process.renamed) == (first, [])
    await process.ownership.beat()
    assert process.renamed == [[(APP, "r1")]]


async def test_a_rename_whose_answer_was_lost_keeps_the_runs(process, store, clock, monkeypatch):
    await process.hold("r1")
    store.is_stalled = True
    await clock.advance(SECONDS_DEAD + 1)
    store.is_stalled = False

    async def lose(owner, new):
        await MemoryStore.rename(store, owner, new)
        raise StoreError("the connection broke", retryable=True, uncertain=True)

    with monkeypatch.context() as patch:
        patch.setattr(store, "rename", lose)
        await process.ownership.beat()
    await process.ownership.beat()
    assert process.renamed == [[(APP, "r1")]]


async def _fail(*_):
    raise StoreError("the connection broke", retryable=True)


# -- when effects may begin


async def test_no_effect_begins_when_the_last_good_heartbeat_is_old(process, later):
    """S9: less than the time after which another process may have the run."""
    await process.hold("r1")
    assert process.ownership.is_safe
    later(3.9)
    assert process.ownership.is_safe
    later(0.2)
    assert not process.ownership.is_safe
    waiting = asyncio.create_task(process.ownership.wait_until_safe())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await process.ownership.beat()
    await asyncio.wait_for(waiting, 1)


async def test_the_time_of_a_heartbeat_is_when_it_was_sent(process, store, later, monkeypatch):
    """An answer that takes long does not make the owner safe for longer."""
    await process.hold("r1")

    async def answer_late(owner):
        beat = await MemoryStore.beat(store, owner)
        later(4.1)
        return beat

    monkeypatch.setattr(store, "beat", answer_late)
    await process.ownership.beat()
    assert not process.ownership.is_safe


async def test_a_heartbeat_that_fails_does_not_make_it_safe(process, store, later):
    await process.hold("r1")
    later(4.1)
    store.is_stalled = True
    await process.ownership.beat()
    assert not process.ownership.is_safe


async def test_nothing_begins_after_drain(process):
    await process.hold("r1")
    process.ownership.drain()
    assert not process.ownership.is_safe
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(process.ownership.wait_until_safe(), 0.02)


# -- the time of the store


@pytest.mark.parametrize("minutes", [-10, 10])
async def test_the_time_of_the_store_decides(store, clock, minutes):
    """A process whose clock is wrong by ten minutes."""
    wrong = ManualClock(clock.now() + minutes * MINUTES)
    process = Process(store, wrong)
    await process.hold("r1")
    owner = process.ownership.owner
    await asyncio.sleep(0)  # Its heartbeats begin before it knows the time of the store.
    assert (await process.ownership.beat()).alive
    assert process.clock.now() == clock.now()
    for _ in range(8):
        beats = store.beats
        await asyncio.gather(clock.advance(1), wrong.advance(1))
        await until(lambda beats=beats: store.beats > beats)
    assert (process.ownership.owner, process.renamed) == (owner, [])
    assert process.clock.now() == clock.now()
    woken = asyncio.create_task(process.clock.sleep_until(clock.now() + 5000))
    await wrong.advance(4.9)
    assert not woken.done()
    await wrong.advance(0.2)
    await asyncio.wait_for(woken, 1)
    await process.ownership.close()


def test_a_clock_that_is_right_is_not_set():
    clock = ManualClock()
    time = StoreClock(clock)
    now = clock.now()
    time.follow(now, now)
    assert time.now() == now
    time.follow(now + 10, now)
    assert time.now() == now + 10
    time.follow(now - 600_000, now + 10)
    assert time.now() == now - 600_000
    assert time.new_id() == "id-0001"


@pytest.mark.parametrize("minutes", [-10, 10])
async def test_timers_of_a_host_with_a_wrong_clock_fire_by_the_time_of_the_store(
    tmp_path, clock, minutes
):
    trigger = {"type": "timer_expired", "after_seconds": 3}
    source = {"type": "derived", "default": False, "triggers": [trigger]}
    spec = WorkflowSpec.model_validate(
        {
            "orchestrator": {"workflow_name": "W", "initial_agent": "A"},
            "agents": [{"agent_name": "A"}],
            "variables": {"late": {"type": "bool", "source": source}},
            "handoffs": [{"source_agent": "A", "target_agent": "user"}],
        }
    )
    store = await SqliteStore.open(tmp_path / "store.db", clock=clock, durability="normal")
    wrong = ManualClock(clock.now() + minutes * MINUTES)
    async with host_for(spec, FunctionModel(lambda _: "hi"), store=store, clock=wrong) as host:
        await host.recover()
        run = await host.start("W", scope=ADA)
        row = await host.run(run, scope=ADA)
        assert row.due_at == clock.now() + 3000
        for _ in range(4):
            await asyncio.gather(clock.advance(1), wrong.advance(1))
        await until_late(host, run)
        await host.deliver(run, UserMessage("hello"), scope=ADA)
        state = await host.settled_state(run, scope=ADA)
        assert [message.text for message in state.messages] == ["hello", "hi"]


async def until_late(host, run):
    async with asyncio.timeout(10):
        while not (await host.state(run, scope=ADA)).variables.get("late"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
