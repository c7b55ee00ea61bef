"""A bounded pool of threads for functions that block; hanging threads are replaced.

A thread cannot be stopped from outside. One whose call is abandoned is left behind and replaced,
within a limit; it ends when its function returns, or with the process.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Final, Literal, TypeAlias

from weft.adapters.fair_queue import FairQueue
from weft.errors import UsageError

#: waiting: for a thread; running; left: abandoned while running; over: ended.
_Stage: TypeAlias = Literal["waiting", "running", "left", "over"]

#: The number of working threads, and how many more may hang.
SIZE: Final = 32
MOST_LEFT: Final = 64


@dataclass(eq=False, slots=True)
class Job:
    """A function that waits for a thread or runs in one; `result` is set when it has returned."""

    work: Callable[[], object]
    result: asyncio.Future[object]
    stage: _Stage = field(default="waiting")


class Threads:
    """Runs functions away from the event loop."""

    def __init__(self, size: int = SIZE, most_left: int = MOST_LEFT) -> None:
        self._size = size
        self._most = size + most_left
        self._jobs: FairQueue[Job] = FairQueue()
        self._alive = 0
        self._idle = 0
        self._left = 0
        self._closed = False
        # The threads must not keep the process from ending: they are daemons and never joined.
        # The lock protects everything below.
        self._turn = Condition()

    @property
    def left_behind(self) -> int:
        """The number of threads in abandoned calls."""
        return self._left

    def start(self, work: Callable[[], object], app: str = "") -> Job:
        """Let a function run as soon as a thread is free; its result raises what it raises.

        Where all threads are busy, the functions of each tenant wait in turn.
        """
        job = Job(work, asyncio.get_running_loop().create_future())
        with self._turn:
            if self._closed:
                raise UsageError("tools cannot be called: their loader is closed")
            self._jobs.append(app, job)
            self._wake()
        return job

    def leave(self, job: Job) -> bool:
        """Abandon a job; return whether it was running, and so leaves a thread behind."""
        job.result.cancel()
        with self._turn:
            if job.stage != "running":
                job.stage = "over"
                return False
            job.stage = "left"
            self._left += 1
            self._wake()
            return True

    def close(self) -> None:
        """Refuse further work; each thread ends when the queue is empty."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()

    def _wake(self) -> None:
        """Start or wake a thread for a waiting job."""
        if self._idle >= len(self._jobs):
            self._turn.notify()
        elif self._alive - self._left < self._size and self._alive < self._most:
            self._alive += 1
            Thread(target=self._work, name="weft-tool", daemon=True).start()

    def _work(self) -> None:
        while self._work_once():
            # The frame must not keep a finished job alive while the thread waits.
            continue

    def _work_once(self) -> bool:
        job = self._next()
        if job is None:
            return False
        try:
            value, error = job.work(), None
        except BaseException as raised:  # noqa: BLE001 - raised again where the result is awaited
            value, error = None, raised
        self._finish(job, value, error)
        return True

    def _next(self) -> Job | None:
        """Wait for a job; None means that this thread should end."""
        with self._turn:
            while self._alive - self._left <= self._size:
                while self._jobs:
                    job = self._jobs.popleft()
                    if job.stage == "waiting":
                        job.stage = "running"
                        return job
                if self._closed:
                    break
                self._idle += 1
                self._turn.wait()
                self._idle -= 1
            self._alive -= 1
            return None

    def _finish(self, job: Job, value: object, error: BaseException | None) -> None:
        with self._turn:
            if job.stage == "left":
                self._left -= 1
                return
            job.stage = "over"
        try:
            job.result.get_loop().call_soon_threadsafe(_settle, job.result, value, error)
        except RuntimeError:
            # The event loop is closed.
            return


def _settle(result: asyncio.Future[object], value: object, error: BaseException | None) -> None:
    if result.done():
        return
    if error is None:
        result.set_result(value)
    else:
        result.set_exception(error)
