"""Following a run without a gap: nothing is missed from the moment of subscribing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import TypeAlias, cast

from weft.app.folders import LOCAL
from weft.engine.events import Event
from weft.runtime.host import Host
from weft.runtime.runs.live_stream import Delta

_Events: TypeAlias = AsyncGenerator[Event | Delta]


class Subscription:
    """The events of a run and what is being said, one after the other.

    The next one is waited for at all times, even while a person is asked: a host streams the words
    of a model only to those who already follow when it begins to speak.
    """

    def __init__(self, events: _Events) -> None:
        self._events = events
        self._next = asyncio.create_task(self._take())

    async def item(self) -> Event | Delta | None:
        """Return what comes next; None when the run has ended and all is told."""
        # Whoever stops waiting leaves the item for the next who asks.
        item = await asyncio.shield(self._next)
        self._next = asyncio.create_task(self._take())
        return item

    async def soon(self, seconds: float) -> bool:
        """Tell whether something comes within so many seconds; it stays for whoever asks for it."""
        return bool((await asyncio.wait({self._next}, timeout=seconds))[0])

    async def close(self) -> None:
        """Stop waiting."""
        self._next.cancel()
        # What went wrong has been told to whoever asked for the item.
        await asyncio.gather(self._next, return_exceptions=True)

    async def _take(self) -> Event | Delta | None:
        return await anext(self._events, None)


@asynccontextmanager
async def subscribed(host: Host, run: str, *, after: int = 0) -> AsyncGenerator[Subscription]:
    """Follow a run for a while."""
    events = cast("_Events", host.events(run, scope=LOCAL, after=after, follow=True))
    async with aclosing(events):
        news = Subscription(events)
        try:
            # One step of the event loop, in which following begins.
            await asyncio.sleep(0)
            yield news
        finally:
            await news.close()
