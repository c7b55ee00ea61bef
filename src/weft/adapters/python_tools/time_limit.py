"""How long a call may take. The time a person takes to answer does not count."""

import asyncio
from types import TracebackType
from typing import Self

from weft.findings import Json
from weft.ports.tools import AskPerson


class TimeLimit:
    """Time that runs out, except while somebody is asked; `over` is done when it has."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._left = seconds
        self._questions = 0
        self.over: asyncio.Future[None] = self._loop.create_future()

    def __enter__(self) -> Self:
        self._run()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self.over.cancel()

    def pausing(self, ask: AskPerson) -> AskPerson:
        """Return a way to ask that stops the clock; several questions may be open at once."""

        async def asked(tool: str, payload: Json, seconds: float | None, otherwise: Json) -> Json:
            if not self._questions:
                self._timer.cancel()
                self._left -= self._loop.time() - self._began
            self._questions += 1
            try:
                return await ask(tool, payload, seconds, otherwise)
            finally:
                self._questions -= 1
                if not self._questions and not self.over.done():
                    self._run()

        return asked

    def _run(self) -> None:
        self._began = self._loop.time()
        self._timer = self._loop.call_later(self._left, self._expire)

    def _expire(self) -> None:
        self.over.set_result(None)
