"""How followers of a run get its events: from whoever writes them, or the store to catch up."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from weft.engine.events import Event, RunEnded
from weft.ports.dispatcher import RunKey

#: How many batches wait for a slow follower; after that it reads the store again.
MOST_WAITING: Final = 256


class Subscription:
    """The news of one follower: batches of events in order, or that the store has more."""

    def __init__(self) -> None:
        self._batches: deque[Sequence[Event]] = deque()
        self._look = False
        self._waiting: asyncio.Future[None] | None = None

    def tell(self, events: Sequence[Event]) -> None:
        """Hand over events that were written."""
        if len(self._batches) < MOST_WAITING:
            self._batches.append(events)
            self._wake()
        else:
            self.look_again()

    def look_again(self) -> None:
        """Say that the store has more than was handed over."""
        self._look = True
        self._batches.clear()
        self._wake()

    async def next(self) -> Sequence[Event] | None:
        """Return the next events; None says: look into the store."""
        while not self._look and not self._batches:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        if self._look:
            self._look = False
            return None
        return self._batches.popleft()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Feed:
    """The followers of the runs of one store in this process."""

    def __init__(self) -> None:
        self._following: dict[RunKey, set[Subscription]] = {}

    def __bool__(self) -> bool:
        return bool(self._following)

    @contextmanager
    def subscribed(self, run: RunKey) -> Generator[Subscription]:
        """Get the news of a run for a while."""
        news = Subscription()
        self._following.setdefault(run, set()).add(news)
        try:
            yield news
        finally:
            self._following[run].discard(news)
            if not self._following[run]:
                del self._following[run]

    def tell(self, run: RunKey, events: Sequence[Event]) -> None:
        """Hand events that were written here to whoever follows their run."""
        for news in self._following.get(run, ()):
            news.tell(events)

    def look_again(self) -> None:
        """Let all followers look into the store: another process has written."""
        for following in self._following.values():
            for news in following:
                news.look_again()


async def follow(
    feed: Feed, run: RunKey, read: Callable[[int], Awaitable[list[Event]]], after: int
) -> AsyncGenerator[Event]:
    """Yield the events of a run after a number as they are written, until it has ended."""
    with feed.subscribed(run) as news:
        batch: Sequence[Event] | None = None
        while True:
            if batch is None or batch[0].seq > after + 1:
                batch = await read(after)
            for event in batch:
                if event.seq > after:
                    after = event.seq
                    yield event
                    if isinstance(event.data, RunEnded):
                        return
            batch = await news.next()
