"""The collections of a workspace: made of files and texts, searched by meaning and keywords."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

from weft.adapters.collections.collection import SqlCollection, Stats, require_numpy
from weft.adapters.collections.ingest import Ingested, Ingestion, Progress, source_name
from weft.adapters.collections.rows import UnknownCollectionError, require_name
from weft.adapters.collections.sqlite import SqliteCollections
from weft.adapters.collections.texts import Chunking
from weft.app.documents import POSTGRES
from weft.app.embeddings import open_embedder
from weft.app.folders import make_folder, refuse_package
from weft.environment import read_environment
from weft.errors import RetrievalError, UsageError
from weft.findings import Json
from weft.ids import join_names, nearest, suggestion
from weft.ports.retrieval import (
    MIN_RELEVANCE,
    TOP_K,
    Collection,
    Embedder,
    RetrievalResult,
    VectorSearchAdapter,
)
from weft.spec.part import name_list

if TYPE_CHECKING:
    from weft.adapters.collections.postgres import PostgresCollections

#: The collections of a workspace; their folder is not for version control.
COLLECTIONS: Final = Path(".weft") / "collections"

#: The default tenant, as for runs.
_LOCAL: Final = "local"

#: The most sources in a hint.
_MOST_NAMED: Final = 5

#: A collection by its class or its name.
CollectionName: TypeAlias = type[Collection] | str


def _name(collection: CollectionName) -> str:
    name = collection if isinstance(collection, str) else collection.collection_name()
    require_name(name)
    return name


def _several(paths: Iterable[str | Path]) -> tuple[str | Path, ...]:
    try:
        return name_list(paths)
    except ValueError as error:
        raise UsageError(f"the paths cannot be used: {error}") from None


class Collections:
    """The collections of all tenants of a workspace. Close it, or use it with `async with`.

    Files and connections are opened when needed. `open_embedder` is called once, with the first
    text to embed or to search for.
    """

    def __init__(
        self,
        workspace: Path,
        open_embedder: Callable[[], Embedder | None],
        *,
        store: "SqliteCollections | PostgresCollections",
    ) -> None:
        self._workspace = workspace
        self._store = store
        self._open_embedder = open_embedder
        self._embedder: Embedder | None = None
        self._chosen = False
        self._open: dict[tuple[str, str], SqlCollection] = {}

    def adapter(self, app: str, collection: str) -> VectorSearchAdapter[Any] | None:
        """Return the adapter of a tenant's collection; None if there is none."""
        if not self._store.exists(app, collection):
            return None
        try:
            return self._collection(app, collection)
        except UsageError as error:  # a wrong setting, or something that is not installed
            return _UnusableCollection(error)

    async def add(
        self,
        collection: CollectionName,
        paths: Iterable[str | Path] = (),
        *,
        metadata: Mapping[str, Json] | None = None,
        chunking: Chunking | None = None,
        app: str = _LOCAL,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Ingested:
        """Add files and folders to a collection, which is created if needed.

        Unchanged files are skipped, and files that are gone from a folder are
        removed. Passages can be filtered by `metadata`. Without paths, only passages without a
        vector of the current model are embedded. Unreadable files are listed in `failed`.
        """
        files = [Path(path) for path in _several(paths)]
        for file in files:
            if not file.exists():
                raise RetrievalError(f"there is no file {file}", hint="check the path")
        name = _name(collection)
        ingestion = Ingestion(
            self._collection(app, name) if files else await self._existing(name, app),
            metadata=metadata,
            chunking=chunking,
            on_progress=on_progress,
        )
        return await ingestion.files(files, self._workspace)

    async def add_texts(
        self,
        collection: CollectionName,
        texts: Mapping[str, str],
        *,
        metadata: Mapping[str, Json] | None = None,
        chunking: Chunking | None = None,
        app: str = _LOCAL,
    ) -> Ingested:
        """Add texts to a collection, by their names in citations."""
        new = self._collection(app, _name(collection))
        ingestion = Ingestion(new, metadata=metadata, chunking=chunking)
        return await ingestion.texts(texts)

    async def search(
        self,
        collection: CollectionName,
        query: str,
        *,
        top_k: int = TOP_K,
        min_relevance: float = MIN_RELEVANCE,
        filters: Mapping[str, Json] | None = None,
        app: str = _LOCAL,
    ) -> list[RetrievalResult]:
        """Return the passages that match a query, the best first."""
        found = await self._existing(collection, app)
        return await found.search(query, top_k=top_k, min_relevance=min_relevance, filters=filters)

    async def compares_meanings(self, collection: CollectionName, *, app: str = _LOCAL) -> bool:
        """Return whether a search uses vectors, or keywords alone."""
        return await (await self._existing(collection, app)).embeds()

    def names(self, app: str = _LOCAL) -> list[str]:
        """Return the collections of a tenant."""
        return self._store.names(app)

    async def stats(self, collection: CollectionName, *, app: str = _LOCAL) -> Stats:
        """Return the statistics of a collection."""
        return await (await self._existing(collection, app)).stats()

    async def sources(self, collection: CollectionName, *, app: str = _LOCAL) -> list[str]:
        """Return the sources of a collection."""
        return sorted(await (await self._existing(collection, app)).sources())

    async def remove(
        self, collection: CollectionName, sources: Sequence[str | Path] = (), *, app: str = _LOCAL
    ) -> list[str]:
        """Remove sources from a collection, and return them; without any, the whole collection.

        A source is named as in citations, or as the file or folder that was added.
        """
        opened = await self._existing(collection, app)
        if not sources:
            del self._open[app, opened.name]
            await opened.delete()
            return []
        known = sorted(await opened.sources())
        found = dict.fromkeys(
            name
            for source in _several(sources)
            for name in self._matching_sources(opened.name, source, known)
        )
        await opened.remove(list(found))
        return list(found)

    def _matching_sources(
        self, collection: str, source: str | Path, known: Sequence[str]
    ) -> list[str]:
        """Return the sources that a name means; a folder means all files in it."""
        if str(source) in known:
            return [str(source)]
        name = source_name(Path(source), self._workspace)
        found = [source for source in known if source == name or source.startswith(f"{name}/")]
        if not found:
            hint = suggestion(str(source), known, f"available: {join_names(known, _MOST_NAMED)}")
            raise RetrievalError(f"{collection} has no source {source}", hint=hint)
        return found

    async def close(self) -> None:
        """Close all collections and the embedder."""
        while self._open:
            await self._open.popitem()[1].close()
        await self._store.close()
        if self._embedder is not None:
            await self._embedder.close()
        self._embedder, self._chosen = None, False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _existing(self, collection: CollectionName, app: str) -> SqlCollection:
        """Return a collection; raises RetrievalError if there is none."""
        name = _name(collection)
        # On a thread: the database may have to be asked.
        if not await asyncio.to_thread(self._store.exists, app, name):
            known = await asyncio.to_thread(self._store.names, app)
            near = nearest(name, known)
            if near or known:
                hint = f"did you mean {near}?" if near else f"available: {', '.join(known)}"
                raise RetrievalError(f'there is no collection "{name}"', hint=hint)
            raise UnknownCollectionError(name)
        return self._collection(app, name)

    def _collection(self, app: str, name: str) -> SqlCollection:
        if (app, name) not in self._open:
            self._open[app, name] = self._store.open(app, name, self._choose_embedder())
        return self._open[app, name]

    def _choose_embedder(self) -> Embedder | None:
        if not self._chosen:
            self._embedder = self._open_embedder()
            if self._embedder is not None:
                require_numpy()
            self._chosen = True
        return self._embedder


class _UnusableCollection:
    """A collection that cannot be searched with these settings; a search raises the reason."""

    def __init__(self, error: UsageError) -> None:
        self._error = error

    async def search(
        self,
        query: str,  # noqa: ARG002 - as every adapter has it
        *,
        top_k: int = TOP_K,  # noqa: ARG002
        min_relevance: float = MIN_RELEVANCE,  # noqa: ARG002
        filters: Mapping[str, Json] | None = None,  # noqa: ARG002
    ) -> list[RetrievalResult]:
        raise RetrievalError(str(self._error), hint=self._error.hint) from self._error


def open_collections(
    workspace: str | Path = ".",
    *,
    environment: Mapping[str, str] | None = None,
    embedder: Embedder | None = None,
) -> Collections:
    """Return the collections of a workspace. Close them, or use them with `async with`.

    The embedder is `embedder`, or else the one that `WEFT_EMBEDDINGS` names, or
    else the local model if it is installed. Without one, search is by keywords alone.
    """
    settings = read_environment() if environment is None else environment
    folder = Path(workspace)
    return Collections(
        folder, lambda: embedder or open_embedder(settings), store=_store_of(folder, settings)
    )


def _store_of(
    workspace: Path, settings: Mapping[str, str]
) -> "SqliteCollections | PostgresCollections":
    """Return the PostgreSQL of the settings, or the files of the workspace."""
    address = settings.get("WEFT_STORE", "")
    if address.startswith(POSTGRES):
        # Deferred: an optional dependency.
        from weft.adapters.collections.postgres import PostgresCollections  # noqa: PLC0415

        return PostgresCollections(address)
    folder = workspace / COLLECTIONS

    def prepare() -> None:
        refuse_package(workspace, "collections")
        make_folder(folder.parent, "collections")

    return SqliteCollections(folder, prepare)
