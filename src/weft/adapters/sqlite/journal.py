"""A journal in one SQLite file: one thread writes, with one transaction for all who wait.

Several processes may share a file: whether a run still stands where a writer believes it does is
decided inside the transaction that writes. Space that pruning frees is used again by later events;
the file does not shrink.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from weft.adapters.sqlite.prune import prune_some, would_prune
from weft.adapters.sqlite.queries import (
    find_expired,
    find_next_expiry,
    find_package,
    find_requests,
    find_run,
    find_runs,
    find_unfinished,
    read_events,
)
from weft.adapters.sqlite.readers import Readers
from weft.adapters.sqlite.writer import Writer
from weft.engine.events import Event
from weft.engine.rows import Batch, RequestRow, RunRow
from weft.errors import StoreError
from weft.ports.journal import Durability, Pruned
from weft.ports.scope import Scope

T = TypeVar("T")


class SqliteJournal:
    """The journal port over a file. Belongs to the event loop it was opened in."""

    def __init__(self, path: Path, writer: Writer, readers: Readers) -> None:
        self._path = path
        self._writer = writer
        self._readers = readers
        self._closing: asyncio.Task[None] | None = None

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
        """Return the events of a run after a number, in order; none if there is no such run."""
        return await self._ask(partial(read_events, scope=scope, run=run, after=after, limit=limit))

    async def run(self, scope: Scope, run: str) -> RunRow | None:
        """Return what is known about a run without folding it."""
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
        """Return runs, newest first; `before` continues after the last run of a page."""
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
        """Return the open questions, oldest first."""
        return await self._ask(partial(find_requests, scope=scope, run=run))

    async def unfinished(self) -> list[RunRow]:
        """Return the runs that had something to do when they were last written, of all tenants."""
        return await self._ask(find_unfinished)

    async def next_expiry(self) -> int | None:
        """Return when the next open question expires, of all tenants."""
        return await self._ask(find_next_expiry)

    async def expired(self, now: int) -> list[RequestRow]:
        """Return the open questions whose time is over, of all tenants."""
        return await self._ask(partial(find_expired, now=now))

    async def package(self, digest: str) -> bytes | None:
        """Return the package that runs were started with; it is kept while a run needs it."""
        return await self._ask(partial(find_package, digest=digest))

    async def prune(self, scope: Scope, *, ended_before: int, dry_run: bool) -> Pruned:
        """Remove the runs that ended before a time, with all that belongs to them alone."""
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
        """Write what is under way, then let go of everything."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._let_go())
        # Whoever does not want to wait may go; closing goes on.
        await asyncio.shield(self._closing)

    async def _ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
        self._refuse_if_closed()
        return await self._readers.ask(query)

    async def _let_go(self) -> None:
        # The writer last: the last connection to a file tidies it up.
        try:
            await self._readers.close()
        finally:
            await self._writer.close()

    def _refuse_if_closed(self) -> None:
        if self._closing is not None:
            raise StoreError(f"journal {self._path} is closed; open it again")
