"""Who follows which run, and how they learn that there is something new."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

#: How often a follower looks for events that another process may have written.
POLL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of what a model is saying; superseded by its reply, and not in the journal.

    `call` is the number of the event that let the model speak, `offset` where the piece begins.
    """

    run: str
    call: int
    offset: int
    text: str


#: Pieces of text as they come; None says: look into the journal.
News: TypeAlias = asyncio.Queue[TextDelta | None]


class Followers:
    """The followers of all runs of a host."""

    def __init__(self) -> None:
        self._queues: dict[str, set[News]] = {}
        #: What is kept for followers who are about to come.
        self._expected: dict[str, News] = {}

    def expect(self, run: str) -> None:
        """Keep the news of a run for somebody who is about to follow it."""
        if run not in self._expected:
            queue = self._expected[run] = asyncio.Queue()
            self._queues.setdefault(run, set()).add(queue)

    def forget(self, run: str) -> None:
        """Do not keep news any longer for somebody who has not come."""
        if run in self._expected:
            self._remove(run, self._expected.pop(run))

    @contextmanager
    def following(self, run: str) -> Generator[News]:
        """Get the news of a run for a while."""
        queue = self._expected.pop(run, None) or asyncio.Queue()
        self._queues.setdefault(run, set()).add(queue)
        try:
            yield queue
        finally:
            self._remove(run, queue)

    def _remove(self, run: str, queue: News) -> None:
        self._queues[run].discard(queue)
        if not self._queues[run]:
            del self._queues[run]

    def tell(self, run: str) -> None:
        """Let followers know that something was written."""
        for queue in self._queues.get(run, ()):
            queue.put_nowait(None)

    def listener(self, run: str, call: int) -> Callable[[str], None] | None:
        """Return what is to be called with pieces of text, or None if nobody follows the run."""
        if run not in self._queues:
            return None
        offset = 0

        def say(text: str) -> None:
            nonlocal offset
            delta = TextDelta(run, call, offset, text)
            offset += len(text)
            for queue in self._queues.get(run, ()):
                queue.put_nowait(delta)

        return say


async def next_delta(news: News) -> TextDelta | None:
    """Return the next piece of text, or None when it is time to look into the journal."""
    # Not `wait_for`: in Python 3.11 it can miss that its caller was cancelled.
    try:
        async with asyncio.timeout(POLL_SECONDS):
            return await news.get()
    except TimeoutError:
        return None
