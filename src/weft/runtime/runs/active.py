"""A run in memory. Signals and effect results are processed one at a time, in arrival order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, TypeVar

from weft.context.prompt import Assembly
from weft.engine.commands import CallTool
from weft.engine.commands import Effect as Command
from weft.engine.events import Event, EventData, RequestOpened, RunEnded
from weft.engine.rows import Batch, RunRow
from weft.engine.state import State
from weft.engine.turn.run import last_event
from weft.errors import PortError, RunError, StoreConflict
from weft.findings import Json
from weft.ports.dispatcher import RunKey
from weft.ports.scope import Scope
from weft.runtime.perform import Performer
from weft.runtime.runs.decision import CallCheck, Decision, NewEvent
from weft.runtime.runs.effects import Delivery, Effect, Effects, Inbox, NewEvents
from weft.runtime.runs.writer import RunWriter
from weft.runtime.workflow import Workflow

T = TypeVar("T")

_log: Final = logging.getLogger("weft.runtime")


class ActiveRun:
    """A run that this process works on.

    One task at a time processes the inbox. A task that has performed an effect processes its result
    and continues with the effect that follows, so that a run of single turns is one task.
    """

    def __init__(
        self,
        writer: RunWriter,
        performer: Performer,
        on_left: Callable[["ActiveRun", Exception | None], None],
    ) -> None:
        #: The tenant and the run.
        self.key: Final[RunKey] = writer.key
        self.scope: Final[Scope] = writer.scope
        #: The workflow it was started with.
        self.workflow: Final[Workflow] = writer.workflow
        self._writer = writer
        self._performer = performer
        self._on_left = on_left
        self._inbox = Inbox(self._write_result)
        self._effects = Effects()
        self._waiters: list[asyncio.Future[None]] = []
        #: The task that processes the inbox, or is about to.
        self._drain_task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        #: Set while all tools wait for a person: the run is evicted when it fires.
        self._eviction: asyncio.TimerHandle | None = None

    @property
    def state(self) -> State:
        """The current state."""
        return self._writer.state

    @property
    def row(self) -> RunRow | None:
        """The summary of the run as this process wrote it last."""
        return self._writer.row

    def deliver(self, new: NewEvents, check: CallCheck) -> asyncio.Future[list[Event]]:
        """Append events from outside the run.

        The future resolves with the appended events once they are durable.
        """
        return self._enqueue(partial(self._write, new, check))

    def start_pending_effects(self) -> None:
        """Start every pending effect that is not already running in this process."""
        self._post(self._start_pending)

    def begin(self, written: Batch, state: State) -> asyncio.Future[None]:
        """Write the events that led to a state, and continue from there."""
        return self._enqueue(partial(self._begin_with, written, state))

    def catch_up(self) -> asyncio.Future[None]:
        """Read what another process has written."""
        return self._enqueue(self._catch_up)

    async def release(self) -> None:
        """Stop working on the run without ending it. Any process can resume it from the journal."""
        if self._leaving is None and self._is_working():
            self._leaving = asyncio.create_task(self._stop_working())
        if self._leaving is not None:
            # Shielded: cancelling one waiter must not cancel the shutdown for the others.
            await asyncio.shield(self._leaving)

    async def _stop_working(self) -> None:
        try:
            if self._drain_task is not None:
                self._drain_task.cancel()
                await asyncio.gather(self._drain_task, return_exceptions=True)
            if self._is_working():  # No task was processing the inbox, or it had not begun.
                self._drain_task = asyncio.current_task()
                await self._end(None)
        finally:
            self._leaving = None

    @property
    def is_idle(self) -> bool:
        """Whether the run waits for a person or a timer, has ended, or is not worked on."""
        return not self._is_working() or (self._drain_task is None and self._has_no_work())

    async def wait_until_idle(self) -> None:
        """Return when the run waits for a person, has ended, or is no longer worked on."""
        if not self.is_idle:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter

    def ask(self, command: CallTool, opened: RequestOpened) -> None:
        """Open a question for a tool."""
        new = NewEvent(f"tool:{command.tool}", opened, command.seq, command.turn)
        self._post(partial(self._write_result, (new,)))

    async def note(self, command: CallTool, data: EventData) -> None:
        """Write an event of a call that is under way, and return when it is durable."""
        new = NewEvent(f"tool:{command.tool}", data, command.seq, command.turn)
        await self._enqueue(partial(self._write_result, (new,)))

    async def answer(self, command: CallTool, opened: RequestOpened) -> Json:
        """Wait, in a tool, for the answer to its question."""
        return await self._effects.answered(command.id, opened.number)

    @property
    def has_waiting_tools(self) -> bool:
        """Whether tools wait here for a person; the answer may arrive in another process."""
        return self._effects.has_waiting_tools

    def _enqueue(self, work: Callable[[], Awaitable[T]]) -> asyncio.Future[T]:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._post(work, done)
        return done

    def _post(
        self, work: Callable[[], Awaitable[Any]], done: asyncio.Future[Any] | None = None
    ) -> None:
        if self._eviction is not None:
            self._cancel_eviction()
        self._inbox.put(Delivery(work, done))
        if self._drain_task is None:
            # In the context of the host: the run outlives the caller.
            context = self._performer.context.copy()
            self._drain_task = asyncio.create_task(self._begin_draining(), context=context)

    def _is_working(self) -> bool:
        return self._drain_task is not None or bool(self._effects)

    def _has_no_work(self) -> bool:
        """Tell whether there is nothing to do but to wait."""
        return not self._inbox.items and (
            self._writer.state.status in ("waiting", "ended") or self._effects.all_wait
        )

    async def _begin_draining(self) -> None:
        await self._performer.pace.turn()
        await self._run_effects(await self._drain_inbox())

    async def _run_effects(self, effect: Effect | None) -> None:
        """Perform an effect and process its result, repeating while a follow-up is assigned."""
        while effect is not None:
            result = await self._effects.perform(effect)
            if result is None:
                return
            self._inbox.put(result)
            if self._drain_task is not None:
                return
            self._drain_task = asyncio.current_task()
            effect = await self._drain_inbox()

    async def _drain_inbox(self) -> Effect | None:
        """Process everything in the inbox; return the effect that this task performs next."""
        fault: Exception | None = None
        over = True
        if self._eviction is not None:
            self._cancel_eviction()
        try:
            while self._inbox.items:
                await self._inbox.take().perform()
                if self._writer.state.status == "ended":
                    await self._effects.drop()
                if self._waiters and self._has_no_work():
                    self._notify_waiters()
            over = not self._effects
        except Exception as error:  # noqa: BLE001 - reported to everything that waits for the run
            _report(self._writer.state.run, error)
            fault = error
        finally:
            if over:
                await self._end(fault)
        if over:
            return None
        self._drain_task = None
        if self._effects.all_wait:
            # Kept in memory for a while; afterwards the journal resumes it when a person answers.
            self._eviction = self._performer.holding.begin(partial(self._post, self._evict))
        return self._effects.take()

    async def _end(self, fault: Exception | None) -> None:
        """Drop all effects, and fail or notify everything that waits for the run here."""
        if self._eviction is not None:
            self._cancel_eviction()
        try:
            await self._effects.drop()
        finally:
            self._drain_task = None
            self._inbox.fail_waiters(fault or RunError("the host was closed; nothing was written"))
            self._notify_waiters()
            self._on_left(self, fault)

    async def _evict(self) -> None:
        if self._effects.all_wait:  # An answer may have arrived in the same moment.
            await self._effects.drop()

    def _cancel_eviction(self) -> None:
        eviction, self._eviction = self._eviction, None
        if eviction is not None:
            self._performer.holding.end(eviction)

    def _notify_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _write_result(self, new: NewEvents) -> None:
        """Write the result of an effect; one that cannot be stored ends the run with the reason."""
        try:
            await self._write(new)
        except (StoreConflict, RunError):
            raise
        except Exception as error:  # else the effect would be repeated for ever
            if isinstance(error, PortError) and error.retryable:
                raise
            reason = f"the result of {new[-1].actor} could not be stored: {error}"
            last = last_event(self._writer.workflow.compiled, "failed", reason)
            if self._writer.state.ending is not None:  # The end itself cannot be prepared.
                last = RunEnded("failed", reason)
            await self._write((NewEvent("engine", last),))

    async def _write(self, new: NewEvents, check: CallCheck | None = None) -> list[Event]:
        try:
            decision = await self._writer.write(new, check)
            await self._follow(decision)
            return [] if decision is None else decision.events
        finally:  # Another process may have answered what is asked here.
            await self._effects.drop_answered_elsewhere(self._writer.state)

    async def _begin_with(self, written: Batch, state: State) -> None:
        await self._writer.begin(written, state)
        self.start_pending_effects()

    async def _catch_up(self) -> None:
        if await self._writer.catch_up():
            await self._effects.drop_answered_elsewhere(self._writer.state)

    async def _start_pending(self) -> None:
        if self._inbox.results:
            self._post(
                self._start_pending
            )  # Effects that seem to be missing may be among these results.
            return
        # Another process may have worked on it since it was loaded.
        decision = await self._writer.continue_run()
        await self._effects.drop_answered_elsewhere(self._writer.state)
        if decision is not None:
            missing = [
                effect for effect in decision.effects if effect_id(effect) not in self._effects
            ]
            await self._follow(decision._replace(effects=missing))

    async def _follow(self, decision: Decision | None) -> None:
        """Start the effects that a decision asks for, and drop those that no turn waits for."""
        if decision is None:
            return
        if decision.events:
            self._performer.tell(decision)
            await self._effects.drop_unwanted(self._writer.state)
        for command in decision.effects:
            self._start(command, decision.assemblies)

    def _start(self, command: Command, assemblies: dict[int, Assembly]) -> None:
        # A tool that stopped waiting for its answer may be running or done: it is not called again.
        if isinstance(command, CallTool) and (
            self._effects.answer(command) or self._is_called(command)
        ):
            return
        work = self._performer.perform(self, command, assemblies.get(command.seq))
        self._begin(Effect(effect_id(command), command, work))

    def _is_called(self, command: CallTool) -> bool:
        """Tell whether a tool is running, or its result waits in the inbox."""
        results = self._inbox.results
        return command.id in self._effects or any(
            result[-1].cause == command.seq for result in results
        )

    def _begin(self, effect: Effect) -> None:
        """Perform an effect: the first one in the current task, others in tasks of their own."""
        if not self._effects.keep(effect):
            self._effects.begun(effect, asyncio.create_task(self._run_effects(effect)))


def effect_id(command: Command) -> str:
    """Return the name of an effect within its run; that of a tool is its call."""
    if isinstance(command, CallTool):
        return command.id
    return f"{type(command).__name__}:{command[0]}:{command.seq}"


def _report(run: str, error: Exception) -> None:
    """Log why this process stops working on a run, with the traceback of an unexpected error."""
    explained = isinstance(error, RunError) and error.__cause__ is None
    _log.error("stopped working on run %s: %s", run, error, exc_info=not explained)
