"""What the world is doing for a run: models that answer, tools at work, tools that wait."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from weft.engine.commands import CallTool
from weft.engine.state import State
from weft.findings import Json
from weft.runtime.decision import Draft

Work: TypeAlias = Coroutine[Any, Any, tuple[Draft, ...]]


class Effects:
    """The effects of one run that are under way in this process.

    `on_result` is given what came of an effect; `on_fault` why one ended without a result though
    nobody dropped it, None standing for cancelled.
    """

    def __init__(
        self,
        on_result: Callable[[tuple[Draft, ...]], None],
        on_fault: Callable[[BaseException | None], None],
    ) -> None:
        self._on_result = on_result
        self._on_fault = on_fault
        self._tasks: set[asyncio.Task[None]] = set()
        #: Tools at work, by call; of those that wait for a person, the question and its answer.
        self._tools: dict[str, asyncio.Task[None]] = {}
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

    def begin(self, work: Work) -> asyncio.Task[None]:
        """Let something be done; its result comes when it is done."""
        task = asyncio.create_task(self._finish(work))
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def begin_call(self, call: str, work: Work) -> None:
        """Let a tool be called."""
        self._tools[call] = task = self.begin(work)
        task.add_done_callback(lambda _: self._tools.pop(call, None))

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
        await self._drop(set(self._tasks))

    async def drop_strangers(self, state: State) -> None:
        """Break off the tools whose questions others have answered: they call them anew."""
        turn = state.turn
        asked = [it.asks for it in turn.calls.values()] if turn else []
        gone = [call for call, (request, _) in self._asking.items() if request not in asked]
        await self._drop({self._tools[call] for call in gone})

    async def _drop(self, tasks: set[asyncio.Task[None]]) -> None:
        self._tasks -= tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _finish(self, work: Work) -> None:
        drafts = await work
        # No effect any more once its result is in: a run with nothing else to do may leave then.
        self._tasks.discard(asyncio.current_task())  # pyright: ignore[reportArgumentType]
        self._on_result(drafts)

    def _over(self, task: asyncio.Task[None]) -> None:
        if task in self._tasks:
            self._tasks.discard(task)
            self._on_fault(None if task.cancelled() else task.exception())
