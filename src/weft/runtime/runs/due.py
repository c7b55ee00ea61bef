"""What is due at a time: one task waits for the next of it, however much is open."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from weft.engine.rows import DueRow
from weft.ports.clock import Clock
from weft.ports.journal import Journal

_log: Final = logging.getLogger("weft.runtime")

#: Milliseconds until something is tried again that went wrong, at first and at most.
PAUSE: Final = 5_000
LONGEST_PAUSE: Final = 600_000


class DueWatch:
    """Lets questions expire and timers fire when their time has come."""

    def __init__(
        self, journal: Journal, clock: Clock, let_happen: Callable[[DueRow], Awaitable[None]]
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._let_happen = let_happen
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        #: Until when the task waits; None while it looks. It has done so, or has ended, if set.
        self._waits: int | None = None
        self._is_waiting = asyncio.Event()
        #: What went wrong: when each is tried again, and the pause after that.
        self._later: dict[DueRow, tuple[int, int]] = {}

    def look(self) -> None:
        """Look anew for what is due next: there may be something sooner."""
        self._news.set()
        self.watch()

    def watch(self, due: int | None = None) -> None:
        """Wait for what is due; `due` is the time of something new, None if nothing is new."""
        if due is not None and (self._waits is None or due < self._waits):
            self._news.set()
        if not self._closed and (self._task is None or self._task.done()):
            self._is_waiting.clear()
            self._task = asyncio.create_task(self._watch())

    @property
    def busy(self) -> bool:
        """Whether something may be due that did not happen yet."""
        if self._closed or self._task is None or self._task.done():
            return False
        return self._waits is None or self._news.is_set() or self._waits <= self._clock.now()

    async def wait_until_idle(self) -> None:
        """Return when nothing is due now."""
        while self.busy:
            self._news.set()
            await asyncio.sleep(0)
            await self._is_waiting.wait()

    async def close(self) -> None:
        """Stop waiting, for good: nothing could be written that is found now."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        """Wait and let happen until nothing is left that could be due."""
        try:
            while True:
                self._news.clear()
                next_ = await self._next()
                if next_ is not None:
                    await self._until(next_)
                elif not self._news.is_set():
                    return
        finally:
            self._is_waiting.set()

    async def _next(self) -> int | None:
        """Let happen what is due now, and return when to look again."""
        now = self._clock.now()
        try:
            await self._look_through(now)
            times = [at for at, _ in self._later.values()]
            at = await self._journal.next_due(now)
        except Exception:  # noqa: BLE001 - else nothing would ever be due again
            _log.exception("what is due cannot be looked up; it is tried again")
            return self._clock.now() + PAUSE
        return min(times if at is None else [*times, at], default=None)

    async def _look_through(self, now: int) -> None:
        seen: set[DueRow] = set()
        last: DueRow | None = None
        while page := await self._journal.due(now, after=last):
            last = page[-1]
            seen.update(page)
            ready = [it for it in page if self._later.get(it, (0, 0))[0] <= now]
            await asyncio.gather(*map(self._try, ready))
        self._later = {row: it for row, it in self._later.items() if row in seen}

    async def _try(self, row: DueRow) -> None:
        """Let one thing happen; that it cannot now is no reason to leave the others."""
        try:
            await self._let_happen(row)
        except Exception:  # noqa: BLE001 - its run cannot go on now, for whatever reason
            _, pause = self._later.get(row, (0, PAUSE))
            self._later[row] = self._clock.now() + pause, min(2 * pause, LONGEST_PAUSE)
            _log.exception(
                "%s %s of run %s is due and could not be closed; it is tried again in %g s",
                row.kind, row.id, row.run, pause / 1000,
            )  # fmt: skip

    async def _until(self, at: int) -> None:
        """Return at a time, or sooner when there is news."""
        self._waits = at
        self._is_waiting.set()
        waits = (
            asyncio.ensure_future(self._clock.sleep_until(at)),
            asyncio.ensure_future(self._news.wait()),
        )
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._is_waiting.clear()
            self._waits = None
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
