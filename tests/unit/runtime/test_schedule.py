"""When the runs of a process are due: each is attended to at its time, and again if that fails."""

import asyncio

import pytest

from weft.engine.timers import NEVER
from weft.runtime.runs.schedule import RETRY, Schedule
from weft.testing.clock import START, ManualClock

A, B, C = (("app", name) for name in "abc")


class Attended:
    """Notes which runs were attended to and when; some attempts fail or take long."""

    def __init__(self, clock):
        self.clock = clock
        self.runs = []
        self.failures = 0
        self.waits = None

    async def __call__(self, run):
        self.runs.append((run[1], self.clock.now() - START))
        if self.waits is not None:
            await self.waits.wait()
        self.failures -= 1
        return self.failures < 0


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def attended(clock):
    return Attended(clock)


@pytest.fixture
def schedule(clock, attended):
    return Schedule(clock, attended)


async def test_runs_are_attended_to_in_the_order_of_their_times(schedule, clock, attended):
    for run, seconds in ((A, 3), (B, 1), (C, 2)):
        schedule.set(run, START + seconds * 1000)
    await clock.advance(0.5)
    assert attended.runs == []
    await clock.advance(10)
    assert [run for run, _ in attended.runs] == ["b", "c", "a"]
    assert [at for _, at in attended.runs] == [1000, 2000, 3000]
    await clock.advance(100)
    assert len(attended.runs) == 3, "each once"


async def test_a_later_set_replaces_the_time(schedule, clock, attended):
    schedule.set(A, START + 1000)
    schedule.set(A, START + 5000)
    await clock.advance(2)
    assert attended.runs == []
    schedule.set(A, START + 3000)
    await clock.advance(2)
    assert attended.runs == [("a", 3000)]
    await clock.advance(10)
    assert len(attended.runs) == 1


async def test_never_takes_a_run_off_the_schedule(schedule, clock, attended):
    schedule.set(A, START + 1000)
    schedule.set(B, NEVER)
    schedule.set(A, NEVER)
    await clock.advance(5)
    assert attended.runs == []
    schedule.set(A, START + 6000)
    schedule.set(A, NEVER)
    schedule.set(A, START + 6000)
    await clock.advance(5)
    assert attended.runs == [("a", 6000)], "once, though it was set twice for one time"


async def test_an_earlier_run_does_not_wait_for_a_later_one(schedule, clock, attended):
    schedule.set(A, START + 60_000)
    await clock.advance(1)
    schedule.set(B, START + 2000)
    await clock.advance(1)
    assert attended.runs == [("b", 2000)]


async def test_a_run_that_is_due_already_is_attended_to_at_once(schedule, clock, attended):
    schedule.set(A, START - 1)
    assert schedule.is_busy
    await schedule.wait_until_idle()
    assert attended.runs == [("a", 0)]
    assert not schedule.is_busy


async def test_a_run_that_could_not_be_attended_to_is_tried_again(schedule, clock, attended):
    attended.failures = 2
    schedule.set(A, START + 1000)
    await clock.advance(1)
    await clock.advance(RETRY / 1000 - 0.001)
    assert len(attended.runs) == 1
    await clock.advance(60)
    assert [at for _, at in attended.runs] == [1000, 1000 + RETRY, 1000 + 2 * RETRY]


async def test_a_time_that_was_set_during_a_failed_attempt_counts(schedule, clock, attended):
    attended.failures, attended.waits = 1, asyncio.Event()
    schedule.set(A, START + 1000)
    await clock.advance(1)
    schedule.set(A, START + 2000)
    attended.waits.set()
    await clock.advance(1)
    assert attended.runs == [("a", 1000), ("a", 2000)]


async def test_a_run_that_takes_long_does_not_hold_up_the_others(schedule, clock, attended):
    attended.waits = asyncio.Event()
    schedule.set(A, START + 1000)
    schedule.set(B, START + 2000)
    await clock.advance(2)
    assert attended.runs == [("a", 1000), ("b", 2000)]
    assert schedule.is_busy
    idle = asyncio.create_task(schedule.wait_until_idle())
    await asyncio.sleep(0)
    assert not idle.done()
    attended.waits.set()
    await asyncio.wait_for(idle, 1)


async def test_no_task_is_left_when_nothing_is_due(schedule, clock, attended):
    before = asyncio.all_tasks()
    schedule.set(A, START + 1000)
    await clock.advance(1)
    await schedule.wait_until_idle()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before
    assert clock.sleepers == 0


async def test_a_closed_schedule_attends_to_nothing(schedule, clock, attended):
    attended.waits = asyncio.Event()
    schedule.set(A, START + 1000)
    schedule.set(B, START + 2000)
    await clock.advance(1)
    await schedule.close()
    schedule.set(C, START + 3000)
    await clock.advance(10)
    assert attended.runs == [("a", 1000)]
    assert clock.sleepers == 0
