"""One collection of a tenant: searched, and changed source by source."""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypeVar

from weft.adapters.collections.file import (
    Place,
    collection_error,
    open_collection,
    unknown_collection_error,
)
from weft.adapters.collections.rows import (
    About,
    Source,
    begin_vectors,
    delete_sources,
    keyword_search,
    known_keys,
    known_sources,
    put_sources,
    put_vectors,
    read_about,
    read_passages,
    require_filters,
    require_unicode,
    vector_size,
    without_vectors,
)
from weft.adapters.sqlite_file import transaction
from weft.errors import RetrievalError, SetupError
from weft.findings import Json
from weft.ports.retrieval import MIN_RELEVANCE, TOP_K, Embedder, RetrievalResult

if TYPE_CHECKING:
    from weft.adapters.collections.vectors import MappedVectors, Snapshot
    from weft.ports.retrieval import Vectors

T = TypeVar("T")

#: From so many vectors on there is an index.
INDEX_FROM: Final = 200_000

#: How many passages are embedded between two reports.
EMBEDDED_AT_ONCE: Final = 32

_MOST_RESULTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Stats:
    """How much there is in a collection; `keys` are what it can be filtered by."""

    name: str
    sources: int
    passages: int
    vectors: int
    #: The model that made the vectors; None where there is only search by keywords.
    embedder: str | None
    keys: tuple[str, ...]
    bytes: int
    #: How many vectors are in the index; 0 where there is none.
    indexed: int


class EmbeddedCollection:
    """Searches the files of one collection. Belongs to the event loop it is used in; close it."""

    def __init__(
        self, place: Place, embedder: Embedder | None, *, index_from: int = INDEX_FROM
    ) -> None:
        self._place = place
        self._embedder = embedder
        self._index_from = index_from
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._snapshot: Snapshot | None = None
        # The one thread that uses the connection.
        self._thread = ThreadPoolExecutor(1, "weft-collection")

    async def search(
        self,
        query: str,
        *,
        top_k: int = TOP_K,
        min_relevance: float = MIN_RELEVANCE,
        filters: Mapping[str, Json] | None = None,
    ) -> list[RetrievalResult]:
        """Return the passages that fit a query best, by meaning and keywords.

        Without an embedder, or where nothing was embedded, by keywords alone.
        """
        _require_request(query, top_k, min_relevance)
        if not self._place.exists():
            raise unknown_collection_error(self._place.name)
        vector = None
        if self._embedder is not None:
            vector = (await self._embedder.embed([query]))[0]
        find = partial(self._search, query, vector, top_k, min_relevance, filters or {})
        return await self._run(find)

    async def embeds(self) -> bool:
        """Tell whether a search uses vectors, or keywords alone."""
        return await self._run(self._complete_snapshot) is not None

    async def sources(self) -> dict[str, str]:
        """Return the digest of every source; of a new collection there are none."""
        return await self._run(known_sources) if self._place.exists() else {}

    async def put(
        self, sources: Sequence[Source], on_embedded: Callable[[int], None] | None = None
    ) -> None:
        """Write sources, all or none of them, in place of what they were before.

        `on_embedded` is told how many passages were embedded since it was last called, or, without
        an embedder, are about to be written.
        """
        vectors = None
        texts = [passage.content for source in sources for passage in source.passages]
        if self._embedder is not None:
            vectors = await self._embed(self._embedder, texts, on_embedded)
        elif on_embedded:
            on_embedded(len(texts))

        def put_all(connection: sqlite3.Connection) -> None:
            self._expect_vectors(connection, vectors)
            put_sources(connection, sources, vectors)

        await self._write(put_all)

    async def embed_missing(self, on_embedded: Callable[[int], None] | None = None) -> int:
        """Embed what has no vector yet, or one of another model; return how many passages."""
        if self._embedder is None or not self._place.exists():
            return 0
        await self._write(self._expect_vectors)
        count = 0
        while rows := await self._run(partial(without_vectors, limit=EMBEDDED_AT_ONCE)):
            texts = [text for _, text in rows]
            vectors = await self._embed(self._embedder, texts, on_embedded)
            ids = [id_ for id_, _ in rows]
            await self._write(partial(self._put_missing, list(zip(ids, vectors, strict=True))))
            count += len(rows)
        return count

    def _put_missing(self, new: list[tuple[int, bytes]], connection: sqlite3.Connection) -> None:
        self._expect_vectors(connection, [vector for _, vector in new])
        put_vectors(connection, new)

    async def build_index(self) -> bool:
        """Make or extend the index, if there are so many vectors that one is needed."""
        if not (self._place.exists() and _can_index()):
            return False
        vectors = await self._run(self._many_vectors)
        if vectors is None:
            return False
        from weft.adapters.collections.index import build_index  # noqa: PLC0415 - needs usearch

        # It may take minutes, in which the collection is searched as before.
        built = await asyncio.to_thread(build_index, self._place.index, vectors)
        if built:
            self._snapshot = None
        return built

    async def remove(self, sources: Sequence[str]) -> None:
        """Remove sources and their passages."""
        await self._write(partial(delete_sources, sources=sources))

    async def stats(self) -> Stats:
        """Count what there is."""
        return await self._run(self._read_stats)

    async def close(self) -> None:
        """Close the files."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown()

    def _search(
        self,
        query: str,
        vector: "Vectors | None",
        top_k: int,
        min_relevance: float,
        filters: Mapping[str, Json],
        connection: sqlite3.Connection,
    ) -> list[RetrievalResult]:
        asked: dict[str, Any] = {
            "top_k": top_k,
            "min_relevance": min_relevance,
            "filters": filters,
        }
        snapshot = None if vector is None else self._complete_snapshot(connection)
        if vector is None or snapshot is None:
            require_filters(filters, known_keys(connection) if filters else [], self._place.name)
            found = keyword_search(connection, query, **asked)
        else:
            require_filters(filters, snapshot.keys, self._place.name)
            if len(vector) != snapshot.vectors.size:
                raise self._size_error(len(vector), snapshot.vectors.size)
            found = snapshot.search(query, vector, **asked)
        return read_passages(connection, found)

    def _complete_snapshot(self, connection: sqlite3.Connection) -> "Snapshot | None":
        """Return the vectors as they are now; None if not all passages have one of our embedder.

        A search that left out what is not embedded yet would look complete and not be it.
        """
        about = read_about(connection)
        if not self._has_vectors(about):
            return None
        snapshot = self._current_snapshot(connection, about)
        return snapshot if snapshot.complete else None

    def _current_snapshot(self, connection: sqlite3.Connection, about: About) -> "Snapshot":
        """Return the vectors as they are now, mapped into memory."""
        known = self._snapshot
        if known is not None and known.generation == about.generation:
            return known
        # They need numpy, which is there where something was embedded.
        from weft.adapters.collections.vectors import Snapshot, open_vectors  # noqa: PLC0415

        with transaction(connection):
            about = read_about(connection)
            vectors = open_vectors(connection, self._place.vectors, about, known and known.vectors)
        index = known.index if known and known.vectors.epoch == vectors.epoch else None
        if index is None and self._place.index.exists() and _can_index():
            from weft.adapters.collections.index import open_index  # noqa: PLC0415 - needs usearch

            index = open_index(self._place.index, vectors)
        self._snapshot = Snapshot(connection, about.generation, vectors, index)
        return self._snapshot

    def _has_vectors(self, about: About) -> bool:
        """Tell whether there are vectors; raise RetrievalError if they are another model's."""
        if self._embedder is None or about.embedder is None:
            return False
        if about.embedder != self._embedder.name:
            name = self._place.name
            raise RetrievalError(
                f"collection {name} was embedded with {about.embedder}, and the model is now "
                f"{self._embedder.name}",
                hint=f"embed it anew: weft collection add {name}, or set WEFT_EMBEDDINGS back",
            )
        return True

    def _expect_vectors(
        self, connection: sqlite3.Connection, new: Sequence[bytes] | None = None
    ) -> None:
        """Prepare for the vectors of our embedder; those of another cannot stay beside them."""
        if self._embedder and read_about(connection).embedder != self._embedder.name:
            begin_vectors(connection, self._embedder.name)
        size = vector_size(connection)
        if new and size and len(new[0]) // 4 != size:
            raise self._size_error(len(new[0]) // 4, size)

    def _size_error(self, found: int, expected: int) -> RetrievalError:
        name = self._place.name
        return RetrievalError(
            f"the embedder gives vectors of {found} numbers, and collection {name} has those of "
            f"{expected}: it is another model of the same name",
            hint=f"remove it and add its sources again: weft collection delete {name}",
        )

    async def _embed(
        self,
        embedder: Embedder,
        texts: Sequence[str],
        on_embedded: Callable[[int], None] | None,
    ) -> list[bytes]:
        found: list[bytes] = []
        for at in range(0, len(texts), EMBEDDED_AT_ONCE):
            part = texts[at : at + EMBEDDED_AT_ONCE]
            vectors = await embedder.embed(part)
            found += [vectors[row].astype("<f4").tobytes() for row in range(len(part))]
            if on_embedded:
                on_embedded(len(part))
        return found

    def _many_vectors(self, connection: sqlite3.Connection) -> "MappedVectors | None":
        count = connection.execute("SELECT count(*) FROM vectors").fetchone()[0]
        if count < self._index_from:
            return None
        return self._current_snapshot(connection, read_about(connection)).vectors

    def _read_stats(self, connection: sqlite3.Connection) -> Stats:
        about = read_about(connection)
        sources, passages, vectors = (
            connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - our own
            for table in ("sources", "passages", "vectors")
        )
        place = self._place
        index = self._current_snapshot(connection, about).index if place.index.exists() else None
        return Stats(
            place.name,
            sources,
            passages,
            vectors,
            about.embedder,
            tuple(known_keys(connection)),
            place.size(),
            index.rows if index else 0,
        )

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def within(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                return work(connection)

        return await self._run(within, makes=True)

    async def _run(self, work: Callable[[sqlite3.Connection], T], *, makes: bool = False) -> T:
        """Let the thread of the collection do something with its file."""

        def connected() -> T:
            try:
                return work(self._open_connection(makes=makes))
            except (sqlite3.Error, OSError) as error:
                raise collection_error(error, self._place.name) from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, connected)

    def _open_connection(self, *, makes: bool) -> sqlite3.Connection:
        """Return the connection to the file, which may have been removed and made anew."""
        inode = self._place.inode()
        if inode is None and not makes:
            raise unknown_collection_error(self._place.name)
        if self._connection is None or inode != self._inode:
            self._close()
            self._connection = open_collection(self._place)
            self._inode = self._place.inode()
        return self._connection

    def _close(self) -> None:
        self._snapshot = None
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def require_numpy() -> None:
    """Raise SetupError if vectors cannot be compared on this machine."""
    if find_spec("numpy") is None:
        raise SetupError(
            "embeddings need a library that is not installed: numpy",
            hint='install it: pip install "weft-agents[vectors]"',
        )


def _can_index() -> bool:
    return find_spec("usearch") is not None


def _require_request(query: str, top_k: int, min_relevance: float) -> None:
    if not query.strip():
        raise RetrievalError("the query is empty", hint="say what is looked for")
    require_unicode(query, "the query")
    if not 1 <= top_k <= _MOST_RESULTS:
        raise RetrievalError(f"top_k is {top_k}", hint=f"take 1 to {_MOST_RESULTS}")
    if not 0 <= min_relevance <= 1:
        raise RetrievalError(f"min_relevance is {min_relevance}", hint="take 0 to 1")
