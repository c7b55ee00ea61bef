"""Followers of runs: events come from the process that writes them; the store is read to catch up.

A follower that waits makes no queries, however many there are.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from weft.engine.events import Event, RunEnded
from weft.ports.store import RunKey

#: How many batches of events wait for a slow follower; after that it reads the store again.
MAX_WAITING_BATCHES: Final = 256


class Follower:
    """What one follower has not read yet: batches of events, or that the store has more."""

    def __init__(self, seq: int) -> None:
        #: The last event that it has or is about to get.
        self.seq = seq
        self._batches: deque[Sequence[Event]] = deque()
        self._must_read = False
        self._waiting: asyncio.Future[None] | None = None

    def add(self, events: Sequence[Event]) -> None:
        """Add events that were written."""
        if len(self._batches) >= MAX_WAITING_BATCHES:
            self.read_again()
            return
        self._batches.append(events)
        self.seq = max(self.seq, events[-1].seq)
        self._wake()

    def read_again(self) -> None:
        """Note that the store has more events."""
        self._must_read = True
        self._batches.clear()
        self._wake()

    async def next(self) -> Sequence[Event] | None:
        """Wait for the next events; None means: read the store."""
        while not self._must_read and not self._batches:
            self._waiting = asyncio.get_running_loop().create_future()
            try:
                await self._waiting
            finally:
                self._waiting = None
        if self._must_read:
            self._must_read = False
            return None
        return self._batches.popleft()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class Followers(dict[RunKey, set[Follower]]):
    """The followers of each run of one store in this process."""

    @contextmanager
    def subscribed(self, run: RunKey, after: int) -> Generator[Follower]:
        """Receive the events of a run inside the block."""
        follower = Follower(after)
        self.setdefault(run, set()).add(follower)
        try:
            yield follower
        finally:
            self[run].discard(follower)
            if not self[run]:
                del self[run]

    def add(self, run: RunKey, events: Sequence[Event]) -> None:
        """Hand events that were written here to the followers of their run."""
        for follower in self.get(run, ()):
            follower.add(events)

    def catch_up(self, seqs: Mapping[RunKey, int]) -> None:
        """Make the followers read the store that have fewer events than their run."""
        for run, seq in seqs.items():
            for follower in self.get(run, ()):
                if follower.seq < seq:
                    follower.read_again()

    def read_again(self) -> None:
        """Make all followers read the store."""
        for followers in self.values():
            for follower in followers:
                follower.read_again()


async def follow(
    followers: Followers, run: RunKey, read: Callable[[int], Awaitable[list[Event]]], after: int
) -> AsyncGenerator[Event]:
    """Yield the events of a run after a number as they are written, until it has ended."""
    with followers.subscribed(run, after) as follower:
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
            follower.seq = max(follower.seq, after)
            batch = await follower.next()
