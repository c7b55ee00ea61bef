"""Time and identities: the only place they enter from, but for what a sender calls a message."""

from typing import Protocol


class Clock(Protocol):
    """Tells the time, waits, and makes ids that cannot be guessed."""

    def now(self) -> int:
        """Return the milliseconds since 1970."""
        ...

    def new_id(self) -> str:
        """Return an identity that sorts by time and cannot be guessed."""
        ...

    async def sleep_until(self, at: int) -> None:
        """Return when the time has come."""
        ...
