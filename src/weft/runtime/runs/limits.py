"""How many runs work in one round of the event loop, and how many wait in memory for a person."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

#: Few enough that a round is over soon, and many enough that what they write shares a transaction.
AT_ONCE: Final = 64


class Pace:
    """Lets a few runs go on in each round of the event loop, in the order they came.

    A round does one thing for everybody. If a thousand replies come together and all may go on,
    the first request is not sent before the last run has decided; if a few may, the models of the
    first are at work while the others decide.
    """

    def __init__(self) -> None:
        #: How many have gone on in this round; while there are any, the next round is announced.
        self._gone = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Return when whoever asks may go on: at once, unless many have done so in this round."""
        loop = asyncio.get_running_loop()
        if not self._gone:
            loop.call_soon(self._next_round)
        if self._gone < AT_ONCE:
            self._gone += 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self) -> None:
        self._gone = min(AT_ONCE, len(self._waiting))
        if self._gone:
            asyncio.get_running_loop().call_soon(self._next_round)
        for _ in range(self._gone):
            turn = self._waiting.popleft()
            if not turn.done():  # Whoever waited for it was cancelled.
                turn.set_result(None)


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
