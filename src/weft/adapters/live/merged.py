"""The live stream between processes, over a bus such as PostgreSQL's NOTIFY or NATS.

A process that has subscribers announces their runs. The process that works on such a run sends its
deltas to the announcing processes only, and merges everything of 50 ms into one message, whatever
the number of runs. Without an announcement nothing is sent, and the model is not asked to stream.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, replace
from typing import Any, Final, Literal, Protocol

from weft.adapters.live.memory import MemoryLiveStream
from weft.ports.live import Delta, ModelRetry, TextDelta, ToolProgress
from weft.ports.store import RunKey

#: Seconds between two messages to the same process.
MERGE_SECONDS: Final = 0.05
#: An announcement is repeated, since one may be lost; without repetition it ends.
ANNOUNCE_SECONDS: Final = 10.0
EXPIRE_SECONDS: Final = 25.0
#: Where the processes announce the runs that they have subscribers for.
WATCH: Final = "watch"

_KINDS: Final[dict[str, type[Delta]]] = {"t": TextDelta, "r": ModelRetry, "p": ToolProgress}
_LETTERS: Final = {kind: letter for letter, kind in _KINDS.items()}


class Bus(Protocol):
    """Carries short messages between processes; it may lose them."""

    #: The size of a message in bytes.
    limit: int

    def send(self, topic: str, content: bytes) -> None:
        """Send a message to the listeners of a topic; returns at once and never fails."""
        ...

    def listen(self, topic: str, receive: Callable[[bytes], None]) -> None:
        """Call `receive` for every message of a topic from now on."""
        ...

    async def close(self) -> None:
        """Stop sending and receiving."""
        ...


class MergedLiveStream:
    """Delivers deltas to subscribers here at once, and to those of other processes merged."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._local = MemoryLiveStream()
        self._name = secrets.token_hex(8)
        self._loop = asyncio.get_running_loop()
        #: When the announcements end, by run and announcing process.
        self._watchers: dict[RunKey, dict[str, float]] = {}
        self._outboxes: dict[str, _Outbox] = {}
        bus.listen(self._name, self._receive_deltas)
        bus.listen(WATCH, self._receive_watch)
        bus.send(WATCH, _encode({"ask": self._name}))
        self._timer = self._loop.call_later(ANNOUNCE_SECONDS, self._announce_again)

    def has_subscribers(self, run: RunKey) -> bool:
        """Return whether a run has subscribers in any process."""
        if self._local.has_subscribers(run):
            return True
        return run in self._watchers and bool(self._watching(run))

    def publish(self, run: RunKey, delta: Delta) -> None:
        """Send a delta to the subscribers of a run."""
        self._local.publish(run, delta)
        for name in self._watching(run) if run in self._watchers else ():
            outbox = self._outboxes.get(name)
            if outbox is None:
                outbox = self._outboxes[name] = _Outbox(self._bus, name, self._loop)
            outbox.add(run[0], delta)

    @contextmanager
    def subscribe(self, run: RunKey, receive: Callable[[Delta], None]) -> Generator[None]:
        """Call `receive` for every delta of a run inside the block."""
        first = not self._local.has_subscribers(run)
        try:
            with self._local.subscribe(run, receive):
                if first:
                    self._announce("on", [run])
                yield
        finally:
            if not self._local.has_subscribers(run):
                self._announce("off", [run])

    async def close(self) -> None:
        """Send the remaining items, and stop."""
        self._timer.cancel()
        for outbox in self._outboxes.values():
            outbox.close()
        self._announce("off", self._local.runs())
        await self._bus.close()

    def _watching(self, run: RunKey) -> list[str]:
        """Return the processes that have subscribers for a run."""
        watchers = self._watchers[run]
        now = self._loop.time()
        for name in [name for name, until in watchers.items() if until < now]:
            self._remove_watcher(run, name)
        return list(watchers)

    def _receive_deltas(self, content: bytes) -> None:
        for letter, app, *fields in json.loads(content):
            delta = _KINDS[letter](*fields)
            self._local.publish((app, delta.run), delta)

    def _receive_watch(self, content: bytes) -> None:
        message: dict[str, Any] = json.loads(content)
        if message.get("ask", self._name) != self._name:
            self._announce("on", self._local.runs())
        name = message.get("at", self._name)
        if name == self._name:
            return
        for app, run in message.get("on", ()):
            until = self._loop.time() + EXPIRE_SECONDS
            self._watchers.setdefault((app, run), {})[name] = until
        for app, run in message.get("off", ()):
            self._remove_watcher((app, run), name)

    def _remove_watcher(self, run: RunKey, name: str) -> None:
        watchers = self._watchers.get(run, {})
        watchers.pop(name, None)
        if not watchers:
            self._watchers.pop(run, None)

    def _announce(self, change: Literal["on", "off"], runs: Sequence[RunKey]) -> None:
        """Announce runs, in several messages if one cannot hold them."""
        content = _encode({"at": self._name, change: runs})
        if len(content) > self._bus.limit and len(runs) > 1:
            half = len(runs) // 2
            self._announce(change, runs[:half])
            self._announce(change, runs[half:])
        elif runs:
            self._bus.send(WATCH, content)

    def _announce_again(self) -> None:
        """Repeat the announcement, and forget the processes that do not repeat theirs."""
        self._announce("on", self._local.runs())
        for run in list(self._watchers):
            self._watching(run)
        watching = {name for watchers in self._watchers.values() for name in watchers}
        for name in self._outboxes.keys() - watching:
            self._outboxes.pop(name).close()
        self._timer = self._loop.call_later(ANNOUNCE_SECONDS, self._announce_again)


class _Outbox:
    """The deltas that wait for one other process."""

    def __init__(self, bus: Bus, name: str, loop: asyncio.AbstractEventLoop) -> None:
        self._bus = bus
        self._name = name
        self._loop = loop
        self._deltas: list[tuple[str, Delta]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._sent_at = 0.0

    def add(self, app: str, delta: Delta) -> None:
        """Add a delta, to the last one if they belong together."""
        merged = _merged(self._deltas[-1][1], delta) if self._deltas else None
        if merged is not None and self._deltas[-1][0] == app:
            self._deltas[-1] = (app, merged)
        else:
            self._deltas.append((app, delta))
        if self._timer is None:
            wait = self._sent_at + MERGE_SECONDS - self._loop.time()
            self._timer = self._loop.call_later(max(wait, 0), self._flush)

    def close(self) -> None:
        """Send what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._flush()

    def _flush(self) -> None:
        self._timer = None
        self._sent_at = self._loop.time()
        deltas, self._deltas = self._deltas, []
        for content in _messages(deltas, self._bus.limit):
            self._bus.send(self._name, content)


def _merged(first: Delta, second: Delta) -> Delta | None:
    """Return two deltas as one, if the second continues or replaces the first."""
    if (first.run, first.call) != (second.run, second.call):
        return None
    match first, second:
        case TextDelta(), TextDelta() if first.offset + len(first.text) == second.offset:
            return TextDelta(first.run, first.call, first.offset, first.text + second.text)
        case ToolProgress(), ToolProgress():
            return second
        case _:
            return None


def _messages(deltas: Sequence[tuple[str, Delta]], limit: int) -> Iterator[bytes]:
    """Yield the messages that carry these deltas, none above the limit."""
    parts: list[bytes] = []
    size = 2
    for app, delta in deltas:
        for part in _parts(app, delta, limit - 2):
            if parts and size + len(part) + 1 > limit:
                yield b"[" + b",".join(parts) + b"]"
                parts, size = [], 2
            parts.append(part)
            size += len(part) + 1
    if parts:
        yield b"[" + b",".join(parts) + b"]"


def _parts(app: str, delta: Delta, limit: int) -> Iterator[bytes]:
    """Yield a delta in JSON: text that is too long in pieces, other words cut."""
    content = _encode([_LETTERS[type(delta)], app, *astuple(delta)])
    half = len(delta.text) // 2
    if len(content) <= limit:
        yield content
    elif half:
        yield from _parts(app, replace(delta, text=delta.text[:half]), limit)
        if isinstance(delta, TextDelta):
            rest = replace(delta, offset=delta.offset + half, text=delta.text[half:])
            yield from _parts(app, rest, limit)


def _encode(message: Any) -> bytes:  # noqa: ANN401
    """Return JSON in ASCII, which also holds text that is not valid Unicode."""
    return json.dumps(message, separators=(",", ":")).encode()
