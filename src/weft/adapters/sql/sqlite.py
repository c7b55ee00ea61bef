"""The store in one SQLite file.

One thread writes, with one transaction for all that wait; others read.
"""

import asyncio
from collections.abc import Collection
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final, TypeVar, cast

from weft.adapters.sql import queries
from weft.adapters.sql.group import Then
from weft.adapters.sql.rows import to_events
from weft.adapters.sql.sqlite_database import SqliteDatabase, file_format
from weft.adapters.sql.statements import Row, Rows, Transaction, query
from weft.adapters.sql.store import ReadFrozen, SqlStore
from weft.adapters.sql.tables import SQLITE_MIGRATIONS, TABLES, VERSION
from weft.adapters.sql.write import Outcome
from weft.adapters.store_rules import DEAD_AFTER
from weft.adapters.system_clock import SystemClock
from weft.engine.events import Event
from weft.errors import StoreError
from weft.ports.clock import Clock
from weft.ports.store import Durability, RunKey

T = TypeVar("T")

#: How many new events are read at once before their runs are asked one by one.
_MOST_NEW: Final = 1000

_NEWEST: Final = "SELECT rowid, app, run, seq FROM events ORDER BY rowid DESC LIMIT 1"
_EVENTS_FROM: Final = f"""
    SELECT e.rowid, e.app, e.run, e.seq, e.at, e.actor, e.cause, e.turn, e.kind,
    {queries.EVENT_DATA} FROM events e WHERE e.rowid >= $1 ORDER BY e.rowid LIMIT $2
"""  # noqa: S608 - our own words

#: The number is "WFST".
FORMAT: Final = file_format(0x57465354, VERSION, TABLES, SQLITE_MIGRATIONS)


class SqliteStore(SqlStore):
    """The store port over a file."""

    def __init__(self, database: SqliteDatabase, clock: Clock, dead_after: int) -> None:
        super().__init__(clock, dead_after)
        self.name = database.name
        self._database = database
        self._waiters: set[asyncio.Future[bool]] = set()
        #: The row of the newest event that followers have.
        self._last: Row | None = None

    @classmethod
    async def open(
        cls,
        path: Path | str,
        *,
        clock: Clock | None = None,
        durability: Durability = "full",
        busy_seconds: float = 5.0,
        dead_after: int = DEAD_AFTER,
    ) -> "SqliteStore":
        """Open a file, or create it; `busy_seconds` is how long to wait for another process.

        Raises StoreError if the file cannot be used.
        """
        clock = clock or SystemClock()
        database = await SqliteDatabase.open(
            "store", path, FORMAT, busy_seconds=busy_seconds, clock=clock, durability=durability
        )
        return cls(database, clock, dead_after)

    # -- transactions

    def _perform(self, transaction: Transaction[list[Outcome]], then: Then) -> None:
        self._database.do(transaction, then)

    async def _write(self, transaction: Transaction[T]) -> T:
        return await self._database.write(transaction)

    async def _queue(self, transaction: Transaction[T]) -> T:
        return await self._database.write(transaction, durable=False)

    async def _read(self, transaction: Transaction[T], app: str) -> T:  # noqa: ARG002 - one file
        return await self._database.read(transaction)

    # -- for operators

    def frozen(self) -> AbstractAsyncContextManager[ReadFrozen]:
        return self._database.frozen()

    async def find_damage(self) -> list[str]:
        async with self.frozen() as read:
            rows = await read(_quick_check())
        return [f"the file is damaged (SQLite says: {said})" for (said,) in rows if said != "ok"]

    # -- other processes

    async def wait(self, seconds: float) -> bool:
        self._refuse_if_closed()
        changed = asyncio.get_running_loop().create_future()
        self._waiters.add(changed)
        self._watch()
        try:
            # Not wait_for: in Python 3.11 it may miss that the caller is cancelled.
            async with asyncio.timeout(seconds):
                return await changed
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(changed)

    def _watch(self) -> None:
        self._database.watch(lambda: bool(self._waiters or self._followers), self._wake_all)

    async def _wake_all(self) -> None:
        self._wake_waiters()
        if runs := list(self._followers):
            try:
                last, events = await self._read(_read_new(self._last, set(runs)), "")
                self._last = last
                if events is None:
                    self._followers.catch_up(await self._read(queries.find_seqs(runs), ""))
                else:
                    for event_run, found in events.items():
                        self._followers.add(event_run, found)
            except StoreError:  # Followers read, and get the error if that fails as well.
                self._followers.read_again()

    def _wake_waiters(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(True)

    async def _close(self) -> None:
        self._wake_waiters()
        await self._database.close()


def _read_new(
    last: Row | None, runs: Collection[RunKey]
) -> Transaction[tuple[Row | None, dict[RunKey, list[Event]] | None]]:
    """Return the row of the newest event, and the events of some runs after the last row.

    The events are None if that row is gone, since pruned rows give their numbers to others, or if
    there are too many.
    """
    rows: Rows = []
    if last is not None:
        rows = yield query(_EVENTS_FROM, [last[0], _MOST_NEW])
    if not rows or rows[0][:4] != last or len(rows) == _MOST_NEW:
        newest = yield query(_NEWEST)
        return next(iter(newest), None), None
    found: dict[RunKey, list[Row]] = {}
    for row in rows[1:]:
        if row[1:3] in runs:
            found.setdefault(cast("RunKey", row[1:3]), []).append(row[3:])
    return rows[-1][:4], {run: to_events(run[1], some) for run, some in found.items()}


def _quick_check() -> Transaction[Rows]:
    rows = yield query("PRAGMA quick_check(10)")
    return rows
