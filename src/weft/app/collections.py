"""The collections of a workspace: made of files and texts, searched by meaning and keywords."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from weft.adapters.collections.collection import EmbeddedCollection, Stats, require_numpy
from weft.adapters.collections.file import (
    Place,
    read_name,
    require_name,
    tenant_folder,
    unknown_collection_error,
)
from weft.adapters.collections.ingest import Ingested, Ingestion, Progress, source_name
from weft.adapters.collections.texts import Chunking
from weft.app.embeddings import open_embedder
from weft.app.folders import make_folder, refuse_package
from weft.environment import read_environment
from weft.errors import RetrievalError, UsageError
from weft.findings import Json
from weft.ids import join_names, nearest
from weft.ports.retrieval import (
    MIN_RELEVANCE,
    TOP_K,
    Collection,
    Embedder,
    RetrievalResult,
    VectorSearchAdapter,
)
from weft.spec.part import name_list

#: The collections of a workspace; their folder is not for version control.
COLLECTIONS: Final = Path(".weft") / "collections"

#: The default tenant, as for runs.
_LOCAL: Final = "local"

#: The most sources in a hint.
_MOST_NAMED: Final = 5

#: A collection by its class or its name.
CollectionName: TypeAlias = type[Collection] | str


def _several(paths: Iterable[str | Path]) -> tuple[str | Path, ...]:
    try:
        return name_list(paths)
    except ValueError as error:
        raise UsageError(f"the paths cannot be used: {error}") from None


class Collections:
    """The collections of all tenants of a workspace. Close it, or use it with `async with`.

    Files are opened when needed. `open_embedder` is called once, with the first text to embed
    or to search for.
    """

    def __init__(
        self, workspace: Path, open_embedder: Callable[[], Embedder | None], *, folder: Path
    ) -> None:
        self._workspace = workspace
        self._folder = folder
        self._open_embedder = open_embedder
        self._embedder: Embedder | None = None
        self._chosen = False
        self._open: dict[Place, EmbeddedCollection] = {}

    def adapter(self, app: str, collection: str) -> VectorSearchAdapter[Any] | None:
        """Return the adapter of a tenant's collection; None if there is none."""
        place = Place(self._folder, app, collection)
        if not place.exists():
            return None
        try:
            return self._collection(place)
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
                raise RetrievalError(f"there is no file {file}", hint="look at the spelling")
        place = self._place(collection, app, makes=bool(files))
        ingestion = Ingestion(
            self._collection(place),
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
        place = self._place(collection, app, makes=True)
        ingestion = Ingestion(self._collection(place), metadata=metadata, chunking=chunking)
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
        found = self._collection(self._place(collection, app))
        return await found.search(query, top_k=top_k, min_relevance=min_relevance, filters=filters)

    async def compares_meanings(self, collection: CollectionName, *, app: str = _LOCAL) -> bool:
        """Tell whether a search uses vectors, or keywords alone."""
        return await self._collection(self._place(collection, app)).embeds()

    def names(self, app: str = _LOCAL) -> list[str]:
        """Return the collections of a tenant."""
        files = tenant_folder(self._folder, app).glob("*.db")
        return sorted(name for name in map(read_name, files) if name is not None)

    async def stats(self, collection: CollectionName, *, app: str = _LOCAL) -> Stats:
        """Return the statistics of a collection."""
        return await self._collection(self._place(collection, app)).stats()

    async def sources(self, collection: CollectionName, *, app: str = _LOCAL) -> list[str]:
        """Return the sources of a collection."""
        return sorted(await self._collection(self._place(collection, app)).sources())

    async def remove(
        self, collection: CollectionName, sources: Sequence[str | Path] = (), *, app: str = _LOCAL
    ) -> list[str]:
        """Remove sources from a collection, and return them; without any, the whole collection.

        A source is named as in citations, or as the file or folder that was added.
        """
        place = self._place(collection, app)
        if not sources:
            await self._close_collection(place)
            place.delete()
            return []
        known = await self.sources(collection, app=app)
        found = dict.fromkeys(
            name
            for source in _several(sources)
            for name in self._matching_sources(place, source, known)
        )
        await self._collection(place).remove(list(found))
        return list(found)

    def _matching_sources(
        self, place: Place, source: str | Path, known: Sequence[str]
    ) -> list[str]:
        """Return the sources that a name means; a folder means all files in it."""
        if str(source) in known:
            return [str(source)]
        name = source_name(Path(source), self._workspace)
        found = [source for source in known if source == name or source.startswith(f"{name}/")]
        if not found:
            near = nearest(str(source), known)
            hint = (
                f"did you mean {near}?" if near else f"available: {join_names(known, _MOST_NAMED)}"
            )
            raise RetrievalError(f"{place.name} has no source {source}", hint=hint)
        return found

    async def close(self) -> None:
        """Close all collections and the embedder."""
        for place in list(self._open):
            await self._close_collection(place)
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

    def _place(self, collection: CollectionName, app: str, *, makes: bool = False) -> Place:
        name = collection if isinstance(collection, str) else collection.collection_name()
        require_name(name)
        place = Place(self._folder, app, name)
        if makes:
            refuse_package(self._workspace, "collections")
            make_folder(self._folder.parent, "collections")
        elif not place.exists():
            known = self.names(app=app)
            near = nearest(name, known)
            if near or known:
                hint = f"did you mean {near}?" if near else f"available: {', '.join(known)}"
                raise RetrievalError(f'there is no collection "{name}"', hint=hint)
            raise unknown_collection_error(name)
        return place

    def _collection(self, place: Place) -> EmbeddedCollection:
        if place not in self._open:
            self._open[place] = EmbeddedCollection(place, self._choose_embedder())
        return self._open[place]

    def _choose_embedder(self) -> Embedder | None:
        if not self._chosen:
            self._embedder = self._open_embedder()
            if self._embedder is not None:
                require_numpy()
            self._chosen = True
        return self._embedder

    async def _close_collection(self, place: Place) -> None:
        found = self._open.pop(place, None)
        if found is not None:
            await found.close()


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
        folder, lambda: embedder or open_embedder(settings), folder=folder / COLLECTIONS
    )
