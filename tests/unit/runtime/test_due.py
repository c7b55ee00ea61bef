"""What is due happens: each by itself, again later if it cannot be, and nothing is missed."""

import asyncio
import logging
from itertools import pairwise

import pytest

from support.journal_play import play
from weft.adapters.memory import MemoryJournal
from weft.engine.rows import DueRow, TimerGone
from weft.errors import RunError, StoreError
from weft.runtime.runs.due import LONGEST_PAUSE, PAUSE, DueWatch
from weft.testing.clock import START, ManualClock
from weft.testing.journal.samples import SampleRun


class Bench:
    """A journal with runs that have timers, a clock, and who lets them happen."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.clock = ManualClock()
        self.watch = DueWatch(self.journal, self.clock, self.let_happen)
        self.runs: dict[str, SampleRun] = {}
        #: What happened: when, after the beginning, and to whom.
        self.happened: list[tuple[float, str]] = []
        self.tried: list[tuple[float, str]] = []
        self.broken: dict[str, Exception] = {}

    async def due_in(self, seconds: float, *names: str) -> None:
        for name in names:
            run = self.runs[name] = SampleRun(name)
            timer = run.timer("t", START + round(seconds * 1000))
            await self.journal.append(run.batch(sides=(timer,)))

    async def let_happen(self, row: DueRow) -> None:
        now = (self.clock.now() - START) / 1000
        self.tried.append((now, row.run))
        if row.run in self.broken:
            raise self.broken[row.run]
        await self.close(row.run)
        self.happened.append((now, row.run))

    async def close(self, name: str) -> None:
        await self.journal.append(self.runs[name].batch(sides=(TimerGone("t"),)))


async def rest() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def test_each_thing_happens_when_its_time_has_come():
    async def story():
        bench = Bench()
        await bench.due_in(5, "b")
        await bench.due_in(2, "a")
        await bench.due_in(5, "c")
        bench.watch.look()
        await rest()
        assert bench.happened == []
        await bench.clock.advance(2)
        assert bench.happened == [(2, "a")]
        await bench.clock.advance(10)
        await rest()
        assert sorted(bench.happened) == [(2, "a"), (5, "b"), (5, "c")]
        assert bench.watch._task.done(), "nothing is waited for when nothing is left"
        await bench.watch.close()

    play(story())


def test_what_is_sooner_is_found_by_looking_anew():
    async def story():
        bench = Bench()
        await bench.due_in(60, "late")
        bench.watch.look()
        await rest()
        await bench.due_in(5, "soon")
        bench.watch.look()
        await rest()
        await bench.clock.advance(5)
        assert bench.happened == [(5, "soon")]
        await bench.watch.close()

    play(story())


def test_what_is_long_overdue_happens_page_by_page():
    async def story():
        bench = Bench()
        await bench.due_in(-5, *(f"r{number:03}" for number in range(250)))
        bench.watch.look()
        await rest()
        assert len(bench.happened) == 250
        assert bench.clock.sleepers == 0
        await bench.watch.close()

    play(story())


def test_one_that_cannot_happen_leaves_the_others_in_peace(caplog):
    async def story():
        bench = Bench()
        bench.broken["bad"] = RuntimeError("its package is gone")
        await bench.due_in(1, "good", "bad", "other")
        await bench.due_in(3, "later")
        bench.watch.look()
        await rest()
        await bench.clock.advance(4)
        assert sorted(bench.happened) == [(1, "good"), (1, "other"), (3, "later")]
        await bench.watch.close()

    with caplog.at_level(logging.ERROR, "weft.runtime"):
        play(story())
    assert "timer t of run bad is due and could not be closed" in caplog.text
    assert "it is tried again in 5 s" in caplog.text


def test_it_is_tried_again_after_longer_and_longer_pauses():
    async def story():
        bench = Bench()
        bench.broken["bad"] = RunError("no")
        await bench.due_in(1, "bad")
        bench.watch.look()
        await rest()
        await bench.clock.advance(3600)
        times = [at for at, _ in bench.tried]
        pauses = [round((b - a) * 1000) for a, b in pairwise(times)]
        assert pauses[:3] == [PAUSE, 2 * PAUSE, 4 * PAUSE]
        assert pauses == sorted(pauses)
        assert max(pauses) == LONGEST_PAUSE
        assert len(pauses) < 15
        bench.broken.clear()
        await bench.clock.advance(LONGEST_PAUSE / 1000)
        assert len(bench.happened) == 1
        await bench.watch.close()

    play(story())


def test_news_do_not_make_a_bad_one_be_tried_sooner():
    async def story():
        bench = Bench()
        bench.broken["bad"] = RunError("no")
        await bench.due_in(1, "bad")
        bench.watch.look()
        await bench.clock.advance(1)
        for _ in range(5):
            bench.watch.look()
            await rest()
        assert len(bench.tried) == 1
        await bench.watch.close()

    play(story())


def test_one_that_is_gone_is_forgotten():
    async def story():
        bench = Bench()
        bench.broken["bad"] = RunError("no")
        await bench.due_in(1, "bad")
        bench.watch.look()
        await bench.clock.advance(1)
        assert len(bench.watch._later) == 1
        await bench.close("bad")
        await bench.clock.advance(PAUSE / 1000)
        await rest()
        assert bench.watch._later == {}
        assert len(bench.tried) == 1
        await bench.watch.close()

    play(story())


def test_a_store_that_cannot_be_asked_is_asked_again(caplog):
    async def story():
        bench = Bench()
        due = bench.journal.due
        asked: list[int] = []

        async def failing_once(*args, **options):
            asked.append(1)
            if len(asked) == 1:
                raise StoreError("the disk is gone")
            return await due(*args, **options)

        bench.journal.due = failing_once
        await bench.due_in(1, "a")
        bench.watch.look()
        await rest()
        await bench.clock.advance(PAUSE / 1000)
        assert [name for _, name in bench.happened] == ["a"]
        await bench.watch.close()

    with caplog.at_level(logging.ERROR, "weft.runtime"):
        play(story())
    assert "what is due cannot be looked up; it is tried again" in caplog.text


def test_what_becomes_due_while_others_are_looked_through_is_not_missed():
    async def story():
        bench = Bench()
        due = bench.journal.due

        async def slowly(now, **options):
            found = await due(now, **options)
            if not bench.tried and now == START:
                bench.clock._now = START + 1500  # a second and a half later
            return found

        bench.journal.due = slowly
        await bench.due_in(1, "a")
        bench.watch.look()
        await rest()
        assert [name for _, name in bench.happened] == ["a"]
        await bench.watch.close()

    play(story())


def test_news_that_come_while_nothing_seems_to_be_left_are_heard():
    async def story():
        bench = Bench()
        next_due = bench.journal.next_due

        async def overtaken(after):
            found = await next_due(after)
            if not bench.runs:
                await bench.due_in(1, "a")
                bench.watch.look()
            return found

        bench.journal.next_due = overtaken
        bench.watch.look()
        await rest()
        await bench.clock.advance(1)
        assert bench.happened == [(1, "a")]
        await bench.watch.close()

    play(story())


@pytest.mark.parametrize("begun", [True, False])
def test_nothing_happens_after_closing(begun):
    async def story():
        bench = Bench()
        await bench.due_in(1, "a")
        if begun:
            bench.watch.look()
            await rest()
        await bench.watch.close()
        bench.watch.look()
        await bench.clock.advance(5)
        assert bench.happened == []
        assert bench.clock.sleepers == 0

    play(story())
