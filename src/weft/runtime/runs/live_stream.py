"""Following a run while it works: its events as they are written, and streamed text meanwhile.

Streamed text is not stored: it comes through the live stream, and the store is read for events.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from weft.engine.events import Event, ModelFailed, ModelReplied
from weft.ports.live import Delta, LiveStream, ModelRetry, TextDelta, ToolProgress
from weft.ports.scope import Scope
from weft.ports.store import EventLog, RunKey

#: The queue length of a slow follower: further pieces of text are dropped, because the reply
#: contains them, and further events are read from the store.
MAX_WAITING_ITEMS: Final = 10_000

#: How long items are kept for a follower who is about to subscribe.
RESERVED_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Ended:
    """No more events follow."""


@dataclass(frozen=True, slots=True)
class StreamReleased:
    """This process has stopped working on the run."""


#: The items that a follower receives.
Items: TypeAlias = "asyncio.Queue[Event | Delta | Ended | StreamReleased]"


class Followers(dict[RunKey, set[Items]]):
    """The followers of each run in this process, as the queues that feed them."""

    def __init__(self, live: LiveStream) -> None:
        super().__init__()
        self._live = live
        #: The queues of followers who are about to subscribe, and the timer that ends each.
        self._reserved: dict[RunKey, tuple[Items, ExitStack]] = {}

    def reserve(self, run: RunKey) -> None:
        """Keep the items of a run for a follower who is about to subscribe.

        They are dropped if this process stops working on the run before, or after a while.
        """
        if run not in self._reserved:
            stack = ExitStack()
            self._reserved[run] = stack.enter_context(self._open_queue(run)), stack
            asyncio.get_running_loop().call_later(RESERVED_SECONDS, self._unreserve, run)

    def _unreserve(self, run: RunKey) -> None:
        if run in self._reserved:
            self._reserved.pop(run)[1].close()

    @contextmanager
    def subscribe(self, run: RunKey) -> Generator[Items]:
        """Receive the items of a run inside the block."""
        reserved = self._reserved.pop(run, None)
        if reserved is None:
            with self._open_queue(run) as queue:
                yield queue
        else:
            with reserved[1]:
                yield reserved[0]

    def send_left(self, run: RunKey) -> None:
        """Notify the followers that this process has stopped working on a run."""
        if run in self._reserved:
            self._unreserve(run)
        for queue in self.get(run, ()):
            if not queue.full():
                queue.put_nowait(StreamReleased())

    @contextmanager
    def _open_queue(self, run: RunKey) -> Generator[Items]:
        queue: Items = asyncio.Queue(MAX_WAITING_ITEMS)

        def receive(delta: Delta) -> None:
            if not queue.full():
                queue.put_nowait(delta)

        queues = self.setdefault(run, set[Items]())
        queues.add(queue)
        try:
            with self._live.subscribe(run, receive):
                yield queue
        finally:
            queues.discard(queue)
            if not queues:
                self.pop(run, None)


def text_sender(live: LiveStream, run: RunKey, call: int) -> Callable[[str], None]:
    """Return a function that sends pieces of the text of one model call."""
    offset = 0

    def send_text(text: str) -> None:
        nonlocal offset
        live.publish(run, TextDelta(run[1], call, offset, text))
        offset += len(text)

    return send_text


class StoppedRuns(Protocol):
    """Knows the runs that this process has stopped working on."""

    def is_stopped(self, run: RunKey) -> bool: ...

    def raise_if_stopped(self, run: RunKey) -> None: ...


@dataclass(frozen=True, slots=True)
class Follower:
    """Merges the events of a run with its streamed text."""

    _store: EventLog
    _stopped: StoppedRuns
    _followers: Followers

    async def follow(self, run: str, scope: Scope, after: int) -> AsyncIterator[Event | Delta]:
        """Yield events and pieces of text in order: a piece after the event that allowed it."""
        key = (scope.app, run)
        early: list[Delta] = []
        replied: set[int] = set()
        with self._followers.subscribe(key) as items:
            pump = asyncio.create_task(_pump(self._store.follow(scope, run, after=after), items))
            try:
                while True:
                    if items.empty() and self._stopped.is_stopped(key):
                        for event in await self._store.read(scope, run, after=after):
                            after = event.seq
                            yield event
                        self._stopped.raise_if_stopped(key)
                    item = await items.get()
                    if isinstance(item, Event):
                        if item.seq <= after:
                            continue
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
                        await pump  # Raises the error that stopped the run.
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
    except Exception:  # The follower gets the error from the task.
        await items.put(Ended())
        raise
    await items.put(Ended())
