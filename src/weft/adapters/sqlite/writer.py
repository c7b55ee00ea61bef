"""The one thread that writes a SQLite journal, and how batches get there."""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

from weft.adapters.sqlite.append import unfit, write_group
from weft.adapters.sqlite.errors import store_error
from weft.adapters.sqlite.rows import Written, written
from weft.adapters.sqlite.schema import open_writer
from weft.adapters.sqlite.threads import WorkerThread
from weft.engine.rows import Batch
from weft.errors import StoreError
from weft.ports.journal import Durability

T = TypeVar("T")

#: A batch, and what its sender waits for.
Waiting: TypeAlias = tuple[Written, asyncio.Future[None]]


class Writer:
    """Owns the connection that writes.

    Batches that come while a transaction is under way wait for its end, then share the next one.
    This object belongs to the event loop; only jobs run on the thread.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, thread: WorkerThread) -> None:
        self._path = path
        self._connection = connection
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Waiting] = []
        #: No transaction is under way, and none is about to begin.
        self._idle = asyncio.Event()
        self._idle.set()
        #: Told of every batch that was written, whether or not its sender still waits.
        self.on_written: Callable[[Batch], None] = lambda _: None
        #: Whether several batches shared the last transaction.
        self._crowded = False

    @classmethod
    async def open(cls, path: Path, durability: Durability, busy_seconds: float) -> "Writer":
        """Open a file and make its tables what they should be."""
        thread = WorkerThread("weft-journal-writer")
        opened: list[sqlite3.Connection] = []

        def open_() -> None:
            opened.append(open_writer(path, durability, busy_seconds))

        try:
            await thread.ask(open_)
        except BaseException:
            # Opening cannot be called back: what it opens after all is closed again.
            thread.end(lambda: [it.close() for it in opened])
            raise
        return cls(path, opened[0], thread)

    def append(self, batch: Batch) -> asyncio.Future[None]:
        """Let a batch be written with all others that wait; the future tells when it is."""
        done: asyncio.Future[None] = self._loop.create_future()
        try:
            self._waiting.append((written(batch), done))
        except (TypeError, ValueError) as error:
            done.set_exception(unfit(batch, error))
            return done
        if self._idle.is_set():
            self._idle.clear()
            if self._crowded:
                # Others are likely to be ready in this round with batches for the same transaction.
                self._loop.call_soon(self._begin)
            else:
                self._begin()
        return done

    async def perform(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something else with the connection, between two transactions."""
        try:
            return await self._thread.ask(partial(work, self._connection))
        except sqlite3.Error as error:
            raise store_error(error, self._path) from error

    async def idle(self) -> None:
        """Return when everything that waited has been written."""
        await self._idle.wait()

    async def close(self) -> None:
        """Write what waits, then close the file."""
        await self.idle()
        await self.perform(sqlite3.Connection.close)
        self._thread.end()
        self._thread.wait()

    def _begin(self) -> None:
        group, self._waiting = self._waiting, []
        self._crowded = len(group) > 1
        batches = [batch for batch, _ in group]
        work = partial(write_group, self._connection, batches, self._path)
        self._thread.do(work, partial(self._settle, group))

    def _settle(
        self,
        group: list[Waiting],
        written: list[StoreError | None] | None,
        fault: BaseException | None,
    ) -> None:
        outcomes = [fault] * len(group) if written is None else written
        for (it, done), outcome in zip(group, outcomes, strict=True):
            if outcome is None:
                self.on_written(it.batch)
            if done.done():
                continue  # Whoever waited for it was cancelled; it is written all the same.
            if outcome is None:
                done.set_result(None)
            else:
                done.set_exception(outcome)
        if self._waiting:
            self._begin()
        else:
            self._idle.set()
