"""Who works on which run: in one process a function call, across machines an engine's matter.

The journal stays the truth: a dispatcher is quick, not right. Whoever works on a run without being
asked to loses by compare-and-set.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias

#: A run and the tenant it belongs to.
RunKey: TypeAlias = tuple[str, str]


class Dispatcher(Protocol):
    """Wakes workers."""

    def mine(self, run: RunKey) -> bool:
        """Tell whether this process works on a run, so that signals go to it directly."""
        ...

    async def wake(self, run: RunKey) -> None:
        """See to it that a worker takes up a run: something was written to it."""
        ...

    async def serve(self, work: Callable[[RunKey], Awaitable[None]]) -> None:
        """Let a worker take up runs with this function from now on."""
        ...

    async def close(self) -> None:
        """Wake nobody any more."""
        ...
