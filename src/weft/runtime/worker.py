"""The worker: keeps runs in memory while there is work to do for them, and performs it."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

from weft.engine.board.state import run_name
from weft.engine.events import ArtifactPublished, Event
from weft.engine.rows import RunRow
from weft.engine.state import State
from weft.engine.timers import NEVER
from weft.errors import RunError, StoreError, UsageError, WeftError
from weft.ports.scope import Scope
from weft.ports.store import RunKey, Store
from weft.runtime.perform import Performer
from weft.runtime.runs.active import ActiveRun
from weft.runtime.runs.decision import Decision, NewEvent
from weft.runtime.runs.live_stream import Followers
from weft.runtime.runs.memory import Failures, RunLoader, RunMemory, no_run
from weft.runtime.runs.outgoing import Webhooks
from weft.runtime.runs.ownership import HEARTBEAT, Ownership, OwnerWatch, StoreClock
from weft.runtime.runs.run_tasks import RunTasks, start_task
from weft.runtime.runs.schedule import Schedule
from weft.runtime.runs.writer import RunWriter
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import WorkflowCache

_log: Final = logging.getLogger("weft.runtime")

#: How many runs a worker claims at once, and the most runs it works on.
CLAIM: Final = 50
MAX_IN_USE: Final = 2_000

#: Seconds between two queries of the work queue, unless a signal arrives or a run is due before.
LOOK_SECONDS: Final = 1.0

#: Milliseconds until free runs that were due and not claimed are claimed again.
CLAIM_AGAIN: Final = 50

#: Seconds between two checks of the effects under way while a worker drains.
DRAIN_SECONDS: Final = 0.02

#: Milliseconds until a run that stopped with an error may be claimed again.
RETRY_AFTER: Final = 60_000

#: Stands for all free runs in the schedule of a worker that serves.
ANY_RUN: Final[RunKey] = ("", "")


class Worker:
    """Loads runs, performs their effects, and releases them."""

    def __init__(
        self,
        *,
        store: Store,
        clock: StoreClock,
        workflows: WorkflowCache,
        performer: Performer,
        followers: Followers,
    ) -> None:
        self._store = store
        self._clock = clock
        self._performer = performer
        self._followers = followers
        self.ownership = Ownership(
            store,
            clock,
            is_needed=lambda: bool(self._in_use or self._serves or self._taking or self._closed),
            on_renamed=self._keep,
            on_freed=lambda: self._schedule.set(ANY_RUN, clock.now()) if self._serves else None,
        )
        self.webhooks = Webhooks(store)
        performer.ownership = self.ownership
        performer.tell = self._on_written
        self._memory = RunMemory()
        self._in_use = self._memory.in_use
        self.loader = RunLoader(store, workflows)
        #: Returns the summary of a run. Raises AccessDenied if there is none in the scope.
        self.find = self.loader.find
        #: Returns a run that is worked on here; one that is in memory, in use or idle; or the one
        #: of a name that is in memory and has not ended.
        self.get = self._in_use.get
        self.in_memory = self._memory.find
        self.named = self._memory.named
        self._loading: dict[RunKey, asyncio.Task[ActiveRun]] = {}
        #: Why this process has stopped working on runs.
        self.failures = Failures(self._in_use)
        self._schedule = Schedule(clock, self._on_due)
        self._run_tasks = RunTasks(self._attend_safely)
        self._tasks: set[asyncio.Task[None]] = set()
        #: Tasks that no one waits for.
        self._background: set[asyncio.Task[None]] = set()
        #: How many runs are being claimed.
        self._taking = 0
        self._look_task: asyncio.Task[None] | None = None
        #: Whether this worker claims runs that other processes have begun or left.
        self._serves = False
        self._owners = OwnerWatch()
        self._closed = False
        #: Called with the tenant and the events when something was written to a board.
        self.on_written: Callable[[str, Sequence[Event]], None] = _ignore
        #: Set by the host: raises UsageError if a model of a run is not known here.
        self.require_models: Callable[[Workflow, str | None, Scope], None] = _ignore

    def __len__(self) -> int:
        return len(self._in_use)

    def new_active_run(
        self,
        scope: Scope,
        workflow: Workflow,
        state: State,
        *,
        start: NewEvent | None = None,
        snapshot: int = 0,
    ) -> ActiveRun:
        """Return a run that can be worked on; `hold` puts it in use."""
        writer = RunWriter(
            scope=scope,
            workflow=workflow,
            state=state,
            store=self._store,
            clock=self._clock,
            ownership=self.ownership,
            webhooks=self.webhooks,
            start=start,
            snapshot=snapshot,
        )
        return ActiveRun(writer, self._performer, self._on_released)

    def hold(self, active: ActiveRun) -> ActiveRun:
        """Put a run in use and return it; if it is in use already, return that one.

        A run that has not begun is replaced, because its name is taken.
        """
        if self._closed:  # The host can write nothing more.
            raise RunError("the host is closed; nothing was written")
        held = self._memory.use(active)
        self._look()
        return held

    async def load(self, scope: Scope, run: str) -> ActiveRun:
        """Return a run from memory or from the store. Raises AccessDenied if there is none.

        A run in memory may lack the events of another process; the next write detects that.
        Concurrent callers wait for the same load.
        """
        known = self.in_memory((scope.app, run))
        if known is None or not known.state.seq:
            return await self._load((scope.app, run), await self.find(scope, run))
        if not scope.covers(known.state.app, known.state.user):
            raise no_run(run)
        return known

    async def _load(self, run: RunKey, row: RunRow | None = None) -> ActiveRun:
        known = self.in_memory(run)
        if known is not None and known.state.seq:
            return known
        if run not in self._loading:
            self._loading[run] = asyncio.create_task(self._read(run, row))
            self._loading[run].add_done_callback(partial(self._loaded, run))
        # Shielded: cancelling one caller must not cancel the loading for the others.
        return await asyncio.shield(self._loading[run])

    def _loaded(self, run: RunKey, task: asyncio.Task[ActiveRun]) -> None:
        del self._loading[run]
        if not task.cancelled():
            task.exception()  # All callers may have been cancelled.

    async def _read(self, run: RunKey, row: RunRow | None) -> ActiveRun:
        loaded = await self.loader.load(run, row)
        return self.new_active_run(
            loaded.scope,
            loaded.workflow,
            loaded.state,
            start=loaded.start,
            snapshot=loaded.snapshot,
        )

    # -- run tasks: mail, timers, and runs that others have left

    async def attend(self, run: RunKey, *, force: bool = False) -> bool:
        """Process mail and what is due in a run, and continue it.

        Returns False if the run has ended or another process owns it; `force` takes it over.
        """
        active = self._in_use.get(run)
        if active is not None and active.held_by == self.ownership.owner and not force:
            await active.attend()
            return True
        self._taking += 1  # The id of the owner must not change meanwhile.
        try:
            await self._be_alive()
            owner = self.ownership.owner
            if not await self._store.take(owner, *run, force=force):
                return False
            await self._resume(run, owner)
        finally:
            self._taking -= 1
        return True

    async def _resume(self, run: RunKey, owner: str) -> bool:
        """Continue a run that this process has just become the owner of.

        Returns whether the run had something to do, apart from mail and timers.
        """
        try:
            active = await self._load(run)
            self.require_models(active.workflow, active.model, active.scope)
            active = self.hold(active)
            self.failures.forget(run)
            is_running = active.state.status == "running"
            self._schedule.set(run, active.state.due_at)
            await active.attend(owner=owner)
        except Exception as error:
            self.failures.record(run, error)
            due_at = 0 if self._closed else self._clock.now() + RETRY_AFTER
            await self._release([run], due_at, owner=owner)
            raise
        return is_running

    def look_at(self, run: RunKey) -> None:
        """Attend to a run in the background."""
        self._run_tasks.look_at(run)

    def look_at_name(self, app: str, name: str) -> None:
        """Attend to the open run of a name in the background: it has mail."""
        known = self.named(app, name)
        if known is not None:
            self.look_at(known.key)
            return
        start_task(self._find_name(app, name), self._tasks)

    async def _find_name(self, app: str, name: str) -> None:
        try:
            run = await self._store.open_run(app, name)
        except StoreError as error:
            _log.warning("mail for %s is not read now: %s", name, error)
            return
        if run is not None:
            self.look_at((app, run))

    async def _attend_safely(self, run: RunKey) -> bool:
        """Attend to a run; False: the store is not reachable, try again."""
        try:
            await self.attend(run)
        except Exception as error:  # noqa: BLE001 - one damaged run does not stop the others
            explained = isinstance(error, WeftError)
            _log.warning("run %s cannot be continued: %s", run[1], error, exc_info=not explained)
            return not (isinstance(error, StoreError) and error.retryable)
        return True

    async def _be_alive(self) -> None:
        """Make sure that the store knows this owner as alive, before it claims a run."""
        if not self.ownership.is_begun:
            self.ownership.begin()
            await self.ownership.beat()

    # -- the work queue

    async def serve(self) -> list[str]:
        """Claim runs that are due, from now on; return those that are continued at once."""
        self._taking += 1  # The heartbeats must not end before this worker serves.
        try:
            await self._be_alive()
            self._serves = True
        finally:
            self._taking -= 1
        await self.ownership.beat()  # Frees the runs of dead owners.
        taken: list[str] = []
        owner = self.ownership.owner
        taken += [
            run[1]
            for run in self.failures.stopped()
            if await self._store.take(owner, *run) and await self._resume_safely(run, owner)
        ]
        while runs := await self._claim():
            for run, task in runs.items():
                if await task:
                    taken.append(run[1])
        await self._schedule_next()
        self._look()
        return taken

    async def _on_due(self, run: RunKey) -> bool:
        """Attend to a run of this process that is due, or to all free runs that are due."""
        if run != ANY_RUN:
            return await self._attend_safely(run)
        try:
            await self._claim()
            await self._schedule_next()
        except StoreError as error:
            _log.warning("the work queue cannot be read now: %s", error)
            return False
        return True

    async def _schedule_next(self) -> None:
        """Query the work queue again when the next free run is due."""
        due = await self._store.next_due() if self._serves else None
        if due is None or len(self._in_use) >= MAX_IN_USE:
            self._schedule.set(ANY_RUN, NEVER)
        else:  # One that is due and was not claimed is claimed a little later.
            now = self._clock.now()
            self._schedule.set(ANY_RUN, due if due > now else now + CLAIM_AGAIN)

    async def _claim(self) -> dict[RunKey, asyncio.Task[bool]]:
        """Claim free runs that are due, and attend to all that are due and owned here.

        Returns those that were claimed, each with the task that resumes it.
        """
        beat, asked_at = self.ownership.last_beat, self._clock.now()
        room = max(0, min(CLAIM, MAX_IN_USE - len(self._in_use))) if self._serves else 0
        claimed = await self._store.claim(self.ownership.owner, limit=room)
        self._clock.follow(claimed.now, asked_at)
        if beat is not None and self._serves:
            self._owners.update(beat)
        new: dict[RunKey, asyncio.Task[bool]] = {}
        for run in claimed.runs:
            active = self._in_use.get(run)
            if run in self._run_tasks:
                continue
            if active is not None and active.held_by == self.ownership.owner:
                self.look_at(run)
            else:
                new[run] = self._run_tasks.begin(
                    run, self._resume_safely(run, self.ownership.owner)
                )
        return new

    async def _resume_safely(self, run: RunKey, owner: str) -> bool:
        try:
            _log.info("claimed run %s of tenant %s", run[1], run[0])
            return await self._resume(run, owner)
        except UsageError as error:  # For example a model that only other workers know.
            hint = f"; {error.hint}" if error.hint else ""
            _log.warning(
                "run %s of tenant %s is left to other workers: %s%s", run[1], run[0], error, hint
            )
        except Exception:  # noqa: BLE001 - one damaged run does not stop the others
            _log.exception("run %s cannot be resumed", run[1])
        return False

    def _look(self) -> None:
        """Query the work queue while runs are in use: other processes may send them mail."""
        is_needed = self._serves or self._store.is_shared
        if is_needed and self._look_task is None and not self._closed:
            self._look_task = asyncio.create_task(self._look_at_queue())

    async def _look_at_queue(self) -> None:
        while self._in_use or self._serves:
            try:
                await self._store.wait(LOOK_SECONDS)
                await self._claim()
                if self._serves:
                    await self._schedule_next()
            except Exception as error:  # noqa: BLE001 - the next look may succeed
                explained = isinstance(error, WeftError)
                _log.warning("the work queue cannot be read now: %s", error, exc_info=not explained)
                await asyncio.sleep(LOOK_SECONDS)
        self._look_task = None

    # -- failures and idleness

    @property
    def busy(self) -> bool:
        """Whether a run is not idle or due, mail is on its way, or runs are being recovered."""
        return (
            bool(self._run_tasks.tasks or self._tasks or self._owners)
            or self._schedule.is_busy
            or any(not active.is_idle for active in self._in_use.values())
        )

    async def wait_until_idle(self) -> None:
        """Return when every run in use is idle or has ended, nothing is due or being recovered."""
        while self.busy:
            await asyncio.gather(
                *self._run_tasks.tasks.values(),
                *self._tasks,
                *(active.wait_until_idle() for active in self._in_use.values()),
                return_exceptions=True,
            )
            await self._schedule.wait_until_idle()
            await asyncio.sleep(0.02 if self._owners else 0)

    async def drain(self, seconds: float) -> None:
        """Claim no more runs, begin no more effects, and wait for the results of those under way.

        Effects that take longer are left to the process that owns the run next.
        """
        self._serves = False
        self._owners.clear()
        self._schedule.set(ANY_RUN, NEVER)
        self.ownership.drain()
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while loop.time() < end and (  # noqa: ASYNC110 - many things may end
            self._run_tasks.tasks or any(active.is_performing for active in self._in_use.values())
        ):
            await asyncio.sleep(DRAIN_SECONDS)

    async def close(self) -> None:
        """Release all runs; any process can resume them from their events."""
        self._closed = self._run_tasks.is_closed = True
        await self._schedule.close()
        claimed = set(self._run_tasks.tasks)
        tasks: list[asyncio.Task[Any]] = [
            *self._run_tasks.tasks.values(),
            *self._tasks,
            *self._background,
            *filter(None, (self._look_task,)),
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        held = list(self._in_use.values())
        await asyncio.gather(*(active.release() for active in held))
        await self.ownership.close()
        # All of them: a write that was interrupted may have succeeded.
        await self._release({active.key for active in held} | claimed | {*self.failures.stopped()})
        self._memory.clear_idle()

    async def _release(self, runs: Collection[RunKey], due_at: int = 0, *, owner: str = "") -> bool:
        """Give up the ownership of runs, so that other processes can resume them."""
        try:
            await self._store.release(owner or self.ownership.owner, runs, due_at=due_at)
        except WeftError as error:  # Others can resume them when this owner counts as dead.
            _log.warning("runs could not be released: %s", error)
            return False
        return True

    async def _free(self, run: RunKey, fault: Exception) -> None:
        """Free a run that has stopped with an error, as soon as the store can be written."""
        again = isinstance(fault, StoreError) and fault.retryable
        while not self._closed and run not in self._in_use:
            due_at = self._clock.now() + (HEARTBEAT if again else RETRY_AFTER)
            if await self._release([run], due_at):
                return
            await asyncio.sleep(LOOK_SECONDS)

    def _keep(self, runs: Collection[RunKey]) -> None:
        """Keep the runs that this process still owns, under its new id, and drop the others."""
        for run, active in self._in_use.items():
            if run in runs:
                active.rename_owner(self.ownership.owner)
            elif active.held_by:
                active.rename_owner("")  # None of its effects may begin.
                active.warn_of_take_over(" because this worker sent no heartbeat for 5 s")
                start_task(active.release(), self._tasks)

    def _on_released(self, active: ActiveRun, fault: Exception | None) -> None:
        run, state = active.key, active.state
        if self._serves:
            _log.info("released run %s of tenant %s", run[1], run[0])
        if fault is not None:
            self.failures.record(run, fault)
        elif state.status != "running":
            self.failures.forget(run)
        self._memory.leave(active, is_sound=fault is None)
        if fault is not None and not self._closed:
            start_task(self._free(run, fault), self._background)
        if run in self._followers:
            self._followers.send_left(run)

    def _on_written(self, decision: Decision) -> None:
        state = decision.state
        run = (state.app, state.run)
        if self._schedule.times.get(run, NEVER) != state.due_at:
            self._schedule.set(run, state.due_at)
        if state.board is None:
            return
        active = self._in_use.get(run)
        if active is not None and decision.events[0].seq == 1:
            self._memory.note_name(active)
        for event in decision.events:
            if isinstance(event.data, ArtifactPublished) and not state.forked_from:
                for to in event.data.forwarded_to:
                    self.look_at_name(state.app, run_name(state.workflow, state.board.owner, to))
        self.on_written(state.app, decision.events)


def _ignore(*_: object) -> None:
    """Do nothing: no callback is set."""
