"""The file of a SQLite store of documents: its tables, and what is said when it cannot be used."""

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from weft.errors import StoreError

#: What stands for a store that is gone when it is closed.
IN_MEMORY: Final = ":memory:"

#: Marks a file as ours ("WFDC"), so that no other program's database is ever written to.
APPLICATION_ID: Final = 0x57464443
VERSION: Final = 1

_PAUSE_SECONDS: Final = 0.01

#: A document gets a new number whenever it is written, so the last one written has the highest; an
#: index without it has it all the same, as its last column. The tenant is part of every key.
#: `forgotten` has the number of the last change of a collection that is no longer kept.
_TABLES: Final = (
    """
    CREATE TABLE documents (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, app TEXT NOT NULL, database TEXT NOT NULL,
        collection TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL,
        UNIQUE (app, database, collection, key)
    )
    """,
    "CREATE INDEX documents_by_age ON documents (app, database, collection)",
    """
    CREATE TABLE changes (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, app TEXT NOT NULL, database TEXT NOT NULL,
        collection TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL
    )
    """,
    "CREATE INDEX changes_by_collection ON changes (app, database, collection)",
    """
    CREATE TABLE forgotten (
        app TEXT NOT NULL, database TEXT NOT NULL, collection TEXT NOT NULL, seq INTEGER NOT NULL,
        PRIMARY KEY (app, database, collection)
    ) WITHOUT ROWID
    """,
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)

#: By primary result code: what is the matter and what to do, and whether trying again may help.
_PLAIN: Final = {
    sqlite3.SQLITE_BUSY: ("another process is writing to it and does not let go; try again", True),
    sqlite3.SQLITE_LOCKED: ("it is being changed by somebody else; try again", True),
    sqlite3.SQLITE_FULL: ("the disk is full; make room, then try again", True),
    sqlite3.SQLITE_IOERR: ("the disk does not read or write as it should; check the disk", True),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged; restore it from a copy", False),
    sqlite3.SQLITE_NOTADB: ("the file is not a database; name another", False),
    sqlite3.SQLITE_CANTOPEN: ("the file cannot be opened; check the path and its rights", False),
    sqlite3.SQLITE_READONLY: ("the file may not be written; check its rights", False),
}


def store_error(error: sqlite3.Error, path: str) -> StoreError:
    """Say what is wrong with a store, where, and what to do."""
    # Only errors that come from the database itself have a code; the low byte is the family.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    plain, retryable = _PLAIN.get(code & 0xFF, ("", False))
    said = f"{plain} (SQLite says: {error})" if plain else f"SQLite says: {error}"
    return StoreError(f"documents {path}: {said}", retryable=retryable)


def open_file(path: str, busy_seconds: float) -> sqlite3.Connection:
    """Open a file, or make it with its tables; raise StoreError if it cannot be used."""
    if path != IN_MEMORY:
        _make_private(path)
    deadline = time.monotonic() + busy_seconds
    while True:
        connection = connect(path, busy_seconds)
        try:
            _prepare(connection, path)
        except sqlite3.Error as error:
            connection.close()
            failure = store_error(error, path)
            # SQLite does not wait where several open a new file or the last one closes it.
            if not failure.retryable or time.monotonic() >= deadline:
                raise failure from error
        except StoreError:
            connection.close()
            raise
        else:
            return connection
        time.sleep(_PAUSE_SECONDS)


def connect(path: str, busy_seconds: float) -> sqlite3.Connection:
    # One thread at a time uses a connection, but it is not always the one that opened it.
    return sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Hold the right to write; everything done meanwhile is kept, or nothing of it."""
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
    """Make a file for its owner only; those that SQLite adds beside it are so as well."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        raise StoreError(
            f"documents {path}: the file cannot be written ({error.strerror}); "
            "name a file in a folder that exists and that you may write to"
        ) from error


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    _refuse_strangers(connection, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # Without it macOS says that data is on disk when it is only on its way there.
    connection.execute("PRAGMA fullfsync = ON")
    if _number(connection, "user_version") == VERSION:
        return
    with transaction(connection):
        # Asked again: another process may have been quicker.
        if _number(connection, "user_version") != VERSION:
            for statement in _TABLES:
                connection.execute(statement)


def _refuse_strangers(connection: sqlite3.Connection, path: str) -> None:
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and _number(connection, "application_id") != APPLICATION_ID:
        raise StoreError(
            f"documents {path}: the file is a database of another program; name another file"
        )
    if _number(connection, "user_version") > VERSION and tables:
        raise StoreError(
            f"documents {path}: the file was written by a newer Weft; use that, or another file"
        )


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]
