"""What the hosts of a workspace reach outside; each is opened when a run first needs it."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeAlias

from weft.adapters.files import WorkspaceFiles
from weft.adapters.mcp.servers import McpToolServers
from weft.adapters.services.http_services import HttpServices
from weft.app.documents import open_documents
from weft.app.settings import allowed_hosts
from weft.errors import UsageError
from weft.findings import Json
from weft.ports import retriever as searched
from weft.ports.clock import Clock
from weft.ports.documents import Change, Collection, Document, Documents
from weft.ports.retriever import Retrievers, VectorSearchAdapter
from weft.ports.scope import Scope
from weft.runtime.outside import Outside
from weft.runtime.retrievers import RetrieverRegistry

#: What searches which collection, by its class or its name.
Adapters: TypeAlias = Mapping[type[searched.Collection] | str, VectorSearchAdapter[Any]]


def retrievers_of(collections: Adapters | None) -> Retrievers:
    """Return what searches the collections of a host."""
    registry = RetrieverRegistry()
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
    """Return the ports of a workspace; nothing is opened or imported yet that is not needed."""

    async def documents() -> Documents:
        return await open_documents(workspace, settings)

    return Outside(
        documents=LazyDocuments(documents),
        services=HttpServices(clock, allowed_hosts(settings)),
        files=WorkspaceFiles(workspace),
        servers=McpToolServers(clock=clock, environment=settings),
        retrievers=retrievers_of(collections),
        folder=str(workspace),
        environment=settings,
    )


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
