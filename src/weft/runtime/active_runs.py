"""The runs a host holds in memory: each once, for as long as there is something to do for it."""

import asyncio
from collections.abc import Callable

from weft.engine.reduce import fold
from weft.engine.rows import RunRow
from weft.engine.state import State
from weft.errors import RunError, RunGivenUp
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.runtime.active import ActiveRun
from weft.runtime.perform import Performer
from weft.runtime.workflow import Workflow
from weft.runtime.workflows import WorkflowCache


class ActiveRuns:
    """Loads runs, holds them while they are worked on, and remembers why one was given up."""

    def __init__(
        self,
        journal: Journal,
        shelf: WorkflowCache,
        performer: Performer,
        on_left: Callable[[str], None],
    ) -> None:
        self._journal = journal
        self._workflows = shelf
        self._performer = performer
        self._on_left = on_left
        self._held: dict[str, ActiveRun] = {}
        self._loading: dict[str, asyncio.Task[ActiveRun]] = {}
        self._given_up: dict[str, Exception] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._held)

    def get(self, run: str) -> ActiveRun | None:
        """Return a run if it is in memory."""
        return self._held.get(run)

    def made(self, scope: Scope, workflow: Workflow, state: State) -> ActiveRun:
        """Return a run that can be worked on; it is held when it is put."""
        return ActiveRun(
            scope=scope,
            workflow=workflow,
            state=state,
            performer=self._performer,
            on_left=self._left,
        )

    def put(self, active: ActiveRun) -> ActiveRun:
        """Hold a run now that there is something to do for it; if it is held already, that one.

        One that has not begun makes way: it was given a name that is taken.
        """
        if self._closed:  # What is begun now could not be written.
            raise RunError("the host is closed; nothing was written")
        run = active.state.run
        held = self._held.get(run)
        if held is None or (active.state.seq and not held.state.seq):
            self._held[run] = held = active
        return held

    def take_up(self, active: ActiveRun) -> None:
        """Work on a run again, whatever kept it from going on before."""
        self._given_up.pop(active.state.run, None)
        self.put(active).take_up()

    async def load(self, row: RunRow) -> ActiveRun:
        """Return a run from memory or from the journal, as far as it has come by now.

        Whoever asks while it is being loaded waits for the same one.
        """
        run = row.run
        held = self._held.get(run)
        if held is not None:
            if held.state.seq < row.seq:  # It is just beginning, or another process has written.
                await held.catch_up(row.seq)
            if held.state.seq:
                return held
        if run not in self._loading:
            self._loading[run] = asyncio.create_task(self._bring(row))
            self._loading[run].add_done_callback(lambda _: self._loading.pop(run))
        # Whoever does not want to wait any more leaves the others what they wait for.
        return await asyncio.shield(self._loading[run])

    def give_up(self, run: str, fault: Exception) -> None:
        """Remember why nobody works on a run."""
        self._given_up[run] = fault
        cause: BaseException | None = fault
        while cause is not None:  # Without tracebacks: those would keep the run itself in memory.
            cause.__traceback__ = None
            cause = cause.__cause__ or cause.__context__

    def raise_if_given_up(self, run: str) -> None:
        """Tell whoever waits for a run that nobody works on it any more, and why."""
        fault = self._given_up.get(run)
        if fault is not None and run not in self._held:
            raise RunGivenUp(run, fault) from fault

    async def close(self) -> None:
        """Let all runs go; they go on from their journals some other time."""
        self._closed = True
        await asyncio.gather(*(active.leave() for active in list(self._held.values())))

    async def _bring(self, row: RunRow) -> ActiveRun:
        scope = Scope(row.app, row.user)
        workflow = await self._workflows.of_digest(row.digest)
        events = await self._journal.read(scope, row.run)
        return self.made(scope, workflow, fold(workflow.compiled, row.run, events))

    def _left(self, active: ActiveRun, fault: Exception | None) -> None:
        run = active.state.run
        if fault is not None:
            self.give_up(run, fault)
        elif active.state.status != "running":
            self._given_up.pop(run, None)
        if self._held.get(run) is active:
            del self._held[run]
        self._on_left(run)
