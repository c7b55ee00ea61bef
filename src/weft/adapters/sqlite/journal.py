"""A journal in one SQLite file: one thread writes, with one transaction for all who wait.

Several processes may share a file: whether a run still stands where a writer believes it does is
decided inside the transaction that writes. Space that pruning frees is used again by later events;
the file does not shrink.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from weft.adapters.sqlite.board import (
    find_artifacts,
    find_consumed,
    find_letters,
    find_unread,
)
from weft.adapters.sqlite.prune import prune_some, would_prune
from weft.adapters.sqlite.queries import (
    claim_run,
    data_version,
    find_completed,
    find_due,
    find_kept,
    find_next_due,
    find_package,
    find_requests,
    find_run,
    find_runs,
    find_unfinished,
    note_beat,
    read_events,
)
from weft.adapters.sqlite.readers import Readers
from weft.adapters.sqlite.writer import Writer
from weft.engine.events import Event
from weft.engine.rows import Batch, DueRow, Letter, RequestRow, RunRow
from weft.errors import StoreError
from weft.findings import Json
from weft.ports.board import ArtifactPage, ArtifactQuery, Consumption
from weft.ports.journal import Durability, Pruned
from weft.ports.scope import Scope
from weft.runtime.runs.live_stream import Feed, follow

T = TypeVar("T")

#: How often a process looks whether another has written, while it follows a run.
LOOK_SECONDS: Final = 0.25

#: How many times it is asked who has written after the log has changed.
LOOKS_AFTER_CHANGE: Final = 20


class SqliteJournal:
    """The journal port over a file. Belongs to the event loop it was opened in."""

    def __init__(self, path: Path, writer: Writer, readers: Readers) -> None:
        self._path = path
        self._writer = writer
        self._readers = readers
        self._closing: asyncio.Task[None] | None = None
        self._feed = Feed()
        writer.on_written = self._written
        self._watching: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, path: Path, *, durability: Durability = "full", busy_seconds: float = 5.0
    ) -> "SqliteJournal":
        """Open a file, or make it; `busy_seconds` is how long to wait for another process.

        Raises StoreError if the file cannot be used.
        """
        writer = await Writer.open(path, durability, busy_seconds)
        return cls(path, writer, Readers(path, busy_seconds))

    async def append(self, batch: Batch) -> None:
        """Write a batch, whole or not at all.

        Whoever is cancelled while waiting here does not know whether the batch was written.
        """
        self._refuse_if_closed()
        await self._writer.append(batch)

    async def read(
        self, scope: Scope, run: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        return await self._ask(partial(read_events, scope=scope, run=run, after=after, limit=limit))

    async def follow(self, scope: Scope, run: str, *, after: int = 0) -> AsyncGenerator[Event]:
        row = await self.run(scope, run)
        if row is None or (row.status == "ended" and after >= row.seq):
            return
        if self._watching is None:
            self._watching = asyncio.create_task(self._watch_others())
        read = partial(self._read_after, scope, run)
        async for event in follow(self._feed, (scope.app, run), read, after):
            yield event

    async def run(self, scope: Scope, run: str) -> RunRow | None:
        return await self._ask(partial(find_run, scope=scope, run=run))

    async def runs(
        self,
        scope: Scope,
        *,
        status: str | None = None,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[RunRow]:
        return await self._ask(
            partial(
                find_runs,
                scope=scope,
                status=status,
                workflow=workflow,
                before=before,
                limit=limit,
            )
        )

    async def requests(self, scope: Scope, *, run: str | None = None) -> list[RequestRow]:
        return await self._ask(partial(find_requests, scope=scope, run=run))

    async def kept(self, scope: Scope, workflow: str) -> dict[str, Json]:
        return await self._ask(partial(find_kept, scope=scope, workflow=workflow))

    async def completed(self, scope: Scope, workflows: Sequence[str]) -> set[str]:
        return await self._ask(partial(find_completed, scope=scope, workflows=workflows))

    async def artifacts(self, query: ArtifactQuery, *, count: bool = False) -> ArtifactPage:
        return await self._ask(partial(find_artifacts, query=query, count=count))

    async def consumed(
        self, app: str, board: str, *, agent: str | None = None, artifact: str | None = None,
        limit: int = 100,
    ) -> list[Consumption]:  # fmt: skip
        return await self._ask(
            partial(
                find_consumed, app=app, board=board, agent=agent, artifact=artifact, limit=limit
            )
        )

    async def letters(self, app: str, to: str, *, limit: int = 100) -> list[Letter]:
        return await self._ask(partial(find_letters, app=app, to=to, limit=limit))

    async def unread(self) -> list[tuple[str, str]]:
        return await self._ask(find_unread)

    async def unfinished(self) -> list[RunRow]:
        return await self._ask(find_unfinished)

    async def next_due(self, after: int) -> int | None:
        return await self._ask(partial(find_next_due, after=after))

    async def due(self, now: int, *, after: DueRow | None = None, limit: int = 100) -> list[DueRow]:
        return await self._ask(partial(find_due, now=now, after=after, limit=limit))

    async def beat(self, owner: str, at: int) -> None:
        self._refuse_if_closed()
        await self._writer.perform(partial(note_beat, owner=owner, at=at))

    async def claim(self, app: str, run: str, *, owner: str, before: str) -> bool:
        self._refuse_if_closed()
        if not owner:  # What is under way would claim it again.
            await self._writer.idle()
        return await self._writer.perform(
            partial(claim_run, app=app, run=run, owner=owner, before=before)
        )

    async def package(self, app: str, digest: str) -> bytes | None:
        return await self._ask(partial(find_package, app=app, digest=digest))

    async def prune(self, scope: Scope, *, ended_before: int, dry_run: bool) -> Pruned:
        if dry_run:
            return await self._ask(partial(would_prune, scope=scope, ended_before=ended_before))
        total = Pruned(0, 0, 0)
        while True:
            self._refuse_if_closed()
            some = await self._writer.perform(
                partial(prune_some, scope=scope, ended_before=ended_before)
            )
            if not some.runs:
                return total
            total = Pruned(
                total.runs + some.runs, total.events + some.events, total.bytes + some.bytes
            )

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_all())
        # Whoever does not want to wait may go; closing goes on.
        await asyncio.shield(self._closing)

    async def _read_after(self, scope: Scope, run: str, after: int) -> list[Event]:
        return await self.read(scope, run, after=after)

    async def _watch_others(self) -> None:
        """Tell followers that another process has written, for as long as there are any.

        The log of the file shows that something was written, and SQLite whether it was by others:
        while nothing is written, nothing is asked. What is in the log can be read only when it is
        on the disk as well, so it is asked for a while.
        """
        log = self._path.with_name(f"{self._path.name}-wal")
        look: tuple[int, int] | None = None
        version: int | None = None
        questions = 0
        try:
            while self._feed:
                now = _look(log)
                if now != look:
                    look, questions = now, LOOKS_AFTER_CHANGE
                if questions:
                    questions -= 1
                    try:
                        others = await self._writer.perform(data_version)
                    except StoreError:  # Whoever follows reads, and is told if that fails as well.
                        others = None
                    if others is None or version != others:
                        self._feed.look_again()
                    version = others
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._watching = None

    def _written(self, batch: Batch) -> None:
        self._feed.tell((batch.row.app, batch.run), batch.events)

    async def _ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
        self._refuse_if_closed()
        return await self._readers.ask(query)

    async def _close_all(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        self._feed.look_again()
        # The writer last: the last connection to a file tidies it up.
        try:
            await self._readers.close()
        finally:
            await self._writer.close()

    def _refuse_if_closed(self) -> None:
        if self._closing is not None:
            raise StoreError(f"journal {self._path} is closed; open it again")


def _look(log: Path) -> tuple[int, int]:
    """Return when the log of a file was last written and how long it is."""
    try:
        found = log.stat()
    except OSError:  # It is gone when the last process has closed the file.
        return 0, 0
    return found.st_mtime_ns, found.st_size
