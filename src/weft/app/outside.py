"""What the hosts of a workspace reach outside; each is opened when a run first needs it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeAlias

from weft.adapters.files import WorkspaceFiles
from weft.adapters.mcp.servers import McpToolServers
from weft.adapters.services.http_services import HttpServices
from weft.app.documents import open_documents, require_documents
from weft.app.embeddings import find_embedder
from weft.app.settings import allowed_hosts
from weft.errors import UsageError
from weft.findings import Json
from weft.ports import retriever as searched
from weft.ports.clock import Clock
from weft.ports.documents import Change, Collection, Document, Documents
from weft.ports.retriever import Retrievers, VectorSearchAdapter
from weft.ports.scope import Scope
from weft.runtime.external_ports import Outside
from weft.runtime.flow.retrieval import RetrieverRegistry

#: What searches which collection, by its class or its name.
Adapters: TypeAlias = Mapping[type[searched.Collection] | str, VectorSearchAdapter[Any]]


def retrievers_of(collections: Adapters | None, others: Retrievers | None = None) -> Retrievers:
    """Return what searches the collections of a host: what is given, then others."""
    registry = RetrieverRegistry(others)
    for collection, adapter in (collections or {}).items():
        if not callable(getattr(adapter, "search", None)):
            raise UsageError(
                f"{type(adapter).__name__} searches no collection",
                hint="give an object with `async def search(self, query, *, top_k, ...)`",
            )
        registry.register(collection, adapter)
    return registry


def open_outside(
    workspace: Path,
    settings: Mapping[str, str],
    clock: Clock,
    collections: Adapters | None = None,
) -> Outside:
    """Return the ports of a workspace; each is imported and opened when it is first used.

    Raises UsageError for settings that can never work.
    """
    require_documents(settings)

    async def documents() -> Documents:
        return await open_documents(workspace, settings)

    return Outside(
        documents=LazyDocuments(documents),
        services=HttpServices(clock, allowed_hosts(settings)),
        files=WorkspaceFiles(workspace),
        servers=McpToolServers(clock=clock, environment=settings),
        embedder=find_embedder(settings),
        retrievers=retrievers_of(collections, LazyCollections(workspace, settings)),
        folder=str(workspace),
        environment=settings,
    )


class LazyCollections:
    """The collections of a workspace, opened by the first who searches one."""

    def __init__(self, workspace: Path, settings: Mapping[str, str]) -> None:
        self._workspace = workspace
        self._settings = settings
        self._opened: Retrievers | None = None

    def adapter(self, app: str, collection: str) -> VectorSearchAdapter[Any] | None:
        """Return what searches a collection of a tenant; None if there is no such collection."""
        return self._all().adapter(app, collection)

    def names(self, app: str) -> Sequence[str]:
        """Return the collections of a tenant."""
        return self._all().names(app)

    def _all(self) -> Retrievers:
        if self._opened is None:
            # Most workflows search nothing, and should not wait for what could.
            from weft.app.collections import open_collections  # noqa: PLC0415

            self._opened = open_collections(self._workspace, environment=self._settings)
        return self._opened

    async def close(self) -> None:
        """Close them, if they were opened."""
        if self._opened is not None:
            await self._opened.close()


class LazyDocuments:
    """A store of documents that is opened by the first who needs it."""

    def __init__(self, open_: Callable[[], Awaitable[Documents]]) -> None:
        self._open = open_
        self._lock = asyncio.Lock()
        self._store: Documents | None = None

    async def _opened(self) -> Documents:
        if self._store is None:
            async with self._lock:
                self._store = self._store or await self._open()
        return self._store

    async def find(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),
    ) -> Document | None:
        """Return the document a query fits."""
        return await (await self._opened()).find(scope, collection, query, fields=fields)

    async def page(
        self, scope: Scope, collection: Collection, *, after: str | None = None, limit: int = 50
    ) -> list[Document]:
        """Return documents by key."""
        return await (await self._opened()).page(scope, collection, after=after, limit=limit)

    async def collections(
        self, scope: Scope, *, database: str | None = None
    ) -> list[tuple[Collection, int]]:
        """Return the collections a tenant has."""
        return await (await self._opened()).collections(scope, database=database)

    async def put(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        values: Mapping[str, Json],
    ) -> str:
        """Set fields of the document a query fits, or make one."""
        return await (await self._opened()).put(scope, collection, query, values)

    async def delete(self, scope: Scope, collection: Collection, key: str) -> bool:
        """Remove a document."""
        return await (await self._opened()).delete(scope, collection, key)

    async def watch(
        self, scope: Scope, collection: Collection, *, after: str | None = None
    ) -> AsyncGenerator[Change]:
        """Yield what changes in a collection."""
        store = await self._opened()
        async with aclosing(store.watch(scope, collection, after=after)) as changes:
            async for change in changes:
                yield change

    async def close(self) -> None:
        """Close the store, if it was opened."""
        if self._store is not None:
            await self._store.close()
