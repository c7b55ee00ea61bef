"""Runs that stay in memory only because their tools wait for a person: how many, and how long."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

HOLD_SECONDS: Final = 300.0
MOST_HELD: Final = 500


@dataclass
class Holding:
    """The runs of a host that are held; more than the most are let go at once."""

    seconds: float = HOLD_SECONDS
    most: int = MOST_HELD
    _held: int = 0

    def begin(self, let_go: Callable[[], None]) -> asyncio.TimerHandle:
        """Hold one more run, and have it let go when its time is over."""
        self._held += 1
        seconds = self.seconds if self._held <= self.most else 0
        return asyncio.get_running_loop().call_later(seconds, let_go)

    def end(self, timer: asyncio.TimerHandle) -> None:
        """Hold a run no longer: something is to be done for it, or it was let go."""
        self._held -= 1
        timer.cancel()
