"""The threads that read a SQLite journal."""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from weft.adapters.sqlite.errors import store_error
from weft.adapters.sqlite.schema import open_reader

T = TypeVar("T")

#: So that one long read does not keep the others waiting; more would only share one interpreter.
READERS: Final = 2


class Readers:
    """Owns the connections that read; each is opened when it is first needed."""

    def __init__(self, path: Path, busy_seconds: float) -> None:
        self._path = path
        self._busy_seconds = busy_seconds
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix="weft-journal-reader")
        self._idle: deque[sqlite3.Connection] = deque()

    async def ask(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Answer a query on a thread of its own."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._answer, query)

    async def close(self) -> None:
        """Wait for what is under way, then close the file."""
        await asyncio.to_thread(self._threads.shutdown)
        while self._idle:
            self._idle.pop().close()

    def _answer(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._take()
            try:
                return query(connection)
            finally:
                self._idle.append(connection)
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error

    def _take(self) -> sqlite3.Connection:
        # There are as many threads as there may be connections, so nobody waits for one.
        try:
            return self._idle.pop()
        except IndexError:
            return open_reader(self._path, self._busy_seconds)
