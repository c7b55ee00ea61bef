"""The SQLite file of a collection: where it is, its tables, and what is said when it is unusable.

Every collection of every tenant has a file of its own, so that no query can reach another's.
Vectors are kept in it as well; the mapped file beside it is made of them and can be made anew.
"""

import re
import sqlite3
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Final

from weft.adapters.sqlite_file import FileFormat, UnusableFile, explain, open_file
from weft.errors import RetrievalError

#: The longest name a collection may have.
MOST_NAME: Final = 100

_BUSY_SECONDS: Final = 30.0
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
)

#: The number is "WFCO".
_FORMAT: Final = FileFormat(0x5746434F, 1, _TABLES)


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


def unknown_collection_error(name: str) -> RetrievalError:
    return RetrievalError(
        f'there is no collection "{name}"', hint=f"make it: weft collection add {name} FILE..."
    )


def open_collection(place: Place) -> sqlite3.Connection:
    """Open the file of a collection, or create it; raise RetrievalError if it cannot be used."""

    def fill(connection: sqlite3.Connection) -> None:
        about = [("app", place.app), ("name", place.name), ("generation", 0)]
        connection.executemany("INSERT INTO about VALUES (?, ?)", about)

    try:
        place.database.parent.mkdir(parents=True, exist_ok=True)
        path = str(place.database)
        return open_file(path, _FORMAT, busy_seconds=_BUSY_SECONDS, fill=fill)
    except (OSError, UnusableFile) as error:
        raise collection_error(error, place.name) from error


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


def collection_error(error: OSError | sqlite3.Error | UnusableFile, name: str) -> RetrievalError:
    """Return why the files of a collection cannot be used, and what to do."""
    if isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
        return RetrievalError(f"collection {name}: {reason}", hint="check its folder and the disk")
    failure = explain(error) if isinstance(error, sqlite3.Error) else error
    hint = failure.remedy
    if failure.damaged or not hint:
        hint = f"remove it and add its sources again: weft collection delete {name}"
    return RetrievalError(f"collection {name}: {failure}", hint=hint, retryable=failure.retryable)
