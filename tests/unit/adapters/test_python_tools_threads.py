"""Threads for functions that block: bounded, and one that hangs stops nobody."""

import asyncio
import threading
import time

import pytest

from support.tool_play import until
from weft.adapters.python_tools.threads import Threads
from weft.errors import UsageError


def tool_threads() -> int:
    return sum(part.name == "weft-tool" and part.is_alive() for part in threading.enumerate())


@pytest.fixture
def made():
    """Threads of the test's own making, all gone at its end."""
    before = tool_threads()
    found: list[Threads] = []

    def make(*sizes: int) -> Threads:
        found.append(Threads(*sizes))
        return found[-1]

    yield make
    for threads in found:
        threads.close()
    until(lambda: tool_threads() <= before)


def test_results_and_exceptions_come_back(made):
    threads = made(2)

    async def main():
        assert await threads.start(lambda: 7).result == 7
        with pytest.raises(ZeroDivisionError):
            await threads.start(lambda: 1 / 0).result
        with pytest.raises(KeyboardInterrupt):
            await threads.start(interrupt).result

    def interrupt():
        raise KeyboardInterrupt

    asyncio.run(main())


async def test_no_more_threads_than_the_size(made):
    threads, before = made(3), tool_threads()
    running, most = [], []

    def work():
        running.append(1)
        most.append(len(running))
        time.sleep(0.005)
        running.pop()

    await asyncio.gather(*(threads.start(work).result for _ in range(30)))
    assert max(most) == 3
    assert tool_threads() - before == 3


async def test_an_idle_thread_is_used_again(made):
    threads, before = made(3), tool_threads()
    for _ in range(5):
        await threads.start(lambda: None).result
        await asyncio.sleep(0.05)
    assert tool_threads() - before == 1


async def test_one_that_hangs_is_replaced_and_ends_when_it_may(made):
    threads, gate, before = made(1, 1), threading.Event(), tool_threads()
    hanging = threads.start(gate.wait)
    waiting = threads.start(lambda: "next")
    await asyncio.sleep(0.02)
    assert not waiting.result.done()
    assert threads.leave(hanging) is True
    assert threads.left_behind == 1
    assert await waiting.result == "next"
    gate.set()
    until(lambda: threads.left_behind == 0 and tool_threads() - before == 1)


async def test_threads_left_behind_are_bounded(made):
    threads, gate, before = made(1, 1), threading.Event(), tool_threads()
    for _ in range(2):
        job = threads.start(gate.wait)
        await asyncio.sleep(0.02)
        assert threads.leave(job) is True
    last = threads.start(lambda: "at last")
    await asyncio.sleep(0.02)
    assert tool_threads() - before == 2
    assert not last.result.done()
    gate.set()
    assert await last.result == "at last"


async def test_a_job_that_has_not_begun_never_begins(made):
    threads, gate, ran = made(1), threading.Event(), []
    first = threads.start(gate.wait)
    second = threads.start(lambda: ran.append(2))
    third = threads.start(lambda: ran.append(3))
    assert threads.leave(second) is False
    gate.set()
    await first.result
    await third.result
    assert ran == [3]
    assert threads.left_behind == 0


async def test_a_result_that_comes_too_late_is_dropped(made):
    threads = made(1)
    job = threads.start(lambda: 1)
    # Blocks the loop on purpose: the result waits to be told when the job is given up.
    until(lambda: job.stage == "over")
    assert threads.leave(job) is False
    await asyncio.sleep(0.02)
    assert job.result.cancelled()


def test_closed_event_loop_is_harmless(made):
    threads, gate = made(1), threading.Event()

    async def begin():
        job = threads.start(gate.wait)
        until(lambda: job.stage == "running")
        return job

    job = asyncio.run(begin())
    gate.set()
    until(lambda: job.stage == "over")

    async def again():
        return await threads.start(lambda: 5).result

    assert asyncio.run(again()) == 5


async def test_closing_finishes_what_waits_and_takes_nothing_more(made):
    threads, gate = made(1), threading.Event()
    first, second = threads.start(gate.wait), threads.start(lambda: 2)
    threads.close()
    gate.set()
    assert (await first.result, await second.result) == (True, 2)
    with pytest.raises(UsageError, match="their loader is closed"):
        threads.start(lambda: 3)
