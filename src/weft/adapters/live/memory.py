"""The live stream within one process: a delta is a function call."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeAlias

from weft.ports.live import Delta
from weft.ports.store import RunKey

Receive: TypeAlias = Callable[[Delta], None]


class MemoryLiveStream:
    """Calls the subscribers of each run."""

    def __init__(self) -> None:
        self._subscribers: dict[RunKey, list[Receive]] = {}
        #: Returns whether a run has subscribers.
        self.has_subscribers: Callable[[RunKey], bool] = self._subscribers.__contains__

    def runs(self) -> list[RunKey]:
        """Return the runs that have subscribers."""
        return list(self._subscribers)

    def publish(self, run: RunKey, delta: Delta) -> None:
        """Call all subscribers of a run."""
        for receive in tuple(self._subscribers.get(run, ())):
            receive(delta)

    @contextmanager
    def subscribe(self, run: RunKey, receive: Receive) -> Generator[None]:
        """Call `receive` for every delta of a run inside the block."""
        subscribers = self._subscribers.setdefault(run, [])
        subscribers.append(receive)
        try:
            yield
        finally:
            subscribers.remove(receive)
            if not subscribers:
                del self._subscribers[run]

    async def close(self) -> None:
        """Do nothing: each subscriber ends its own block."""
