"""A worker: holds runs in memory while there is something to do for them, and performs it."""

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

#: How many runs that wait for a person stay in memory, so that their next message finds them.
MOST_RESTING: Final = 128

#: Milliseconds between two signs of life of a worker with something to do, and how long after one
#: its runs count as worked on.
BEAT: Final = 5_000
LEASE: Final = 3 * BEAT


def is_alive(row: RunRow, now: int) -> bool:
    """Tell whether a running run is worked on: it has an owner who gave a sign of life lately."""
    return bool(row.owner) and max(row.heartbeat, row.changed_at) > now - LEASE


class Worker:
    """Works on runs: loads them, performs what they need, and lets them go."""

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
        self._due = DueWatch(journal, clock, self._let_happen)
        performer.tell = self._written
        self._held: dict[RunKey, ActiveRun] = {}
        #: Runs that wait for a person, the one that was worked on last at the end.
        self._resting: OrderedDict[RunKey, ActiveRun] = OrderedDict()
        self._loading: dict[RunKey, asyncio.Task[ActiveRun]] = {}
        self._given_up: dict[RunKey, Exception] = {}
        #: Runs with something to do that is not done here: others do it, or are dead.
        self._others: set[RunKey] = set()
        self._watching: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        #: The last sign of life that was written.
        self._beaten = 0
        self._closed = False
        #: Called with the tenant and the events when something was written to a run.
        self.on_written: Callable[[str, Sequence[Event]], None] = _nothing

    def __len__(self) -> int:
        return len(self._held)

    def get(self, run: RunKey) -> ActiveRun | None:
        """Return a run that is worked on here."""
        return self._held.get(run)

    def known(self, run: RunKey) -> ActiveRun | None:
        """Return a run that is in memory: worked on, or waiting for a person."""
        return self._held.get(run) or self._resting.get(run)

    def made(
        self, scope: Scope, workflow: Workflow, state: State, *, owner: str | None = None
    ) -> ActiveRun:
        """Return a run that can be worked on; it is held when it is put.

        What another process owns stays its own until there is something to do for it here.
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
        return ActiveRun(writer, self._performer, self._left)

    def put(self, active: ActiveRun) -> ActiveRun:
        """Hold a run now that there is something to do for it; if it is held already, that one.

        One that has not begun makes way: it was given a name that is taken.
        """
        if self._closed:  # What is begun now could not be written.
            raise RunError("the host is closed; nothing was written")
        run = active.key
        held = self._held.get(run)
        if held is None or (active.state.seq and not held.state.seq):
            self._held[run] = held = active
            self._resting.pop(run, None)
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat())
        return held

    async def load(self, scope: Scope, run: str) -> ActiveRun:
        """Return a run from memory or from the journal. Raises AccessDenied if there is none.

        What is in memory may be behind what another process has written: whoever writes finds out.
        Whoever asks while it is being loaded waits for the same one.
        """
        known = self.known((scope.app, run))
        if known is None or not known.state.seq:
            return await self._load(await self.find(scope, run))
        if not scope.covers(known.state.app, known.state.user):
            raise no_run(run)
        return known

    async def find(self, scope: Scope, run: str) -> RunRow:
        """Return a run at a glance. Raises AccessDenied if there is none in the scope."""
        row = await self._journal.run(scope, run) if is_text(run) else None
        if row is None:
            raise no_run(run)
        return row

    async def work(self, run: RunKey) -> None:
        """Take up a run because something was written to it, and return when it rests."""
        row = await self.find(Scope(run[0]), run[1])
        if await self.claim(row):
            active = await self._load(row)
            self.take_up(active)
            await active.rest()

    async def claim(self, row: RunRow) -> bool:
        """Let others know that a run is worked on here from now on.

        False if another process was quicker.
        """
        owner = self._batches.owner
        if row.status != "running" or row.owner == owner:
            return True
        if self._beaten <= self._clock.now() - BEAT:  # Else it would look dead until the next beat.
            await self._show_life()
        if await self._journal.claim(row.app, row.run, owner=owner, before=row.owner):
            return True
        now = await self.find(Scope(row.app), row.run)
        return now.status != "running" or now.owner == owner

    def take_up(self, active: ActiveRun) -> None:
        """Work on a run again, whatever kept it from going on before."""
        self._given_up.pop(active.key, None)
        self.put(active).take_up()

    async def recover(self) -> list[str]:
        """Take up every run that has something to do and that no process works on."""
        taken: list[str] = []
        for row in await self._journal.unfinished():
            if self._is_worked_on(row) or not await self.claim(row):
                self._watch_others((row.app, row.run))
                continue
            try:
                self.take_up(await self._load(row))
            except WeftError as fault:  # That one is damaged is no reason to leave the others.
                _log.exception("run %s cannot be taken up", row.run)
                self.give_up((row.app, row.run), fault)
            else:
                taken.append(row.run)
        self.look_for_due()
        return taken

    def _watch_others(self, run: RunKey) -> None:
        """Take a run up when those who work on it count as dead, if it is not done by then."""
        if run not in self._held and not self._closed:
            self._others.add(run)
            if self._watching is None:
                self._watching = asyncio.create_task(self._look_after_others())

    async def _look_after_others(self) -> None:
        while self._others:
            await self._clock.sleep_until(self._clock.now() + LEASE)
            runs, self._others = self._others, set()
            for run in runs:
                try:
                    await self._take_over(run)
                except WeftError as fault:
                    _log.warning("run %s cannot be taken up: %s", run[1], fault)
        self._watching = None

    async def _take_over(self, run: RunKey) -> None:
        row = await self.find(Scope(run[0]), run[1])
        if row.status != "running":
            return
        if self._is_worked_on(row) or not await self.claim(row):
            self._watch_others(run)
        else:
            self.take_up(await self._load(row))

    def _is_worked_on(self, row: RunRow) -> bool:
        """Tell whether a process works on a run: this one knows what it has given up."""
        if row.owner == self._batches.owner:
            return (row.app, row.run) in self._held
        return is_alive(row, self._clock.now())

    def look_for_due(self) -> None:
        """Wait for what is due: questions that expire, timers."""
        self._due.look()

    def give_up(self, run: RunKey, fault: Exception) -> None:
        """Remember why a run is not worked on."""
        self._given_up[run] = fault
        cause: BaseException | None = fault
        while cause is not None:  # Without tracebacks: those would keep the run itself in memory.
            cause.__traceback__ = None
            cause = cause.__cause__ or cause.__context__

    def is_stopped(self, run: RunKey) -> bool:
        return run in self._given_up and run not in self._held

    def raise_if_stopped(self, run: RunKey) -> None:
        """Tell whoever waits for a run that it is not worked on any more, and why."""
        if self.is_stopped(run):
            fault = self._given_up[run]
            raise RunGivenUp(run[1], fault) from fault

    @property
    def busy(self) -> bool:
        """Whether a run is worked on here that does not only wait, or something is due."""
        return self._due.busy or any(not it.resting for it in self._held.values())

    async def quiet(self) -> None:
        """Return when every run that is worked on here waits for later, or has ended."""
        while self.busy:
            await asyncio.gather(*(it.rest() for it in self._held.values() if not it.resting))
            await self._due.settled()
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Let all runs go; they go on from their journals some other time."""
        self._closed = True
        await self._due.close()
        held = list(self._held.values())
        await asyncio.gather(*(active.leave() for active in held))
        for task in filter(None, (self._beating, self._watching)):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        # All of them: what was broken off while it was written may be there, and run, all the same.
        await self._release({it.key for it in held} | self._given_up.keys())
        self._resting.clear()

    async def _release(self, runs: Collection[RunKey]) -> None:
        """Let other processes take up at once what is left to do."""
        try:
            for app, run in runs:
                await self._journal.claim(app, run, owner="", before=self._batches.owner)
        except WeftError as error:  # They can be taken up all the same, when the lease is over.
            _log.warning("runs that are not done could not be released: %s", error)

    async def _load(self, row: RunRow) -> ActiveRun:
        run = (row.app, row.run)
        known = self.known(run)
        if known is not None and known.state.seq:
            if known.state.seq < row.seq:  # Another process has written.
                await self.put(known).catch_up()
            return known
        if run not in self._loading:
            self._loading[run] = asyncio.create_task(self._bring(row))
            self._loading[run].add_done_callback(partial(self._loaded, run))
        # Whoever does not want to wait any more leaves the others what they wait for.
        return await asyncio.shield(self._loading[run])

    def _loaded(self, run: RunKey, task: asyncio.Task[ActiveRun]) -> None:
        del self._loading[run]
        if not task.cancelled():
            task.exception()  # Nobody may be there any more who is told.

    async def _bring(self, row: RunRow) -> ActiveRun:
        scope = Scope(row.app, row.user)
        workflow = await self._workflows.of_digest(row.app, row.digest)
        if workflow.missing is not None:  # It was only looked at: nothing of it can be called.
            raise workflow.missing
        events = await self._journal.read(scope, row.run)
        state = fold(workflow.compiled, row.run, events)
        return self.made(scope, workflow, state, owner=row.owner)

    def _left(self, active: ActiveRun, fault: Exception | None) -> None:
        run = active.key
        if fault is not None:
            self.give_up(run, fault)
        elif active.state.status != "running":
            self._given_up.pop(run, None)
        if self._held.get(run) is active:
            del self._held[run]
            if fault is None and active.state.status == "running":
                self._watch_others(run)
            if fault is None and active.state.status == "waiting":
                self._resting[run] = active
                if len(self._resting) > MOST_RESTING:
                    self._resting.popitem(last=False)
        self._on_left(run)

    def _written(self, decision: Decision) -> None:
        state = decision.state
        if state.status == "ended":
            self._performer.secret_answers.forget(state.app, f"{state.run}:")
            self._performer.code_ports.searches.forget(state.app, state.run)
        if state.board is not None:
            self.on_written(state.app, decision.events)
        if state.timers or any(it.expires_at is not None for it in state.requests.values()):
            self._due.watch(_first_due(decision.events))

    async def _let_happen(self, row: DueRow) -> None:
        active = await self.load(Scope(row.app, row.user), row.run)
        if row.id not in active.state.requests and row.id not in active.state.timers:
            await self.put(active).catch_up()  # Another process has asked, or set the timer.
        if row.kind == "timer":
            new = NewEvent("clock", TimerFired(row.id))
            await self.put(active).deliver((new,), lambda state: row.id in state.timers)
        elif new := expiry_of(active.state, row.id, self._clock.now()):
            await self.put(active).deliver((new,), lambda state: row.id in state.requests)

    async def _beat(self) -> None:
        """Show signs of life while there is something to do; what is written is one as well."""
        while True:
            await self._clock.sleep_until(self._clock.now() + BEAT)
            if not self._held:
                self._beating = None
                return
            try:
                await self._show_life()
            except WeftError as error:
                _log.warning("no sign of life could be written: %s", error)

    async def _show_life(self) -> None:
        now = self._clock.now()
        await self._journal.beat(self._batches.owner, now)
        self._beaten = now


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
    """Do what there is to do where nobody wants to know."""


def is_text(run: str) -> bool:
    """Tell whether something can be the identity of a run at all: some strings are no text."""
    try:
        run.encode()
    except (UnicodeEncodeError, AttributeError):
        return False
    return True


def no_run(run: str) -> AccessDenied:
    """Return what is said of a run that is not there, or not for whoever asks."""
    return AccessDenied(f"there is no run {run}")
