"""When the runs of this process are due: their next timer, or the next expiry of a request."""

import asyncio
from collections.abc import Awaitable, Callable
from heapq import heappop, heappush
from typing import Final

from weft.engine.timers import NEVER
from weft.ports.clock import Clock
from weft.ports.store import RunKey

#: Milliseconds until a run whose work failed is tried again.
RETRY: Final = 5_000


class Schedule:
    """Calls a function for each run when it is due; the function returns False to try again."""

    def __init__(self, clock: Clock, attend: Callable[[RunKey], Awaitable[bool]]) -> None:
        self._clock = clock
        self._attend = attend
        #: When each run is due.
        self.times: dict[RunKey, int] = {}
        #: Entries that are not in `times` any more are ignored.
        self._heap: list[tuple[int, RunKey]] = []
        self._task: asyncio.Task[None] | None = None
        #: Set when an earlier time is added than the one the task waits for.
        self._earlier = asyncio.Event()
        self._attending: set[asyncio.Task[None]] = set()
        self._closed = False

    def set(self, run: RunKey, at: int) -> None:
        """Set when a run is due, in place of an earlier time; NEVER if it is not."""
        if at == self.times.get(run, NEVER) or self._closed:
            return
        if at >= NEVER:
            del self.times[run]
            return
        self.times[run] = at
        heappush(self._heap, (at, run))
        if self._heap[0][0] == at:
            self._earlier.set()
        if self._task is None:
            self._task = asyncio.create_task(self._wait())

    @property
    def is_busy(self) -> bool:
        """Whether a run is due now or being attended to."""
        self._drop_outdated()
        return bool(self._attending) or (bool(self._heap) and self._heap[0][0] <= self._clock.now())

    async def wait_until_idle(self) -> None:
        """Return when no run is due now."""
        while self.is_busy:
            if self._attending:
                await asyncio.wait(tuple(self._attending))
            else:
                await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop calling the function."""
        self._closed = True
        tasks = [*self._attending, *filter(None, (self._task,))]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _wait(self) -> None:
        while True:
            self._earlier.clear()
            self._drop_outdated()
            if not self._heap:
                self._task = None
                return
            at, run = self._heap[0]
            if at > self._clock.now():
                await self._until(at)
                continue
            heappop(self._heap)
            del self.times[run]
            task = asyncio.create_task(self._attend_to(run))
            self._attending.add(task)
            task.add_done_callback(self._attending.discard)

    def _drop_outdated(self) -> None:
        while self._heap and self.times.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)

    async def _until(self, at: int) -> None:
        """Return at a time, or when something is due earlier."""
        waits = (
            asyncio.ensure_future(self._clock.sleep_until(at)),
            asyncio.ensure_future(self._earlier.wait()),
        )
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def _attend_to(self, run: RunKey) -> None:
        if not await self._attend(run) and run not in self.times:
            self.set(run, self._clock.now() + RETRY)
