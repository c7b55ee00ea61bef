"""The threads that read a SQLite journal."""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from weft.adapters.sqlite.errors import store_error
from weft.adapters.sqlite.schema import open_reader
from weft.adapters.sqlite.threads import WorkerThread

T = TypeVar("T")

#: So that one long read does not keep the others waiting; more would only share one interpreter.
READERS: Final = 2


class Reader:
    """A thread with a connection that reads, which is opened when it is first needed."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self.thread = WorkerThread("weft-journal-reader")
        self._connection: sqlite3.Connection | None = None

    def answer(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Answer a query, on the thread."""
        if self._connection is None:
            self._connection = open_reader(self._path, self._busy_seconds)
        return query(self._connection)

    def close(self) -> None:
        """Close the file, on the thread."""
        if self._connection is not None:
            self._connection.close()


class Readers:
    """The threads that read, begun when they are first needed."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._readers: list[Reader] = []

    async def ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Answer a query on a thread that has little to do."""
        reader = self._free_reader()
        try:
            return await reader.thread.ask(partial(reader.answer, query))
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error

    async def close(self) -> None:
        """Wait for what is under way, then close the file."""
        for reader in self._readers:
            await reader.thread.ask(reader.close)
            reader.thread.end()
            reader.thread.wait()

    def _free_reader(self) -> Reader:
        found = min(self._readers, key=lambda it: it.thread.busy, default=None)
        if found is None or (found.thread.busy and len(self._readers) < READERS):
            found = Reader(self._path, self._busy_seconds)
            self._readers.append(found)
        return found
