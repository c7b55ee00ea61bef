"""A host for tests: one model replies for every agent, and nothing outlives the test."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Final

from weft.adapters.documents.sqlite import SqliteDocuments
from weft.adapters.live.memory import MemoryLiveStream
from weft.adapters.memory.store import MemoryStore
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.system_clock import SystemClock
from weft.adapters.vault import MemoryVault
from weft.errors import UsageError
from weft.findings import Json
from weft.packages import reader
from weft.packages.reader import Package
from weft.packages.review import refuse_errors
from weft.ports.clock import Clock
from weft.ports.documents import Change, Collection, Document
from weft.ports.external import ExternalPorts
from weft.ports.live import LiveStream
from weft.ports.model import Model, ToolSchema
from weft.ports.scope import Scope
from weft.ports.store import Store
from weft.ports.tools import Call
from weft.ports.vault import Vault
from weft.runtime.host import Host
from weft.runtime.workflow import LINKING, Linking, Workflow, link
from weft.spec.workflow import WorkflowSpec
from weft.testing.models import ScriptedModel

NO_CODE: Final[Mapping[str, bytes]] = {}


class OneModel:
    """Returns the same model for every agent of every run."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __call__(self, name: str, workflow: Workflow, scope: Scope) -> Model:  # noqa: ARG002 - one for all
        """Return the model for any name."""
        return self._model

    async def close(self) -> None:
        """Nothing is open."""


class GivenResults:
    """Tools of which some are not called: they have given results, the last one again and again."""

    def __init__(self, workflow: Workflow, results: Mapping[str, Sequence[Json]]) -> None:
        # The code is unloaded with the workflow.
        self._workflow = workflow
        self._results = {tool: list(given) for tool, given in results.items()}

    def schema(self, tool: str) -> ToolSchema:
        """Return how a model sees a tool."""
        return self._workflow.tools.schema(tool)

    def validation_error(self, tool: str, arguments: Mapping[str, Json]) -> str | None:
        """Say why a tool cannot be called with arguments."""
        return self._workflow.tools.validation_error(tool, arguments)

    async def call(self, call: Call) -> object:
        """Return the next result of a tool, or call it."""
        left = self._results.get(call.name)
        if left is None or call.function is not None or call.offered is not None:
            return await self._workflow.tools.call(call)
        return left.pop(0) if len(left) > 1 else left[0]


class GivenDocuments:
    """The documents of a test by collection; every tenant starts with them, in any database."""

    def __init__(self, given: Mapping[str, Sequence[Mapping[str, Json]]]) -> None:
        self._given = given
        self._opened: SqliteDocuments | None = None
        self._tenants: set[str] = set()
        #: Held while they are written: several variables are read at once.
        self._filling = asyncio.Lock()

    async def _store(self, scope: Scope) -> SqliteDocuments:
        async with self._filling:
            store = self._opened = self._opened or await SqliteDocuments.open(":memory:")
            if scope.app not in self._tenants:
                self._tenants.add(scope.app)
                await self._fill(store, Scope.operator(scope.app))
        return store

    async def _fill(self, store: SqliteDocuments, scope: Scope) -> None:
        for collection, documents in self._given.items():
            for number, document in enumerate(documents, start=1):
                values = {name: value for name, value in document.items() if name != "_id"}
                key = {"_id": str(document.get("_id", number))}
                await store.put(scope, Collection(collection), key, values)

    async def find(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),
    ) -> Document | None:
        """Return the document that matches a query."""
        store = await self._store(scope)
        return await store.find(scope, Collection(collection.name), query, fields=fields)

    async def find_many(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),
        order: str = "",
        limit: int = 20,
    ) -> list[Document]:
        """Return the documents that match a query."""
        store, place = await self._store(scope), Collection(collection.name)
        return await store.find_many(scope, place, query, fields=fields, order=order, limit=limit)

    async def page(
        self, scope: Scope, collection: Collection, *, after: str | None = None, limit: int = 50
    ) -> list[Document]:
        """Return documents by key."""
        store = await self._store(scope)
        return await store.page(scope, Collection(collection.name), after=after, limit=limit)

    async def collections(
        self, scope: Scope, *, database: str | None = None
    ) -> list[tuple[Collection, int]]:
        """Return the collections with their numbers of documents."""
        found = await (await self._store(scope)).collections(scope)
        return [(Collection(collection.name, database), count) for collection, count in found]

    async def put(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        values: Mapping[str, Json],
    ) -> str:
        """Set fields of the matching document, or create one."""
        store = await self._store(scope)
        return await store.put(scope, Collection(collection.name), query, values)

    async def delete(self, scope: Scope, collection: Collection, key: str) -> bool:
        """Remove a document."""
        return await (await self._store(scope)).delete(scope, Collection(collection.name), key)

    async def watch(
        self, scope: Scope, collection: Collection, *, after: str | None = None
    ) -> AsyncGenerator[Change]:
        """Yield the changes of a collection."""
        store = await self._store(scope)
        async with aclosing(store.watch(scope, Collection(collection.name), after=after)) as news:
            async for change in news:
                yield change

    async def position(self, scope: Scope, collection: Collection) -> str:
        """Return the position from which later changes are watched."""
        return await (await self._store(scope)).position(scope, Collection(collection.name))

    async def close(self) -> None:
        """Close the store, if it was opened."""
        if self._opened is not None:
            await self._opened.close()


def host_for(  # noqa: PLR0913 - its ports, all by name
    spec: WorkflowSpec,
    model: Model,
    *,
    code: Mapping[str, bytes] = NO_CODE,
    store: Store | None = None,
    clock: Clock | None = None,
    works: bool = True,
    live: LiveStream | None = None,
    vault: Vault | None = None,
    environment: Mapping[str, str] | None = None,
    outside: ExternalPorts | None = None,
    documents: Mapping[str, Sequence[Mapping[str, Json]]] | None = None,
    tools: Mapping[str, Sequence[Json]] | None = None,
    linking: Linking = LINKING,
) -> Host:
    """Return a host that runs one workflow with one model, in memory by default.

    `documents` are what `database` and `entity` variables read, by collection; `tools` are results
    of tools in place of their calls. Without `works` the host performs nothing: another host on the
    same store does.
    """
    clock = clock or SystemClock()
    loader = PythonToolLoader()
    workflow = link(spec, code, loader, linking)
    if tools:
        workflow = replace(workflow, tools=GivenResults(workflow, tools))
    if isinstance(model, ScriptedModel):
        model.require_known(workflow)
    if documents is not None:
        outside = replace(outside or ExternalPorts(), documents=GivenDocuments(documents))

    async def find(_app: str, _name: str) -> Workflow:
        return workflow

    return Host(
        store=store or MemoryStore(clock),
        models=OneModel(model),
        loader=loader,
        clock=clock,
        find=find,
        live=live or MemoryLiveStream(),
        vault=vault or MemoryVault(),
        works=works,
        environment=environment,
        outside=outside,
        linking=linking,
    )


def read_package(folder: str | Path) -> Package:
    """Read a package that can run.

    Raises UsageError if there is no such folder, CheckFailed with all findings if it has errors.
    """
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}", hint="name the folder of a package")
    package = reader.read_package(path)
    refuse_errors(package)
    return package
