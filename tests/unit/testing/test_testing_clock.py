"""The clock of the test kit."""

import asyncio

import pytest

from support.model_play import run
from weft.ports.clock import Clock
from weft.testing.clock import START, ManualClock


def test_time_stands_still_until_it_is_moved():
    clock: Clock = ManualClock()
    assert clock.now() == clock.now() == START
    assert [clock.new_id(), clock.new_id()] == ["id-0001", "id-0002"]
    assert ManualClock().new_id() == "id-0001"


def test_sleepers_wake_in_the_order_of_their_times():
    woken: list[tuple[str, int]] = []

    async def sleep(clock: ManualClock, name: str, at: int) -> None:
        await clock.sleep_until(at)
        woken.append((name, clock.now()))

    async def play() -> None:
        clock = ManualClock(now=0)
        times = {"late": 3000, "soon": 1000, "never": 9000, "past": 0}
        tasks = [asyncio.create_task(sleep(clock, name, at)) for name, at in times.items()]
        await clock.advance(0)
        assert woken == [("past", 0)]
        assert clock.sleepers == 3
        await clock.advance(5)
        assert woken[1:] == [("soon", 1000), ("late", 3000)]
        assert (clock.now(), clock.sleepers) == (5000, 1)
        tasks[2].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[2]
        assert clock.sleepers == 0
        await asyncio.gather(*tasks[:2], tasks[3])

    run(play())


def test_sleeper_is_woken_again_within_one_advance():
    async def tick(clock: ManualClock, heard: list[int]) -> None:
        while True:
            await clock.sleep_until(clock.now() + 1000)
            heard.append(clock.now())

    async def play() -> list[int]:
        clock, heard = ManualClock(now=0), list[int]()
        task = asyncio.create_task(tick(clock, heard))
        await clock.advance(0)
        await clock.advance(3.5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return heard

    assert run(play()) == [1000, 2000, 3000]


async def test_a_sleeper_that_was_woken_and_cancelled_at_once_is_gone():
    clock = ManualClock(now=0)
    task = asyncio.create_task(clock.sleep_until(1000))
    await clock.advance(0)
    moving = asyncio.create_task(clock.advance(1))
    await asyncio.sleep(0)
    task.cancel()
    await moving
    await asyncio.gather(task, return_exceptions=True)
    assert clock.sleepers == 0
