"""SQLite files of Weft: opened or created, private to their owner, explained when unusable."""

import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

#: Stands for a database that is gone when it is closed.
IN_MEMORY: Final = ":memory:"

_PAUSE_SECONDS: Final = 0.01

#: By primary result code: what is wrong, what to do, and whether trying again may help.
_PLAIN: Final = {
    sqlite3.SQLITE_BUSY: ("another process is writing to it", "try again", True),
    sqlite3.SQLITE_LOCKED: ("another process is writing to it", "try again", True),
    sqlite3.SQLITE_FULL: ("the disk is full", "make room, then try again", True),
    sqlite3.SQLITE_IOERR: ("the disk does not read or write as it should", "check the disk", True),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", "restore it from a copy", False),
    sqlite3.SQLITE_NOTADB: ("the file is not a database", "name another file", False),
    sqlite3.SQLITE_CANTOPEN: ("the file cannot be opened", "check its path and its rights", False),
    sqlite3.SQLITE_READONLY: ("the file may not be written", "check its rights", False),
}
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class UnusableFile(Exception):
    """A file cannot be used: the text says why, `remedy` what to do."""

    def __init__(
        self, reason: str, remedy: str, *, retryable: bool = False, damaged: bool = False
    ) -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.retryable = retryable
        self.damaged = damaged


@dataclass(frozen=True, slots=True)
class FileFormat:
    """The tables of a file, and the numbers that tell it from files of other programs."""

    application_id: int
    version: int
    tables: tuple[str, ...]


def explain(error: sqlite3.Error) -> UnusableFile:
    """Return an error of SQLite in plain words."""
    # Only errors that come from the database itself have a code; the low byte is the family.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    plain, remedy, retryable = _PLAIN.get(code, ("", "", False))
    reason = f"{plain} (SQLite says: {error})" if plain else f"SQLite says: {error}"
    return UnusableFile(reason, remedy, retryable=retryable, damaged=code in _DAMAGED)


def open_file(
    path: str,
    format_: FileFormat,
    *,
    busy_seconds: float,
    fill: Callable[[sqlite3.Connection], None] | None = None,
) -> sqlite3.Connection:
    """Open a file, or create it with its tables and let `fill` write the first rows.

    Raises UnusableFile; a file of another program is never written to.
    """
    if path != IN_MEMORY:
        _make_private(path)
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            return _open_prepared(path, format_, busy_seconds, fill)
        except sqlite3.Error as error:
            failure = explain(error)
            # SQLite does not wait where several open a new file or the last one closes it.
            if not failure.retryable or time.monotonic() >= deadline:
                raise failure from error
        time.sleep(_PAUSE_SECONDS)


def _open_prepared(
    path: str,
    format_: FileFormat,
    busy_seconds: float,
    fill: Callable[[sqlite3.Connection], None] | None,
) -> sqlite3.Connection:
    connection = connect(path, busy_seconds)
    try:
        _prepare(connection, format_, fill)
    except BaseException:
        connection.close()
        raise
    return connection


def connect(path: str, busy_seconds: float) -> sqlite3.Connection:
    # One thread at a time uses a connection, but it is not always the one that opened it.
    return sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Hold the write lock; everything done meanwhile is committed, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some failures, such as a full disk, have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _make_private(path: str) -> None:
    """Create a file for its owner only; the files that SQLite adds beside it are so as well.

    An existing file is not opened: closing it would drop the locks of this process on it.
    """
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise UnusableFile(
            f"the file cannot be written ({error.strerror})",
            "name a file in a folder that exists and that you may write to",
        ) from error


def _prepare(
    connection: sqlite3.Connection,
    format_: FileFormat,
    fill: Callable[[sqlite3.Connection], None] | None,
) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and _number(connection, "application_id") != format_.application_id:
        raise UnusableFile("the file is a database of another program", "name another file")
    if tables and _number(connection, "user_version") > format_.version:
        raise UnusableFile("the file was written by a newer Weft", "use that, or another file")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # Without it macOS says that data is on disk when it is only on its way there.
    connection.execute("PRAGMA fullfsync = ON")
    if _number(connection, "user_version") == format_.version:
        return
    with transaction(connection):
        # Checked again: another process may have been quicker.
        if _number(connection, "user_version") == format_.version:
            return
        for statement in format_.tables:
            connection.execute(statement)
        if fill is not None:
            fill(connection)
        connection.execute(f"PRAGMA application_id = {format_.application_id}")
        connection.execute(f"PRAGMA user_version = {format_.version}")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]
