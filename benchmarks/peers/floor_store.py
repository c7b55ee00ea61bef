"""The least that keeps a run safe: one SQLite table, one writer thread, one commit for all waiting.

Full durability: a row counts as written when the disk has it (WAL, `synchronous=FULL`).
"""

import asyncio
import queue
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

#: run, number within the run, kind, JSON
Row = tuple[str, int, str, str]
#: Returns when the rows are safe.
Keep = Callable[[Sequence[Row]], Awaitable[None]]
Waiting = tuple[Sequence[Row], asyncio.Future[None]]

SCHEMA = """
CREATE TABLE events (
  run TEXT NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL,
  PRIMARY KEY (run, seq)
) WITHOUT ROWID
"""


@asynccontextmanager
async def keep_nothing() -> AsyncIterator[Keep]:
    """Offer the floor of runs that live in memory: what happened is written nowhere."""

    async def keep(_: Sequence[Row]) -> None:
        return

    yield keep


@asynccontextmanager
async def open_store() -> AsyncIterator[Keep]:
    """Open a database in a folder of its own; it goes when the context ends."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "floor.db"
        waiting: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        loop = asyncio.get_running_loop()

        async def keep(rows: Sequence[Row]) -> None:
            safe = loop.create_future()
            waiting.put((rows, safe))
            await safe

        writer = asyncio.create_task(asyncio.to_thread(_write, path, waiting, loop))
        try:
            yield keep
        finally:
            waiting.put(None)
            await writer


def _write(
    path: Path, waiting: queue.SimpleQueue[Waiting | None], loop: asyncio.AbstractEventLoop
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.execute(SCHEMA)
        ending = False
        while not ending:
            taken = [waiting.get()]
            while not waiting.empty():
                taken.append(waiting.get())
            ending = None in taken
            group = [one for one in taken if one is not None]
            trouble = _commit(database, [row for rows, _ in group for row in rows])
            loop.call_soon_threadsafe(_release, [safe for _, safe in group], trouble)


def _commit(database: sqlite3.Connection, rows: list[Row]) -> sqlite3.Error | None:
    """Write all rows or none; what went wrong is for those who wait for the rows."""
    try:
        with database:
            database.execute("BEGIN")
            database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
    except sqlite3.Error as trouble:
        return trouble
    return None


def _release(group: list[asyncio.Future[None]], trouble: sqlite3.Error | None) -> None:
    for safe in group:
        if safe.done():
            continue
        if trouble is None:
            safe.set_result(None)
        else:
            safe.set_exception(trouble)
