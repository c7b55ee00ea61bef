"""A run in memory: results and signals reach it through one inbox, one after the other."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from weft.context.assembly import Assembly
from weft.engine.commands import Assemble, CallModel, CallTool, Command
from weft.engine.events import RequestOpened, RunEnded
from weft.engine.reduce import fold, pending
from weft.engine.rows import Batch, RunRow, batch
from weft.engine.state import State
from weft.errors import PortError, RunError, StoreConflict, StoreError
from weft.findings import Json
from weft.ports.scope import Scope
from weft.runtime.decision import CallCheck, Decision, NewEvent, decide, is_wanted
from weft.runtime.effects import Broken, Effect, Effects, NewEvents
from weft.runtime.perform import Performer
from weft.runtime.workflow import Workflow

_log: Final = logging.getLogger("weft.runtime")

#: How often a step is decided anew because another process has written in between.
MAX_CONFLICTS: Final = 10

#: Milliseconds before a write that failed is tried again, and again.
PAUSES: Final = (100, 400, 1600)


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something to be done with a run, and who waits for it to be done."""

    work: Callable[[], Awaitable[None]]
    done: asyncio.Future[None] | None = None


class ActiveRun:
    """A run while something is done for it.

    What reaches it is taken in one after the other, by one task at a time. A task that has
    performed an effect takes in what came of it and goes on with what follows from that: a run
    whose agents speak one after the other is one task.
    """

    def __init__(
        self,
        *,
        scope: Scope,
        workflow: Workflow,
        state: State,
        performer: Performer,
        on_left: Callable[["ActiveRun", Exception | None], None],
    ) -> None:
        self.scope = scope
        self.workflow = workflow
        self.state = state
        #: The run at a glance, as this process wrote it last.
        self.row: RunRow | None = None
        self._performer = performer
        self._on_left = on_left
        self._inbox: deque[Delivery | NewEvents | Broken] = deque()
        self._effects = Effects()
        self._watchers: list[asyncio.Future[None]] = []
        #: The task that takes in what is in the inbox, or is about to.
        self._taker: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        #: Runs while there is nothing but tools that wait for a person.
        self._hold: asyncio.TimerHandle | None = None

    def deliver(self, draft: NewEvent, allowed: CallCheck) -> asyncio.Future[None]:
        """Let something come in from outside; the future tells when it is in the journal."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(partial(self._write, (draft,), allowed), done)
        return done

    def take_up(self) -> None:
        """Do what is to be done, unless it is being done here already."""
        self._post(self._start_pending)

    def begin(self, written: Batch) -> asyncio.Future[None]:
        """Write the events that have led to where the run stands, and go on from there."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(partial(self._begin_with, written), done)
        return done

    def catch_up(self, seq: int) -> asyncio.Future[None]:
        """Take in what another process has written, up to an event at least."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(partial(self._reload, seq), done)
        return done

    async def leave(self) -> None:
        """Give the run up without ending it: it goes on from its journal some other time."""
        if self._leaving is None and self._at_work():
            self._leaving = asyncio.create_task(self._stop_working())
        if self._leaving is not None:
            # Whoever does not want to wait may go, and others may wait for it too.
            await asyncio.shield(self._leaving)

    async def _stop_working(self) -> None:
        try:
            if self._taker is not None:
                self._taker.cancel()
                await asyncio.gather(self._taker, return_exceptions=True)
            if self._at_work():  # Nobody was taking in, or had not begun to.
                self._taker = asyncio.current_task()
                await self._end(None)
        finally:
            self._leaving = None

    async def rest(self) -> None:
        """Return when the run waits for a person, has ended, or is not worked on any more."""
        if self._at_work() and (self._taker is not None or not self._resting()):
            watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watchers.append(watcher)
            await watcher

    def ask(self, command: CallTool, opened: RequestOpened) -> None:
        """Open a question for a tool."""
        self._post_result((NewEvent(f"tool:{command.tool}", opened, command.seq),))

    async def answer(self, command: CallTool, opened: RequestOpened) -> Json:
        """Wait, in a tool, for the answer to its question."""
        return await self._effects.answered(command.id, opened.id)

    @property
    def held(self) -> bool:
        """Whether tools are kept here while they wait for a person, whom others may answer."""
        return self._effects.held

    def _post(
        self, work: Callable[[], Awaitable[None]], done: asyncio.Future[None] | None = None
    ) -> None:
        self._hold_no_longer()
        self._inbox.append(Delivery(work, done))
        if self._taker is None:
            # Not in the context of whoever starts, answers or asks: the run outlives that.
            context = self._performer.context.copy()
            self._taker = asyncio.create_task(self._begin_taking(), context=context)

    def _at_work(self) -> bool:
        return self._taker is not None or bool(self._effects)

    def _resting(self) -> bool:
        """Tell whether there is nothing to do but to wait; others may work on a held run."""
        return not self._inbox and (
            self.state.status in ("waiting", "ended") or self._effects.only_held
        )

    async def _begin_taking(self) -> None:
        await self._performer.pace.turn()
        await self._go_on(await self._take_in())

    async def _go_on(self, effect: Effect | None) -> None:
        """Perform an effect, take in what came of it, and so on for as long as one follows."""
        while effect is not None:
            came = await self._effects.perform(effect)
            if came is None:
                return
            self._inbox.append(came)
            if self._taker is not None:
                return
            self._taker = asyncio.current_task()
            effect = await self._take_in()

    async def _take_in(self) -> Effect | None:
        """Take in all that has come; return what this task is to perform next."""
        fault: Exception | None = None
        over = True
        self._hold_no_longer()
        try:
            while self._inbox:
                await self._take(self._delivery(self._inbox.popleft()))
                if self.state.status == "ended":
                    await self._effects.drop()
            over = not self._effects
        except Exception as error:  # noqa: BLE001 - it is told to whoever waits for the run
            _report(self.state.run, error)
            fault = error
        finally:
            if over:
                await self._end(fault)
        if over:
            return None
        self._taker = None
        if self._effects.only_held:
            # Not for long: it is let go, and goes on from its journal when somebody answers.
            self._hold = self._performer.holding.begin(partial(self._post, self._let_go))
        return self._effects.take()

    async def _end(self, fault: Exception | None) -> None:
        """Let go of everything: what others do with the run is not waited for."""
        self._hold_no_longer()
        try:
            await self._effects.drop()
        finally:
            self._taker = None
            self._forsake(fault)
            self._on_left(self, fault)

    async def _let_go(self) -> None:
        if self._effects.only_held:  # An answer may have come in the same moment.
            await self._effects.drop()

    def _hold_no_longer(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            self._performer.holding.end(hold)

    def _delivery(self, item: Delivery | NewEvents | Broken) -> Delivery:
        if isinstance(item, Delivery):
            return item
        if isinstance(item, Broken):
            return Delivery(partial(_raise, item.fault))
        return Delivery(partial(self._write_result, item))

    async def _take(self, delivery: Delivery) -> None:
        done = delivery.done
        try:
            await delivery.work()
        except asyncio.CancelledError:
            if done is not None and not done.done():
                done.set_exception(RunError("the host was closed; look whether it was written"))
            raise
        except Exception as error:  # the outcome belongs to whoever waits for it
            if done is None:
                raise
            if not done.done():
                done.set_exception(error)
        else:
            if done is not None and not done.done():
                done.set_result(None)
        if self._resting():
            self._tell_watchers()

    def _forsake(self, fault: Exception | None) -> None:
        """Tell everybody who still waits that nobody works on this run here any more."""
        while self._inbox:
            done = self._delivery(self._inbox.popleft()).done
            if done is not None and not done.done():
                done.set_exception(fault or RunError("the host was closed; nothing was written"))
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)

    async def _write_result(self, drafts: NewEvents) -> None:
        """Write what came of an effect. What cannot be written at all ends the run, explained."""
        try:
            await self._write(drafts)
        except (StoreConflict, RunError):
            raise
        except Exception as error:  # whatever it is, a result must not be asked for again for ever
            if isinstance(error, PortError) and error.retryable:
                raise
            reason = f"what came of {drafts[-1].actor} cannot be kept: {error}"
            await self._write((NewEvent("engine", RunEnded("failed", reason)),))

    async def _write(self, drafts: NewEvents, allowed: CallCheck | None = None) -> None:
        """Write drafts if they are wanted, as things stand at the moment of writing."""
        allowed = allowed or partial(is_wanted, result=drafts[-1].data)
        conflicts = failures = 0
        while allowed(self.state):
            try:
                self._follow(await self._decide(drafts))
            except StoreConflict:
                conflicts += 1
                # What is there before a run has begun is another run, perhaps of somebody else.
                if conflicts > MAX_CONFLICTS or not self.state.seq:
                    raise
                await self._reload()
            except StoreError as error:
                if not error.retryable or failures == len(PAUSES):
                    raise
                clock = self._performer.clock
                await clock.sleep_until(clock.now() + PAUSES[failures])
                failures += 1
            else:
                await self._effects.drop_late(self.state)
                return

    async def _decide(self, drafts: NewEvents) -> Decision:
        decision = decide(self.workflow, self.state, drafts, self._performer.clock.now())
        package = None if self.state.seq else self.workflow.package
        written = batch(self.state, decision.state, decision.events, package)
        await self._performer.journal.append(written)
        self.row = written.row
        return decision

    async def _begin_with(self, written: Batch) -> None:
        await self._performer.journal.append(written)
        self.take_up()

    async def _reload(self, seq: int | None = None) -> None:
        """Somebody else has written: start from what is there now."""
        if seq is None or 0 < self.state.seq < seq:
            events = await self._performer.journal.read(self.scope, self.state.run)
            self.state = fold(self.workflow.compiled, self.state.run, events)
            self.row = None
            await self._effects.drop_strangers(self.state)

    def _follow(self, decision: Decision) -> None:
        self.state = decision.state
        self._performer.tell(decision)
        for command in decision.effects:
            self._start(command, decision.assembly)

    async def _start_pending(self) -> None:
        if any(isinstance(it, tuple) for it in self._inbox):
            self._post(self._start_pending)  # What seems to be missing may be among these results.
        elif not self._effects:
            # It may have been worked on, here or elsewhere, between its loading and this moment.
            row = await self._performer.journal.run(self.scope, self.state.run)
            await self._reload(row.seq if row else None)
            for command in pending(self.state):
                self._start(command, None)

    def _start(self, command: Command, assembly: Assembly | None) -> None:
        if isinstance(command, CallTool):
            # One that has given up its question may be at work or done: it is not called again.
            if not (self._effects.answer(command) or self._is_called(command)):
                self._begin(Effect(command.id, self._performer.call_tool(self, command)))
        elif isinstance(command, CallModel):
            name = f"{command.agent}:{command.seq}"
            self._begin(Effect(name, self._performer.call_model(self, command, assembly)))
        elif isinstance(command, Assemble):  # of a turn that was interrupted before it
            self._post_result(self._performer.assemble(self, command))

    def _is_called(self, command: CallTool) -> bool:
        """Tell whether a tool is at work, or what came of it waits to be taken in."""
        results = (it for it in self._inbox if isinstance(it, tuple))
        return command.id in self._effects or any(it[-1].cause == command.seq for it in results)

    def _begin(self, effect: Effect) -> None:
        """Have an effect performed: the first by the task that takes in now, when it has."""
        if not self._effects.keep(effect):
            self._effects.begun(effect, asyncio.create_task(self._go_on(effect)))

    def _post_result(self, drafts: NewEvents) -> None:
        self._post(partial(self._write_result, drafts))


def _report(run: str, error: Exception) -> None:
    """Say that a run is given up; where from is told of what nobody has explained."""
    explained = isinstance(error, RunError) and error.__cause__ is None
    _log.error("run %s is given up for now: %s", run, error, exc_info=not explained)


async def _raise(fault: Exception | None) -> None:
    if isinstance(fault, RunError):
        raise fault
    raise RunError(f"an effect ended without a result: {fault or 'cancelled'}") from fault
