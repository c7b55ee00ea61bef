"""The suite every signal must pass.

    @pytest.mark.parametrize("check", SIGNAL_CHECKS, ids=lambda check: check.__name__)
    def test_my_signal(check):
        asyncio.run(check(open_two))

`open_two` returns two connections to the same signal; in memory they are one object. A signal may
be late, so the checks wait for it; that none comes is seen after `QUIET_SECONDS`.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

from weft.ports.signal import Signal
from weft.testing.ports.waiting import until
from weft.testing.store.samples import expect

OpenSignals: TypeAlias = Callable[[], Awaitable[tuple[Signal, Signal]]]

QUIET_SECONDS: Final = 0.1


class Worker:
    """Counts the signals to one worker."""

    def __init__(self) -> None:
        self.count = 0

    def wake(self) -> None:
        """Count a signal."""
        self.count += 1


async def owner_is_woken(open_signals: OpenSignals) -> None:
    """A signal to an owner reaches that worker and no other."""
    async with _open_two(open_signals) as (first, second):
        one, two = Worker(), Worker()
        async with first.listen("one", one.wake), second.listen("two", two.wake):
            for count in range(1, 4):
                first.notify("two")
                await until(lambda count=count: two.count >= count, "a signal to the owner")
            await asyncio.sleep(QUIET_SECONDS)
        expect((one.count, two.count), (0, 3), "signals to the owner two")


async def one_worker_is_woken(open_signals: OpenSignals) -> None:
    """A signal without an owner reaches one of the workers."""
    async with _open_two(open_signals) as (first, second):
        one, two = Worker(), Worker()
        async with first.listen("one", one.wake), second.listen("two", two.wake):
            for count in range(1, 6):
                second.notify()
                await until(lambda count=count: one.count + two.count >= count, "a signal")
            await asyncio.sleep(QUIET_SECONDS)
        expect(one.count + two.count, 5, "signals without an owner")


async def listening_ends(open_signals: OpenSignals) -> None:
    """A worker gets no signal after its block; another gets those without an owner."""
    async with _open_two(open_signals) as (first, second):
        one, two = Worker(), Worker()
        async with second.listen("two", two.wake):
            async with first.listen("one", one.wake):
                pass
            first.notify("one")
            for count in range(1, 4):
                first.notify()
                await until(lambda count=count: two.count >= count, "a signal")
            await asyncio.sleep(QUIET_SECONDS)
        expect(one.count, 0, "signals after listening has ended")


async def nobody_listens(open_signals: OpenSignals) -> None:
    """A signal that no worker listens for does no harm."""
    async with _open_two(open_signals) as (first, _):
        first.notify()
        first.notify("gone")


@asynccontextmanager
async def _open_two(open_signals: OpenSignals) -> AsyncGenerator[tuple[Signal, Signal]]:
    first, second = await open_signals()
    try:
        yield first, second
    finally:
        await first.close()
        if second is not first:
            await second.close()


SIGNAL_CHECKS: Final = (owner_is_woken, one_worker_is_woken, listening_ends, nobody_listens)
