"""The host: the API of one process, which starts runs, delivers signals and works on runs."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from types import TracebackType
from typing import Self

from weft.context.similarity import Similarity
from weft.engine.rows import RunRow
from weft.engine.state import State
from weft.errors import RunError, UsageError
from weft.ports.clock import Clock
from weft.ports.dispatcher import Dispatcher
from weft.ports.external import ExternalPorts
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.ports.tools import ToolLoader
from weft.runtime.board.gateway import BoardGateway
from weft.runtime.local_dispatch import LocalDispatcher
from weft.runtime.perform import ModelSource, Performer
from weft.runtime.run_reader import require_scope
from weft.runtime.runs.active import ActiveRun
from weft.runtime.runs.effects import Holding
from weft.runtime.runs.live_stream import LiveStream
from weft.runtime.runs.writer import Batches
from weft.runtime.tools.code_call import CodePorts
from weft.runtime.variables.values import SecretAnswers
from weft.runtime.worker import LEASE, Worker, is_alive
from weft.runtime.workflow import LINKING, Linking
from weft.runtime.workflow_cache import FindWorkflow, WorkflowCache


class Host(BoardGateway):
    """Runs workflows: a gateway and a worker. Close it, or use it as an async context manager."""

    def __init__(  # noqa: PLR0913 - its ports, all by name
        self,
        *,
        journal: Journal,
        models: ModelSource,
        loader: ToolLoader,
        clock: Clock,
        find: FindWorkflow,
        dispatcher: Dispatcher | None = None,
        environment: Mapping[str, str] | None = None,
        outside: ExternalPorts | None = None,
        linking: Linking = LINKING,
    ) -> None:
        workflows = WorkflowCache(journal, loader, find, linking)
        reached = outside or ExternalPorts()
        if not reached.environment:
            reached = replace(reached, environment=environment or {})
        secret_answers = SecretAnswers()
        batches = Batches(clock.new_id())
        stream = LiveStream()
        # A waiting tool stays in memory only where no other process could work on its run.
        holding = Holding() if dispatcher is None else Holding(seconds=0)
        similarity = None if reached.embedder is None else Similarity(reached.embedder)
        code_ports = CodePorts(journal, clock, similarity, reached.retrievers)
        performer = Performer(
            journal,
            models,
            clock,
            stream,
            reached,
            secret_answers,
            code_ports,
            holding=holding,
        )
        super().__init__(
            journal=journal,
            models=models,
            clock=clock,
            workflows=workflows,
            dispatcher=dispatcher or LocalDispatcher(),
            worker=Worker(
                journal=journal,
                clock=clock,
                workflows=workflows,
                performer=performer,
                batches=batches,
                on_left=stream.send_left,
            ),
            batches=batches,
            stream=stream,
            environment=environment or {},
            secret_answers=secret_answers,
            code_ports=code_ports,
        )
        self._loader = loader
        self._outside = reached

    async def serve(self) -> None:
        """Resume runs that other processes have written to, from now on."""
        await self._dispatcher.serve(self._worker.work)

    async def settled(self, run: str, *, scope: Scope) -> RunRow:
        """Return when a run waits for a person or has ended.

        Raises RunError if it is not worked on any more: something could not be written, or the
        process that did has died.
        """
        require_scope(scope)
        key = (scope.app, run)
        while True:
            active = self._worker.get(key)
            row = None if active is None else await _row_when_idle(active, scope)
            row = row or await self.run(run, scope=scope)
            if row.status != "running":
                return row
            self._worker.raise_if_stopped(key)
            if active is None or active.has_waiting_tools or active.state.seq < row.seq:
                await self._wait_for_others(row, scope)

    async def settled_state(self, run: str, *, scope: Scope) -> State:
        """Return the state of a run when it waits for a person or has ended; raises as `settled`.

        It is not read from the journal again where this process has just written it.
        """
        active = self._worker.get((scope.app, run))
        row = await self.settled(run, scope=scope)
        if active is not None and active.row is row:
            return active.state.copy()
        return await self.state(run, scope=scope)

    async def _wait_for_others(self, row: RunRow, scope: Scope) -> None:
        """Return when another process has written to a run; raise RunError if it has died."""
        try:
            async with asyncio.timeout(LEASE / 1000):
                async with aclosing(self._journal.follow(scope, row.run, after=row.seq)) as events:
                    async for _ in events:
                        return
        except TimeoutError:
            now = await self.run(row.run, scope=scope)
            if now.status == "running" and not is_alive(now, self._clock.now()):
                raise RunError(
                    f"the process that worked on run {row.run} has stopped; "
                    f"continue with: weft runs resume {row.run}"
                ) from None

    async def resume(
        self, run: str, *, scope: Scope, take_over: bool = False, streamed: bool = False
    ) -> None:
        """Resume a run that was running when its process ended.

        A run that another process works on is refused, unless `take_over` is set.
        `streamed` buffers streamed text for a follower who is about to subscribe.
        """
        row = await self.run(run, scope=scope)
        now = self._clock.now()
        strange = row.status == "running" and row.owner != self._batches.owner
        if strange and is_alive(row, now) and not take_over:
            silent = (now - max(row.heartbeat, row.changed_at)) / 1000
            raise UsageError(
                f"another process works on run {run}: its last sign of life was {silent:.0f} s ago",
                hint="watch it with weft runs tail, or take it over with --take-over; if it was "
                f"killed, it counts as dead in {LEASE / 1000 - silent:.0f} s",
            )
        active = await self._worker.load(scope, run)
        self._require_models(active.workflow, active.state.model, scope)
        if not await self._worker.claim(row) and not take_over:
            raise UsageError(f"another process has just resumed run {run}")
        if streamed:
            self._stream.reserve(active.key)
        self._worker.resume(active)

    async def recover(self) -> list[str]:
        """Resume every running run whose process is dead; return their ids.

        From then on the host also processes requests that expire and timers that fire.
        """
        taken = await self._worker.recover()
        await self._collector.bring_unread()
        return taken

    async def close(self) -> None:
        """Release all runs; any process can resume them from their journals."""
        async with (
            AsyncExitStack() as stack
        ):  # An error while closing one must not keep the others open.
            stack.callback(self._loader.close)
            stack.push_async_callback(self._journal.close)
            stack.push_async_callback(self._outside.close)
            stack.push_async_callback(self._models.close)
            stack.push_async_callback(self._worker.close)
            stack.push_async_callback(self._collector.close)
            stack.push_async_callback(self._dispatcher.close)

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
