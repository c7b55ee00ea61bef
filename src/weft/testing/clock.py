"""A clock for tests: time passes when the test says so, and never by itself.

clock = ManualClock()
task = asyncio.create_task(clock.sleep_until(clock.now() + 60_000))
await clock.advance(60)
"""

import asyncio
from typing import Final

#: The first moment: 2025-01-01, so that times look like times.
START: Final = 1_735_689_600_000

#: How often others get to run after time has passed, before a test goes on.
_ROUNDS: Final = 10


class ManualClock:
    """Tells the time it was given, wakes sleepers when it is moved on, and counts identities."""

    def __init__(self, now: int = START) -> None:
        self._now = now
        self._ids = 0
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    @property
    def sleepers(self) -> int:
        """How many wait for a time that has not come."""
        return len(self._sleepers)

    def now(self) -> int:
        """Return the milliseconds since 1970."""
        return self._now

    def new_id(self) -> str:
        """Return the next identity: the same ones in the same order in every test."""
        self._ids += 1
        return f"id-{self._ids:04}"

    async def sleep_until(self, at: int) -> None:
        """Return when the clock has been moved there."""
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
        """Let time pass: sleepers wake in the order of the times they wait for.

        Each sees the time it waited for, and may go back to sleep; it wakes again if its new time
        lies within the same stretch.
        """
        end = self._now + round(seconds * 1000)
        while due := [
            sleeper for sleeper in self._sleepers if sleeper[0] <= end and not sleeper[1].done()
        ]:
            at, woken = min(due, key=lambda it: it[0])
            self._now = max(self._now, at)
            woken.set_result(None)
            await _let_others_run()
        self._now = end
        await _let_others_run()


async def _let_others_run() -> None:
    for _ in range(_ROUNDS):
        await asyncio.sleep(0)
