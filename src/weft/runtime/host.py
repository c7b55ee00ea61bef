"""The host: the API of one process, which starts runs, delivers signals and works on runs."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeAlias

from weft.context.similarity import Similarity
from weft.engine.rows import RunRow
from weft.engine.state import State
from weft.engine.timers import NEVER
from weft.errors import RunError, UsageError
from weft.ports.clock import Clock
from weft.ports.documents import Documents
from weft.ports.external import ExternalPorts
from weft.ports.live import LiveStream
from weft.ports.records import Records
from weft.ports.retrieval import Retrievers
from weft.ports.scope import Scope
from weft.ports.store import Outbox, Store, Workload
from weft.ports.tools import ToolLoader
from weft.ports.vault import Vault
from weft.runtime.board.gateway import BoardGateway
from weft.runtime.importing import ImportThreads
from weft.runtime.perform import ModelSource, Performer
from weft.runtime.run_reader import require_scope
from weft.runtime.runs.active import ActiveRun
from weft.runtime.runs.decision import Decision
from weft.runtime.runs.live_stream import Followers
from weft.runtime.runs.outgoing import Webhooks
from weft.runtime.runs.ownership import DEAD_AFTER, StoreClock, is_alive
from weft.runtime.tools.code_call import CodePorts
from weft.runtime.worker import Worker
from weft.runtime.workflow import LINKING, Linking, Workflow
from weft.runtime.workflow_cache import FindWorkflow, WorkflowCache

_log: Final = logging.getLogger("weft.runtime")

#: Called with the events that were written to a run, and its workflow.
Observer: TypeAlias = Callable[[Workflow, Decision], None]


class Host(BoardGateway):
    """Runs workflows: a gateway and a worker. Close it, or use it as an async context manager."""

    def __init__(  # noqa: PLR0913 - its ports, all by name
        self,
        *,
        store: Store,
        models: ModelSource,
        loader: ToolLoader,
        clock: Clock,
        find: FindWorkflow,
        live: LiveStream,
        vault: Vault,
        environment: Mapping[str, str] | None = None,
        outside: ExternalPorts | None = None,
        linking: Linking = LINKING,
        works: bool = True,
    ) -> None:
        """Create a host; without `works` other processes perform its runs."""
        workflows = WorkflowCache(store, loader, find, linking)
        reached = outside or ExternalPorts()
        if not reached.environment:
            reached = replace(reached, environment=environment or {})
        followers = Followers(live)
        similarity = None if reached.embedder is None else Similarity(reached.embedder)
        time = StoreClock(clock)
        code_ports = CodePorts(store, time, similarity, reached.retrievers)
        performer = Performer(models, time, live, reached, vault, code_ports)
        super().__init__(
            store=store,
            models=models,
            clock=time,
            workflows=workflows,
            worker=Worker(
                store=store,
                clock=time,
                workflows=workflows,
                performer=performer,
                followers=followers,
            ),
            followers=followers,
            outside=reached,
            vault=vault,
            code_ports=code_ports,
            works=works,
        )
        self._loader = loader
        self._imports = ImportThreads(linking.seconds)
        self._live = live
        self._performer = performer
        self._closing: list[Callable[[], Awaitable[None]]] = []

    async def settled(self, run: str, *, scope: Scope) -> RunRow:
        """Return when a run waits for a person or has ended; a board, when it is idle.

        A run that waits for a timer only, such as that of a retry, is not settled. Raises RunError
        if it is not worked on any more: something could not be written, or the process that did
        has died.
        """
        while True:
            row = await self.idle(run, scope=scope)
            if row.status == "ended" or not await self._waits_for_time(row):
                return row
            await self._wait_for_change(row, scope)

    async def idle(self, run: str, *, scope: Scope) -> RunRow:
        """Return when a run waits for a person or a timer, or has ended; raises as `settled`."""
        require_scope(scope)
        key = (scope.app, run)
        while True:
            active = self._worker.get(key)
            row = None if active is None else await _row_when_idle(active, scope)
            row = row or await self.run(run, scope=scope)
            is_due = row.due_at <= self._clock.now()
            if row.status == "ended" or (row.status == "waiting" and not is_due):
                return row
            self._worker.failures.raise_if_stopped(key)
            may_attend = active is None and row.status == "waiting" and self._works
            if may_attend and await self._worker.attend(key):
                continue  # It had mail, or a timer was due.
            if active is None or active.is_idle or active.state.seq < row.seq:
                await self._wait_for_change(row, scope)

    async def _waits_for_time(self, row: RunRow) -> bool:
        """Return whether a run waits for a timer and for no person."""
        active = self._worker.in_memory((row.app, row.run))
        state = None if active is None else active.state
        if state is not None and state.seq >= row.seq:
            return state.timers.due_at < NEVER and not state.requests and state.board is None
        if row.due_at >= NEVER or row.name:
            return False
        return not await self._store.requests(Scope.operator(row.app), run=row.run)

    async def _wait_for_change(self, row: RunRow, scope: Scope) -> None:
        """Return when a run has new events; raise RunError if the process that works on it died."""
        operator = Scope.operator(scope.app)
        try:
            async with asyncio.timeout(DEAD_AFTER / 1000):
                async with aclosing(self._store.follow(operator, row.run, after=row.seq)) as events:
                    async for _ in events:
                        return
        except TimeoutError:
            now = await self.run(row.run, scope=scope)
            active = self._worker.get((row.app, row.run))
            if active is None and now.status != "ended" and not self._is_attended(now):
                raise RunError(
                    f"the process that worked on run {row.run} has stopped; "
                    f"continue with: weft runs resume {row.run}"
                ) from None

    def _is_attended(self, row: RunRow) -> bool:
        """Return whether a process works on a run, is about to claim it, or no process need to."""
        now = self._clock.now()
        return is_alive(row, now) or row.due_at > now - DEAD_AFTER

    async def settled_state(self, run: str, *, scope: Scope) -> State:
        """Return the state of a run when it waits for a person or has ended; raises as `settled`.

        It is not read again if this process has just written it.
        """
        active = self._worker.get((scope.app, run))
        row = await self.settled(run, scope=scope)
        if active is not None and active.row is row:
            return active.state.copy()
        return await self.state(run, scope=scope)

    async def resume(
        self, run: str, *, scope: Scope, take_over: bool = False, streamed: bool = False
    ) -> None:
        """Resume a run that was running when its process ended.

        A run that another process works on is refused, unless `take_over` is set.
        `streamed` buffers streamed text for a follower who is about to subscribe.
        """
        self._require_worker("resume a run")
        require_scope(scope)
        row = await self._worker.find(scope, run)
        key = (row.app, run)
        workflow = await self._workflows.of_digest(row.app, row.digest)
        state = await self.state(run, scope=Scope.operator(row.app))
        self._require_models(workflow, state.model, scope)
        if streamed:
            self._followers.reserve(key)
        force = take_over or (bool(row.owner) and not is_alive(row, self._clock.now()))
        if row.status != "ended" and not await self._worker.attend(key, force=force):
            owned = await self.run(run, scope=scope)
            silent = (self._clock.now() - owned.heartbeat) / 1000
            raise UsageError(
                f"another process works on run {run}: its last heartbeat was {silent:.0f} s ago",
                hint="watch it with weft runs tail, or take it over with --take-over; if it was "
                f"killed, it counts as dead in {max(DEAD_AFTER / 1000 - silent, 0):.0f} s",
            )

    async def recover(self) -> list[str]:
        """Claim runs that are due, now and from now on; return those that are resumed at once.

        These are the runs of dead processes, and runs with mail, timers or expired requests.
        """
        self._require_worker("recover runs")
        return await self._worker.serve()

    def _require_worker(self, what: str) -> None:
        if not self._works:
            raise UsageError(
                f"a host without works=True cannot {what}", hint="start a worker: weft worker"
            )

    async def drain(self, seconds: float) -> int:
        """Claim no more runs, begin no more effects, and wait for those under way.

        Returns how many runs this process still holds; `close` releases them.
        """
        await self._worker.drain(seconds)
        return len(self._worker)

    def observe(self, observer: Observer) -> None:
        """Call a function with the events that this process writes to the runs it works on."""
        tell = self._performer.tell

        def tell_all(decision: Decision) -> None:
            tell(decision)
            active = self._worker.get((decision.state.app, decision.state.run))
            if active is not None:
                try:
                    observer(active.workflow, decision)
                except Exception:  # noqa: BLE001 - a run does not depend on who observes it
                    _log.exception("an observer of runs has failed")

        self._performer.tell = tell_all

    def on_close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Await a function when the host closes, after everything is written."""
        self._closing.append(close)

    async def workload(self) -> Workload:
        """Return how many runs wait for a worker, and the workers of the store."""
        return await self._store.workload()

    @property
    def runs_in_use(self) -> int:
        """How many runs this process works on."""
        return len(self._worker)

    @property
    def find(self) -> FindWorkflow:
        """The function that finds the workflow that a tenant knows by a name."""
        return self._workflows.find

    @property
    def records(self) -> Records:
        """The records that a server stores besides runs."""
        return self._store

    @property
    def outbox(self) -> Outbox:
        """The events that are to be sent to webhooks."""
        return self._store

    @property
    def webhooks(self) -> Webhooks:
        """The webhooks of all tenants."""
        return self._worker.webhooks

    @property
    def documents(self) -> Documents | None:
        """The documents of all tenants; None if this host has none."""
        return self._outside.documents

    @property
    def retrievers(self) -> Retrievers | None:
        """The collections of passages of all tenants; None if this host has none."""
        return self._outside.retrievers

    def environment_of(self, app: str) -> Mapping[str, str]:
        """Return the settings and secrets of a tenant."""
        return self._outside.for_app(app).environment

    async def objects(self, workflow: Workflow, names: Iterable[str]) -> Mapping[str, object]:
        """Return objects, `module:name`, of the code of a workflow. Raises LinkError."""
        wanted = tuple(names)
        read = partial(self._loader.objects, workflow.digest, wanted)
        return await self._imports.run((workflow.digest, wanted), workflow.name, read)

    @property
    def owner(self) -> str:
        """The id under which this process owns runs now."""
        return self._worker.ownership.owner

    async def close(self) -> None:
        """Release all runs; any process can resume them from their events."""
        async with AsyncExitStack() as stack:  # An error while closing one must not skip others.
            stack.callback(self._loader.close)
            stack.push_async_callback(self._store.close)
            stack.push_async_callback(self._live.close)
            stack.push_async_callback(self._outside.close)
            stack.push_async_callback(self._models.close)
            for close in self._closing:
                stack.push_async_callback(close)
            stack.push_async_callback(self._worker.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


async def _row_when_idle(active: ActiveRun, scope: Scope) -> RunRow | None:
    """Wait until a run is idle, and return its row if this process has just written it."""
    await active.wait_until_idle()
    row = None if active.has_waiting_tools else active.row
    return row if row is not None and scope.covers(row.app, row.user) else None
