"""Answers of the store that come late: after another process has taken the run over (S9)."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from support.group_play import CODE, MEMBERS, team
from support.run_play import ADA
from unit.runtime.test_two_processes import chat
from weft.adapters.sql import SqliteStore
from weft.errors import StoreError
from weft.runtime.runs import writer
from weft.runtime.runs.ownership import DEAD_AFTER
from weft.runtime.signals import UserMessage
from weft.testing import FunctionModel, host_for
from weft.testing.clock import ManualClock


class LateAnswers:
    """A store whose next answer to a batch comes late or never: something happens before it."""

    def __init__(self, store):
        self._store = store
        self.meanwhile = None
        self.is_answer_lost = False
        self.is_stalled = False

    async def beat(self, owner):
        if self.is_stalled:
            await unreachable()
        return await self._store.beat(owner)

    async def stall(self, clock):
        """Let time pass without a heartbeat: the next one is refused."""
        self.is_stalled = True
        await clock.advance(DEAD_AFTER / 1000 + 1)
        self.is_stalled = False

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, batch, *, owner):
        left = await self._store.append(batch, owner=owner)
        if batch.held and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile(batch.run)
            if self.is_answer_lost:
                raise StoreError("the answer was lost", retryable=True, uncertain=True)
        return left


class Asked:
    """A model that counts how often it is asked."""

    def __init__(self):
        self.times = 0

    def __call__(self, _request):
        self.times += 1
        return "What else?"


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def open_host(tmp_path, clock):
    @asynccontextmanager
    async def open_(model):
        store = await SqliteStore.open(tmp_path / "s.db", clock=clock, durability="normal")
        late = LateAnswers(store)
        async with host_for(chat(), FunctionModel(model), store=late, clock=clock) as host:
            yield host, late

    return open_


async def passing(clock, work):
    """Let time pass until something is done: a write that has failed is repeated after a pause."""
    done = asyncio.ensure_future(work)
    async with asyncio.timeout(30):
        while not done.done():
            await clock.advance(0.1)
            await asyncio.sleep(0.005)
    return done.result()


async def is_left(host):
    while host.runs_in_use:  # noqa: ASYNC110 - there is no event
        await asyncio.sleep(0.005)


async def say_hello(host):
    """Start a run that waits for its user, and send a message that the model must answer."""
    run = await host.start("W", scope=ADA)
    await host.settled(run, scope=ADA)

    async def begin(meanwhile):
        host._store.meanwhile = meanwhile
        await host.deliver(run, UserMessage("hello"), scope=ADA)

    return run, begin


async def test_no_call_begins_if_a_run_was_taken_over_before_a_lost_answer(open_host, clock):
    asked = Asked()
    async with open_host(asked) as (host, store):
        run, begin = await say_hello(host)

        async def take_over(run):
            assert await store.take("successor", "app", run, force=True)

        store.is_answer_lost = True
        await passing(clock, begin(take_over))
        await asyncio.wait_for(is_left(host), 30)
        assert (asked.times, (await host.run(run, scope=ADA)).owner) == (0, "successor")


async def test_no_call_begins_if_a_run_was_taken_over_while_its_process_got_a_new_id(
    open_host, clock
):
    """The answer to the batch comes after those to a refused heartbeat and to the new id."""
    asked = Asked()
    async with open_host(asked) as (host, store):
        run, begin = await say_hello(host)

        async def stall(run):
            owner = host.owner
            await store.stall(clock)
            await store.beat("successor")
            await store.claim("successor")
            await host._worker.ownership.beat()
            assert host.owner != owner

        await begin(stall)
        await asyncio.wait_for(is_left(host), 30)
        assert (asked.times, (await host.run(run, scope=ADA)).owner) == (0, "successor")


@pytest.mark.parametrize("is_answer_lost", [False, True])
async def test_run_that_a_process_keeps_under_a_new_id_continues(open_host, clock, is_answer_lost):
    asked = Asked()
    async with open_host(asked) as (host, store):
        run, begin = await say_hello(host)

        async def stall(_run):
            owner = host.owner
            await store.stall(clock)
            await host._worker.ownership.beat()
            assert host.owner != owner

        store.is_answer_lost = is_answer_lost
        await passing(clock, begin(stall))
        assert (await passing(clock, host.settled(run, scope=ADA))).status == "waiting"
        assert asked.times == 1


async def test_no_call_begins_after_a_refused_heartbeat(open_host, clock, monkeypatch):
    """Not even if the local clock says that the last good one is not old."""
    asked = Asked()
    async with open_host(asked) as (host, store):
        run, begin = await say_hello(host)
        ownership = host._worker.ownership

        async def refuse(_run):
            monkeypatch.setattr(store, "rename", unreachable, raising=False)
            await store.stall(clock)
            assert await ownership.beat() is None
            assert not ownership.is_safe

        await begin(refuse)
        for _ in range(100):
            await asyncio.sleep(0)
        assert asked.times == 0
        monkeypatch.undo()
        await passing(clock, host.settled(run, scope=ADA))
        assert asked.times == 1


async def test_message_that_comes_while_a_snapshot_is_saved_is_accepted(open_host, monkeypatch):
    """A run is settled before its snapshot is saved."""
    monkeypatch.setattr(writer, "SNAPSHOT_EVENTS", 1)
    asked = Asked()
    async with open_host(asked) as (host, store):

        async def save_slowly(*given):
            await asyncio.sleep(0.01)
            await store._store.save_snapshot(*given)

        store.save_snapshot = save_slowly
        run = await host.start("W", scope=ADA, message="hello")
        for number in range(1, 10):
            await host.settled(run, scope=ADA)
            assert asked.times == number
            await host.deliver(run, UserMessage("and then?"), scope=ADA)
        await host.settled(run, scope=ADA)


async def unreachable(*_):
    raise StoreError("the connection broke", retryable=True)


async def test_no_call_of_a_claimed_run_begins_before_the_claim_is_on_disk(tmp_path):
    """A claim does not wait for the disk: a store that crashes may forget it."""
    asked = Asked()

    async def never(_request):
        await asyncio.Event().wait()

    path = tmp_path / "s.db"
    first, second = [await SqliteStore.open(path, durability="normal") for _ in range(2)]
    late = LateAnswers(second)

    async def stay(_run):
        await asyncio.sleep(0.2)
        assert asked.times == 0

    async with (
        host_for(team(), FunctionModel(side_by_side(never)), code=CODE, store=first) as killed,
        host_for(team(), FunctionModel(side_by_side(asked)), code=CODE, store=late) as host,
    ):
        run = await killed.start("Side", scope=ADA, message="hi")
        await until_held(killed, run)
        late.meanwhile = stay
        await host.resume(run, scope=ADA, take_over=True)
        await host.settled(run, scope=ADA)
        assert late.meanwhile is None
        assert asked.times == len(MEMBERS)


def side_by_side(member):
    """Return a model that answers for the members of a team as told, and for others at once."""

    async def answer(request):
        if request.agent not in MEMBERS:
            return "well"
        answered = member(request)
        return await answered if asyncio.iscoroutine(answered) else answered

    return answer


async def until_held(host, run):
    """Wait until the members of the team are at work."""
    async with asyncio.timeout(10):
        while len((await host.state(run, scope=ADA)).active) < len(MEMBERS):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
