"""The runs in the memory of a process, in use or idle, and how they are loaded from the store."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from weft.engine.reduce import advance
from weft.engine.rows import RunRow
from weft.engine.snapshot import restore
from weft.engine.state import State
from weft.errors import AccessDenied, RunGivenUp
from weft.findings import Json
from weft.ports.scope import Scope
from weft.ports.store import RunKey, Store
from weft.runtime.runs.active import ActiveRun
from weft.runtime.runs.decision import NewEvent
from weft.runtime.runs.writer import SNAPSHOT_EVENTS
from weft.runtime.workflow import Workflow
from weft.runtime.workflow_cache import WorkflowCache

#: How many idle runs stay in memory, so that their next message or reader need not load them.
MAX_IDLE_RUNS: Final = 128


class RunMemory:
    """Holds runs by tenant and id, and by tenant and name."""

    def __init__(self) -> None:
        self.in_use: dict[RunKey, ActiveRun] = {}
        #: The last used one is at the end.
        self._idle: OrderedDict[RunKey, ActiveRun] = OrderedDict()
        self._named: dict[tuple[str, str], ActiveRun] = {}

    def find(self, run: RunKey) -> ActiveRun | None:
        """Return a run, in use or idle."""
        return self.in_use.get(run) or self._idle.get(run)

    def named(self, app: str, name: str) -> ActiveRun | None:
        """Return the run of a name that has not ended."""
        return self._named.get((app, name))

    def use(self, active: ActiveRun) -> ActiveRun:
        """Put a run in use and return it; if it is in use already, return that one.

        A run that has not begun is replaced, because its id is taken.
        """
        run = active.key
        held = self.in_use.get(run)
        if held is None or (active.state.seq and not held.state.seq):
            self.in_use[run] = held = active
            self._idle.pop(run, None)
            if active.state.name:
                self.note_name(active)
        return held

    def note_name(self, active: ActiveRun) -> None:
        """Register a run under its name."""
        state = active.state
        if state.name and state.status != "ended":
            self._named[state.app, state.name] = active

    def leave(self, active: ActiveRun, *, is_sound: bool) -> None:
        """Put a run out of use; if it is idle and has no error, it stays in memory for a while."""
        run = active.key
        if self.in_use.get(run) is not active:
            return
        del self.in_use[run]
        status = active.state.status
        is_kept = is_sound and status != "running"
        if is_kept:
            self._idle[run] = active
            if len(self._idle) > MAX_IDLE_RUNS:
                self._forget_name(self._idle.popitem(last=False)[1])
        if not is_kept or status == "ended":
            self._forget_name(active)

    def _forget_name(self, active: ActiveRun) -> None:
        key = (active.state.app, active.state.name)
        if self._named.get(key) is active:
            del self._named[key]

    def clear_idle(self) -> None:
        """Forget the runs that are not in use."""
        self._idle.clear()


class Failures:
    """The errors of the runs that this process has stopped working on."""

    def __init__(self, in_use: Mapping[RunKey, ActiveRun]) -> None:
        self._in_use = in_use
        self._faults: dict[RunKey, Exception] = {}

    def record(self, run: RunKey, fault: Exception) -> None:
        """Remember why this process stopped working on a run."""
        self._faults[run] = fault
        cause: BaseException | None = fault
        while cause is not None:  # Tracebacks would keep the run itself in memory.
            cause.__traceback__ = None
            cause = cause.__cause__ or cause.__context__

    def forget(self, run: RunKey) -> None:
        """Remove the error of a run."""
        self._faults.pop(run, None)

    def stopped(self) -> list[RunKey]:
        """Return the runs that this process has stopped working on."""
        return [run for run in self._faults if run not in self._in_use]

    def is_stopped(self, run: RunKey) -> bool:
        """Return whether this process has stopped working on a run."""
        return run in self._faults and run not in self._in_use

    def raise_if_stopped(self, run: RunKey) -> None:
        """Raise RunGivenUp with the reason if this process has stopped working on a run."""
        if self.is_stopped(run):
            raise RunGivenUp(run[1], self._faults[run]) from self._faults[run]


#: Returns the values that a run begins with, by variable.
StartValues = Callable[[Workflow, Scope], Awaitable[dict[str, Json]]]


class LoadedRun(NamedTuple):
    """A run as it is stored."""

    scope: Scope
    workflow: Workflow
    state: State
    #: The first event of a run that was begun by mail.
    start: NewEvent | None = None
    #: The number of the last event in the snapshot.
    snapshot: int = 0


class RunLoader:
    """Loads runs with their workflows."""

    def __init__(self, store: Store, workflows: WorkflowCache) -> None:
        self._store = store
        self._workflows = workflows
        #: The values that runs started by mail begin with; set by the host.
        self.start_values: StartValues = _no_values

    async def find(self, scope: Scope, run: str) -> RunRow:
        """Return the summary of a run. Raises AccessDenied if there is none in the scope."""
        row = await self._store.run(scope, run) if is_text(run) else None
        if row is None:
            raise no_run(run)
        return row

    async def load(self, run: RunKey, row: RunRow | None = None) -> LoadedRun:
        """Return a run, though its code may be missing; raises AccessDenied if there is none."""
        row = row or await self._store.run(Scope.operator(run[0]), run[1])
        return await (self._load_new(run) if row is None else self._load_row(row))

    async def _load_new(self, run: RunKey) -> LoadedRun:
        """Return a run that was begun by mail and has no events yet."""
        mail = await self._store.pending(*run, limit=1)
        start = mail[0].start if mail else None
        if start is None:
            raise no_run(run[1])
        scope = Scope(start.app, start.user)
        workflow = await self._workflows.of_digest(start.app, start.digest)
        if start.collects:
            start = replace(start, values=await self.start_values(workflow, scope))
        return LoadedRun(scope, workflow, State(run[1]), NewEvent(mail[0].actor, start))

    async def _load_row(self, row: RunRow) -> LoadedRun:
        scope = Scope(row.app, row.user)
        workflow = await self._workflows.of_digest(row.app, row.digest)
        saved = None
        if row.seq >= SNAPSHOT_EVENTS:
            saved = await self._store.snapshot(row.app, row.run)
        state = (restore(saved, row.digest) if saved else None) or State(row.run)
        snapshot = state.seq
        for event in await self._store.read(scope, row.run, after=state.seq):
            advance(workflow.compiled, state, event)
        return LoadedRun(scope, workflow, state, snapshot=snapshot)


async def _no_values(_workflow: Workflow, _scope: Scope) -> dict[str, Json]:
    """Return no values: no callback is set."""
    return {}


def is_text(run: str) -> bool:
    """Return whether a value can be the id of a run: a string that can be encoded."""
    try:
        run.encode()
    except (UnicodeEncodeError, AttributeError):
        return False
    return True


def no_run(run: str) -> AccessDenied:
    """Return the error for a run that does not exist or is outside of the scope."""
    return AccessDenied(f"there is no run {run}")
