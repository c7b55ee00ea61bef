"""Questions whose time is over: one task waits for the next of them, however many are open."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from weft.engine.rows import RequestRow
from weft.errors import WeftError
from weft.ports.clock import Clock
from weft.ports.journal import Journal

_log: Final = logging.getLogger("weft.runtime")

#: Milliseconds until it is tried again after something went wrong.
PAUSE: Final = 5_000


class Expiry:
    """Lets questions expire when their time has come."""

    def __init__(
        self, journal: Journal, clock: Clock, expire: Callable[[RequestRow], Awaitable[None]]
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._expire = expire
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def look(self) -> None:
        """Look anew for what expires next: there may be something sooner."""
        self._news.set()
        if not self._closed and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop waiting, for good: nothing could be written that is found now."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        """Wait and let expire until nothing is left that could."""
        while True:
            self._news.clear()
            try:
                next_ = await self._journal.next_expiry()
                if next_ is None and not self._news.is_set():
                    return
                if next_ is not None and next_ <= self._clock.now():
                    await self._let_expire()
                    continue
            except WeftError:
                # The question stays open; that its run cannot go on now is no reason to spin.
                _log.exception("a question whose time is over could not be closed")
                next_ = self._clock.now() + PAUSE
            if next_ is not None:
                await self._until(next_)

    async def _let_expire(self) -> None:
        rows = await self._journal.expired(self._clock.now())
        outcomes = await asyncio.gather(*map(self._expire, rows), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome

    async def _until(self, at: int) -> None:
        """Return at a time, or sooner when there is news."""
        waits = (
            asyncio.ensure_future(self._clock.sleep_until(at)),
            asyncio.ensure_future(self._news.wait()),
        )
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
