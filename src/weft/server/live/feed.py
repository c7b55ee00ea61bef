"""Feeds: each follows one run, and fills a ring of frames for each audience."""

import asyncio
import logging
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from weft.context.audience import Audience
from weft.engine.events import (
    ContextAssembled,
    Event,
    ModelFailed,
    ModelReplied,
    RunEnded,
    ToolCalled,
    ToolFailed,
    ToolReturned,
)
from weft.engine.rows import RunRow
from weft.errors import AccessDenied, WeftError
from weft.ports.live import Delta, ModelRetry, TextDelta, ToolProgress
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow
from weft.server.identity import Principal
from weft.server.live.frames import (
    Frame,
    control_frame,
    delta_frame,
    event_frame,
    snapshot_needed,
)
from weft.server.live.ring import Outlet, Ring, Viewer

_log: Final = logging.getLogger("weft.server")

#: Seconds between two pieces of streamed text.
MERGE: Final = 0.05

#: A viewer that lacks fewer events gets them from the journal, so many at a time.
MOST_MISSING: Final = 1000
PAGE: Final = 200

#: Seconds until a run is followed again after an error: at first, and at most.
_AGAIN: Final = 1.0
_AGAIN_AT_MOST: Final = 30.0

#: How much streamed text of a call is kept, in characters.
_MOST_TEXT: Final = 256 * 1024

#: Who sees the same frames of a run: developers (None), or a user with the same addresses, who
#: takes part in it or does not.
AudienceKey: TypeAlias = tuple[str, tuple[str, ...], bool] | None


@dataclass(slots=True)
class _Call:
    """A call under way, and what is streamed of it."""

    turn: int
    #: The agent, if it is a model call.
    agent: str = ""
    #: The text of the reply so far, and how much of it has been sent.
    text: TextDelta | None = None
    sent: int = 0
    #: What is to be sent: the last progress of a tool, or that a model is asked again.
    note: ToolProgress | ModelRetry | None = None

    def add(self, delta: Delta) -> None:
        """Add a piece; text that does not continue the one before begins it again."""
        known = self.text
        if not isinstance(delta, TextDelta):
            self.note = delta
        elif (
            known is not None
            and delta.offset == known.offset + len(known.text)
            and len(known.text) < _MOST_TEXT
        ):
            self.text = replace(known, text=known.text + delta.text)
        else:
            self.text, self.sent = delta, 0

    def piece(self, begin: int, end: int | None = None) -> Frame | None:
        """Return a part of the text as a frame; None if there is none."""
        if self.text is None or not (text := self.text.text[begin:end]):
            return None
        return delta_frame(
            replace(self.text, offset=self.text.offset + begin, text=text), self.turn
        )


class Feed:
    """Follows a run, and fills its rings."""

    def __init__(self, host: Host, workflow: Workflow, row: RunRow) -> None:
        self.rings: dict[AudienceKey, Ring] = {}
        self.seq = row.seq
        #: Whether no events follow: the run has ended, or was deleted.
        self.is_over = row.status == "ended"
        self._host = host
        self._run = row.run
        self._user = row.user
        self._scope = Scope.operator(row.app)
        self._workflow = workflow
        self._calls: dict[int, _Call] = {}
        self._flushed_at = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._task = None if self.is_over else asyncio.create_task(self._follow())

    def add(self, caller: Principal, outlet: Outlet, after: int) -> Viewer:
        """Add a viewer, which gets everything after an event."""
        takes_part = caller.takes_part(self._user)
        key = None if caller.sees_all else (caller.user, caller.person.addresses, takes_part)
        ring = self.rings.get(key)
        if ring is None:
            audience = key and Audience(
                self._workflow.spec, caller.user, caller.person.addresses, takes_part=takes_part
            )
            ring = self.rings[key] = Ring(self._run, audience, self.seq)
        viewer = Viewer(ring, outlet, after)
        viewer.catch_up = _CatchUp(self, is_resumed=after > 0)
        ring.viewers.add(viewer)
        outlet.wake(viewer)
        return viewer

    def remove(self, viewer: Viewer) -> None:
        """Remove a viewer; its ring is kept for a while."""
        viewer.outlet.forget(viewer)
        viewer.ring.viewers.discard(viewer)
        viewer.ring.left_at = asyncio.get_running_loop().time()

    def drop_rings(self, before: float) -> bool:
        """Drop the rings that were left before a time; tell whether there are others."""
        for user, ring in list(self.rings.items()):
            if not ring.viewers and ring.left_at < before:
                del self.rings[user]
        return bool(self.rings)

    def is_finished(self, viewer: Viewer) -> bool:
        """Tell whether a viewer has everything of a run that has ended."""
        return self.is_over and viewer.catch_up is None and viewer.seq >= self.seq

    def close(self) -> None:
        """Follow the run no more."""
        if self._task is not None:
            self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()

    async def read(self, ring: Ring, after: int) -> tuple[list[Frame], int]:
        """Return a page of frames from the journal, and the number of its last event."""
        found = self._host.events(self._run, scope=self._scope, after=after, limit=PAGE)
        frames: list[Frame] = []
        async for event in found:
            if isinstance(event, Event):
                after = event.seq
                frame = event_frame(event, self._run, self._workflow, ring.audience)
                frames += [] if frame is None else [frame]
        return frames, after

    def streamed(self, ring: Ring) -> list[Frame]:
        """Return the text of the calls under way, as far as it was sent to others."""
        shown = [call for call in self._calls.values() if self._shows(ring, call.agent)]
        return [frame for call in shown if (frame := call.piece(0, call.sent)) is not None]

    # -- following

    async def _follow(self) -> None:
        pause, said = _AGAIN, ""
        while True:
            try:
                items = self._host.events(self._run, scope=self._scope, after=self.seq, follow=True)
                async for item in items:
                    if isinstance(item, Event):
                        self._publish(item)
                        pause = _AGAIN
                    else:
                        await self._add_delta(item)
            except AccessDenied:  # It was deleted.
                break
            except Exception as error:  # noqa: BLE001 - its viewers wait for the next attempt
                if str(error) != said:
                    trace = None if isinstance(error, WeftError) else error
                    _log.warning("run %s cannot be followed: %s", self._run, error, exc_info=trace)
                said = str(error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, _AGAIN_AT_MOST)
            else:
                break
        self._end()

    def _publish(self, event: Event) -> None:
        self.seq = event.seq
        match event.data:
            case ContextAssembled(agent=agent):
                self._calls[event.seq] = _Call(event.turn, agent)
            case ToolCalled():
                self._calls[event.seq] = _Call(event.turn)
            case ModelReplied() | ModelFailed() | ToolReturned() | ToolFailed():
                self._drop_call(event.cause)
            case _:
                pass
        for ring in self.rings.values():
            ring.publish(event.seq, event_frame(event, self._run, self._workflow, ring.audience))
        if isinstance(event.data, RunEnded):
            self._end()

    def _end(self) -> None:
        """Note that no events follow; streams end, also those that have everything already."""
        self.is_over = True
        for ring in self.rings.values():
            for viewer in ring.viewers:
                viewer.outlet.nudge()

    # -- what is not stored

    async def _add_delta(self, delta: Delta) -> None:
        if delta.call not in self._calls:  # It began before this feed did.
            self._calls[delta.call] = await self._read_call(delta.call)
        self._calls[delta.call].add(delta)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait = self._flushed_at + MERGE - loop.time()
            self._timer = loop.call_later(max(wait, 0), self._flush)

    async def _read_call(self, call: int) -> _Call:
        found = self._host.events(self._run, scope=self._scope, after=call - 1, limit=1)
        async for event in found:
            if isinstance(event, Event):
                data = event.data
                agent = data.agent if isinstance(data, ContextAssembled) else ""
                return _Call(event.turn, agent)
        return _Call(0)

    def _flush(self) -> None:
        """Send everything that came since the last time."""
        self._timer = None
        self._flushed_at = asyncio.get_running_loop().time()
        for number, call in self._calls.items():
            if call.note is not None:
                frame, call.note = delta_frame(call.note, call.turn), None
                for ring in self.rings.values():
                    if ring.audience is None:
                        ring.publish_delta(number, frame)
            if call.text is not None and (frame := call.piece(call.sent)) is not None:
                call.sent = len(call.text.text)
                for ring in self.rings.values():
                    if self._shows(ring, call.agent):
                        ring.publish_delta(number, frame)

    def _shows(self, ring: Ring, agent: str) -> bool:
        """Tell whether an audience sees what an agent says while it is streamed.

        Text with a declared structure is not streamed to users: it has fields that are not theirs.
        """
        audience = ring.audience
        if audience is None:
            return True
        view = self._workflow.views.get(agent)
        return view is not None and view.output is None and audience.sees_while_streaming(agent)

    def _drop_call(self, call: int) -> None:
        """Drop what is streamed of a call: its result has come."""
        known = self._calls.pop(call, None)
        if known is not None and (known.text or known.note):
            for ring in self.rings.values():
                ring.drop_deltas(call)


class _CatchUp:
    """Brings a viewer what it missed, page by page, until it is at its ring."""

    def __init__(self, feed: Feed, *, is_resumed: bool) -> None:
        self._feed = feed
        self._is_resumed = is_resumed

    async def __call__(self, viewer: Viewer) -> list[Frame]:
        """Return the next frames of a viewer."""
        feed, ring = self._feed, viewer.ring
        frames: list[Frame] = []
        if feed.seq - viewer.seq > MOST_MISSING:
            frames.append(snapshot_needed(ring.run, feed.seq))
            viewer.seq = feed.seq
        elif viewer.seq < ring.start:
            frames, viewer.seq = await feed.read(ring, viewer.seq)
            if viewer.seq < ring.start:
                viewer.outlet.wake(viewer)
                return frames
        viewer.catch_up = None
        frames += viewer.take()
        if self._is_resumed:
            frames.append(control_frame("boundary", run=ring.run, seq=viewer.seq))
        frames.append(control_frame("caught_up", viewer.seq, run=ring.run, seq=viewer.seq))
        return frames + feed.streamed(ring)
