"""The inbox of a run: results and deliveries in the order they came, and who waits for them."""

import asyncio
import re
from typing import NoReturn

import pytest

from weft.engine.commands import CallModel
from weft.engine.events import MessageShown
from weft.errors import RunError, UsageError
from weft.runtime.runs.decision import NewEvent
from weft.runtime.runs.effects import Delivery, Effect, Effects, Inbox

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
        self.inbox.append(Delivery(work, future))
        return future


async def test_inbox_keeps_arrival_order():
    bench = Bench()
    assert not bench.inbox
    first = bench.delivery("first")
    bench.inbox.append(RESULT)
    last = bench.delivery("last")
    assert bench.inbox.results == [RESULT]
    while bench.inbox:
        await bench.inbox.process_next()
    assert bench.done == ["first", RESULT, "last"]
    assert (first.result(), last.result()) == (None, None)
    assert bench.inbox.results == []


async def test_fault_is_raised_in_the_waiting_task():
    bench = Bench()
    future = bench.delivery("x", UsageError("no"))
    await bench.inbox.process_next()
    with pytest.raises(UsageError, match="no"):
        await future


async def test_fault_without_a_waiter_is_raised_by_the_inbox():
    async def work() -> None:
        raise ValueError("ours")

    bench = Bench()
    bench.inbox.append(Delivery(work))
    with pytest.raises(ValueError, match="ours"):
        await bench.inbox.process_next()


async def test_waiters_learn_that_the_host_was_closed():
    bench = Bench()
    future = bench.delivery("x", asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await bench.inbox.process_next()
    with pytest.raises(RunError, match="read the run to see whether it was stored"):
        await future


async def test_abandoned_waiter_is_not_notified():
    bench = Bench()
    for fault in (None, UsageError("no")):
        future = bench.delivery("x", fault)
        future.cancel()
        await bench.inbox.process_next()
        assert future.cancelled()


async def test_an_effect_without_a_result_is_a_fault_of_the_run():
    bench = Bench()
    bench.inbox.append(RunError("as it is"))
    with pytest.raises(RunError, match="as it is"):
        await bench.inbox.process_next()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (asyncio.CancelledError(), "an effect ended without a result: .* raised CancelledError"),
        (ValueError("odd"), "an effect ended without a result: odd"),
        (RunError("as it is"), "as it is"),
    ],
)
async def test_error_of_an_effect_is_its_result(fault, said):
    async def work() -> NoReturn:
        raise fault

    effects = Effects()
    effect = Effect("call:1", CallModel("A", 1, 1, 3), work())
    assert effects.keep(effect)
    result = await effects.perform(effect)
    assert isinstance(result, RunError)
    assert re.match(f"^{said}", str(result))
    assert not effects


async def test_waiters_are_notified_when_a_run_is_released():
    bench = Bench()
    futures = [bench.delivery("a"), bench.delivery("b")]
    bench.inbox.append(RESULT)
    bench.inbox.fail_waiters(RunError("given up"))
    assert not bench.inbox
    for future in futures:
        with pytest.raises(RunError, match="given up"):
            await future
    assert bench.done == []
