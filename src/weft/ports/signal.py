"""Signals: waking the worker that has something to do.

A signal carries no data and may be lost or repeated. The rows of the work queue decide what to do,
and every worker looks at them once a second without any signal.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Signal(Protocol):
    """Wakes workers, in this process or in others."""

    def notify(self, owner: str = "") -> None:
        """Wake the worker that owns a run; without an owner, wake one of those that listen.

        Returns at once and never fails: an adapter that cannot send logs it once.
        """
        ...

    def listen(self, owner: str, wake: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """Call `wake` for every signal to this worker inside the block."""
        ...

    async def close(self) -> None:
        """Stop listening and sending."""
        ...
