"""A copy of a journal that other processes may be writing to."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from weft.adapters.sqlite.errors import store_error
from weft.adapters.sqlite.schema import open_reader, refuse_strangers

#: Seconds to wait for another process that writes to the journal.
_BUSY: Final = 5.0


def backup_journal(source: Path, target: Path) -> int:
    """Copy a journal with SQLite's own backup, and return the size of the copy in bytes.

    The copy contains everything written so far, also by runs in progress. It appears under its
    name only when it is complete.
    """
    partial = target.with_name(f"{target.name}.partial")
    try:
        with closing(open_reader(source, _BUSY)) as connection:
            refuse_strangers(connection, source)
            with closing(sqlite3.connect(partial)) as copy:
                connection.backup(copy)
        partial.replace(target)
    except sqlite3.Error as error:
        raise store_error(error, source) from error
    finally:
        partial.unlink(missing_ok=True)
    return target.stat().st_size
