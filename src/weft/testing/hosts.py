"""A host for tests: one model answers for everybody, and nothing outlives the test."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Final

from weft.adapters.documents.sqlite import SqliteDocuments
from weft.adapters.memory import MemoryJournal
from weft.adapters.python_tools.loader import PythonToolLoader
from weft.adapters.system_clock import SystemClock
from weft.errors import UsageError
from weft.findings import Json
from weft.packages import reader
from weft.packages.reader import Package
from weft.packages.review import refuse_errors
from weft.ports.clock import Clock
from weft.ports.dispatcher import Dispatcher
from weft.ports.documents import Change, Collection, Document
from weft.ports.external import ExternalPorts
from weft.ports.journal import Journal
from weft.ports.model import Model
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.workflow import LINKING, Linking, Workflow, link
from weft.spec.workflow import WorkflowSpec
from weft.testing.models import ScriptedModel

NO_CODE: Final[Mapping[str, bytes]] = {}


class OneModel:
    """Gives the same model to every agent of every run."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __call__(self, name: str, workflow: Workflow, scope: Scope) -> Model:  # noqa: ARG002 - one for all
        """Return the model, whatever name is asked for."""
        return self._model

    async def close(self) -> None:
        """Nothing is open."""


class GivenDocuments:
    """The documents of a test, by collection: every tenant begins with them, in any database."""

    def __init__(self, given: Mapping[str, Sequence[Mapping[str, Json]]]) -> None:
        self._given = given
        self._opened: SqliteDocuments | None = None
        self._tenants: set[str] = set()

    async def _store(self, scope: Scope) -> SqliteDocuments:
        if self._opened is None:
            self._opened = await SqliteDocuments.open(":memory:")
        if scope.app not in self._tenants:
            self._tenants.add(scope.app)
            for collection, documents in self._given.items():
                for number, document in enumerate(documents, start=1):
                    values = {name: it for name, it in document.items() if name != "_id"}
                    key = {"_id": str(document.get("_id", number))}
                    await self._opened.put(Scope(scope.app), Collection(collection), key, values)
        return self._opened

    async def find(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),
    ) -> Document | None:
        """Return the document a query fits."""
        store = await self._store(scope)
        return await store.find(scope, Collection(collection.name), query, fields=fields)

    async def page(
        self, scope: Scope, collection: Collection, *, after: str | None = None, limit: int = 50
    ) -> list[Document]:
        """Return documents by key."""
        store = await self._store(scope)
        return await store.page(scope, Collection(collection.name), after=after, limit=limit)

    async def collections(
        self, scope: Scope, *, database: str | None = None
    ) -> list[tuple[Collection, int]]:
        """Return the collections and how many documents are in each."""
        found = await (await self._store(scope)).collections(scope)
        return [(Collection(it.name, database), count) for it, count in found]

    async def put(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        values: Mapping[str, Json],
    ) -> str:
        """Set fields of the document a query fits, or make one."""
        store = await self._store(scope)
        return await store.put(scope, Collection(collection.name), query, values)

    async def delete(self, scope: Scope, collection: Collection, key: str) -> bool:
        """Remove a document."""
        return await (await self._store(scope)).delete(scope, Collection(collection.name), key)

    async def watch(
        self, scope: Scope, collection: Collection, *, after: str | None = None
    ) -> AsyncGenerator[Change]:
        """Yield what changes in a collection."""
        store = await self._store(scope)
        async with aclosing(store.watch(scope, Collection(collection.name), after=after)) as news:
            async for change in news:
                yield change

    async def close(self) -> None:
        """Close the store, if it was opened."""
        if self._opened is not None:
            await self._opened.close()


def host_for(  # noqa: PLR0913 - its ports, all by name
    spec: WorkflowSpec,
    model: Model,
    *,
    code: Mapping[str, bytes] = NO_CODE,
    journal: Journal | None = None,
    clock: Clock | None = None,
    dispatcher: Dispatcher | None = None,
    environment: Mapping[str, str] | None = None,
    outside: ExternalPorts | None = None,
    documents: Mapping[str, Sequence[Mapping[str, Json]]] | None = None,
    linking: Linking = LINKING,
) -> Host:
    """Return a host that runs one workflow with one model, in memory by default.

    `documents` are what `database` and `entity` variables read, by collection.
    """
    loader = PythonToolLoader()
    workflow = link(spec, code, loader, linking)
    if isinstance(model, ScriptedModel):
        model.require_known(workflow)
    if documents is not None:
        outside = replace(outside or ExternalPorts(), documents=GivenDocuments(documents))

    async def find(_: str) -> Workflow:
        return workflow

    return Host(
        journal=journal or MemoryJournal(),
        models=OneModel(model),
        loader=loader,
        clock=clock or SystemClock(),
        find=find,
        dispatcher=dispatcher,
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
