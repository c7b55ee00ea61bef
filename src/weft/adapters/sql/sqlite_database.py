"""A SQLite database, in one file or in memory: opening it, its threads, and its errors.

One thread writes, others read; in memory one thread does both. Several processes may share a file:
what they may write is decided inside the transaction that writes.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from itertools import chain
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from weft.adapters.sql.statements import Call, Row, Rows, Statement, Transaction, expand
from weft.adapters.sql.store import ReadFrozen
from weft.adapters.sql.tables import Migrations
from weft.adapters.sql.threads import Readers, Then, WorkerThread
from weft.adapters.sqlite_file import (
    IN_MEMORY,
    FileFormat,
    UnusableFile,
    explain,
    open_file,
    open_reader,
)
from weft.adapters.system_clock import SystemClock
from weft.errors import StoreError
from weft.ports.clock import Clock
from weft.ports.store import Durability

T = TypeVar("T")
P = ParamSpec("P")

_PARTS: Final = {
    "join": "CROSS JOIN",
    "lock": "",
    "skip": "",
    "share": "",
    "alone": "SELECT '{}'",
    "part": "",
    "top": "",
    "unread": "(SELECT count(*) FROM mail m WHERE m.app = w.app AND m.run = w.run)",
    "bytes": "blob",
    "serial": "integer PRIMARY KEY",
    "growing": "integer PRIMARY KEY AUTOINCREMENT",
    "ordered": "WITHOUT ROWID",
    "by": "INDEXED BY {}",
    "size": "length(CAST({} AS blob))",
    # One collection per file, whose words a trigger indexes.
    "of_collection": "true",
    "matches": "w.words MATCH {}",
    "rank": "-w.rank",
    "words_column": "",
    "words_name": "",
    "words_value": "",
}

#: Rows go into a statement in pieces of few different lengths, so that few statements arise. Many
#: rows in one statement are one step for SQLite: the writing thread gives up and regains the
#: interpreter once, and not once for each row.
_PIECES: Final = (128, 64, 32, 16)

#: What is to blame is a value, and not the file.
_UNFIT: Final = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)

#: How often it is looked whether another process has written, while somebody waits for it.
LOOK_SECONDS: Final = 0.05
#: What is in the log can be read only when it is on the disk as well, so it is asked for a while:
#: ever more seldom, the last time after so many looks at the log.
_LAST_LOOK: Final = 31


class SqliteDatabase:
    """Runs transactions in a SQLite database. Belongs to the event loop that it is used in."""

    def __init__(
        self,
        name: str,
        connection: sqlite3.Connection,
        *,
        thread: WorkerThread,
        readers: Readers,
        path: str,
        clock: Clock,
        durability: Durability,
    ) -> None:
        #: What the database is called in messages.
        self.name = name
        #: Whether other processes may write to it.
        self.is_shared = path != IN_MEMORY
        self._path = path
        self._connection = connection
        self._thread = thread
        self._readers = readers
        self._clock = clock
        self._is_full = durability == "full"
        self._watching: asyncio.Task[None] | None = None
        #: What `_data_version` returned last: writes of others from the first look on are noticed.
        self._version: int | None = None

    @classmethod
    async def open(
        cls,
        what: str,
        path: Path | str,
        format_: FileFormat,
        *,
        busy_seconds: float,
        clock: Clock | None = None,
        durability: Durability = "full",
    ) -> "SqliteDatabase":
        """Open a file, or create it; `busy_seconds` is how long to wait for another process.

        ":memory:" is gone when it is closed. Raises StoreError if the file cannot be used.
        """
        name = f"{what} {path}"
        thread = WorkerThread(f"weft-{what}-writer")
        opened: list[sqlite3.Connection] = []

        def open_() -> None:
            opened.append(
                open_file(str(path), format_, busy_seconds=busy_seconds, durability=durability)
            )

        try:
            await thread.ask(open_)
        except BaseException as error:
            # Opening cannot be cancelled: a connection that is opened after all is closed again.
            thread.end(lambda: [connection.close() for connection in opened])
            if isinstance(error, UnusableFile):
                raise _store_error(error, name) from error
            raise
        return cls(
            name,
            opened[0],
            thread=thread,
            readers=Readers(partial(open_reader, str(path), format_, busy_seconds)),
            path=str(path),
            clock=clock or SystemClock(),
            durability=durability,
        )

    def do(self, transaction: Transaction[T], then: Then[T]) -> None:
        """Run a transaction that writes, then call a function with its result or its error."""
        self._thread.do(partial(self._run, transaction, durable=True), then)

    async def write(self, transaction: Transaction[T], *, durable: bool = True) -> T:
        """Run a transaction that writes; one that is not durable does not wait for the disk.

        Raises StoreError, or ValueError if a value cannot be stored.
        """
        return await self._thread.ask(partial(self._run, transaction, durable=durable))

    async def read(self, transaction: Transaction[T]) -> T:
        """Run a transaction that reads, at one moment. Raises StoreError."""
        work = partial(_read, transaction, self._clock.now())
        try:
            if not self.is_shared:  # There is one connection.
                return await self._thread.ask(partial(work, self._connection))
            return await self._readers.ask(work)
        except (sqlite3.Error, UnusableFile) as error:
            raise self._error(error) from error

    def _run(self, transaction: Transaction[T], *, durable: bool) -> T:
        """Run a transaction that writes, on the thread that writes."""
        connection = self._connection
        is_relaxed = self._is_full and not durable
        try:
            if is_relaxed:  # Without waiting for the disk.
                connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = drive(connection, transaction, self._clock.now())
                connection.execute("COMMIT")
            except BaseException:
                # Some failures, such as a full disk, have ended the transaction already.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            finally:
                if is_relaxed:
                    connection.execute("PRAGMA synchronous = FULL")
        except _UNFIT as error:
            raise ValueError(str(error)) from error
        except sqlite3.Error as error:
            raise self._error(error) from error
        return result

    def _error(self, error: sqlite3.Error | UnusableFile) -> StoreError:
        found = explain(error, self._path) if isinstance(error, sqlite3.Error) else error
        return _store_error(found, self.name)

    # -- for operators

    @asynccontextmanager
    async def frozen(self) -> AsyncGenerator[ReadFrozen]:
        """Yield what runs transactions that read, all at the same moment."""
        connection = await self._on_thread(self._open_frozen)

        async def read(transaction: Transaction[T]) -> T:
            return await self._on_thread(drive, connection, transaction, self._clock.now())

        try:
            yield read
        finally:
            connection.close()

    def _open_frozen(self) -> sqlite3.Connection:
        connection = self._readers.open_connection()
        connection.execute("BEGIN")
        return connection

    async def _on_thread(self, work: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Do work on a thread of its own."""
        try:
            return await asyncio.to_thread(work, *args, **options)
        except (sqlite3.Error, UnusableFile) as error:
            raise self._error(error) from error

    # -- other processes

    def watch(
        self, is_needed: Callable[[], bool], on_change: Callable[[], Awaitable[None]]
    ) -> None:
        """Call a function whenever another process has written, until it is unsubscribed.

        It is called once at first, for what was written before the first look. It is also called
        if that cannot be found out: what it reads then fails as well.
        """
        if self.is_shared and self._watching is None:
            self._watching = asyncio.create_task(self._watch_others(is_needed, on_change))

    async def _watch_others(
        self, is_needed: Callable[[], bool], on_change: Callable[[], Awaitable[None]]
    ) -> None:
        """Look for writes of others.

        The log of the file shows that something was written, and SQLite whether it was by others:
        while nothing is written, nothing is asked.
        """
        log = Path(f"{self._path}-wal")
        stamp: tuple[int, int] | None = None
        looks = 0
        try:
            while is_needed():
                now = _log_stamp(log)
                if now != stamp:
                    stamp, looks = now, 0
                # After 0, 1, 3, 7, 15 and 31 looks.
                if looks <= _LAST_LOOK and not looks & (looks + 1):
                    found = await self._thread.ask(self._data_version)
                    if found != self._version:
                        self._version = found
                        await on_change()
                looks += 1
                await asyncio.sleep(LOOK_SECONDS)
        except StoreError:
            await on_change()
        finally:
            self._watching = None

    def _data_version(self) -> int:
        """Return a number that changes when another connection than the writer's has written."""
        try:
            return self._connection.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as error:
            raise self._error(error) from error

    async def close(self) -> None:
        """Close the connections, after everything that is under way."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        # The writer last: the last connection to a file tidies it up.
        try:
            await self._readers.close()
        finally:
            await self._thread.ask(self._connection.close)
            self._thread.end()
            self._thread.wait()


def file_format(
    application_id: int, version: int, tables: Sequence[str], migrations: Migrations = ()
) -> FileFormat:
    """Return the format of a file with these tables, which are written for any database."""
    steps = [tuple(expand(sql, _PARTS) for sql in step) for step in (tables, *migrations)]
    return FileFormat(application_id, version, steps[0], tuple(steps[1:]))


def drive(connection: sqlite3.Connection, transaction: Transaction[T], now: int) -> T:
    """Run the statements of a transaction; return its result."""
    try:
        call = next(transaction)
        while True:
            if isinstance(call, list):
                for write in call:
                    execute(connection, write, now)
                call = transaction.send([])
            else:
                call = transaction.send(execute(connection, call, now))
    except StopIteration as stop:
        return stop.value


def execute(connection: sqlite3.Connection, call: Call, now: int) -> Rows:
    """Run one statement; return its rows."""
    statement, rows, values = call
    if statement.has_now:
        values = (*values, now)
    if len(rows) < _PIECES[-1]:
        text = statement_text(statement, len(rows))
        return connection.execute(text, (*values, *chain.from_iterable(rows))).fetchall()
    found: Rows = []
    for piece in [rows] if statement.is_whole else _pieces(rows):
        text = statement_text(statement, len(piece))
        found += connection.execute(text, (*values, *chain.from_iterable(piece))).fetchall()
    return found


@cache
def statement_text(statement: Statement, count: int) -> str:
    """Return the text of a statement for SQLite, with so many rows in its row set."""
    number = statement.values + statement.has_now
    columns = statement.columns
    rows: list[str] = []
    for _ in range(count):
        rows.append(f"({','.join(f'?{number + place}' for place in range(1, len(columns) + 1))})")
        number += len(columns)
    values = f"VALUES {','.join(rows)}"
    names = ", ".join(columns)
    first = statement.values + statement.has_now + 1
    one = " AND ".join(f"{column} = ?{first + place}" for place, column in enumerate(columns))
    many = f"({names}) IN (WITH x ({names}) AS ({values}) SELECT {names} FROM x)"  # noqa: S608
    parts = {
        **_PARTS,
        "now": f"?{statement.values + 1}",
        "rows": values,
        "x": f"WITH x ({names}) AS ({values})",
        "keys": one if count == 1 else many,
    }
    return expand(statement.sql, parts).replace("$", "?")


def _pieces(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Cut many rows into pieces of few different lengths."""
    start = 0
    for length in _PIECES:
        while length <= len(rows) - start:
            yield rows[start : start + length]
            start += length
    if start < len(rows):
        yield rows[start:]


def _read(transaction: Transaction[T], now: int, connection: sqlite3.Connection) -> T:
    """Run a transaction that reads, at one moment."""
    connection.execute("BEGIN")
    try:
        return drive(connection, transaction, now)
    finally:
        connection.execute("COMMIT")


def _store_error(error: UnusableFile, name: str) -> StoreError:
    remedy = f"; {error.remedy}" if error.remedy else ""
    return StoreError(f"{name}: {error}{remedy}", retryable=error.retryable)


def _log_stamp(log: Path) -> tuple[int, int]:
    """Return when the log of a file was last written and how long it is."""
    try:
        found = log.stat()
    except OSError:  # It is gone when the last process has closed the file.
        return 0, 0
    return found.st_mtime_ns, found.st_size
