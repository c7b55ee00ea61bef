"""A run in memory: one task owns its state; results and signals reach it through one queue."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from weft.context.assembly import Assembly
from weft.engine.commands import Assemble, CallModel, CallTool, Command
from weft.engine.events import RequestOpened, RunEnded
from weft.engine.reduce import fold, pending
from weft.engine.rows import RunRow, batch
from weft.engine.state import State
from weft.errors import RunError, StoreConflict, StoreError
from weft.findings import Json
from weft.ports.scope import Scope
from weft.runtime.decision import Allowed, Decision, Draft, decide, is_wanted
from weft.runtime.effects import Broken, Drafts, Effects
from weft.runtime.inbox import Inbox
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
    """A run while something is done for it."""

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
        self._inbox: Inbox[Delivery | Drafts | Broken] = Inbox()
        # The effects know the inbox and not the run: what refers to itself stays in memory longer.
        self._effects = Effects(self._inbox.put)
        self._watchers: list[asyncio.Future[None]] = []
        #: Something is being taken in: whatever the state says, it may be about to change.
        self._taking = False
        self._task: asyncio.Task[None] | None = None

    def deliver(self, draft: Draft, allowed: Allowed) -> asyncio.Future[None]:
        """Let something come in from outside; the future tells when it is in the journal."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(partial(self._write, (draft,), allowed), done)
        return done

    def take_up(self) -> None:
        """Do what is to be done, unless it is being done here already."""
        self._post(self._start_pending)

    def catch_up(self, seq: int) -> asyncio.Future[None]:
        """Take in what another process has written, up to an event at least."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._post(partial(self._reload, seq), done)
        return done

    async def leave(self) -> None:
        """Give the run up without ending it: it goes on from its journal some other time."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def rest(self) -> None:
        """Return when the run waits for a person, has ended, or is not worked on any more."""
        if self._task is not None and not self._task.done() and not self._resting():
            watcher: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._watchers.append(watcher)
            await watcher

    async def ask(self, command: CallTool, opened: RequestOpened) -> Json:
        """Open a question for a tool and wait for the answer."""
        self._post_result((Draft(f"tool:{command.tool}", opened, command.seq),))
        return await self._effects.answered(command.id, opened.id)

    @property
    def held(self) -> bool:
        """Whether tools are kept here while they wait for a person, whom others may answer."""
        return self._effects.held

    def _post(
        self, work: Callable[[], Awaitable[None]], done: asyncio.Future[None] | None = None
    ) -> None:
        self._inbox.put(Delivery(work, done))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._live())

    async def _live(self) -> None:
        """Work as long as there is something to do here; what others do is not waited for."""
        fault: Exception | None = None
        try:
            while self._effects or self._inbox:
                await self._take(await self._next())
                if self.state.status == "ended":
                    await self._effects.drop()
        except Exception as error:  # noqa: BLE001 - it is told to whoever waits for the run
            _log.exception("run %s is given up for now", self.state.run)
            fault = error
        finally:
            try:
                await self._effects.drop()
            finally:
                self._forsake(fault)
                self._on_left(self, fault)

    def _resting(self) -> bool:
        if self._inbox:
            return False
        # Others may work on a run whose tools are only held here.
        return self.state.status in ("waiting", "ended") or (
            self._effects.only_held and not self._taking
        )

    async def _next(self) -> Delivery:
        """Wait for the next delivery; a run that only waits for people does not wait here long."""
        if not self._effects.only_held:
            return self._delivery(await self._inbox.get())
        try:
            async with self._performer.holding():
                return self._delivery(await self._inbox.get())
        except TimeoutError:
            return Delivery(self._effects.drop)

    def _delivery(self, item: Delivery | Drafts | Broken) -> Delivery:
        if isinstance(item, Delivery):
            return item
        if isinstance(item, Broken):
            return Delivery(partial(_raise, item.fault))
        return Delivery(partial(self._write_result, item))

    async def _take(self, delivery: Delivery) -> None:
        done = delivery.done
        self._taking = True
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
        finally:
            self._taking = False
        if self._resting():
            self._tell_watchers()

    def _forsake(self, fault: Exception | None) -> None:
        """Tell everybody who still waits that nobody works on this run here any more."""
        while self._inbox:
            done = self._delivery(self._inbox.pop()).done
            if done is not None and not done.done():
                done.set_exception(fault or RunError("the host was closed; nothing was written"))
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        watchers, self._watchers = self._watchers, []
        for watcher in watchers:
            if not watcher.done():
                watcher.set_result(None)

    async def _write_result(self, drafts: Drafts) -> None:
        """Write what came of an effect. What cannot be written at all ends the run, explained."""
        try:
            await self._write(drafts, None)
        except Exception as error:  # whatever it is, a result must not be asked for again for ever
            if isinstance(error, StoreConflict | RunError) or getattr(error, "retryable", False):
                raise
            reason = f"what came of {drafts[-1].actor} cannot be kept: {error}"
            await self._write((Draft("engine", RunEnded("failed", reason)),), None)

    async def _write(self, drafts: Drafts, allowed: Allowed | None) -> None:
        conflicts = failures = 0
        while allowed is not None or is_wanted(self.state, drafts[-1].data):
            if allowed is not None:
                allowed(self.state)
            try:
                self._follow(await self._decide(drafts))
            except StoreConflict:
                conflicts += 1
                if conflicts > MAX_CONFLICTS:
                    raise
                await self._reload()
            except StoreError as error:
                if not error.retryable or failures == len(PAUSES):
                    raise
                clock = self._performer.clock
                await clock.sleep_until(clock.now() + PAUSES[failures])
                failures += 1
            else:
                return

    async def _decide(self, drafts: Drafts) -> Decision:
        decision = decide(self.workflow, self.state, drafts, self._performer.clock.now())
        package = None if self.state.seq else self.workflow.package
        written = batch(self.state, decision.state, decision.events, package)
        await self._performer.journal.append(written)
        self.row = written.row
        return decision

    async def _reload(self, seq: int | None = None) -> None:
        """Somebody else has written: start from what is there now."""
        if seq is None or self.state.seq < seq:
            events = await self._performer.journal.read(self.scope, self.state.run)
            self.state = fold(self.workflow.book, self.state.run, events)
            self.row = None
            await self._effects.drop_strangers(self.state)

    def _follow(self, decision: Decision) -> None:
        self.state = decision.state
        self._performer.tell(decision)
        for command in decision.effects:
            self._start(command, decision.assembly)

    async def _start_pending(self) -> None:
        if not self._effects:
            for command in pending(self.state):
                self._start(command, None)

    def _start(self, command: Command, assembly: Assembly | None) -> None:
        if isinstance(command, CallTool):
            if not self._effects.answer(command):
                self._effects.begin(command.id, self._performer.call_tool(self, command))
        elif isinstance(command, CallModel):
            name = f"{command.agent}:{command.seq}"
            self._effects.begin(name, self._performer.call_model(self, command, assembly))
        elif isinstance(command, Assemble):  # of a turn that was interrupted before it
            self._post_result(self._performer.assemble(self, command))

    def _post_result(self, drafts: Drafts) -> None:
        self._post(partial(self._write_result, drafts))


async def _raise(fault: Exception | None) -> None:
    if isinstance(fault, RunError):
        raise fault
    raise RunError(f"an effect ended without a result: {fault or 'cancelled'}") from fault
