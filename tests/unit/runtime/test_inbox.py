"""The inbox of a run: results and deliveries in the order they came, and who waits for them."""

import asyncio

import pytest

from support.journal_play import play
from weft.engine.events import MessageShown
from weft.errors import RunError, UsageError
from weft.runtime.runs.decision import NewEvent
from weft.runtime.runs.effects import Broken, Delivery, Inbox

RESULT = (NewEvent("agent:A", MessageShown("x"), 3, 1),)


class Bench:
    """An inbox, and what was done with what was in it."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.inbox = Inbox(self.write)

    async def write(self, new) -> None:
        self.done.append(new)

    def delivery(self, name: str, fault: BaseException | None = None) -> asyncio.Future[None]:
        async def work() -> None:
            self.done.append(name)
            if fault is not None:
                raise fault

        future = asyncio.get_running_loop().create_future()
        self.inbox.put(Delivery(work, future))
        return future


def test_what_comes_first_is_taken_in_first():
    async def story():
        bench = Bench()
        assert not bench.inbox.items
        first = bench.delivery("first")
        bench.inbox.put(RESULT)
        last = bench.delivery("last")
        assert bench.inbox.results == [RESULT]
        while bench.inbox.items:
            await bench.inbox.take().perform()
        assert bench.done == ["first", RESULT, "last"]
        assert (first.result(), last.result()) == (None, None)
        assert bench.inbox.results == []

    play(story())


def test_a_fault_belongs_to_whoever_waits():
    async def story():
        bench = Bench()
        future = bench.delivery("x", UsageError("no"))
        await bench.inbox.take().perform()
        with pytest.raises(UsageError, match="no"):
            await future

    play(story())


def test_a_fault_nobody_waits_for_reaches_whoever_takes_it_in():
    async def story():
        async def work() -> None:
            raise ValueError("ours")

        with pytest.raises(ValueError, match="ours"):
            await Delivery(work).perform()

    play(story())


def test_who_waits_is_told_that_the_host_was_closed():
    async def story():
        bench = Bench()
        future = bench.delivery("x", asyncio.CancelledError())
        with pytest.raises(asyncio.CancelledError):
            await bench.inbox.take().perform()
        with pytest.raises(RunError, match="look whether it was written"):
            await future

    play(story())


def test_who_does_not_wait_any_more_is_left_in_peace():
    async def story():
        bench = Bench()
        for fault in (None, UsageError("no")):
            future = bench.delivery("x", fault)
            future.cancel()
            await bench.inbox.take().perform()
            assert future.cancelled()

    play(story())


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (None, "an effect ended without a result: cancelled"),
        (ValueError("odd"), "an effect ended without a result: odd"),
        (RunError("as it is"), "as it is"),
    ],
)
def test_an_effect_without_a_result_is_a_fault_of_the_run(fault, said):
    async def story():
        bench = Bench()
        bench.inbox.put(Broken(fault))
        with pytest.raises(RunError, match=f"^{said}$"):
            await bench.inbox.take().perform()

    play(story())


def test_when_a_run_is_given_up_everybody_who_waits_is_told():
    async def story():
        bench = Bench()
        futures = [bench.delivery("a"), bench.delivery("b")]
        bench.inbox.put(RESULT)
        bench.inbox.fail_waiters(RunError("given up"))
        assert not bench.inbox.items
        for future in futures:
            with pytest.raises(RunError, match="given up"):
                await future
        assert bench.done == []

    play(story())
