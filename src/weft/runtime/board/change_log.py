"""The change log of boards: artifacts in the order in which they appear to readers.

An artifact appears when it is published, or when its delay is over. The log is an index of the
artifacts themselves. While nothing changes, all followers of a board together make one query a
second.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

from weft.engine.board.visibility import Identity
from weft.errors import StoreError
from weft.ports.board import ArtifactQuery, Place, StoredArtifact
from weft.ports.store import Store
from weft.runtime.runs.ownership import StoreClock

_log: Final = logging.getLogger("weft.runtime")

#: Milliseconds until a change is in the log. Writes take less time, so that no change is added
#: before one that was read.
SETTLED_AFTER: Final = 1_000

#: Seconds between two queries for the changes of a board that has followers.
LOOK_EVERY: Final = 1.0

#: How many changes are read at once.
_PAGE: Final = 200

#: The record of a tenant with the time up to which ended runs were removed.
PRUNED: Final = ("pruned", "runs")


class BoardView(NamedTuple):
    """A board as a reader may see it."""

    app: str
    board: str
    #: As in `ArtifactQuery`.
    reader: Identity | None
    owners: tuple[str, ...] | None


class ChangePage(NamedTuple):
    """Artifacts that have appeared, in order."""

    items: list[StoredArtifact]
    #: Where the next page begins.
    after: Place
    has_more: bool
    #: Whether runs were removed after the requested place, so that changes may be missing.
    gap: bool


class _Watch:
    """Queries the changes of a board while it has followers."""

    def __init__(self) -> None:
        self.followers = 0
        #: Set with the next change.
        self.changed = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Let all followers read."""
        self.changed.set()
        self.changed = asyncio.Event()


class BoardLog:
    """The change logs of all boards of a store."""

    def __init__(self, store: Store, clock: StoreClock) -> None:
        self._store = store
        self._clock = clock
        self._watches: dict[tuple[str, str], _Watch] = {}

    def end(self) -> Place:
        """Return the place up to which all changes are in the log now."""
        return self._clock.now() - SETTLED_AFTER, "", 0

    async def page(self, view: BoardView, after: Place | None, limit: int = _PAGE) -> ChangePage:
        """Return the changes after a place, from the oldest one on without a place."""
        gap = after is not None and after[0] < await self._pruned_before(view.app)
        return await self._read(view, after, limit, gap=gap)

    async def follow(self, view: BoardView, after: Place | None) -> AsyncGenerator[ChangePage]:
        """Yield the changes after a place as they appear, without end."""
        with self._watching(view.app, view.board) as watch:
            changed = watch.changed
            page = await self.page(view, after)
            while True:
                if page.items or page.gap:
                    yield page
                if not page.has_more:
                    await changed.wait()
                    changed = watch.changed
                page = await self._read(view, page.after, _PAGE)

    async def _read(
        self, view: BoardView, after: Place | None, limit: int, *, gap: bool = False
    ) -> ChangePage:
        end = self.end()
        app, board, reader, owners = view
        query = ArtifactQuery(
            app,
            board,
            reader,
            end[0] - 1,
            owners,
            order="appeared_at",
            limit=limit + 1,
            after=after,
        )
        found = (await self._store.artifacts(query)).items
        items = found[:limit]
        if len(found) > limit:
            last = items[-1]
            return ChangePage(items, (last.appeared_at, last.run, last.seq), has_more=True, gap=gap)
        return ChangePage(items, max(after or end, end), has_more=False, gap=gap)

    async def _pruned_before(self, app: str) -> int:
        record = await self._store.record(app, *PRUNED)
        before = 0 if record is None else record.value["before"]
        return before if isinstance(before, int) else 0

    @contextmanager
    def _watching(self, app: str, board: str) -> Generator[_Watch]:
        """Watch a board inside the block."""
        watch = self._watches.setdefault((app, board), _Watch())
        watch.followers += 1
        if watch.task is None:
            everything = BoardView(app, board, None, None)
            watch.task = asyncio.create_task(self._look(watch, everything))
        try:
            yield watch
        finally:
            watch.followers -= 1
            if not watch.followers:
                watch.task.cancel()
                del self._watches[app, board]

    async def _look(self, watch: _Watch, everything: BoardView) -> None:
        after = self.end()
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                page = await self._read(everything, after, 1)
            except StoreError as error:
                _log.warning("the board %s cannot be read: %s", everything.board, error)
                continue
            if page.items:
                after = self.end()
                watch.wake()
            else:
                after = page.after


async def note_pruned(store: Store, app: str, before: int) -> None:
    """Record that runs which ended before a time were removed."""
    known = await store.record(app, *PRUNED)
    if known is None or known.value["before"] < before:  # pyright: ignore[reportOperatorIssue]
        await store.put_record(app, *PRUNED, {"before": before})
