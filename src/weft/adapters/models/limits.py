"""Limits of a model call: how long it may take, and how many may run at once."""

import asyncio
from collections.abc import Callable
from typing import Final

from weft.errors import ModelError
from weft.ports.model import Model, ModelReply, ModelRequest

OnText = Callable[[str], None]

#: By which part of its length a time limit may come early.
_GRAIN: Final = 0.05


class TimeLimited:
    """Gives up on a model that is silent for too long.

    The time counts until the whole reply; where it is streamed, it counts anew with every piece, be
    it without words.
    """

    def __init__(self, model: Model, *, name: str, seconds: float) -> None:
        self._model = model
        self._name = name
        self._seconds = seconds

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        try:
            async with asyncio.timeout(self._seconds) as limit:
                return await self._model.reply(request, self._extending(limit, on_text))
        except TimeoutError as error:
            raise ModelError(
                f"no answer from {self._name} within {self._seconds:g} s. Try again later, allow "
                "more time, or name a fallback model.",
                retryable=True,
            ) from error

    def _extending(self, limit: asyncio.Timeout, on_text: OnText | None) -> OnText | None:
        if on_text is None:
            return None
        time = asyncio.get_running_loop().time
        renewed = time()

        def heard(text: str) -> None:
            # Words come by the hundred: the timer is set anew for a few of them only.
            nonlocal renewed
            now = time()
            if now - renewed > self._seconds * _GRAIN:
                renewed = now
                limit.reschedule(now + self._seconds)
            if text:
                on_text(text)

        return heard


class Limited:
    """Lets only so many calls of a model run at once; the others wait their turn."""

    def __init__(self, model: Model, *, at_once: int) -> None:
        self._model = model
        self._places = asyncio.Semaphore(at_once)

    async def reply(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        async with self._places:
            return await self._model.reply(request, on_text)
