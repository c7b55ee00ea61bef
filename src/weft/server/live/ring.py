"""The last frames of a run for one audience, and the viewers that read them at their own pace.

There is no queue for each viewer: a slow one costs its place in the ring. One that falls out of it
receives `snapshot_needed`, and continues after it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from weft.context.audience import Audience
from weft.server.live.frames import Frame, snapshot_needed

#: How many frames and bytes a ring keeps.
MAX_FRAMES: Final = 256
MAX_BYTES: Final = 256 * 1024

#: How many pieces of streamed text wait for a slow viewer: the reply has all of them.
MAX_DELTAS: Final = 64

#: How many bytes are put into one message before it is sent.
MESSAGE_BYTES: Final = 64 * 1024

#: The code with which sockets are closed when what they follow cannot be read, and the reason.
UNREADABLE: Final = (1013, "the runs cannot be read now; connect again")


class Ring:
    """The last frames of a run for developers (`audience` None) or for one end user."""

    def __init__(self, run: str, audience: Audience | None, seq: int) -> None:
        self.run = run
        self.audience = audience
        self.viewers: set[Viewer] = set()
        #: All that the audience sees of the events after `start`, up to `seq`, is in the ring.
        self.start = self.seq = seq
        #: When the last viewer left, by the clock of the event loop.
        self.left_at = 0.0
        self._frames: deque[Frame] = deque()
        self._bytes = 0

    def publish(self, seq: int, frame: Frame | None) -> None:
        """Add the next event of the run; without a frame, it is hidden from the audience."""
        self.seq = seq
        if frame is None:
            return
        self._frames.append(frame)
        self._bytes += len(frame.data)
        while len(self._frames) > MAX_FRAMES or self._bytes > MAX_BYTES:
            oldest = self._frames.popleft()
            self._bytes -= len(oldest.data)
            self.start = oldest.seq
        for viewer in self.viewers:
            viewer.outlet.wake(viewer)

    def publish_delta(self, call: int, frame: Frame) -> None:
        """Add a piece of streamed text, the progress of a tool or a repeated model call."""
        for viewer in self.viewers:
            viewer.add_delta(call, frame)

    def drop_deltas(self, call: int) -> None:
        """Forget what is streamed of a call: its result has come."""
        for viewer in self.viewers:
            viewer.drop_deltas(call)

    def after(self, seq: int) -> list[Frame]:
        """Return the frames after an event, which is not before the start of the ring."""
        found: list[Frame] = []
        for frame in reversed(self._frames):
            if frame.seq <= seq:
                break
            found.append(frame)
        found.reverse()
        return found


class Viewer:
    """One viewer of a ring: up to which event it has everything."""

    __slots__ = ("_deltas", "catch_up", "outlet", "ring", "seq")

    def __init__(self, ring: Ring, outlet: "Outlet", seq: int) -> None:
        self.ring = ring
        self.outlet = outlet
        self.seq = seq
        #: Reads what comes before the ring, page by page; None when the viewer is at the ring.
        self.catch_up: Callable[[Viewer], Awaitable[list[Frame]]] | None = None
        self._deltas: list[tuple[int, Frame]] = []

    def take(self) -> list[Frame]:
        """Return the frames that follow."""
        ring = self.ring
        frames: list[Frame] = []
        if self.seq < ring.start:
            frames.append(snapshot_needed(ring.run, ring.seq))
        elif self.seq < ring.seq:
            frames = ring.after(self.seq)
        self.seq = max(self.seq, ring.seq)
        if self._deltas:
            frames += [frame for _, frame in self._deltas]
            self._deltas.clear()
        return frames

    def add_delta(self, call: int, frame: Frame) -> None:
        """Add a piece of streamed text; it may be dropped, since the reply has all of it."""
        if self.catch_up is None and len(self._deltas) < MAX_DELTAS:
            self._deltas.append((call, frame))
            self.outlet.wake(self)

    def drop_deltas(self, call: int) -> None:
        """Forget the text of a call: its reply is there."""
        if self._deltas:
            self._deltas = [delta for delta in self._deltas if delta[0] != call]


class Outlet:
    """Everything that one connection is sent: its own frames, and those of what it views."""

    def __init__(self) -> None:
        #: Why nothing more is sent: the code and the reason with which a socket is closed.
        self.closed: tuple[int, str] | None = None
        self._frames: list[Frame] = []
        #: The viewers that may have something to send.
        self._ready: dict[Viewer, None] = {}
        self._waiting: asyncio.Future[None] | None = None
        #: Whether `next` is to return although there is nothing to send.
        self._is_nudged = False
        #: Is done when frames of its own have been taken.
        self._room: asyncio.Future[None] | None = None

    def put(self, frame: Frame) -> None:
        """Send a frame that belongs to this connection alone."""
        self._frames.append(frame)
        self._wake()

    async def offer(self, frame: Frame) -> None:
        """Send a frame when there is room for it."""
        while len(self._frames) >= MAX_FRAMES:
            self._room = self._room or asyncio.get_running_loop().create_future()
            await asyncio.shield(self._room)  # Others may wait for it as well.
        self.put(frame)

    def wake(self, viewer: Viewer) -> None:
        """Send what a viewer has."""
        self._ready[viewer] = None
        if self._waiting is not None:
            self._wake()

    @property
    def waiting(self) -> int:
        """How many frames of its own wait to be sent."""
        return len(self._frames)

    @property
    def has_more(self) -> bool:
        """Whether there is something to send now."""
        return bool(self._frames or self._ready)

    def forget(self, viewer: Viewer) -> None:
        """Send nothing more of a viewer."""
        self._ready.pop(viewer, None)

    def nudge(self) -> None:
        """Let `next` return, also with nothing: a run that is viewed has ended."""
        self._is_nudged = True
        self._wake()

    def close(self, code: int, reason: str) -> None:
        """Send nothing more."""
        self.closed = self.closed or (code, reason)
        self._wake()

    async def next(self) -> list[Frame]:
        """Wait for the next frames; none if the outlet is closed or was nudged."""
        while self.closed is None:
            frames, self._frames = self._frames, []
            if self._room is not None:
                self._room.set_result(None)
                self._room = None
            size = 0
            while self._ready and size < MESSAGE_BYTES:
                viewer = next(iter(self._ready))
                del self._ready[viewer]
                found = viewer.take() if viewer.catch_up is None else await viewer.catch_up(viewer)
                size += sum([len(frame.data) for frame in found])
                frames += found
            if frames or self._is_nudged:
                self._is_nudged = False
                return frames
            if not self._frames and not self._ready:
                self._waiting = asyncio.get_running_loop().create_future()
                try:
                    await self._waiting
                finally:
                    self._waiting = None
        return []

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
