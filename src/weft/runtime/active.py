"""A run in memory: one task owns its state; results and signals reach it through one queue."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from weft.context.assembly import Assembly
from weft.engine.commands import Assemble, CallModel, CallTool, Command
from weft.engine.events import RequestOpened
from weft.engine.reduce import fold, pending
from weft.engine.rows import batch
from weft.engine.state import State
from weft.errors import StoreConflict
from weft.findings import Json
from weft.ports.scope import Scope
from weft.runtime.decision import Decision, Draft, decide
from weft.runtime.perform import Performer
from weft.runtime.workflow import Workflow

#: How often a step is decided anew because another process has written in between.
MAX_CONFLICTS: Final = 10


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something that comes in: drafts, who waits for them to be written, and what must hold."""

    drafts: tuple[Draft, ...]
    written: asyncio.Future[None] | None = None
    #: Raises if the state does not allow it.
    allowed: Callable[[State], None] | None = None


class ActiveRun:
    """A run while something is done for it."""

    def __init__(
        self,
        *,
        scope: Scope,
        workflow: Workflow,
        state: State,
        performer: Performer,
        on_left: Callable[["ActiveRun"], None],
    ) -> None:
        self.scope = scope
        self.workflow = workflow
        self.state = state
        self._performer = performer
        self._on_left = on_left
        self._inbox: asyncio.Queue[Delivery] = asyncio.Queue()
        self._effects: set[asyncio.Task[None]] = set()
        #: Tools that wait for a person, by call: the answer goes to them while they are here.
        self._asking: dict[str, asyncio.Future[Json]] = {}
        self._task: asyncio.Task[None] | None = None

    def post(self, delivery: Delivery) -> None:
        """Let something come in; it is taken in the order of arrival."""
        self._inbox.put_nowait(delivery)
        self.wake()

    def wake(self) -> None:
        """Do what there is to do, if nobody is at it."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._live())

    async def leave(self) -> None:
        """Give the run up without ending it: it goes on from its journal some other time."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, *self._effects, return_exceptions=True)

    async def _live(self) -> None:
        try:
            for command in pending(self.state):
                self._start(command, None)
            while not self._idle():
                await self._take(await self._next())
        finally:
            for effect in self._effects:
                effect.cancel()
            self._on_left(self)

    def _idle(self) -> bool:
        return not self._effects and self._inbox.empty() and self.state.status != "running"

    async def _next(self) -> Delivery:
        """Wait for the next delivery; a run that only waits for people does not wait here long."""
        if len(self._asking) < len(self._effects) or self.state.status != "waiting":
            return await self._inbox.get()
        try:
            return await asyncio.wait_for(self._inbox.get(), self._performer.hold_seconds)
        except TimeoutError:
            for effect in self._effects:
                effect.cancel()
            await asyncio.gather(*self._effects, return_exceptions=True)
            return Delivery(())

    async def _take(self, delivery: Delivery) -> None:
        try:
            if delivery.allowed is not None:
                delivery.allowed(self.state)
            if delivery.drafts:
                await self._write(delivery.drafts)
        except Exception as error:  # the outcome belongs to whoever waits for it
            if delivery.written is None:
                raise
            if not delivery.written.done():
                delivery.written.set_exception(error)
        else:
            if delivery.written is not None and not delivery.written.done():
                delivery.written.set_result(None)

    async def _write(self, drafts: tuple[Draft, ...]) -> None:
        for _ in range(MAX_CONFLICTS):
            decision = decide(self.workflow, self.state, drafts, self._performer.clock.now())
            try:
                await self._performer.journal.append(
                    batch(self.state, decision.state, decision.events)
                )
            except StoreConflict:
                await self._reload()
            else:
                self._follow(decision)
                return
        raise StoreConflict(f"{self.state.run} is written to by somebody else all the time")

    async def _reload(self) -> None:
        """Somebody else has written: start from what is there now."""
        events = await self._performer.journal.read(self.scope, self.state.run)
        self.state = fold(self.workflow.book, self.state.run, events)

    def _follow(self, decision: Decision) -> None:
        self.state = decision.state
        self._performer.tell(self.state.run)
        if self.state.status == "ended":
            for effect in self._effects:
                effect.cancel()
        for command in decision.effects:
            self._start(command, decision.assembly)

    def _start(self, command: Command, assembly: Assembly | None) -> None:
        if isinstance(command, CallTool):
            waiting = self._asking.pop(command.id, None)
            if waiting is not None:
                if not waiting.done():
                    waiting.set_result(command.answers[-1])
                return
            self._spawn(self._performer.call_tool(self, command))
        elif isinstance(command, CallModel):
            self._spawn(self._performer.call_model(self, command, assembly))
        elif isinstance(command, Assemble):  # of a turn that was interrupted before it
            self._inbox.put_nowait(Delivery(self._performer.assemble(self, command)))

    def _spawn(self, work: Coroutine[Any, Any, tuple[Draft, ...]]) -> None:
        task = asyncio.create_task(self._finish(work))
        self._effects.add(task)
        task.add_done_callback(self._effects.discard)

    async def _finish(self, work: Coroutine[Any, Any, tuple[Draft, ...]]) -> None:
        drafts = await work
        # No effect any more once its result is in: a run with nothing else to do may leave then.
        self._effects.discard(asyncio.current_task())  # pyright: ignore[reportArgumentType]
        self.post(Delivery(drafts))

    async def ask(self, call: str, opened: RequestOpened) -> Json:
        """Open a question for a tool and wait for the answer."""
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._asking[call] = answer
        self.post(Delivery((Draft(f"tool:{opened.tool}", opened),)))
        try:
            return await answer
        finally:
            self._asking.pop(call, None)
