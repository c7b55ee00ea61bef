"""A clock for tests: time passes only when the test advances it.

clock = ManualClock()
task = asyncio.create_task(clock.sleep_until(clock.now() + 60_000))
await clock.advance(60)
"""

import asyncio
from typing import Final

#: The initial time: 2025-01-01.
START: Final = 1_735_689_600_000

#: How often other tasks run after an advance, before the test continues.
_ROUNDS: Final = 30


class ManualClock:
    """A manual clock: wakes sleepers when it is advanced, and counts ids."""

    def __init__(self, now: int = START) -> None:
        self._now = now
        self._ids = 0
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def sleepers(self) -> int:
        """The number of tasks that wait for a later time."""
        return len(self._sleepers)

    def now(self) -> int:
        """Return the milliseconds since 1970."""
        return self._now

    def new_id(self) -> str:
        """Return the next id: every test gets the same ids in the same order."""
        self._ids += 1
        return f"id-{self._ids:04}"

    async def sleep_until(self, at: int) -> None:
        """Return when the clock has reached a time."""
        if at <= self._now:
            await asyncio.sleep(0)
            return
        sleeper = (at, asyncio.get_running_loop().create_future())
        self._sleepers.append(sleeper)
        try:
            await sleeper[1]
        finally:
            self._sleepers.remove(sleeper)

    async def advance(self, seconds: float) -> None:
        """Advance the clock; sleepers wake in the order of their times.

        Each sees the time it waited for, and may go back to sleep; it wakes again if its new time
        lies within the same stretch.
        """
        await _let_others_run()  # Some may be about to sleep.
        end = self._now + round(seconds * 1000)
        while due := [
            sleeper for sleeper in self._sleepers if sleeper[0] <= end and not sleeper[1].done()
        ]:
            at, woken = min(due, key=lambda sleeper: sleeper[0])
            self._now = max(self._now, at)
            woken.set_result(None)
            await _let_others_run()
        self._now = end
        await _let_others_run()


async def _let_others_run() -> None:
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)
