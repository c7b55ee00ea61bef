"""Runs for tests of values from outside: real documents, files and services around a real host."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, cast

from support.model_play import run as run_bounded
from support.run_play import ADA, Seconds
from support.service_play import Service
from weft.adapters.documents.sqlite import SqliteDocuments
from weft.adapters.files import WorkspaceFiles
from weft.adapters.memory import MemoryStore
from weft.adapters.services.http_services import HttpServices
from weft.engine.events import Event, EventData, VariableSet
from weft.engine.rows import Batch, RunRow
from weft.engine.state import State
from weft.errors import StoreError
from weft.inspect.replay import check_replay
from weft.ports.documents import Collection, Document
from weft.ports.external import ExternalPorts
from weft.ports.scope import Scope
from weft.ports.store import Store as RunStore
from weft.runtime.host import Host
from weft.runtime.workflow import Workflow
from weft.spec.workflow import WorkflowSpec
from weft.testing.hosts import host_for


class Store(SqliteDocuments):
    """Documents in a file, which remembers what it was asked; it may be down, or slow."""

    asked: list[tuple[str, Document]]
    written: list[tuple[str, Document]]
    down: str = ""
    #: Called before each answer: it may wait, or break off what is under way.
    before: Callable[[str], Awaitable[None]] | None = None

    async def find(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Any],
        *,
        fields: Sequence[str] = (),
    ) -> Document | None:
        self.asked.append((collection.name, dict(query)))
        await self._fail_if_told("find")
        return await super().find(scope, collection, query, fields=fields)

    async def put(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Any],
        values: Mapping[str, Any],
    ) -> str:
        await self._fail_if_told("put")
        self.written.append((collection.name, {**query, **values}))
        return await super().put(scope, collection, query, values)

    async def _fail_if_told(self, what: str) -> None:
        if self.before is not None:
            await self.before(what)
        if self.down:
            raise StoreError(self.down)


class MortalJournal(MemoryStore):
    """A journal whose process dies at one of its writes: before it, or right after it."""

    def __init__(self, fatal: int, *, after: bool = False) -> None:
        super().__init__()
        self.fatal, self.after, self._writes = fatal, after, count(1)

    async def append(self, batch: Batch, *, owner: str) -> bool:
        if self.fatal and next(self._writes) >= self.fatal:
            if self.after:
                await super().append(batch, owner=owner)
                self.after = False
            raise StoreError("the process is dead", retryable=True)
        return await super().append(batch, owner=owner)

    async def close(self) -> None:
        """It is used by the next process."""


@asynccontextmanager
async def store_at(path: Path, documents: Mapping[str, Any] | None = None) -> AsyncGenerator[Store]:
    """Open documents in a file and put some there, by collection."""
    store = await Store.open(path)
    assert isinstance(store, Store)
    store.asked, store.written = [], []
    try:
        for collection, found in (documents or {}).items():
            several = cast("list[Any]", found if isinstance(found, list) else [found])
            for number, item in enumerate(several):
                scope = Scope.operator(item.pop("tenant", ADA.app))
                await SqliteDocuments.put(
                    store, scope, Collection(collection), {"_id": f"k{number}"}, item
                )
        yield store
    finally:
        await store.close()


async def documents_in(path: Path, collection: str, app: str = ADA.app) -> list[Document]:
    """Return what stands in a collection of a file, without keys."""
    store = await SqliteDocuments.open(path)
    try:
        found = await store.page(Scope.operator(app), Collection(collection))
        return [{key: value for key, value in item.items() if key != "_id"} for item in found]
    finally:
        await store.close()


def declared(
    variables: Mapping[str, Any],
    *,
    agents: Sequence[str] = ("A",),
    tools: Sequence[Any] = (),
    orchestrator: Mapping[str, Any] | None = None,
    **rest: Any,
) -> WorkflowSpec:
    """Declare agents of which the first is shown all variables and has all tools, and an end."""
    first = agents[0]
    return WorkflowSpec.model_validate(
        {
            "orchestrator": {
                "workflow_name": "W",
                "initial_agent": first,
                **(orchestrator or {}),
            },
            "agents": [{"agent_name": agent} for agent in agents],
            "variables": dict(variables),
            "exposure": {agent: list(variables) for agent in agents},
            "tools": [
                tool
                if isinstance(tool, dict)
                else {
                    "tool_type": "Agent_Tool",
                    "agent": first,
                    "file": "desk.py",
                    "function": tool,
                }
                for tool in tools
            ],
            "handoffs": [{"source_agent": agents[-1], "target_agent": "terminate"}],
            **rest,
        }
    )


def derived(type_: str = "str", default: Any = None, *triggers: Any, **more: Any) -> dict[str, Any]:
    source = {"type": "derived", "default": default, "triggers": list(triggers)}
    return {"type": type_, "source": source, **more}


def variable(type_: str, kind: str, /, **source: Any) -> dict[str, Any]:
    """Declare a variable that comes from a kind of source."""
    return {"type": type_, "source": {"type": kind, **source}}


def desk(*functions: str) -> dict[str, bytes]:
    """Return the code of tools, hooks and computations, all in one file."""
    return {"tools/desk.py": "\n\n".join(("import asyncio, time", *functions)).encode()}


@dataclass
class Told:
    """A run that was played with what is around it, and what it came to."""

    workflow: Workflow
    run: str
    events: list[Event]
    row: RunRow
    state: State
    notes: dict[str, Any] = field(default_factory=dict[str, Any])

    def of(self, kind: type[EventData]) -> list[Any]:
        """Return what the events of a kind say, in order."""
        return [event.data for event in self.events if isinstance(event.data, kind)]

    def values(self, name: str) -> list[Any]:
        """Return the values a variable was set to, in order."""
        return [event.value for event in self.of(VariableSet) if event.name == name]

    def writers(self, name: str) -> list[str]:
        return [event.writer for event in self.of(VariableSet) if event.name == name]

    def expect_same_again(self) -> None:
        """Check that the journal alone leads to the same decisions."""
        assert check_replay(self.workflow, self.run, self.events) == []


async def tell(host: Host, run: str, scope: Scope = ADA) -> Told:
    """Wait until a run rests, and read all of it."""
    row = await host.settled(run, scope=scope)
    events = [event async for event in host.events(run, scope=scope) if isinstance(event, Event)]
    state = await host.state(run, scope=scope)
    return Told(await host.workflow(run, scope=scope), run, events, row, state)


def play(
    spec: WorkflowSpec | Callable[[Service], WorkflowSpec],
    model: Any,
    *,
    code: Mapping[str, bytes] | None = None,
    documents: Path | None = None,
    having: Mapping[str, Any] | None = None,
    files: Path | None = None,
    service: Service | None = None,
    environment: Mapping[str, str] | None = None,
    message: str | None = "hello",
    values: Mapping[str, Any] | None = None,
    store: Callable[[Store], None] | None = None,
    after: Callable[[Host, str], Awaitable[str | None]] | None = None,
    journal: RunStore | None = None,
    **options: Any,
) -> Told:
    """Play a run to its rest with what it reaches outside; `after` may do more, or name another.

    `documents` is a file, `having` what it holds before; `store` may change how that behaves.
    `service` is a server on this machine that may be asked: the spec is made when it runs.
    """

    async def scenario() -> Told:
        async with around(documents, having) as kept, service or nullcontext():
            if kept is not None and store is not None:
                store(kept)
            clock = options.pop("clock", None) or Seconds()
            outside = ExternalPorts(
                documents=kept,
                services=HttpServices(clock, frozenset([service.place] if service else [])),
                files=WorkspaceFiles(files) if files else None,
                environment=environment or {},
            )
            host = host_for(
                spec if isinstance(spec, WorkflowSpec) else spec(cast("Service", service)),
                model,
                code=code or {},
                clock=clock,
                store=journal,
                environment=environment,
                outside=outside,
                **options,
            )
            async with host:
                run = await host.start("W", scope=ADA, message=message, values=values)
                told = await tell(host, run)
                if after is not None:
                    told = await tell(host, await after(host, run) or run)
            told.notes["asked"] = kept.asked if kept else []
            told.notes["written"] = kept.written if kept else []
            return told

    return run_bounded(asyncio.wait_for(scenario(), 30), 40)


@asynccontextmanager
async def around(
    documents: Path | None, having: Mapping[str, Any] | None
) -> AsyncGenerator[Store | None]:
    if documents is None:
        yield None
        return
    async with store_at(documents, having) as kept:
        yield kept
