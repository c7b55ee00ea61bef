"""The worker: keeps runs in memory while there is work to do for them, and performs it."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Final

from weft.engine.events import Event, RequestOpened, TimerFired, TimerSet
from weft.engine.reduce import fold
from weft.engine.rows import DueRow, RunRow
from weft.engine.state import State
from weft.errors import AccessDenied, RunError, RunGivenUp, WeftError
from weft.ports.clock import Clock
from weft.ports.dispatcher import RunKey
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.runtime.perform import Performer
from weft.runtime.runs.active import ActiveRun
from weft.runtime.runs.decision import Decision, NewEvent
from weft.runtime.runs.due import DueWatch
from weft.runtime.runs.writer import Batches, RunWriter
from weft.runtime.signals import expiry_of
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import WorkflowCache

_log: Final = logging.getLogger("weft.runtime")

#: How many idle runs stay in memory, so that their next message need not load them.
MAX_IDLE_RUNS: Final = 128

#: Milliseconds between two heartbeats of a worker that has runs in use, and how long after its last
#: heartbeat it counts as the owner of its runs.
HEARTBEAT: Final = 5_000
LEASE: Final = 3 * HEARTBEAT


def is_alive(row: RunRow, now: int) -> bool:
    """Tell whether the owner of a run has sent a heartbeat within its lease."""
    return bool(row.owner) and max(row.heartbeat, row.changed_at) > now - LEASE


class Worker:
    """Loads runs, performs their effects, and releases them."""

    def __init__(
        self,
        *,
        journal: Journal,
        clock: Clock,
        workflows: WorkflowCache,
        performer: Performer,
        batches: Batches,
        on_left: Callable[[RunKey], None],
    ) -> None:
        self._journal = journal
        self._clock = clock
        self._workflows = workflows
        self._performer = performer
        self._batches = batches
        self._on_left = on_left
        self._due = DueWatch(journal, clock, self._process_due)
        performer.tell = self._on_written
        self._in_use: dict[RunKey, ActiveRun] = {}
        #: Runs that wait for a person, the last used one at the end.
        self._idle: OrderedDict[RunKey, ActiveRun] = OrderedDict()
        self._loading: dict[RunKey, asyncio.Task[ActiveRun]] = {}
        self._failures: dict[RunKey, Exception] = {}
        #: Running runs of other processes, which are taken over when their owner stops.
        self._owned_elsewhere: set[RunKey] = set()
        self._watch_task: asyncio.Task[None] | None = None
        self._heartbeat_task: asyncio.Task[None] | None = None
        #: When the last heartbeat was written.
        self._last_heartbeat = 0
        self._closed = False
        #: Called with the tenant and the events when something was written to a run.
        self.on_written: Callable[[str, Sequence[Event]], None] = _nothing

    def __len__(self) -> int:
        return len(self._in_use)

    def get(self, run: RunKey) -> ActiveRun | None:
        """Return a run that is worked on here."""
        return self._in_use.get(run)

    def in_memory(self, run: RunKey) -> ActiveRun | None:
        """Return a run that is in memory, in use or idle."""
        return self._in_use.get(run) or self._idle.get(run)

    def new_active_run(
        self, scope: Scope, workflow: Workflow, state: State, *, owner: str | None = None
    ) -> ActiveRun:
        """Return a run that can be worked on; `hold` puts it in use.

        A run of another process stays its own until there is work to do for it here.
        """
        writer = RunWriter(
            scope=scope,
            workflow=workflow,
            state=state,
            journal=self._journal,
            clock=self._clock,
            batches=self._batches,
            owner=owner,
        )
        return ActiveRun(writer, self._performer, self._on_released)

    def hold(self, active: ActiveRun) -> ActiveRun:
        """Put a run in use and return it; if it is in use already, return that one.

        One that has not begun gives way: its name is taken.
        """
        if self._closed:  # Nothing can be written any more.
            raise RunError("the host is closed; nothing was written")
        run = active.key
        held = self._in_use.get(run)
        if held is None or (active.state.seq and not held.state.seq):
            self._in_use[run] = held = active
            self._idle.pop(run, None)
        if self._heartbeat_task is None:
            self._heartbeat_task = asyncio.create_task(self._send_heartbeats())
        return held

    async def load(self, scope: Scope, run: str) -> ActiveRun:
        """Return a run from memory or from the journal. Raises AccessDenied if there is none.

        A run in memory may be behind what another process has written; the next write finds out.
        Callers that ask while it is being loaded wait for the same one.
        """
        known = self.in_memory((scope.app, run))
        if known is None or not known.state.seq:
            return await self._load(await self.find(scope, run))
        if not scope.covers(known.state.app, known.state.user):
            raise no_run(run)
        return known

    async def find(self, scope: Scope, run: str) -> RunRow:
        """Return the summary of a run. Raises AccessDenied if there is none in the scope."""
        row = await self._journal.run(scope, run) if is_text(run) else None
        if row is None:
            raise no_run(run)
        return row

    async def work(self, run: RunKey) -> None:
        """Resume a run because something was written to it, and return when it is idle."""
        row = await self.find(Scope(run[0]), run[1])
        if await self.claim(row):
            active = await self._load(row)
            self.resume(active)
            await active.wait_until_idle()

    async def claim(self, row: RunRow) -> bool:
        """Become the owner of a run; return False if another process was faster."""
        owner = self._batches.owner
        if row.status != "running" or row.owner == owner:
            return True
        if (
            self._last_heartbeat <= self._clock.now() - HEARTBEAT
        ):  # Else it would look dead until the next heartbeat.
            await self._write_heartbeat()
        if await self._journal.claim(row.app, row.run, owner=owner, before=row.owner):
            return True
        now = await self.find(Scope(row.app), row.run)
        return now.status != "running" or now.owner == owner

    def resume(self, active: ActiveRun) -> None:
        """Work on a run again, whatever stopped it before."""
        self._failures.pop(active.key, None)
        self.hold(active).start_pending_effects()

    async def recover(self) -> list[str]:
        """Resume every running run that no living process owns; return their ids."""
        taken: list[str] = []
        for row in await self._journal.unfinished():
            if self._has_owner(row) or not await self.claim(row):
                self._watch_owner((row.app, row.run))
                continue
            try:
                self.resume(await self._load(row))
            except WeftError as fault:  # One damaged run does not stop the others.
                _log.exception("run %s cannot be resumed", row.run)
                self.record_failure((row.app, row.run), fault)
            else:
                taken.append(row.run)
        self.check_due()
        return taken

    def _watch_owner(self, run: RunKey) -> None:
        """Resume a run when its owner counts as dead, if it is still running then."""
        if run not in self._in_use and not self._closed:
            self._owned_elsewhere.add(run)
            if self._watch_task is None:
                self._watch_task = asyncio.create_task(self._check_owners())

    async def _check_owners(self) -> None:
        while self._owned_elsewhere:
            await self._clock.sleep_until(self._clock.now() + LEASE)
            runs, self._owned_elsewhere = self._owned_elsewhere, set()
            for run in runs:
                try:
                    await self._take_over(run)
                except WeftError as fault:
                    _log.warning("run %s cannot be resumed: %s", run[1], fault)
        self._watch_task = None

    async def _take_over(self, run: RunKey) -> None:
        row = await self.find(Scope(run[0]), run[1])
        if row.status != "running":
            return
        if self._has_owner(row) or not await self.claim(row):
            self._watch_owner(run)
        else:
            self.resume(await self._load(row))

    def _has_owner(self, row: RunRow) -> bool:
        """Tell whether a living process works on a run."""
        if row.owner == self._batches.owner:
            return (row.app, row.run) in self._in_use
        return is_alive(row, self._clock.now())

    def check_due(self) -> None:
        """Process requests that expire and timers that fire, now and as they become due."""
        self._due.look()

    def record_failure(self, run: RunKey, fault: Exception) -> None:
        """Remember why this process stopped working on a run."""
        self._failures[run] = fault
        cause: BaseException | None = fault
        while cause is not None:  # Tracebacks would keep the run itself in memory.
            cause.__traceback__ = None
            cause = cause.__cause__ or cause.__context__

    def is_stopped(self, run: RunKey) -> bool:
        return run in self._failures and run not in self._in_use

    def raise_if_stopped(self, run: RunKey) -> None:
        """Raise RunGivenUp with the reason if this process has stopped working on a run."""
        if self.is_stopped(run):
            fault = self._failures[run]
            raise RunGivenUp(run[1], fault) from fault

    @property
    def busy(self) -> bool:
        """Whether a run in use is not idle, or something is due."""
        return self._due.busy or any(not it.is_idle for it in self._in_use.values())

    async def wait_until_idle(self) -> None:
        """Return when every run in use is idle or has ended, and nothing is due."""
        while self.busy:
            await asyncio.gather(
                *(it.wait_until_idle() for it in self._in_use.values() if not it.is_idle)
            )
            await self._due.wait_until_idle()
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Release all runs; any process can resume them from their journals."""
        self._closed = True
        await self._due.close()
        held = list(self._in_use.values())
        await asyncio.gather(*(active.release() for active in held))
        for task in filter(None, (self._heartbeat_task, self._watch_task)):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        # All of them: a write that was interrupted may have succeeded.
        await self._release({it.key for it in held} | self._failures.keys())
        self._idle.clear()

    async def _release(self, runs: Collection[RunKey]) -> None:
        """Give up the ownership of runs, so that other processes can resume them at once."""
        try:
            for app, run in runs:
                await self._journal.claim(app, run, owner="", before=self._batches.owner)
        except WeftError as error:  # Others can resume them when the lease is over.
            _log.warning("runs could not be released: %s", error)

    async def _load(self, row: RunRow) -> ActiveRun:
        run = (row.app, row.run)
        known = self.in_memory(run)
        if known is not None and known.state.seq:
            if known.state.seq < row.seq:  # Another process has written.
                await self.hold(known).catch_up()
            return known
        if run not in self._loading:
            self._loading[run] = asyncio.create_task(self._read_run(row))
            self._loading[run].add_done_callback(partial(self._loaded, run))
        # Shielded: cancelling one caller must not cancel the loading for the others.
        return await asyncio.shield(self._loading[run])

    def _loaded(self, run: RunKey, task: asyncio.Task[ActiveRun]) -> None:
        del self._loading[run]
        if not task.cancelled():
            task.exception()  # All callers may have been cancelled.

    async def _read_run(self, row: RunRow) -> ActiveRun:
        scope = Scope(row.app, row.user)
        workflow = await self._workflows.of_digest(row.app, row.digest)
        if workflow.missing is not None:  # Its code is not available here.
            raise workflow.missing
        events = await self._journal.read(scope, row.run)
        state = fold(workflow.compiled, row.run, events)
        return self.new_active_run(scope, workflow, state, owner=row.owner)

    def _on_released(self, active: ActiveRun, fault: Exception | None) -> None:
        run = active.key
        if fault is not None:
            self.record_failure(run, fault)
        elif active.state.status != "running":
            self._failures.pop(run, None)
        if self._in_use.get(run) is active:
            del self._in_use[run]
            if fault is None and active.state.status == "running":
                self._watch_owner(run)
            if fault is None and active.state.status == "waiting":
                self._idle[run] = active
                if len(self._idle) > MAX_IDLE_RUNS:
                    self._idle.popitem(last=False)
        self._on_left(run)

    def _on_written(self, decision: Decision) -> None:
        state = decision.state
        if state.status == "ended":
            self._performer.secret_answers.forget(state.app, f"{state.run}:")
            self._performer.code_ports.searches.forget(state.app, state.run)
        if state.board is not None:
            self.on_written(state.app, decision.events)
        due = _first_due(decision.events)
        if due is None and not state.timers:
            for request in state.requests.values():
                if request.expires_at is not None:
                    break
            else:
                return
        self._due.watch(due)

    async def _process_due(self, row: DueRow) -> None:
        active = await self.load(Scope(row.app, row.user), row.run)
        if row.id not in active.state.requests and row.id not in active.state.timers:
            await self.hold(
                active
            ).catch_up()  # Another process opened the request or set the timer.
        if row.kind == "timer":
            new = NewEvent("clock", TimerFired(row.id))
            await self.hold(active).deliver((new,), lambda state: row.id in state.timers)
        elif new := expiry_of(active.state, row.id, self._clock.now()):
            await self.hold(active).deliver((new,), lambda state: row.id in state.requests)

    async def _send_heartbeats(self) -> None:
        """Write heartbeats while runs are in use; every write of a run counts as one, too."""
        while True:
            await self._clock.sleep_until(self._clock.now() + HEARTBEAT)
            if not self._in_use:
                self._heartbeat_task = None
                return
            try:
                await self._write_heartbeat()
            except WeftError as error:
                _log.warning("the heartbeat could not be written: %s", error)

    async def _write_heartbeat(self) -> None:
        now = self._clock.now()
        await self._journal.beat(self._batches.owner, now)
        self._last_heartbeat = now


def _first_due(events: Sequence[Event]) -> int | None:
    """Return when the first of the timers and requests that events open is due."""
    first: int | None = None
    for event in events:
        data = event.data
        if isinstance(data, TimerSet):
            due: int | None = data.at
        elif isinstance(data, RequestOpened):
            due = data.expires_at
        else:
            continue
        if due is not None and (first is None or due < first):
            first = due
    return first


def _nothing(_app: str, _events: Sequence[Event]) -> None:
    """Ignore events: no callback is set."""


def is_text(run: str) -> bool:
    """Tell whether a value can be the id of a run: a string that can be encoded."""
    try:
        run.encode()
    except (UnicodeEncodeError, AttributeError):
        return False
    return True


def no_run(run: str) -> AccessDenied:
    """Return the error for a run that does not exist or is outside of the scope."""
    return AccessDenied(f"there is no run {run}")
