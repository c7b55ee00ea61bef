"""Followers of runs: they get what is written, and read the store only to catch up."""

import asyncio
from contextlib import aclosing

import pytest

from support.journal_play import play
from weft.adapters.sqlite import SqliteJournal, journal
from weft.engine.events import Event, MessageShown, RunEnded
from weft.errors import StoreError
from weft.runtime.runs.live_stream import MAX_WAITING_BATCHES, Feed, Subscription, follow
from weft.testing.journal.samples import SCOPE, SampleRun

KEY = ("app", "r")


def shown(seq: int) -> Event:
    return Event(seq, 0, "t", 0, 0, MessageShown(str(seq)))


def ended(seq: int) -> Event:
    return Event(seq, 0, "t", 0, 0, RunEnded("completed", "x"))


class Store:
    """The events of one run, and how often they were read."""

    def __init__(self, *events: Event) -> None:
        self.feed = Feed()
        self.events = list(events)
        self.reads: list[int] = []

    def write(self, *events: Event, told: bool = True) -> None:
        self.events += events
        if told:
            self.feed.tell(KEY, events)

    async def read(self, after: int) -> list[Event]:
        self.reads.append(after)
        await asyncio.sleep(0)
        return [it for it in self.events if it.seq > after]

    def follow(self, after: int = 0):
        return follow(self.feed, KEY, self.read, after)

    async def followed(self, after: int = 0) -> list[int]:
        return [it.seq async for it in self.follow(after)]


async def rest() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_subscription_hands_over_batches_in_order():
    async def story():
        news = Subscription()
        news.tell([shown(1)])
        news.tell([shown(2), shown(3)])
        assert await news.next() == [shown(1)]
        assert await news.next() == [shown(2), shown(3)]
        waiting = asyncio.create_task(news.next())
        await rest()
        assert not waiting.done()
        news.tell([shown(4)])
        news.tell([shown(5)])
        assert await waiting == [shown(4)]
        assert await news.next() == [shown(5)]

    play(story())


def test_a_subscription_that_overflows_says_to_look_again():
    async def story():
        news = Subscription()
        for seq in range(1, MAX_WAITING_BATCHES + 1):
            news.tell([shown(seq)])
        assert await news.next() == [shown(1)]
        news.tell([shown(MAX_WAITING_BATCHES + 1)])
        news.tell([shown(MAX_WAITING_BATCHES + 2)])
        assert len(news._batches) == 0, "nothing is kept that the store has"
        news.tell([shown(MAX_WAITING_BATCHES + 3)])
        assert await news.next() is None
        assert await news.next() == [shown(MAX_WAITING_BATCHES + 3)]

    play(story())


def test_a_follower_who_gives_up_waiting_can_wait_again():
    async def story():
        news = Subscription()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(news.next(), 0.01)
        news.look_again()
        assert await news.next() is None

    play(story())


def test_a_follower_reads_once_and_is_then_told():
    async def story():
        store = Store(shown(1), shown(2))
        following = asyncio.create_task(store.followed())
        await rest()
        for seq in range(3, 9):
            store.write(shown(seq))
            await rest()
        store.write(ended(9))
        assert await following == list(range(1, 10))
        assert store.reads == [0]
        assert not store.feed

    play(story())


def test_following_begins_after_a_number():
    async def story():
        store = Store(shown(1), shown(2), shown(3))
        following = asyncio.create_task(store.followed(2))
        await rest()
        store.write(ended(4))
        assert await following == [3, 4]

    play(story())


def test_what_is_written_while_a_follower_reads_comes_once():
    async def story():
        store = Store(shown(1))
        following = asyncio.create_task(store.followed())
        await asyncio.sleep(0)
        store.write(shown(2))
        await rest()
        store.write(ended(3))
        assert await following == [1, 2, 3]

    play(story())


def test_a_gap_is_read_from_the_store():
    async def story():
        store = Store(shown(1))
        following = asyncio.create_task(store.followed())
        await rest()
        store.write(shown(2), told=False)
        store.write(shown(3))
        await rest()
        store.write(ended(4))
        assert await following == [1, 2, 3, 4]
        assert store.reads == [0, 1]

    play(story())


def test_what_another_process_writes_is_found_by_looking_again():
    async def story():
        store = Store(shown(1))
        following = asyncio.create_task(store.followed())
        await rest()
        store.feed.look_again()
        await rest()
        store.write(shown(2), ended(3), told=False)
        store.feed.look_again()
        assert await following == [1, 2, 3]
        assert store.reads == [0, 1, 1]

    play(story())


def test_a_slow_follower_misses_nothing():
    async def story():
        store = Store()
        found: list[int] = []
        async with aclosing(store.follow()) as events:
            store.write(shown(1))
            found.append((await anext(events)).seq)
            for seq in range(2, 3 * MAX_WAITING_BATCHES):
                store.write(shown(seq))
            store.write(ended(3 * MAX_WAITING_BATCHES))
            found += [it.seq async for it in events]
        assert found == list(range(1, 3 * MAX_WAITING_BATCHES + 1))
        assert len(store.reads) == 2

    play(story())


def test_a_follower_who_leaves_is_forgotten():
    async def story():
        store = Store(shown(1))
        async with aclosing(store.follow()) as first, aclosing(store.follow()) as second:
            assert (await anext(first)).seq == (await anext(second)).seq == 1
            await first.aclose()
            assert store.feed
            store.write(shown(2))
            assert (await anext(second)).seq == 2
        assert not store.feed
        store.feed.tell(("other", "r"), [shown(3)])

    play(story())


def test_a_store_that_cannot_be_read_is_told_to_the_follower():
    async def story():
        store = Store(shown(1))

        async def broken(_: int) -> list[Event]:
            raise StoreError("the disk is gone")

        with pytest.raises(StoreError, match="the disk is gone"):
            [it async for it in follow(store.feed, KEY, broken, 0)]
        assert not store.feed

    play(story())


def test_a_file_is_watched_again_after_it_could_not_be_for_once(tmp_path, monkeypatch):
    """One failed look at what others have written does not leave followers waiting for ever."""
    monkeypatch.setattr(journal, "LOOK_SECONDS", 0.01)
    looks: list[int] = []

    def failing_once(connection):
        looks.append(1)
        if len(looks) == 2:
            raise StoreError("busy", retryable=True)
        return connection.execute("PRAGMA data_version").fetchone()[0]

    monkeypatch.setattr(journal, "data_version", failing_once)

    async def story():
        run = SampleRun("r1")
        ours = await SqliteJournal.open(tmp_path / "j.db")
        theirs = await SqliteJournal.open(tmp_path / "j.db")
        await ours.append(run.batch())
        found: list[int] = []
        async with aclosing(ours.follow(SCOPE, "r1")) as events:
            found.append((await anext(events)).seq)
            for seq in (2, 3, 4):
                await theirs.append(run.batch())
                found.append((await asyncio.wait_for(anext(events), 10)).seq)
                assert found[-1] == seq
        await theirs.close()
        await ours.close()

    play(story())
    assert len(looks) > 2
