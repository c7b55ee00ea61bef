"""The dispatcher of one process: whoever asks, works."""

from collections.abc import Awaitable, Callable

from weft.ports.dispatcher import RunKey


class LocalDispatcher:
    """Every run is worked on here; waking one is a function call."""

    def __init__(self) -> None:
        self._work: Callable[[RunKey], Awaitable[None]] | None = None

    def mine(self, run: RunKey) -> bool:  # noqa: ARG002 - whichever it is
        """Tell that this process works on a run."""
        return True

    async def wake(self, run: RunKey) -> None:
        """Work on a run until it rests."""
        if self._work is not None:
            await self._work(run)

    async def serve(self, work: Callable[[RunKey], Awaitable[None]]) -> None:
        """Let runs be taken up with this function."""
        self._work = work

    async def close(self) -> None:
        """Wake nobody any more."""
        self._work = None
