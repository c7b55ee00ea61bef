"""SQLite files of Weft: opened or created, private to their owner, explained when unusable."""

import errno
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, Literal

#: SQLite's name for a database in memory.
IN_MEMORY: Final = ":memory:"

_PAUSE_SECONDS: Final = 0.01

#: By primary result code: what is wrong, what to do, and whether trying again may help.
_PLAIN: Final = {
    sqlite3.SQLITE_BUSY: ("another process is writing to it", "try again", True),
    sqlite3.SQLITE_LOCKED: ("another process is writing to it", "try again", True),
    sqlite3.SQLITE_FULL: ("the disk is full", "make room, then try again", True),
    sqlite3.SQLITE_IOERR: ("the disk has an I/O error", "check the disk", True),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", "restore it from a copy", False),
    sqlite3.SQLITE_NOTADB: ("the file is not a database", "name another file", False),
    sqlite3.SQLITE_CANTOPEN: ("the file cannot be opened", "check its path and its rights", False),
    sqlite3.SQLITE_READONLY: ("the file may not be written", "check its rights", False),
    sqlite3.SQLITE_PERM: ("the file may not be used", "check its rights", False),
}
#: What SQLite says where it would have to write, be it only to read.
_NOT_WRITTEN: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})

#: With less room than this SQLite cannot open a file: it is what processes share beside it.
_LEAST_FREE: Final = 64 * 1024

#: A burst may make the write-ahead log large; afterwards it is cut back to this many bytes.
_LOG_BYTES: Final = 16 * 1024 * 1024
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
    #: The statements that change a file of one version to the next: the first from version 1 to 2.
    migrations: tuple[tuple[str, ...], ...] = ()


def explain(error: sqlite3.Error, path: str = "") -> UnusableFile:
    """Return the explanation of a SQLite error."""
    # Only errors that come from the database itself have a code; the low byte is the family.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    # Where SQLite lays out the file that processes share, a full disk is an error like any other.
    if code == sqlite3.SQLITE_IOERR and path and _is_full(path):
        code = sqlite3.SQLITE_FULL
    plain, remedy, retryable = _PLAIN.get(code, ("", "", False))
    if code in _NOT_WRITTEN and path and is_on_read_only_disk(path):
        plain, remedy = "it is on a read-only file system", "copy it and the files beside it"
    reason = f"{plain} (SQLite says: {error})" if plain else f"SQLite says: {error}"
    return UnusableFile(reason, remedy, retryable=retryable, damaged=code in _DAMAGED)


def open_file(
    path: str,
    format_: FileFormat,
    *,
    busy_seconds: float,
    durability: Literal["full", "normal"] = "full",
) -> sqlite3.Connection:
    """Open a file, or create it with its tables; one of an older version is migrated.

    A file on a read-only disk can still be read: there, writing fails. Raises UnusableFile; a file
    of another program is never written to.
    """
    if path != IN_MEMORY and not _make_private(path):
        connection = open_reader(path, format_, busy_seconds)
        _refuse_older_file(connection, format_)
        return connection
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            return _open_prepared(path, format_, busy_seconds, durability)
        except sqlite3.Error as error:
            failure = explain(error, path)
            # SQLite does not wait where several open a new file or the last one closes it.
            if not failure.retryable or time.monotonic() >= deadline:
                raise failure from error
        time.sleep(_PAUSE_SECONDS)


def _open_prepared(
    path: str,
    format_: FileFormat,
    busy_seconds: float,
    durability: Literal["full", "normal"],
) -> sqlite3.Connection:
    connection = connect(path, busy_seconds)
    try:
        refuse_foreign_file(connection, format_)
        _prepare(connection, format_, durability)
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: str, format_: FileFormat, busy_seconds: float) -> sqlite3.Connection:
    """Open a connection that cannot write; raises UnusableFile."""
    # SQLite creates files even to read, unless the file is declared as unchanging.
    frozen = "&immutable=1" if is_on_read_only_disk(path) and not _has_log(path) else ""
    try:
        name = f"{Path(path).absolute().as_uri()}?mode=ro{frozen}"
        connection = connect(name, busy_seconds, uri=True)
        try:
            refuse_foreign_file(connection, format_)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise explain(error, path) from error
    return connection


def connect(path: str, busy_seconds: float, *, uri: bool = False) -> sqlite3.Connection:
    # One thread at a time uses a connection, but it is not always the one that opened it.
    return sqlite3.connect(
        path,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        uri=uri,
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


def _make_private(path: str) -> bool:
    """Create a file for its owner only; the files that SQLite adds beside it are so as well.

    An existing file is not opened: closing it would drop the locks of this process on it. Return
    False for an existing file on a read-only disk.
    """
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        if error.errno == errno.EROFS and Path(path).is_file():
            return False
        raise UnusableFile(
            f"the file cannot be written ({error.strerror})",
            "name a file in a folder that exists and that you may write to",
        ) from error
    return not (Path(path).is_file() and is_on_read_only_disk(path))


def refuse_foreign_file(connection: sqlite3.Connection, format_: FileFormat) -> bool:
    """Raise UnusableFile for a file that we did not make or do not understand.

    Return whether the file has tables.
    """
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and _number(connection, "application_id") != format_.application_id:
        raise UnusableFile(
            "the file is a database of another program, or of Weft before its first release",
            "name another file, or move it away",
        )
    version = _number(connection, "user_version")
    if tables and version > format_.version:
        raise UnusableFile(
            f"the file was written by a newer Weft (format {version}, this one knows up to "
            f"{format_.version})",
            "use that Weft, or name another file",
        )
    return bool(tables)


def _refuse_older_file(connection: sqlite3.Connection, format_: FileFormat) -> None:
    """Refuse a file that must be migrated, over a connection that cannot write."""
    version = _number(connection, "user_version")
    if version < format_.version:
        connection.close()
        raise UnusableFile(
            f"the file was written by an older Weft (format {version}, this one needs "
            f"{format_.version}), and is on a read-only file system",
            "copy it and the files beside it, then run `weft store migrate`",
        )


def _prepare(
    connection: sqlite3.Connection, format_: FileFormat, durability: Literal["full", "normal"]
) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA journal_size_limit = {_LOG_BYTES}")
    connection.execute(f"PRAGMA synchronous = {durability}")
    # Without it macOS says that data is on disk when it is only on its way there.
    connection.execute("PRAGMA fullfsync = ON")
    if _number(connection, "user_version") == format_.version:
        return
    with transaction(connection):
        # Asked again: another process may have been quicker.
        found = _number(connection, "user_version")
        if found >= format_.version:
            return
        steps = format_.migrations[found - 1 :] if found else (format_.tables,)
        for statement in chain.from_iterable(steps):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {format_.application_id}")
        connection.execute(f"PRAGMA user_version = {format_.version}")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]


def _has_log(path: str) -> bool:
    """Return whether something was written last that is not in the file itself yet."""
    log = Path(f"{path}-wal")
    return log.is_file() and log.stat().st_size > 0


def is_on_read_only_disk(path: str) -> bool:
    disk = _disk(path)
    return disk is not None and bool(disk.f_flag & os.ST_RDONLY)


def _is_full(path: str) -> bool:
    """Return whether there is no room beside a file."""
    disk = _disk(path)
    return disk is not None and disk.f_bavail * disk.f_frsize < _LEAST_FREE


def _disk(path: str) -> "os.statvfs_result | None":
    """Return what is known of the disk of a file."""
    try:
        return os.statvfs(Path(path).parent)
    except (AttributeError, OSError):  # Some systems have no such call.
        return None
