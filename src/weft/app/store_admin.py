"""What the operator of a store does with it: create its tables, back it up, copy it."""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Final

from weft.adapters.sql.copy import copy_store, find_rows
from weft.adapters.sql.sqlite import FORMAT, SqliteStore
from weft.adapters.sql.store import SqlStore
from weft.adapters.sqlite_file import UnusableFile, explain, open_reader
from weft.app.stores import is_postgres, shown_store
from weft.errors import SetupError, StoreError, WeftError

#: Seconds to wait for another process that writes to the file.
_BUSY_SECONDS: Final = 5.0


class TargetHasRows(WeftError):
    """A store is copied into one without rows only."""


@asynccontextmanager
async def operated_store(address: str) -> AsyncGenerator[SqlStore]:
    """Open a store for its operator: no worker uses it here."""
    if is_postgres(address):
        with _library():
            from weft.adapters.sql.postgres.store import PostgresStore  # noqa: PLC0415
        store: SqlStore = await PostgresStore.open(address)
    else:
        store = await SqliteStore.open(Path(address))
    try:
        yield store
    finally:
        await store.close()


async def create_store(address: str) -> int | None:
    """Create the tables of a store, or change those of an older version to this one.

    Returns the version that was there; None if there were no tables. Raises StoreError if they are
    of a newer version, or cannot be created.
    """
    if is_postgres(address):
        with _library():
            from weft.adapters.sql.postgres.schema import migrate  # noqa: PLC0415
        return await migrate(address)
    found = await asyncio.to_thread(_version, address) if _size(address) else None
    async with operated_store(address):
        return found


async def copy_rows(source: str, target: str) -> dict[str, int]:
    """Copy a store into another one; return the number of rows of each table.

    A file that does not exist appears under its name when it is complete. Raises TargetHasRows,
    and StoreError if a store cannot be used or the copy differs.
    """
    async with operated_store(source) as origin:
        if not is_postgres(target) and _size(target) is None:
            async with _new_file(Path(target)) as partial, operated_store(str(partial)) as copy:
                return await copy_store(origin, copy)
        await create_store(target)
        async with operated_store(target) as copy:
            if table := await find_rows(copy):
                raise TargetHasRows(f"{shown_store(target)} already has rows in table {table}")
            return await copy_store(origin, copy)


async def back_up(source: str, target: Path) -> int:
    """Copy a store to a new SQLite file while it is in use; return the size of the file."""
    if is_postgres(source):
        await copy_rows(source, str(target))
    else:
        async with _new_file(target) as partial:
            await asyncio.to_thread(_back_up_file, source, str(partial))
    return _size(target) or 0


def _size(file: str | Path) -> int | None:
    """Return the size of a file in bytes; None if it does not exist."""
    return Path(file).stat().st_size if Path(file).exists() else None


def _version(file: str) -> int | None:
    """Return the version of the tables in a file; None if it cannot be read."""
    try:
        with closing(open_reader(file, FORMAT, _BUSY_SECONDS)) as connection:
            return connection.execute("PRAGMA user_version").fetchone()[0] or None
    except (sqlite3.Error, UnusableFile):  # Opening it to write says why.
        return None


def _back_up_file(source: str, target: str) -> None:
    """Copy a file with SQLite's own backup, which includes what was written last."""
    try:
        with (
            closing(open_reader(source, FORMAT, _BUSY_SECONDS)) as origin,
            closing(sqlite3.connect(target)) as copy,
        ):
            origin.backup(copy)
    except (sqlite3.Error, UnusableFile) as error:
        found = explain(error, target) if isinstance(error, sqlite3.Error) else error
        raise StoreError(f"{source} cannot be copied: {found}; {found.remedy}") from error


@asynccontextmanager
async def _new_file(target: Path) -> AsyncGenerator[Path]:
    """Yield a name to write a SQLite file to; it becomes `target` when it is complete."""
    partial = target.with_name(f"{target.name}.partial")
    files = [Path(f"{partial}{end}") for end in ("", "-wal", "-shm")]
    try:
        for file in files:  # Those of an attempt that was killed.
            file.unlink(missing_ok=True)
        partial.touch(mode=0o600)
        yield partial
        partial.replace(target)
    finally:
        for file in files:
            file.unlink(missing_ok=True)


@contextmanager
def _library() -> Generator[None]:
    """Say what to install if the library for PostgreSQL is missing."""
    try:
        yield
    except ImportError as error:
        raise SetupError(
            "the library for PostgreSQL is not installed",
            hint='pip install "weft-agents[postgres]"',
        ) from error
