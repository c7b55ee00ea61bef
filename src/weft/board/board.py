"""A board in a program: publish, wait, look."""

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
from weft.engine.events import DeliveryMissed
from weft.errors import UsageError
from weft.inspect.steps import Span, spans_of
from weft.packages.writer import write_package
from weft.ports.board import Consumption
from weft.ports.clock import Clock
from weft.ports.journal import RunRow
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

#: Asks whether a board has come far enough.
Condition = Callable[["Board"], bool | Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Trace:
    """What was published together: the correlation, and what took how long in it."""

    name: str
    correlation_id: str
    board: "Board"

    async def spans(self) -> list[Span]:
        """Return what took how long, in the order it began."""
        return await self.board.spans(self.correlation_id)


class Board:
    """A board of typed artifacts, and the agents they wake.

    Runs are kept in memory unless `journal` names a file. `model` is a name such as `sample`, or
    a model of `weft.testing`. `embedder` compares meanings, or else what the settings say. Close
    it, or use it as an async context manager.
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
        breaker: int = 1000,
        idle_seconds: float = 86_400,
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
                "breaker": breaker,
                "idle_seconds": idle_seconds,
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
        """Whose board it is."""
        return self._scope

    def type_name(self, model: type[BaseModel]) -> str:
        """Return what a class is called on the board."""
        return self._builder.type_name(model)

    def agent(self, name: str) -> AgentBuilder:
        """Add an agent; go on with what it consumes and publishes."""
        return self._builder.agent(name)

    def types(self, *models: type[BaseModel]) -> Self:
        """Let classes be published that no agent names."""
        for model in models:
            self._builder.types.add(model)
        return self

    def with_components(self, *components: Any) -> Self:  # noqa: ANN401 - an author's own
        """Let components see every artifact and every activation of the board."""
        for component in components:
            self._builder.add_component(component)
        return self

    def build(self) -> WorkflowSpec:
        """Return the board as a spec: the same that package files give."""
        return self._builder.build()

    def save(self, folder: str | Path) -> None:
        """Write the board as a new package. Raises UsageError if it has what no file can say."""
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
        """Put an artifact on the board; whom it wakes works on in the background.

        It is an object, or the name of a type with a payload. Without a correlation it begins one.
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
        """Give an artifact to one agent only."""
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
        type_, content = self._named(obj, payload)
        host = await self._opened()
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

    def _named(
        self, obj: BaseModel | Mapping[str, Any] | str, payload: Mapping[str, Any] | None
    ) -> tuple[str, object]:
        types = self._builder.types
        if isinstance(obj, type):
            raise UsageError(f"{obj.__name__} is a class", hint=f"publish {obj.__name__}(...)")
        if isinstance(obj, BaseModel):
            kind = type(obj)
            if kind not in types and not getattr(kind, ARTIFACT_MARK, False):
                raise UsageError(
                    f"{kind.__name__} is not a type of the board",
                    hint="decorate it with @artifact, or let an agent consume or publish it",
                )
            types.add(kind)
            return types.name(kind), obj.model_dump(mode="json")
        if isinstance(obj, str):
            return types.resolve(obj), dict(payload or {})
        given = dict(obj)
        name = given.pop("type", None)
        if not isinstance(name, str):
            raise UsageError(
                "what is published has no type",
                hint='publish an object, or {"type": "Invoice", "payload": {...}}',
            )
        return types.resolve(name), given.get("payload", given)

    async def run_until_idle(self, *, flush: bool = False) -> None:
        """Return when nothing is active or queued; what waits for a time does not count.

        `flush` lets batches be handled that are not full. Raises RunError if a run was given up.
        """
        host = await self._opened()
        await host.quiet()
        if flush:
            for run in [it.run async for it in self._rows(host) if it.status != "ended"]:
                # Those of this process, and those that collect for all correlations.
                if run in self._runs or run.startswith(f"{self.name}~"):
                    await host.flush(run, scope=self._scope)
            await host.quiet()
        everybody = Scope(self._scope.app)
        for run in list(self._unsettled):
            row = await host.run(run, scope=everybody)
            if row.status == "running":
                await host.settled(run, scope=everybody)  # It says why.
            self._unsettled.discard(run)

    async def run_until(self, condition: Condition, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - what a user says
        """Go on until a condition holds: True. False: the time is over; without one, all is idle.

        The condition is a function of the board, which may be async.
        """
        host = await self._opened()
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
        """Return artifacts, newest first, and how many there are in all.

        `offset` leaves out so many of the first: the next page begins where the last has ended.
        """
        host = await self._opened()
        return await host.artifacts(
            self.name, filters, scope=self._scope, embed_meta=embed_meta, offset=offset
        )

    async def why(self, artifact: str | Publication, agent: str | AgentBuilder) -> str | None:
        """Say why an agent may not see an artifact now, or None if it may."""
        host = await self._opened()
        id_ = artifact if isinstance(artifact, str) else artifact.id
        name = agent.name if isinstance(agent, AgentBuilder) else agent
        return await host.why(self.name, id_, name, scope=self._scope)

    async def agent_history(self, name: str) -> list[Consumption]:
        """Return which artifacts have woken an agent, newest first."""
        host = await self._opened()
        return await host.consumed(self.name, scope=self._scope, agent=name)

    async def missed(self, run: str | None = None) -> list[Missed]:
        """Return what did not come to what it was collected for, in one run or on all of the board.

        A correlation is a run of the same name, so its id may be given.
        """
        host = await self._opened()
        runs = [row.run async for row in self._rows(host)] if run is None else [run]
        found: list[Missed] = []
        for name in runs:
            async for event in host.events(name, scope=Scope(self._scope.app)):
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
            scope=Scope(self._scope.app), workflow=self.name, before=before, limit=_PAGE
        ):
            for row in page:
                yield row
            before = page[-1].run

    async def spans(self, correlation_id: str) -> list[Span]:
        """Return what took how long in a correlation."""
        host = await self._opened()
        events = host.events(correlation_id, scope=Scope(self._scope.app))
        return spans_of(correlation_id, [event async for event in events if hasattr(event, "data")])  # pyright: ignore[reportArgumentType]

    @asynccontextmanager
    async def traced_run(self, name: str = "run") -> AsyncGenerator[Trace]:
        """Let everything that is published inside belong to one correlation."""
        host = await self._opened()
        correlation = host.new_id()
        before = self._correlation.set(correlation)  # For this task, and those it begins.
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
        """Use the board as a function: from one artifact to the others that are wanted."""
        return Application(self, input, tuple(outputs), deadline)

    async def start(self) -> None:
        """Begin the schedules of the board, and what another process has left."""
        host = await self._opened()
        await host.start_schedules(self.name, scope=self._scope)
        await host.recover()

    async def host(self) -> Host:
        """Return the host that the board runs on."""
        return await self._opened()

    async def close(self) -> None:
        """Let all runs go; those in a file go on some other time."""
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

    async def _opened(self) -> Host:
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
