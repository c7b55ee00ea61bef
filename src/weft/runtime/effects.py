"""What the world is doing for a run: models that answer, tools at work, tools that wait."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from weft.engine.commands import CallTool
from weft.engine.state import State
from weft.findings import Json
from weft.runtime.decision import Draft

Drafts: TypeAlias = tuple[Draft, ...]
Work: TypeAlias = Coroutine[Any, Any, Drafts]


@dataclass(frozen=True, slots=True)
class Broken:
    """An effect that ended without a result though nobody dropped it; None stands for cancelled."""

    fault: Exception | None


class Effects:
    """The effects of one run that are under way in this process; `tell` gets what came of each."""

    def __init__(self, tell: Callable[[Drafts | Broken], None]) -> None:
        self._tell = tell
        #: By name: tools by their call.
        self._tasks: dict[str, asyncio.Task[None]] = {}
        #: Of the tools that wait for a person, the question and its answer.
        self._asking: dict[str, tuple[str, asyncio.Future[Json]]] = {}

    def __bool__(self) -> bool:
        return bool(self._tasks)

    @property
    def held(self) -> bool:
        """Whether tools are kept here while they wait for a person, whom others may answer."""
        return bool(self._asking)

    @property
    def only_held(self) -> bool:
        """Whether there is nothing but tools that wait for a person."""
        return 0 < len(self._tasks) <= len(self._asking)

    def begin(self, name: str, work: Work) -> None:
        """Let something be done; its result comes when it is done."""
        self._tasks[name] = asyncio.create_task(self._perform(name, work))

    def answer(self, command: CallTool) -> bool:
        """Give the newest answer to the tool that waits for it here; tell whether there is one."""
        _, waiting = self._asking.pop(command.id, ("", None))
        if waiting is None:
            return False
        if not waiting.done():
            waiting.set_result(command.answers[-1].value)
        return True

    async def answered(self, call: str, request: str) -> Json:
        """Wait, in a tool, for the answer to its question."""
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asking[call] = request, answer
        try:
            return await answer
        finally:
            self._asking.pop(call, None)

    async def drop(self) -> None:
        """Break everything off."""
        await self._drop(list(self._tasks))

    async def drop_strangers(self, state: State) -> None:
        """Break off the tools whose questions others have answered: they call them anew."""
        turn = state.turn
        asked = [it.asks for it in turn.calls.values()] if turn else []
        gone = [call for call, (request, _) in self._asking.items() if request not in asked]
        await self._drop(gone)

    async def _drop(self, names: Iterable[str]) -> None:
        tasks = [self._tasks.pop(name) for name in names]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _perform(self, name: str, work: Work) -> None:
        came: Drafts | Broken = Broken(None)
        try:
            came = await work
        except Exception as error:  # noqa: BLE001 - it is told to whoever waits for the run
            came = Broken(error)
        finally:
            # No effect any more once its result is in: a run with nothing else to do may leave
            # then. What came of something that was dropped is not wanted.
            if self._tasks.pop(name, None) is not None:
                self._tell(came)
