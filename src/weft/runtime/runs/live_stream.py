"""Following a run while it works: its events as they are written, and streamed text meanwhile.

Streamed text is not stored. A follower gets events from the process that writes them, and reads the
store only to catch up.
"""

import asyncio
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from weft.engine.events import Event, ModelFailed, ModelReplied, RunEnded
from weft.ports.dispatcher import RunKey
from weft.ports.journal import Journal
from weft.ports.scope import Scope

#: How much waits for a slow follower: later pieces of text are dropped, since the reply has all of
#: them, and later events are read from the store.
MAX_WAITING_ITEMS: Final = 10_000

#: How many batches of events wait for a slow follower; after that it reads the store again.
MAX_WAITING_BATCHES: Final = 256


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a reply while the model writes it; superseded by the reply, and not stored.

    `call` is the number of the event that started the model call, `offset` where the piece begins.
    """

    run: str
    call: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class ModelRetry:
    """A model call failed and is about to be repeated; the reply records it as well."""

    run: str
    call: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """The progress that a tool reports; `call` is the number of the event that called it."""

    run: str
    call: int
    tool: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """No more events follow."""


@dataclass(frozen=True, slots=True)
class Left:
    """This process has stopped working on the run."""


Delta: TypeAlias = TextDelta | ModelRetry | ToolProgress
#: What one follower receives.
Items: TypeAlias = "asyncio.Queue[Event | Delta | Ended | Left]"


class LiveStream:
    """The followers of each run in this process, and the queues that feed them."""

    def __init__(self) -> None:
        self._queues: dict[RunKey, set[Items]] = {}
        #: Queues of followers who are about to subscribe.
        self._reserved: dict[RunKey, Items] = {}

    def reserve(self, run: RunKey) -> None:
        """Keep the items of a run for a follower who is about to subscribe."""
        if run not in self._reserved:
            self._reserved[run] = self._add(run, asyncio.Queue(MAX_WAITING_ITEMS))

    @contextmanager
    def subscribe(self, run: RunKey) -> Generator[Items]:
        """Receive the items of a run inside the block."""
        queue = self._reserved.pop(run, None) or self._add(run, asyncio.Queue(MAX_WAITING_ITEMS))
        try:
            yield queue
        finally:
            self._remove(run, queue)

    def has_followers(self, run: RunKey) -> bool:
        """Tell whether a run has followers here."""
        return run in self._queues

    def text_sender(self, run: RunKey, call: int) -> Callable[[str], None]:
        """Return a function that sends pieces of the text of one model call."""
        offset = 0

        def send_text(text: str) -> None:
            nonlocal offset
            self.send(run, TextDelta(run[1], call, offset, text))
            offset += len(text)

        return send_text

    def send(self, run: RunKey, delta: Delta) -> None:
        """Send an item to all followers of a run."""
        for queue in self._queues.get(run, ()):
            if not queue.full():
                queue.put_nowait(delta)

    def send_left(self, run: RunKey) -> None:
        """Tell the followers that this process has stopped working on a run."""
        if run in self._reserved:
            self._remove(run, self._reserved.pop(run))
        for queue in self._queues.get(run, ()):
            if not queue.full():
                queue.put_nowait(Left())

    def _add(self, run: RunKey, queue: Items) -> Items:
        self._queues.setdefault(run, set()).add(queue)
        return queue

    def _remove(self, run: RunKey, queue: Items) -> None:
        self._queues[run].discard(queue)
        if not self._queues[run]:
            del self._queues[run]


class Subscription:
    """What one follower has not read yet: batches of events, or that the store has more."""

    def __init__(self) -> None:
        self._batches: deque[Sequence[Event]] = deque()
        self._look = False
        self._waiting: asyncio.Future[None] | None = None

    def tell(self, events: Sequence[Event]) -> None:
        """Add events that were written."""
        if len(self._batches) < MAX_WAITING_BATCHES:
            self._batches.append(events)
            self._wake()
        else:
            self.look_again()

    def look_again(self) -> None:
        """Note that the store has more events."""
        self._look = True
        self._batches.clear()
        self._wake()

    async def next(self) -> Sequence[Event] | None:
        """Wait for the next events; None means: read the store."""
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
        """Receive the events of a run inside the block."""
        subscription = Subscription()
        self._following.setdefault(run, set()).add(subscription)
        try:
            yield subscription
        finally:
            self._following[run].discard(subscription)
            if not self._following[run]:
                del self._following[run]

    def tell(self, run: RunKey, events: Sequence[Event]) -> None:
        """Hand events that were written here to the followers of their run."""
        for subscription in self._following.get(run, ()):
            subscription.tell(events)

    def look_again(self) -> None:
        """Let all followers read the store: another process has written."""
        for following in self._following.values():
            for subscription in following:
                subscription.look_again()


async def follow(
    feed: Feed, run: RunKey, read: Callable[[int], Awaitable[list[Event]]], after: int
) -> AsyncGenerator[Event]:
    """Yield the events of a run after a number as they are written, until it has ended."""
    with feed.subscribed(run) as subscription:
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
            batch = await subscription.next()


class StoppedRuns(Protocol):
    """Knows the runs that this process has stopped working on."""

    def is_stopped(self, run: RunKey) -> bool: ...

    def raise_if_stopped(self, run: RunKey) -> None: ...


@dataclass(frozen=True, slots=True)
class Follower:
    """Merges the events of a run with its streamed text."""

    _journal: Journal
    _stopped: StoppedRuns
    _stream: LiveStream

    async def follow(self, run: str, scope: Scope, after: int) -> AsyncIterator[Event | Delta]:
        """Yield events and pieces of text in order: a piece after the event that allowed it."""
        key = (scope.app, run)
        early: list[Delta] = []
        replied: set[int] = set()
        with self._stream.subscribe(key) as items:
            pump = asyncio.create_task(_pump(self._journal.follow(scope, run, after=after), items))
            try:
                while True:
                    if items.empty() and self._stopped.is_stopped(key):
                        for event in await self._journal.read(scope, run, after=after):
                            yield event
                        self._stopped.raise_if_stopped(key)
                    item = await items.get()
                    if isinstance(item, Event):
                        yield item
                        after = item.seq
                        if isinstance(item.data, ModelReplied | ModelFailed):
                            replied.add(item.cause)
                        ready = [delta for delta in early if delta.call <= after]
                        early = [delta for delta in early if delta.call > after]
                    elif isinstance(item, TextDelta | ModelRetry | ToolProgress):
                        ready = [item] if item.call <= after else []
                        early += [] if ready else [item]
                    elif isinstance(item, Ended):
                        await pump  # Raises the error that stopped it.
                        return
                    else:
                        continue
                    for delta in ready:
                        if delta.call not in replied:
                            yield delta
            finally:
                pump.cancel()
                await asyncio.gather(pump, return_exceptions=True)


async def _pump(events: AsyncIterator[Event], items: Items) -> None:
    try:
        async for event in events:
            await items.put(event)
    except Exception:  # The follower gets it from the task.
        await items.put(Ended())
        raise
    await items.put(Ended())
