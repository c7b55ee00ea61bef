"""A run in memory: results and signals reach it through one inbox, one after the other."""

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
    """A run while something is done for it.

    What reaches it is taken in one after the other, by one task at a time. A task that has
    performed an effect takes in what came of it and goes on with what follows from that: a run
    whose agents speak one after the other is one task.
    """

    def __init__(
        self,
        writer: RunWriter,
        performer: Performer,
        on_left: Callable[["ActiveRun", Exception | None], None],
    ) -> None:
        self._writer = writer
        self._performer = performer
        self._on_left = on_left
        self._inbox = Inbox(self._write_result)
        self._effects = Effects()
        self._watchers: list[asyncio.Future[None]] = []
        #: The task that takes in what is in the inbox, or is about to.
        self._drain_task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        #: Runs while there is nothing but tools that wait for a person.
        self._hold: asyncio.TimerHandle | None = None

    @property
    def key(self) -> RunKey:
        """The run and its tenant."""
        return self._writer.key

    @property
    def scope(self) -> Scope:
        return self._writer.scope

    @property
    def workflow(self) -> Workflow:
        """The workflow it was started with."""
        return self._writer.workflow

    @property
    def state(self) -> State:
        """The run as it stands."""
        return self._writer.state

    @property
    def row(self) -> RunRow | None:
        """The run at a glance, as this process wrote it last."""
        return self._writer.row

    def deliver(self, new: NewEvents, check: CallCheck) -> asyncio.Future[list[Event]]:
        """Let something come in from outside.

        The future tells when it is in the journal, with all that was written then.
        """
        return self._post_and_tell(partial(self._write, new, check))

    def take_up(self) -> None:
        """Do what is to be done, unless it is being done here already."""
        self._post(self._start_pending)

    def begin(self, written: Batch, state: State) -> asyncio.Future[None]:
        """Write the events that have led to a state, and go on from there."""
        return self._post_and_tell(partial(self._begin_with, written, state))

    def catch_up(self) -> asyncio.Future[None]:
        """Take in what another process has written."""
        return self._post_and_tell(self._catch_up)

    async def leave(self) -> None:
        """Give the run up without ending it: it goes on from its journal some other time."""
        if self._leaving is None and self._at_work():
            self._leaving = asyncio.create_task(self._stop_working())
        if self._leaving is not None:
            # Whoever does not want to wait may go, and others may wait for it too.
            await asyncio.shield(self._leaving)

    async def _stop_working(self) -> None:
        try:
            if self._drain_task is not None:
                self._drain_task.cancel()
                await asyncio.gather(self._drain_task, return_exceptions=True)
            if self._at_work():  # No task was taking in, or had not begun to.
                self._drain_task = asyncio.current_task()
                await self._end(None)
        finally:
            self._leaving = None

    @property
    def resting(self) -> bool:
        """Whether the run waits for somebody, or is not worked on."""
        return not self._at_work() or (self._drain_task is None and self._resting())

    async def rest(self) -> None:
        """Return when the run waits for a person, has ended, or is not worked on any more."""
        if self._at_work() and (self._drain_task is not None or not self._resting()):
            watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watchers.append(watcher)
            await watcher

    def ask(self, command: CallTool, opened: RequestOpened) -> None:
        """Open a question for a tool."""
        new = NewEvent(f"tool:{command.tool}", opened, command.seq, command.turn)
        self._post(partial(self._write_result, (new,)))

    async def note(self, command: CallTool, data: EventData) -> None:
        """Write something that happens in the course of a call, and return when it is written."""
        new = NewEvent(f"tool:{command.tool}", data, command.seq, command.turn)
        await self._post_and_tell(partial(self._write_result, (new,)))

    async def answer(self, command: CallTool, opened: RequestOpened) -> Json:
        """Wait, in a tool, for the answer to its question."""
        return await self._effects.answered(command.id, opened.number)

    @property
    def held(self) -> bool:
        """Whether tools are kept here while they wait for a person, whom others may answer."""
        return self._effects.held

    def _post_and_tell(self, work: Callable[[], Awaitable[T]]) -> asyncio.Future[T]:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._post(work, done)
        return done

    def _post(
        self, work: Callable[[], Awaitable[Any]], done: asyncio.Future[Any] | None = None
    ) -> None:
        self._hold_no_longer()
        self._inbox.put(Delivery(work, done))
        if self._drain_task is None:
            # Not in the context of whoever starts, answers or asks: the run outlives that.
            context = self._performer.context.copy()
            self._drain_task = asyncio.create_task(self._begin_draining(), context=context)

    def _at_work(self) -> bool:
        return self._drain_task is not None or bool(self._effects)

    def _resting(self) -> bool:
        """Tell whether there is nothing to do but to wait; others may work on a held run."""
        return not self._inbox and (
            self._writer.state.status in ("waiting", "ended") or self._effects.only_held
        )

    async def _begin_draining(self) -> None:
        await self._performer.pace.turn()
        await self._go_on(await self._drain_inbox())

    async def _go_on(self, effect: Effect | None) -> None:
        """Perform an effect, take in what came of it, and so on for as long as one follows."""
        while effect is not None:
            came = await self._effects.perform(effect)
            if came is None:
                return
            self._inbox.put(came)
            if self._drain_task is not None:
                return
            self._drain_task = asyncio.current_task()
            effect = await self._drain_inbox()

    async def _drain_inbox(self) -> Effect | None:
        """Take in all that has come; return what this task is to perform next."""
        fault: Exception | None = None
        over = True
        self._hold_no_longer()
        try:
            while self._inbox:
                await self._inbox.take().perform()
                if self._writer.state.status == "ended":
                    await self._effects.drop()
                if self._resting():
                    self._tell_watchers()
            over = not self._effects
        except Exception as error:  # noqa: BLE001 - it is told to whoever waits for the run
            _report(self._writer.state.run, error)
            fault = error
        finally:
            if over:
                await self._end(fault)
        if over:
            return None
        self._drain_task = None
        if self._effects.only_held:
            # Not for long: it is evicted, and goes on from its journal when a person answers.
            self._hold = self._performer.holding.begin(partial(self._post, self._evict))
        return self._effects.take()

    async def _end(self, fault: Exception | None) -> None:
        """Let go of everything: what others do with the run is not waited for."""
        self._hold_no_longer()
        try:
            await self._effects.drop()
        finally:
            self._drain_task = None
            self._inbox.fail_waiters(fault or RunError("the host was closed; nothing was written"))
            self._tell_watchers()
            self._on_left(self, fault)

    async def _evict(self) -> None:
        if self._effects.only_held:  # An answer may have come in the same moment.
            await self._effects.drop()

    def _hold_no_longer(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            self._performer.holding.end(hold)

    def _tell_watchers(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)

    async def _write_result(self, new: NewEvents) -> None:
        """Write what came of an effect. What cannot be written at all ends the run, explained."""
        try:
            await self._write(new)
        except (StoreConflict, RunError):
            raise
        except Exception as error:  # whatever it is, a result must not be asked for again for ever
            if isinstance(error, PortError) and error.retryable:
                raise
            reason = f"what came of {new[-1].actor} cannot be kept: {error}"
            last = last_event(self._writer.workflow.compiled, "failed", reason)
            if self._writer.state.ending is not None:  # What is done before the end cannot be kept.
                last = RunEnded("failed", reason)
            await self._write((NewEvent("engine", last),))

    async def _write(self, new: NewEvents, check: CallCheck | None = None) -> list[Event]:
        try:
            decision = await self._writer.write(new, check)
            await self._follow(decision)
            return [] if decision is None else decision.events
        finally:  # Another process may have answered what is asked here.
            await self._effects.drop_strangers(self._writer.state)

    async def _begin_with(self, written: Batch, state: State) -> None:
        await self._writer.begin(written, state)
        self.take_up()

    async def _catch_up(self) -> None:
        if await self._writer.catch_up():
            await self._effects.drop_strangers(self._writer.state)

    async def _start_pending(self) -> None:
        if self._inbox.results:
            self._post(self._start_pending)  # What seems to be missing may be among these results.
            return
        # It may have been worked on, here or elsewhere, between its loading and this moment.
        decision = await self._writer.go_on()
        await self._effects.drop_strangers(self._writer.state)
        if decision is not None:
            missing = [it for it in decision.effects if _name(it) not in self._effects]
            await self._follow(decision._replace(effects=missing))

    async def _follow(self, decision: Decision | None) -> None:
        """Begin the effects of what was written, and break off those that are wanted no more."""
        if decision is None:
            return
        if decision.events:
            self._performer.tell(decision)
            await self._effects.drop_unwanted(self._writer.state)
        for command in decision.effects:
            self._start(command, decision.assemblies)

    def _start(self, command: Command, assemblies: dict[int, Assembly]) -> None:
        # A tool that has given up its question may be at work or done: it is not called again.
        if isinstance(command, CallTool) and (
            self._effects.answer(command) or self._is_called(command)
        ):
            return
        work = self._performer.perform(self, command, assemblies.get(command.seq))
        self._begin(Effect(_name(command), command, work))

    def _is_called(self, command: CallTool) -> bool:
        """Tell whether a tool is at work, or what came of it waits to be taken in."""
        results = self._inbox.results
        return command.id in self._effects or any(it[-1].cause == command.seq for it in results)

    def _begin(self, effect: Effect) -> None:
        """Have an effect performed: the first by the task that takes in now, when it has."""
        if not self._effects.keep(effect):
            self._effects.begun(effect, asyncio.create_task(self._go_on(effect)))


def _name(command: Command) -> str:
    """Return what an effect is called among those of its run: tools are named by their call."""
    if isinstance(command, CallTool):
        return command.id
    return f"{type(command).__name__}:{command[0]}:{command.seq}"


def _report(run: str, error: Exception) -> None:
    """Say that a run is given up; where from is told of what nothing has explained."""
    explained = isinstance(error, RunError) and error.__cause__ is None
    _log.error("run %s is given up for now: %s", run, error, exc_info=not explained)
