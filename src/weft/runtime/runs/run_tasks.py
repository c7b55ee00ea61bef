"""The runs that a worker attends to at present, each in a task of its own."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, NamedTuple

from weft.ports.store import RunKey


class Current(NamedTuple):
    """A run and, during an effect, the event that asked for it."""

    app: str
    run: str
    seq: int = 0


#: Set once for each task of a run and each effect.
CURRENT: Final[ContextVar[Current | None]] = ContextVar("weft_current_run", default=None)


class RunTasks:
    """Runs one task for each run; a run that becomes due again gets another task afterwards."""

    def __init__(self, attend: Callable[[RunKey], Coroutine[Any, Any, bool]]) -> None:
        self._attend = attend
        self.tasks: dict[RunKey, asyncio.Task[bool]] = {}
        self._again: set[RunKey] = set()
        self.is_closed = False

    def __contains__(self, run: RunKey) -> bool:
        return run in self.tasks

    def look_at(self, run: RunKey) -> None:
        """Attend to a run in the background: it has mail or is due."""
        if run in self.tasks:
            self._again.add(run)  # Its task may have read the mail already.
        elif not self.is_closed:
            self.begin(run, self._attend(run))

    def begin(self, run: RunKey, work: Coroutine[Any, Any, bool]) -> asyncio.Task[bool]:
        """Start a task for a run."""
        context = copy_context()
        context.run(CURRENT.set, Current(*run))
        task = self.tasks[run] = asyncio.create_task(work, context=context)
        task.add_done_callback(partial(self._done, run))
        return task

    def _done(self, run: RunKey, _task: object) -> None:
        self.tasks.pop(run, None)
        if run in self._again:
            self._again.discard(run)
            self.look_at(run)


def start_task(work: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
    """Start a task that is in a set until it is done."""
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
