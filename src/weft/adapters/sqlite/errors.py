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


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """Say what is wrong with a journal, where, and what to do."""
    # Only errors that come from the database itself have a code; the low byte is the family.
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    family = code & 0xFF
    # Where SQLite lays out the file that processes share, a full disk is an error like any other.
    if family == sqlite3.SQLITE_IOERR and _is_full(path):
        family = sqlite3.SQLITE_FULL
    plain, retryable = PLAIN.get(family, ("", False))
    said = f"{plain} (SQLite says: {error})" if plain else f"SQLite says: {error}"
    return StoreError(f"journal {path}: {said}", retryable=retryable)


def _is_full(path: Path) -> bool:
    """Tell whether there is no room beside a file."""
    try:
        disk = os.statvfs(path.parent)
    except (AttributeError, OSError):  # some systems have no such call
        return False
    return disk.f_bavail * disk.f_frsize < _LEAST_FREE
