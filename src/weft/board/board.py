"""A board in a program: publish, wait, query."""

import asyncio
import inspect
from collections import ChainMap
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from pydantic import BaseModel

from weft.app.folders import LOCAL
from weft.app.hosts import open_code_host
from weft.board.application import Application, Missed
from weft.context.slices import (
    Envelope,
)
from weft.dsl.board import AgentBuilder, BoardBuilder
from weft.dsl.parts import ARTIFACT_MARK
from weft.engine.events import DeliveryMissed, Event
from weft.engine.rows import RunRow
from weft.errors import UsageError
from weft.inspect.spans import Span, spans_of
from weft.packages.writer import write_package
from weft.ports.board import Consumption
from weft.ports.clock import Clock
from weft.ports.model import Model
from weft.ports.retrieval import Embedder
from weft.ports.scope import Scope
from weft.runtime.board.publish import Publication
from weft.runtime.host import Host
from weft.spec.board import Visibility
from weft.spec.providers import FilterConfig
from weft.spec.workflow import WorkflowSpec

#: How many runs are listed at once.
_PAGE: Final = 500

#: A condition on a board, for `run_until`.
Condition = Callable[["Board"], bool | Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Trace:
    """A correlation, and the durations of what happened in it."""

    name: str
    correlation_id: str
    board: "Board"

    async def spans(self) -> list[Span]:
        """Return the spans of the correlation, in the order of their start."""
        return await self.board.spans(self.correlation_id)


class Board:
    """A board of typed artifacts, and the agents that they wake.

    Runs are kept in memory unless `journal` names a file. `model` is a name such as `sample`, or
    a model of `weft.testing`. `embedder` compares texts by meaning; the default is that of the
    settings. A `shared` board is one for all users of the tenant; otherwise each user has their
    own. Close the board, or use it as an async context manager.
    """

    def __init__(  # noqa: PLR0913 - where it runs, and what holds for all of it
        self,
        workspace: str | Path | None = None,
        journal: str | Path = ":memory:",
        model: str | Model | None = None,
        *,
        name: str = "board",
        scope: Scope = LOCAL,
        clock: Clock | None = None,
        embedder: Embedder | None = None,
        max_concurrency: int = 16,
        max_wakes_per_input: int = 1000,
        idle_seconds: float = 86_400,
        shared: bool = False,
    ) -> None:
        self._workspace = workspace
        self._journal = journal
        self._model = model
        self._scope = scope
        self._clock = clock
        self._embedder = embedder
        self._builder = BoardBuilder(
            name,
            options={
                "max_concurrency": max_concurrency,
                "max_wakes_per_input": max_wakes_per_input,
                "idle_seconds": idle_seconds,
                "shared": shared,
            },
        )
        self._host: Host | None = None
        self._opening = asyncio.Lock()
        self._correlation: ContextVar[str | None] = ContextVar("correlation", default=None)
        self._closed = False
        #: The runs that were published to here, in order.
        self._runs: dict[str, None] = {}
        #: Those that were published to since all was idle.
        self._unsettled: set[str] = set()

    @property
    def name(self) -> str:
        """The name of the board."""
        return self._builder.name

    @property
    def scope(self) -> Scope:
        """The tenant of the board."""
        return self._scope

    def type_name(self, model: type[BaseModel]) -> str:
        """Return the type name of a class on the board."""
        return self._builder.type_name(model)

    def agent(self, name: str) -> AgentBuilder:
        """Add an agent; continue with `consumes` and `publishes`."""
        return self._builder.agent(name)

    def types(self, *models: type[BaseModel]) -> Self:
        """Register classes that can be published although no agent names them."""
        for model in models:
            self._builder.types.add(model)
        return self

    def with_components(self, *components: Any) -> Self:  # noqa: ANN401 - an author's own
        """Add components that see every artifact and every activation of the board."""
        for component in components:
            self._builder.add_component(component)
        return self

    def build(self) -> WorkflowSpec:
        """Return the board as a spec: the same that package files give."""
        return self._builder.build()

    def save(self, folder: str | Path) -> None:
        """Write the board as a new package. Raises UsageError if files cannot express it."""
        spec = self.build()
        local = list(self._builder.objects.table)
        if local:
            raise UsageError(
                f"only this process has {', '.join(local)}",
                hint="move it into a module that can be imported; let it read keys itself",
            )
        write_package(Path(folder), spec, {})

    async def publish(
        self,
        obj: BaseModel | Mapping[str, Any] | str,
        payload: Mapping[str, Any] | None = None,
        *,
        tags: Iterable[str] = (),
        visibility: Visibility | Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        partition: str = "",
        id: str = "",  # noqa: A002 - what it is
    ) -> Publication:
        """Publish an artifact; the agents it wakes work in the background.

        Pass an object, or the name of a type and a payload. Without a correlation a new one starts.
        """
        return await self._publish(
            obj, payload, tags=tags, visibility=visibility, correlation_id=correlation_id,
            partition=partition, id=id,
        )  # fmt: skip

    async def invoke(
        self,
        agent: str | AgentBuilder,
        obj: BaseModel | Mapping[str, Any] | str,
        payload: Mapping[str, Any] | None = None,
        *,
        correlation_id: str | None = None,
    ) -> Publication:
        """Deliver an artifact to one agent only."""
        name = agent.name if isinstance(agent, AgentBuilder) else agent
        return await self._publish(obj, payload, correlation_id=correlation_id, agent=name)

    async def _publish(
        self,
        obj: BaseModel | Mapping[str, Any] | str,
        payload: Mapping[str, Any] | None,
        *,
        tags: Iterable[str] = (),
        visibility: Visibility | Mapping[str, Any] | None = None,
        correlation_id: str | None = None,
        partition: str = "",
        id: str = "",  # noqa: A002 - what it is
        agent: str = "",
    ) -> Publication:
        type_, content = self._type_and_payload(obj, payload)
        host = await self._open_host()
        made = await host.publish(
            self.name,
            type_,
            content,
            scope=self._scope,
            tags=tags,
            visibility=visibility,
            correlation=correlation_id or self._correlation.get(),
            partition=partition,
            id=id,
            agent=agent,
        )
        self._runs[made.run] = None
        self._unsettled.add(made.run)
        return made

    def _type_and_payload(
        self, obj: BaseModel | Mapping[str, Any] | str, payload: Mapping[str, Any] | None
    ) -> tuple[str, object]:
        types = self._builder.types
        if isinstance(obj, type):
            raise UsageError(f"{obj.__name__} is a class", hint=f"publish {obj.__name__}(...)")
        if isinstance(obj, BaseModel):
            kind = type(obj)
            if kind not in types:
                if not getattr(kind, ARTIFACT_MARK, False):
                    raise UsageError(
                        f"{kind.__name__} is not a type of the board",
                        hint="decorate it with @artifact, or let an agent consume or publish it",
                    )
                types.add(kind)
            return types[kind], obj.model_dump(mode="json")
        if isinstance(obj, str):
            return types.resolve(obj), dict(payload or {})
        given = dict(obj)
        name = given.pop("type", None)
        if not isinstance(name, str):
            raise UsageError(
                "the published object has no type",
                hint='publish an object, or {"type": "Invoice", "payload": {...}}',
            )
        return types.resolve(name), given.get("payload", given)

    async def run_until_idle(self, *, flush: bool = False) -> None:
        """Wait until nothing is active or queued; timers do not count.

        `flush` processes incomplete batches. Raises RunError if a run was abandoned.
        """
        host = await self._open_host()
        await host.quiet()
        if flush:
            for row in [row async for row in self._rows(host) if row.status != "ended"]:
                # The runs of this process, and those that collect for all correlations.
                if row.run in self._runs or f"/{self.name}~" in row.name:
                    await host.flush(row.run, scope=self._scope)
            await host.quiet()
        everybody = Scope.operator(self._scope.app)
        for run in list(self._unsettled):
            row = await host.run(run, scope=everybody)
            if row.status == "running":
                await host.settled(run, scope=everybody)  # It says why.
            self._unsettled.discard(run)

    async def run_until(self, condition: Condition, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - what a user says
        """Wait until a condition holds. Return False after the timeout; without one, when idle.

        The condition is a function of the board, which may be async.
        """
        host = await self._open_host()
        try:
            async with asyncio.timeout(timeout):
                while True:
                    changed = host.changed()
                    holds = condition(self)
                    if await holds if inspect.isawaitable(holds) else holds:
                        return True
                    if timeout is not None:
                        await changed
                    elif host.busy:
                        await host.changed_or_quiet(changed)
                    else:
                        return False
        except TimeoutError:
            return False

    async def query_artifacts(
        self,
        filters: FilterConfig | None = None,
        *,
        embed_meta: bool = False,
        offset: int = 0,
    ) -> tuple[list[Envelope], int]:
        """Return artifacts, newest first, and their total number.

        `offset` skips that many artifacts, for the next page.
        """
        host = await self._open_host()
        return await host.artifacts(
            self.name, filters, scope=self._scope, embed_meta=embed_meta, offset=offset
        )

    async def why(self, artifact: str | Publication, agent: str | AgentBuilder) -> str | None:
        """Return why an agent may not see an artifact now, or None if it may."""
        host = await self._open_host()
        id_ = artifact if isinstance(artifact, str) else artifact.id
        name = agent.name if isinstance(agent, AgentBuilder) else agent
        return await host.why(self.name, id_, name, scope=self._scope)

    async def agent_history(self, name: str) -> list[Consumption]:
        """Return the artifacts that woke an agent, newest first."""
        host = await self._open_host()
        return await host.consumed(self.name, scope=self._scope, agent=name)

    async def missed(self, correlation_id: str | None = None) -> list[Missed]:
        """Return artifacts that were collected and never delivered, in one correlation or all."""
        host = await self._open_host()
        if correlation_id is None:
            runs = [row.run async for row in self._rows(host)]
        else:
            runs = [await host.run_of(self.name, correlation_id, scope=self._scope)]
        found: list[Missed] = []
        for name in runs:
            async for event in host.events(name, scope=Scope.operator(self._scope.app)):
                data = getattr(event, "data", None)
                if isinstance(data, DeliveryMissed):
                    found.append(
                        Missed(name, data.subscription, data.artifacts, data.why, data.detail)
                    )
        return found

    async def _rows(self, host: Host) -> AsyncGenerator[RunRow]:
        """Yield all runs of the board, those of other processes included."""
        before: str | None = None
        while page := await host.runs(
            scope=Scope.operator(self._scope.app), workflow=self.name, before=before, limit=_PAGE
        ):
            for row in page:
                yield row
            before = page[-1].run

    async def spans(self, correlation_id: str) -> list[Span]:
        """Return the spans of a correlation that have ended."""
        host = await self._open_host()
        run = await host.run_of(self.name, correlation_id, scope=self._scope)
        items = host.events(run, scope=Scope.operator(self._scope.app))
        events = [item async for item in items if isinstance(item, Event)]
        return [span for span in spans_of(self._scope.app, run, events) if span.ms is not None]

    @asynccontextmanager
    async def traced_run(self, name: str = "run") -> AsyncGenerator[Trace]:
        """Put everything that is published inside the context into one correlation."""
        host = await self._open_host()
        correlation = host.new_id()
        before = self._correlation.set(correlation)  # For this task and the tasks it starts.
        try:
            yield Trace(name, correlation, self)
        finally:
            self._correlation.reset(before)

    def application(
        self,
        input: type[BaseModel],  # noqa: A002 - what it is
        outputs: Sequence[type[BaseModel]],
        deadline: float | None = None,
    ) -> Application:
        """Return the board as a function: publish one artifact, return the wanted ones."""
        return Application(self, input, tuple(outputs), deadline)

    async def start(self) -> None:
        """Start the schedules of the board, and resume the runs of ended processes."""
        host = await self._open_host()
        await host.start_schedules(self.name, scope=self._scope)
        await host.recover()

    async def host(self) -> Host:
        """Return the host of the board."""
        return await self._open_host()

    async def close(self) -> None:
        """Release all runs; those in a file can be resumed later."""
        self._closed = True
        host, self._host = self._host, None
        if host is not None:
            await host.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _open_host(self) -> Host:
        if self._closed:
            raise UsageError(f"the board {self.name} is closed", hint="make another one")
        async with self._opening:
            if self._host is None:
                self._host = await open_code_host(
                    self.name,
                    self.build,
                    ChainMap(self._builder.objects.table, self._builder.objects.given),
                    workspace=self._workspace,
                    journal=self._journal,
                    model=self._model,
                    clock=self._clock,
                    embedder=self._embedder,
                )
        return self._host
