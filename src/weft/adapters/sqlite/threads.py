"""Threads that work for an event loop: a queue towards them, and one call back."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias, TypeVar, cast

T = TypeVar("T")

#: What a thread does, and what the loop does with the result or the error of it.
Job: TypeAlias = Callable[[], object]
Then: TypeAlias = Callable[[T | None, BaseException | None], None]


class WorkerThread:
    """One thread that does one job after the other and tells the event loop what came of it.

    A pool of threads and its futures would take three times as long to hand a job over.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        #: How many jobs wait or are under way; belongs to the event loop.
        self.busy = 0
        # A daemon: a process that ends without closing its journal does not wait for it.
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], T], then: Then[T]) -> None:
        """Let something be done on the thread, and something with what came of it on the loop."""

        def told(result: T | None, error: BaseException | None) -> None:
            self.busy -= 1
            then(result, error)

        def job() -> None:
            try:
                outcome = work(), None
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever asked
                outcome = None, error
            # When the event loop is gone, so is whoever asked.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(told, *outcome)

        self.busy += 1
        self._jobs.put(job)

    def ask(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Let something be done on the thread; the future tells what came of it."""
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
        """Let the thread end when all it was asked for is done, and something last."""
        if last is not None:
            self._jobs.put(last)
        self._jobs.put(None)

    def wait(self) -> None:
        """Wait for the end; for a thread that was told to and has nothing left to do."""
        self._thread.join()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
