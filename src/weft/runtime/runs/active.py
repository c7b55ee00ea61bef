"""A run in memory. Signals and effect results are processed one at a time, in arrival order."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from weft.context.prompt import Assembly
from weft.engine.commands import CallTool
from weft.engine.commands import Effect as Command
from weft.engine.events import (
    Event,
    EventData,
    RequestOpened,
    RunEnded,
    RunStarted,
    SurfaceShown,
)
from weft.engine.rows import Batch, RunRow
from weft.engine.state import State
from weft.engine.turn.calls import held_reply
from weft.engine.turn.run import last_event
from weft.errors import PortError, RunError, RunOwned, StoreConflict
from weft.findings import Json
from weft.ports.scope import Scope
from weft.ports.store import RunKey
from weft.runtime.perform import Performer
from weft.runtime.runs.decision import CallCheck, Decision, NewEvent
from weft.runtime.runs.effects import (
    Delivery,
    Effect,
    Effects,
    Inbox,
    NewEvents,
    is_wanted,
    marked_as_repeated,
    repeated_text,
)
from weft.runtime.runs.run_tasks import CURRENT, Current
from weft.runtime.runs.writer import RunWriter
from weft.runtime.tools.forms import APPROVAL
from weft.runtime.workflow import Workflow

T = TypeVar("T")

_log: Final = logging.getLogger("weft.runtime")

#: Seconds between two checks whether this process owns a run whose effect is to begin.
HOLD_SECONDS: Final = 0.02


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
        #: The effects that another worker has abandoned, and that worker.
        self._left_by: dict[str, str] = {}
        #: The effects that must not begin now.
        self._held_back: set[str] = set()
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

    @property
    def model(self) -> str | None:
        """The model that answers for every agent; a run that begins with mail has no events yet."""
        start = self._writer.start
        if self.state.seq or start is None or not isinstance(start.data, RunStarted):
            return self.state.model
        return start.data.model

    @property
    def held_by(self) -> str:
        """The owner under which this process holds the run in the store; empty if it does not."""
        return self._writer.held_by

    def warn_of_take_over(self, why: str, *seqs: int) -> None:
        """Log that another process owns the run, and which calls it may repeat."""
        keys = ", ".join(f"{'/'.join(self.key)}:{seq}" for seq in seqs or self._effects.seqs)
        again = f"; its current call {keys} may be repeated" if keys else ""
        _log.warning("run %s was taken over%s%s", self.key[1], why, again)

    def rename_owner(self, owner: str) -> None:
        """Update the id under which this process owns the run."""
        self._writer.held_by = owner

    def deliver(self, new: NewEvents, check: CallCheck) -> asyncio.Future[list[Event]]:
        """Append events from outside the run.

        The future resolves with the appended events once they are durable.
        """
        return self._enqueue(partial(self._write, new, check))

    def attend(self, *, owner: str = "") -> asyncio.Future[None]:
        """Take unread mail, process what is due, and start the effects that are not running.

        `owner` is given when this process has just become the owner of the run: other processes
        may have written since it was loaded.
        """
        return self._enqueue(partial(self._attend, owner))

    def begin(self, written: Batch, state: State) -> asyncio.Future[None]:
        """Write the first events of a run, and continue from there."""
        return self._enqueue(partial(self._begin_with, written, state))

    def catch_up(self) -> asyncio.Future[bool]:
        """Read the events of another process; the future's result is whether there were any."""
        return self._enqueue(self._writer.catch_up)

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
    def is_performing(self) -> bool:
        """Whether an effect that needs no person is under way, or its result is being written."""
        return self._drain_task is not None or bool(self._effects.performed - self._held_back)

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
        """Open a question for a tool; the reply that it was called with is sent before."""
        self._post(partial(self._write_result, self._of_call(command, opened)))

    async def note(self, command: CallTool, data: EventData) -> None:
        """Write an event of a call that is under way, and return when it is durable."""
        await self._enqueue(partial(self._write_result, self._of_call(command, data)))

    def _of_call(self, command: CallTool, data: EventData) -> NewEvents:
        """Return an event of a call; before a question or surface, the reply that is held back.

        A call that a person has still to approve shows nothing.
        """
        is_approval = isinstance(data, RequestOpened) and (data.tool or "").startswith(APPROVAL)
        shows = isinstance(data, RequestOpened | SurfaceShown) and not is_approval
        sent = held_reply(self.state, command.turn) if shows else ()
        actor = f"tool:{command.tool}"
        return tuple(NewEvent(actor, each, command.seq, command.turn) for each in (*sent, data))

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
        self._inbox.append(Delivery(work, done))
        if self._drain_task is None:
            # In the context of the host: the run outlives the caller.
            context = self._performer.context.copy()
            self._drain_task = asyncio.create_task(self._begin_draining(), context=context)

    def _is_working(self) -> bool:
        return self._drain_task is not None or bool(self._effects)

    def _has_no_work(self) -> bool:
        """Return whether the run only waits."""
        return not self._inbox and (
            self._writer.state.status in ("waiting", "ended") or self._effects.all_wait
        )

    async def _begin_draining(self) -> None:
        CURRENT.set(Current(*self.key))
        await self._performer.pace.turn()
        await self._run_effects(await self._drain_inbox())

    async def _run_effects(self, effect: Effect | None) -> None:
        """Perform an effect and process its result, repeating while a follow-up is assigned."""
        ownership = self._performer.ownership
        while effect is not None:
            # Another process may own the run soon, or owns it already: then this task is cancelled.
            while not ownership.is_safe or self._writer.held_by != ownership.owner:
                self._held_back.add(effect.name)
                try:
                    await ownership.wait_until_safe()
                    if self._writer.held_by != ownership.owner:  # A write may say so in a moment.
                        await asyncio.sleep(HOLD_SECONDS)
                finally:
                    self._held_back.discard(effect.name)
            CURRENT.set(Current(*self.key, effect.command.seq))
            result = await self._effects.perform(effect)
            if result is None:
                return
            abandoned_by = self._left_by.pop(effect.name, "")
            if abandoned_by and isinstance(result, tuple):
                result = marked_as_repeated(result, abandoned_by)
            self._inbox.append(result)
            if self._drain_task is not None:
                return
            self._drain_task = asyncio.current_task()
            effect = await self._drain_inbox()

    async def _drain_inbox(self) -> Effect | None:
        """Process everything in the inbox; return the effect that this task performs next."""
        fault: Exception | None = None
        lost: RunOwned | None = None
        over = True
        if self._eviction is not None:
            self._cancel_eviction()
        try:
            await self._process_inbox()
            over = not self._effects
        except RunOwned as error:  # Another process continues it.
            _log.info("stopped working on run %s: %s", self._writer.state.run, error)
            if self._effects.seqs:
                self.warn_of_take_over("")
            lost = error
        except Exception as error:  # noqa: BLE001 - reported to everything that waits for the run
            _report(self._writer.state.run, error)
            fault = error
        finally:
            if over:
                await self._end(fault, lost)
        if over:
            return None
        self._drain_task = None
        if self._effects.all_wait:
            # Kept in memory for a while; afterwards the journal resumes it when a person answers.
            self._eviction = self._performer.holding.begin(partial(self._post, self._evict))
        return self._effects.take()

    async def _process_inbox(self) -> None:
        """Process everything in the inbox and all mail; free the run if nothing is under way."""
        writer = self._writer
        while True:
            while self._inbox:
                await self._inbox.process_next()
                if writer.state.status == "ended":
                    await self._effects.drop()
                    await self._performer.on_ended(self)
                if self._waiters and self._has_no_work():
                    self._notify_waiters()
            if writer.has_mail:
                await writer.take_mail(busy=bool(self._effects))
                await self._follow_written()
            elif not self._effects and writer.held_by:
                await writer.let_go()
            else:
                if writer.state.seq >= writer.snapshot_at:
                    await writer.save_snapshot()
                if not self._inbox:  # Something may have come meanwhile.
                    break
        if self._effects and not writer.held_by:
            raise RunOwned(f"run {writer.state.run} was taken over by another process")

    async def _end(self, fault: Exception | None, lost: RunOwned | None = None) -> None:
        """Drop all effects, and fail or notify all waiters in this process."""
        if self._eviction is not None:
            self._cancel_eviction()
        try:
            if self._effects:
                await self._effects.drop()
        finally:
            self._drain_task = None
            if self._inbox:
                closed = RunError("the host was closed; nothing was written")
                self._inbox.fail_waiters(fault or lost or closed)
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
        """Write the result of an effect; if it cannot be stored, the run fails with the reason."""
        is_refused = False
        try:
            await self._write(new)
            is_refused = self._writer.row is None  # Another process has written instead.
        except (StoreConflict, RunError) as error:
            is_refused = isinstance(error, RunOwned)
            raise
        except Exception as error:  # Otherwise the effect would be repeated for ever.
            if isinstance(error, PortError) and error.retryable:
                raise
            reason = f"the result of {new[-1].actor} could not be stored: {error}"
            last = last_event(self._writer.workflow.compiled, "failed", reason)
            if self._writer.state.ending is not None:  # The end itself cannot be prepared.
                last = RunEnded("failed", reason)
            await self._write((NewEvent("engine", last),))
        finally:
            if is_refused:
                self.warn_of_take_over(": the result of its call is refused", new[-1].cause)

    async def _write(self, new: NewEvents, check: CallCheck | None = None) -> list[Event]:
        try:
            await self._writer.write(new, check, busy=bool(self._effects))
        finally:  # Mail may have been written though these events were refused.
            events = await self._follow_written()
        return events

    async def _begin_with(self, written: Batch, state: State) -> None:
        await self._writer.begin(written, state)
        await self._start_pending()

    async def _attend(self, owner: str) -> None:
        writer = self._writer
        if owner:
            writer.held_by = owner
            await writer.catch_up()
        before = writer.row
        is_left = bool(owner) and writer.state.status == "running"
        abandoned_by = await writer.last_owner() if is_left else ""
        busy = bool(self._effects) or writer.state.status == "running"
        await writer.take_mail(busy=busy)
        await self._follow_written()
        if writer.held_by and writer.state.status == "running":
            # A claim need not be on disk, and leaves the run due: an append changes both.
            if owner and writer.row is before:
                await writer.keep()
            await self._start_pending(abandoned_by)

    async def _start_pending(self, abandoned_by: str = "") -> None:
        """Start the effects that are not running; `abandoned_by` is the previous worker, if any."""
        if self._inbox.results:  # Effects that seem to be missing may be among these results.
            self._post(partial(self._start_pending, abandoned_by))
            return
        pending = await self._writer.continue_run()
        await self._follow_written()
        missing = [effect for effect in pending.effects if effect_id(effect) not in self._effects]
        if abandoned_by:
            for effect in missing:
                self._left_by[effect_id(effect)] = abandoned_by
                key = f"{'/'.join(self.key)}:{effect.seq}"
                _log.warning("call %s is begun: %s", key, repeated_text(abandoned_by))
        await self._follow(pending, missing)

    async def _follow_written(self) -> list[Event]:
        """Follow the decisions that were written, in order; return their events."""
        writer = self._writer
        decisions, writer.decisions = writer.decisions, []
        events: list[Event] = []
        for decision in decisions:
            effects = decision.effects
            if decision is not decisions[-1]:  # A later one may have made an effect obsolete.
                effects = [effect for effect in effects if is_wanted(effect, writer.state)]
            await self._follow(decision, effects)
            events += decision.events
        return events

    async def _follow(self, decision: Decision, effects: Sequence[Command]) -> None:
        """Start effects of a decision, and cancel those that no turn waits for."""
        if decision.events:
            self._performer.tell(decision)
            if self._effects:
                await self._effects.drop_unwanted(self._writer.state)
        for command in effects:
            self._start(command, decision.assemblies)

    def _start(self, command: Command, assemblies: dict[int, Assembly]) -> None:
        # A tool that stopped waiting for its answer may be running or done: it is not called again.
        if isinstance(command, CallTool) and (
            self._effects.answer(command) or self._is_called(command)
        ):
            return
        work = self._performer.perform(self, command, assemblies.get(command.seq))
        effect = Effect(effect_id(command), command, work)
        # The first one is performed in the current task, others in tasks of their own.
        if not self._effects.keep(effect):
            task = asyncio.create_task(self._run_effects(effect))
            self._effects[effect.name] = effect, task

    def _is_called(self, command: CallTool) -> bool:
        """Return whether a tool is running, or its result waits in the inbox."""
        results = self._inbox.results
        return command.id in self._effects or any(
            result[-1].cause == command.seq for result in results
        )


def effect_id(command: Command) -> str:
    """Return the name of an effect within its run; that of a tool is its call."""
    if isinstance(command, CallTool):
        return command.id
    return f"{type(command).__name__}:{command[0]}:{command.seq}"


def _report(run: str, error: Exception) -> None:
    """Log why this process stops working on a run, with the traceback of an unexpected error."""
    explained = isinstance(error, RunError) and error.__cause__ is None
    _log.error("stopped working on run %s: %s", run, error, exc_info=not explained)
