"""Threads that work for an event loop: a queue towards them, and one call back."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Final, TypeAlias, TypeVar, cast

T = TypeVar("T")

#: A job of the thread, and what the event loop does with its result or its error.
Job: TypeAlias = Callable[[], object]
Then: TypeAlias = Callable[[T | None, BaseException | None], None]

#: So that one long read does not delay the others; more would only share one interpreter.
READERS: Final = 2


class WorkerThread:
    """One thread that does one job after the other and hands the results to the event loop.

    A pool of threads and its futures would take three times as long to hand a job over.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        #: How many jobs wait or are under way; belongs to the event loop.
        self.busy = 0
        # A daemon: a process that ends without closing its store does not wait for it.
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], T], then: Then[T]) -> None:
        """Do a job on the thread, then call a function with its result in the event loop."""

        def finish(result: T | None, error: BaseException | None) -> None:
            self.busy -= 1
            then(result, error)

        def job() -> None:
            try:
                outcome = work(), None
            except BaseException as error:  # noqa: BLE001 - it belongs to the caller
                outcome = None, error
            # When the event loop is gone, so is the caller.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(finish, *outcome)

        self.busy += 1
        self._jobs.put(job)

    def ask(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Do a job on the thread and return the future of its result."""
        done: asyncio.Future[T] = self._loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(cast("T", result))
            else:
                done.set_exception(error)

        self.do(work, settle)
        return done

    def end(self, last: Job | None = None) -> None:
        """End the thread after all jobs, and after a last one."""
        if last is not None:
            self._jobs.put(last)
        self._jobs.put(None)

    def wait(self) -> None:
        """Wait for the end of a thread that was asked to end."""
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()


class Readers:
    """Threads with a connection each that read, begun when they are first needed."""

    def __init__(self, open_connection: Callable[[], sqlite3.Connection]) -> None:
        self.open_connection = open_connection
        self._threads: list[WorkerThread] = []
        self._connections: dict[WorkerThread, sqlite3.Connection] = {}

    def ask(self, query: Callable[[sqlite3.Connection], T]) -> asyncio.Future[T]:
        """Answer a query on the thread that has the least to do."""
        thread = min(self._threads, key=lambda thread: thread.busy, default=None)
        if thread is None or (thread.busy and len(self._threads) < READERS):
            thread = WorkerThread("weft-store-reader")
            self._threads.append(thread)
        asked = thread

        def answer() -> T:
            connection = self._connections.get(asked)
            if connection is None:
                connection = self._connections[asked] = self.open_connection()
            return query(connection)

        return asked.ask(answer)

    async def close(self) -> None:
        """Wait for what is under way, then close the connections."""
        for thread in self._threads:
            await thread.ask(partial(self._close, thread))
            thread.end()
            thread.wait()

    def _close(self, thread: WorkerThread) -> None:
        if thread in self._connections:
            self._connections[thread].close()
