"""What SQLite says when something is wrong, in plain words."""

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from weft.errors import StoreError

DAMAGED: Final = "the file is damaged; restore it from a copy, or move it away to begin anew"

#: With less room than this SQLite cannot open a file: it is what processes share beside it.
_LEAST_FREE: Final = 64 * 1024

#: By primary result code: what is the matter and what to do, and whether trying again may help.
PLAIN: Final[Mapping[int, tuple[str, bool]]] = {
    sqlite3.SQLITE_FULL: ("the disk is full; make room, then try again", True),
    sqlite3.SQLITE_BUSY: ("another process is writing to it and does not let go; try again", True),
    sqlite3.SQLITE_LOCKED: ("it is being changed by somebody else; try again", True),
    sqlite3.SQLITE_IOERR: ("the disk does not read or write as it should; check the disk", True),
    sqlite3.SQLITE_CORRUPT: (DAMAGED, False),
    sqlite3.SQLITE_NOTADB: ("the file is not a database; move it away, or name another", False),
    sqlite3.SQLITE_CANTOPEN: ("the file cannot be opened; check the path and its rights", False),
    sqlite3.SQLITE_READONLY: ("the file may not be written; check its rights", False),
    sqlite3.SQLITE_PERM: ("the file may not be used; check its rights", False),
}


#: What SQLite says where it would have to write, be it only to read.
_NOT_WRITTEN: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Say what is wrong with a journal, where, and what to do."""
    # Only errors that come from the database itself have a code; the low byte is the family.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    family = code & 0xFF
    # Where SQLite lays out the file that processes share, a full disk is an error like any other.
    if family == sqlite3.SQLITE_IOERR and _is_full(path):
        family = sqlite3.SQLITE_FULL
    plain, retryable = PLAIN.get(family, ("", False))
    if family in _NOT_WRITTEN and on_read_only_disk(path):
        plain = "it is on a read-only file system; copy it and the files beside it elsewhere"
    said = f"{plain} (SQLite says: {error})" if plain else f"SQLite says: {error}"
    return StoreError(f"journal {path}: {said}", retryable=retryable)


def on_read_only_disk(path: Path) -> bool:
    """Tell whether a file is where nobody can write."""
    disk = _disk(path)
    return disk is not None and bool(disk.f_flag & os.ST_RDONLY)


def _is_full(path: Path) -> bool:
    """Tell whether there is no room beside a file."""
    disk = _disk(path)
    return disk is not None and disk.f_bavail * disk.f_frsize < _LEAST_FREE


def _disk(path: Path) -> "os.statvfs_result | None":
    """Return what is known of the disk of a file."""
    try:
        return os.statvfs(path.parent)
    except (AttributeError, OSError):  # some systems have no such call
        return None
