"""What the hosts of a workspace reach outside; each is opened when a run first needs it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from weft.adapters.files import WorkspaceFiles
from weft.adapters.mcp.servers import McpToolServers
from weft.adapters.services.http_services import HttpServices
from weft.app.documents import documents_of
from weft.app.embeddings import find_embedder
from weft.app.settings import allowed_hosts
from weft.errors import UsageError
from weft.ports import retriever as searched
from weft.ports.clock import Clock
from weft.ports.retriever import Retrievers, VectorSearchAdapter
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
    return Outside(
        documents=documents_of(workspace, settings),
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
