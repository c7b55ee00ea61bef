"""The store in memory: what it refuses, what it forgets, and what a claim looks at."""

import pytest

from weft.adapters.memory import MemoryStore
from weft.adapters.memory import queue as memory_queue
from weft.adapters.store_rules import FORGET_EVERY, REMEMBER
from weft.engine.events import MessageShown, ToolReturned
from weft.engine.rows import MailTaken
from weft.errors import StoreError
from weft.testing.clock import ManualClock
from weft.testing.store.samples import APP, ME, SCOPE, SampleRun, mail

#: Values that JSON cannot hold.
UNFIT = {"object": object(), "set": {object()}, "deep": {"a": [len]}, "surrogate": "\ud800"}


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(clock):
    return MemoryStore(clock)


@pytest.mark.parametrize("value", UNFIT.values(), ids=UNFIT)
async def test_values_that_are_not_json_are_refused_and_nothing_is_written(store, value):
    run, other = SampleRun("r1"), SampleRun("r2")
    good = run.batch()
    await store.append(good, owner=ME)
    data = ToolReturned("c1", value)
    for changes in ((), (run.carried("plan", value),), (run.request("q", payload=value),)):
        shown = MessageShown("x") if changes else data
        bad = SampleRun("r1", seq=1).batch(shown, changes=changes)
        with pytest.raises(StoreError, match="events of run r1 cannot be stored"):
            await store.append(bad, owner=ME)
    with pytest.raises(StoreError, match="events of run r2 cannot be stored"):
        await store.append(other.batch(data), owner=ME)
    with pytest.raises(StoreError, match="mail for r1 cannot be stored"):
        await store.put(mail("r1", "m1")._replace(data=data))
    assert await store.read(SCOPE, "r1") == list(good.events)
    assert await store.run(SCOPE, "r1") == good.row
    assert (await store.run(SCOPE, "r2"), await store.pending(APP, "r1")) == (None, [])
    assert (await store.requests(SCOPE), await store.carried(SCOPE, run.workflow)) == ([], {})


async def test_lists_of_the_writer_and_of_the_reader_are_not_those_of_the_store(store):
    run = SampleRun("r1")
    batch = run.batch(MessageShown("a"), MessageShown("b"))
    written = list(batch.events)
    await store.append(batch, owner=ME)
    batch.events.clear()
    found = await store.read(SCOPE, "r1")
    await store.append(run.batch(MessageShown("c")), owner=ME)
    assert found == written
    found.clear()
    assert (await store.read(SCOPE, "r1"))[:2] == written


async def test_records_that_were_read_may_be_changed(store):
    value = {"names": ["a"]}
    await store.add_record(APP, "kind", "key", value)
    value["names"].append("b")
    for _ in range(2):
        found = (await store.record(APP, "kind", "key")).value
        assert found == {"names": ["a"]}
        found["names"].append("c")


async def test_ids_of_mail_are_forgotten_after_a_day(store, clock):
    run = SampleRun("r1")
    await store.append(run.batch(), owner=ME)
    await store.put(mail("r1", "m1"))
    await store.append(run.batch(changes=[MailTaken("m1")]), owner=ME)
    await clock.advance((REMEMBER - 1) / 1000)
    await store.put(mail("r1", "m1"))
    assert await store.pending(APP, "r1") == []
    await clock.advance(FORGET_EVERY / 1000)
    await store.put(mail("r1", "m1"))
    assert [each.id for each in await store.pending(APP, "r1")] == ["m1"]


async def test_outdated_times_are_dropped(store, clock):
    runs = [SampleRun(f"r{number}") for number in range(10)]
    now = clock.now()
    for number in range(1000):
        for run in runs:
            await store.append(run.batch(due_at=now + 60_000 + number), owner=ME)
    heaps = store._all.queue._due.values()
    assert sum(map(len, heaps)) <= 2 * len(runs) + memory_queue._MOST_OUTDATED
    assert await store.next_due() == now + 60_999
    assert (await store.claim("w1")).runs == []
    await clock.advance(61)
    assert len((await store.claim("w1")).runs) == len(runs)


class CountedRuns(dict):
    """Open runs that count how often one of them is looked at, and that cannot be listed."""

    looks = 0

    def get(self, key, default=None):
        self.looks += 1
        return super().get(key, default)

    def __iter__(self):
        raise AssertionError("all open runs are listed")

    def values(self):
        return iter(self)


async def test_a_claim_looks_only_at_runs_that_are_due(store, clock):
    for number in range(1000):
        due_at = clock.now() + 60_000 + number
        await store.append(SampleRun(f"idle{number}").batch(due_at=due_at), owner=ME)
        await store.append(SampleRun(f"held{number}").batch(held=True), owner="w1")
    for number in range(3):
        await store.append(SampleRun(f"due{number}").batch(due_at=clock.now()), owner=ME)
    counted = store._all.queue.open = CountedRuns(store._all.queue.open)
    assert len((await store.claim("w1")).runs) == 3
    assert len((await store.claim("w1")).runs) == 3
    assert await store.next_due() == clock.now() + 60_000
    assert counted.looks < 25
