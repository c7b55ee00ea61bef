"""The live stream of a run: text while a model writes it, progress of tools; it is not stored."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from weft.ports.store import RunKey


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a reply while the model writes it; superseded by the reply, and not stored.

    `call` is the number of the event that started the model call, `offset` where the piece begins.
    """

    run: str
    call: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class ModelRetry:
    """A model call failed and is about to be repeated; the reply records it as well."""

    run: str
    call: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """The progress that a tool reports; `call` is the number of the event that called it."""

    run: str
    call: int
    tool: str
    share: float
    text: str


Delta: TypeAlias = TextDelta | ModelRetry | ToolProgress


class LiveStream(Protocol):
    """Carries deltas from the worker of a run to its subscribers, which may be in other processes.

    Deltas may be lost; those of one model call arrive in order. Deltas that cross processes are
    merged: at most one message in 50 ms.
    """

    def has_subscribers(self, run: RunKey, /) -> bool:
        """Return whether a run has subscribers in any process: without one, nothing is streamed."""
        ...

    def publish(self, run: RunKey, delta: Delta) -> None:
        """Send a delta to the subscribers of a run; returns at once and never fails."""
        ...

    def subscribe(
        self, run: RunKey, receive: Callable[[Delta], None]
    ) -> AbstractContextManager[None]:
        """Call `receive` for every delta of a run inside the block."""
        ...

    async def close(self) -> None:
        """Stop sending and receiving."""
        ...
