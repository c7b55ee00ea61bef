"""The SQLite file of a collection: its path, its format, and its errors.

Every collection of every tenant has its own file, so that no query can reach another's.
The file also contains the vectors; the mapped file beside it is built from them.
"""

import re
import sqlite3
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Final

from weft.adapters.sql.sqlite_database import file_format
from weft.adapters.sql.tables import COLLECTION_TABLES, SQLITE_WORDS
from weft.adapters.sqlite_file import UnusableFile, explain, open_reader
from weft.errors import RetrievalError

BUSY_SECONDS: Final = 30.0
_READABLE: Final = 40
_ENDINGS: Final = (".db", ".db-wal", ".db-shm", ".vectors", ".new", ".index", ".new-index")

#: The number is "WFCL".
FORMAT: Final = file_format(0x5746434C, 1, (*COLLECTION_TABLES, *SQLITE_WORDS))


@dataclass(frozen=True)
class Place:
    """The files of a tenant's collection in a folder."""

    folder: Path
    app: str
    name: str

    @cached_property
    def database(self) -> Path:
        """The file with passages, keywords and vectors. Cached, because every search needs it."""
        return self._file(".db")

    @property
    def vectors(self) -> Path:
        """The file of vectors that is mapped into memory."""
        return self._file(".vectors")

    @property
    def index(self) -> Path:
        """The file of the vector index."""
        return self._file(".index")

    def exists(self) -> bool:
        return self.inode() is not None

    def inode(self) -> int | None:
        """Return the inode of the database, which a replaced file changes; None if missing."""
        try:
            return self.database.stat().st_ino
        except (FileNotFoundError, NotADirectoryError):
            return None

    def size(self) -> int:
        """Return the size of all files in bytes."""
        files = [self._file(ending) for ending in _ENDINGS]
        return sum(file.stat().st_size for file in files if file.exists())

    def delete(self) -> None:
        for ending in _ENDINGS:
            self._file(ending).unlink(missing_ok=True)

    def _file(self, ending: str) -> Path:
        return tenant_folder(self.folder, self.app) / (_file_name(self.name) + ending)


def tenant_folder(folder: Path, app: str) -> Path:
    """Return the folder of a tenant's collections."""
    return folder / _file_name(app)


def _file_name(name: str) -> str:
    """Return a file name that is valid and unique on every file system."""
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:_READABLE]
    return f"{readable}-{blake2b(name.encode(), digest_size=16).hexdigest()}"


def read_name(database: Path) -> str | None:
    """Return the name of the collection in a file; None if it cannot be read."""
    try:
        connection = open_reader(str(database), FORMAT, BUSY_SECONDS)
        try:
            found = connection.execute("SELECT name FROM collections").fetchone()
        finally:
            connection.close()
    except (sqlite3.Error, UnusableFile):
        return None
    return found and found[0]


def collection_error(error: BaseException | None, name: str) -> RetrievalError:
    """Return the error for unusable files of a collection, with a hint."""
    if isinstance(error, OSError):
        reason = error.strerror or type(error).__name__
        return RetrievalError(f"collection {name}: {reason}", hint="check its folder and the disk")
    if isinstance(error, sqlite3.Error):
        error = explain(error)
    if not isinstance(error, UnusableFile):
        return RetrievalError(f"collection {name} cannot store this: {error}")
    failure, hint = error, error.remedy
    if failure.damaged or not hint:
        hint = f"remove it and add its sources again: weft collection delete {name}"
    return RetrievalError(f"collection {name}: {failure}", hint=hint, retryable=failure.retryable)
