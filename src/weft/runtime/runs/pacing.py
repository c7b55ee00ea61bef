"""The pace of a host: how many runs go on in one round of the event loop."""

import asyncio
from collections import deque
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
