"""What a model says while it speaks: pieces of text for whoever follows, kept nowhere."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.engine.events import Event
from weft.ports.dispatcher import RunKey

#: How much waits for a slow follower: later pieces of text are lost, since the reply has all of
#: them, and later events are read from the store.
MOST_WAITING: Final = 10_000


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of what a model is saying; superseded by its reply, and not in the journal.

    `call` is the number of the event that let the model speak, `offset` where the piece begins.
    """

    run: str
    call: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class ModelRetry:
    """A model gave no answer and is about to be asked again; the reply will tell of it as well."""

    run: str
    call: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """How far a tool says it has come; `call` is the number of the event that called it."""

    run: str
    call: int
    tool: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more comes."""


@dataclass(frozen=True, slots=True)
class Left:
    """This process does not work on the run any more."""


Delta: TypeAlias = TextDelta | ModelRetry | ToolProgress
#: What one follower gets: events and pieces of text.
News: TypeAlias = "asyncio.Queue[Event | Delta | Ended | Left]"


class Speech:
    """Who listens to the models of which run."""

    def __init__(self) -> None:
        self._listening: dict[RunKey, set[News]] = {}
        #: What is kept for listeners who are about to come.
        self._expected: dict[RunKey, News] = {}

    def expect(self, run: RunKey) -> None:
        """Keep what is said in a run for a listener who is about to come."""
        if run not in self._expected:
            self._expected[run] = self._add(run, asyncio.Queue(MOST_WAITING))

    def forget(self, run: RunKey) -> None:
        """Keep nothing any longer for a listener who has not come."""
        if run in self._expected:
            self._remove(run, self._expected.pop(run))

    @contextmanager
    def listening(self, run: RunKey) -> Generator[News]:
        """Get what is said in a run for a while."""
        queue = self._expected.pop(run, None) or self._add(run, asyncio.Queue(MOST_WAITING))
        try:
            yield queue
        finally:
            self._remove(run, queue)

    def is_heard(self, run: RunKey) -> bool:
        """Tell whether anybody listens to a run."""
        return run in self._listening

    def listener(self, run: RunKey, call: int) -> Callable[[str], None]:
        """Return what is to be called with pieces of the text of a model call."""
        offset = 0

        def say(text: str) -> None:
            nonlocal offset
            self.tell(run, TextDelta(run[1], call, offset, text))
            offset += len(text)

        return say

    def tell(self, run: RunKey, delta: Delta) -> None:
        """Hand something to whoever listens."""
        for queue in self._listening.get(run, ()):
            if not queue.full():
                queue.put_nowait(delta)

    def left(self, run: RunKey) -> None:
        """Say that this process does not work on a run any more."""
        self.forget(run)
        for queue in self._listening.get(run, ()):
            if not queue.full():
                queue.put_nowait(Left())

    def _add(self, run: RunKey, queue: News) -> News:
        self._listening.setdefault(run, set()).add(queue)
        return queue

    def _remove(self, run: RunKey, queue: News) -> None:
        self._listening[run].discard(queue)
        if not self._listening[run]:
            del self._listening[run]
