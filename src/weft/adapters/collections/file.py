"""The SQLite file of a collection: where it is, its tables, and what is said when it is unusable.

Every collection of every tenant has a file of its own, so that no query can reach another's.
Vectors are kept in it as well; the mapped file beside it is made of them and can be made anew.
"""

import os
import re
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Final

from weft.errors import RetrievalError

#: Marks a file as ours ("WFCO"), so that no other program's database is ever written to.
APPLICATION_ID: Final = 0x5746434F
VERSION: Final = 1

#: The longest name a collection may have.
MOST_NAME: Final = 100

_BUSY_SECONDS: Final = 30.0
_PAUSE_SECONDS: Final = 0.01
_READABLE: Final = 40
_ENDINGS: Final = (".db", ".db-wal", ".db-shm", ".vectors", ".new", ".index", ".new-index")

_TABLES: Final = (
    "CREATE TABLE about (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID",
    """
    CREATE TABLE sources (
        id INTEGER PRIMARY KEY, source TEXT NOT NULL UNIQUE, digest TEXT NOT NULL,
        metadata TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE passages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, source INTEGER NOT NULL, place TEXT NOT NULL,
        content TEXT NOT NULL
    )
    """,
    "CREATE INDEX passages_by_source ON passages (source)",
    # Numbers of vectors only grow: what is new is behind what the mapped file has already.
    """
    CREATE TABLE vectors (
        number INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL UNIQUE,
        vector BLOB NOT NULL
    )
    """,
    """
    CREATE TABLE labels (
        key TEXT NOT NULL, value TEXT NOT NULL, source INTEGER NOT NULL,
        PRIMARY KEY (key, value, source)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX labels_by_source ON labels (source)",
    """
    CREATE VIRTUAL TABLE words USING fts5(
        content, content='passages', content_rowid='id', tokenize='porter unicode61'
    )
    """,
    """
    CREATE TRIGGER passage_added AFTER INSERT ON passages BEGIN
        INSERT INTO words (rowid, content) VALUES (new.id, new.content);
    END
    """,
    """
    CREATE TRIGGER passage_removed AFTER DELETE ON passages BEGIN
        INSERT INTO words (words, rowid, content) VALUES ('delete', old.id, old.content);
        DELETE FROM vectors WHERE passage = old.id;
    END
    """,
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {VERSION}",
)

#: By primary result code: what is the matter, what to do, and whether trying again may help.
_PLAIN: Final = {
    sqlite3.SQLITE_BUSY: ("another process is writing to it", "try again", True),
    sqlite3.SQLITE_LOCKED: ("another process is writing to it", "try again", True),
    sqlite3.SQLITE_FULL: ("the disk is full", "make room, then try again", True),
    sqlite3.SQLITE_IOERR: ("the disk does not read or write as it should", "check it", True),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "check the rights of the folder", False),
    sqlite3.SQLITE_READONLY: ("it may not be written", "check the rights of the file", False),
}


@dataclass(frozen=True)
class Place:
    """Where a collection of a tenant is: the files in a folder that have its name."""

    folder: Path
    app: str
    name: str

    @cached_property
    def database(self) -> Path:
        """Passages, keywords and vectors. Asked for in every search."""
        return self._file(".db")

    @property
    def vectors(self) -> Path:
        """The vectors once more, as they are mapped into memory."""
        return self._file(".vectors")

    @property
    def index(self) -> Path:
        """The index of many vectors."""
        return self._file(".index")

    def exists(self) -> bool:
        return self.inode() is not None

    def inode(self) -> int | None:
        """Return what tells the database from another of the same name; None if there is none."""
        try:
            return self.database.stat().st_ino
        except (FileNotFoundError, NotADirectoryError):
            return None

    def size(self) -> int:
        """Return how many bytes all files have."""
        files = [self._file(ending) for ending in _ENDINGS]
        return sum(file.stat().st_size for file in files if file.exists())

    def delete(self) -> None:
        for ending in _ENDINGS:
            self._file(ending).unlink(missing_ok=True)

    def _file(self, ending: str) -> Path:
        return tenant_folder(self.folder, self.app) / (_file_name(self.name) + ending)


def tenant_folder(folder: Path, app: str) -> Path:
    """Return where the collections of a tenant are."""
    return folder / _file_name(app)


def _file_name(name: str) -> str:
    """Return a name that every file system tells from all others, whatever is in it."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:_READABLE]
    return f"{readable}-{blake2b(name.encode(), digest_size=16).hexdigest()}"


def require_name(name: str) -> None:
    """Refuse what cannot be the name of a collection."""
    if not name.strip() or len(name) > MOST_NAME or not name.isprintable():
        raise RetrievalError(
            f"{name[:MOST_NAME]!r} cannot be the name of a collection",
            hint=f"take up to {MOST_NAME} printable characters, such as ResearchLibrary",
        )


def unknown_collection(name: str) -> RetrievalError:
    return RetrievalError(
        f'there is no collection "{name}"', hint=f"make it: weft collection add {name} FILE..."
    )


def open_file(place: Place) -> sqlite3.Connection:
    """Open the file of a collection, or make it; raise RetrievalError if it cannot be used."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return _opened(place)
        except (OSError, sqlite3.Error) as error:
            failure = unusable(error, place.name)
            # SQLite does not wait where several open a new file or the last one closes it.
            if not failure.retryable or time.monotonic() >= deadline:
                raise failure from error
        time.sleep(_PAUSE_SECONDS)


def _opened(place: Place) -> sqlite3.Connection:
    _make_private(place)
    connection = sqlite3.connect(
        place.database, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _prepare(connection, place)
    except BaseException:
        connection.close()
        raise
    return connection


def read_name(database: Path) -> str | None:
    """Return which collection a file has; None if it cannot be read."""
    try:
        connection = sqlite3.connect(database, timeout=_BUSY_SECONDS)
        try:
            found = connection.execute("SELECT value FROM about WHERE key = 'name'").fetchone()
        finally:
            connection.close()
    except sqlite3.Error:
        return None
    return found and found[0]


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


def unusable(error: OSError | sqlite3.Error, name: str) -> RetrievalError:
    """Say why the files of a collection cannot be used, and what to do."""
    if isinstance(error, OSError):
        what = error.strerror or type(error).__name__
        return RetrievalError(f"collection {name}: {what}", hint="check its folder and the disk")
    # Only errors that come from the database itself have a code; the low byte is the family.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    again = f"remove it and add its sources again: weft collection remove {name}"
    what, hint, retryable = _PLAIN.get(code, ("its file is damaged", again, False))
    said = f"collection {name}: {what} (SQLite says: {error})"
    return RetrievalError(said, hint=hint, retryable=retryable)


def _make_private(place: Place) -> None:
    """Make a file for its owner only; those that SQLite adds beside it are so as well.

    One that is there is not opened: closing it would drop the locks of this process on it.
    """
    place.database.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(place.database, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _prepare(connection: sqlite3.Connection, place: Place) -> None:
    if not _number(connection, "user_version"):
        connection.execute("PRAGMA journal_mode = WAL")
        with transaction(connection):
            # Asked again: another process may have been quicker.
            if not _number(connection, "user_version"):
                for statement in _TABLES:
                    connection.execute(statement)
                known = [("app", place.app), ("name", place.name), ("generation", 0)]
                connection.executemany("INSERT INTO about VALUES (?, ?)", known)
    if _number(connection, "application_id") != APPLICATION_ID:
        raise RetrievalError(f"{place.database} is a database of another program")
    if _number(connection, "user_version") > VERSION:
        raise RetrievalError(f"collection {place.name} was written by a newer Weft; use that")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]
