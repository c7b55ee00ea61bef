"""One collection of a tenant in a SQL database: search, and changes per source.

A database adds how transactions are run, where the vectors are, and how they are indexed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeVar

from weft.adapters.collections.keywords import keyword_search
from weft.adapters.collections.rows import (
    About,
    NewVector,
    SearchQuery,
    Source,
    UnknownCollectionError,
    begin_change,
    begin_vectors,
    check_filters,
    count_rows,
    delete_sources,
    describe,
    known_keys,
    known_sources,
    put_sources,
    put_vectors,
    read_about,
    read_passages,
    require_unicode,
    without_vectors,
)
from weft.adapters.collections.texts import words_of
from weft.adapters.sql.statements import Transaction
from weft.errors import RetrievalError, SetupError
from weft.findings import Json
from weft.ports.retrieval import MIN_RELEVANCE, TOP_K, Embedder, RetrievalResult

if TYPE_CHECKING:
    from weft.ports.retrieval import Vectors

T = TypeVar("T")

#: The number of passages between two progress reports.
EMBEDDED_AT_ONCE: Final = 32

_MOST_RESULTS: Final = 1000


@dataclass(frozen=True, slots=True)
class Stats:
    """The size of a collection; `keys` are its metadata keys for filters."""

    name: str
    sources: int
    passages: int
    vectors: int
    #: The model of the vectors; None for keyword search only.
    embedder: str | None
    keys: tuple[str, ...]
    bytes: int
    #: The number of vectors in the index; 0 without an index.
    indexed: int


class SqlCollection(ABC):
    """Searches and changes a collection. Belongs to the event loop it is used in; close it."""

    def __init__(self, app: str, name: str, embedder: Embedder | None) -> None:
        self.app = app
        self.name = name
        self._embedder = embedder

    # -- what a database adds

    @abstractmethod
    async def _read(self, transaction: Transaction[T]) -> T:
        """Run a transaction that reads; raises RetrievalError."""

    @abstractmethod
    async def _write(self, transaction: Transaction[T], *, creates: bool = False) -> T:
        """Run a transaction that writes; raises RetrievalError."""

    @abstractmethod
    def _ranked(
        self, about: About, wanted: SearchQuery, vector: "Vectors"
    ) -> Transaction[list[tuple[int, float]]]:
        """Return passages by meaning and keywords, and how relevant they are."""

    @abstractmethod
    async def build_index(self) -> bool:
        """Build or extend the index of vectors if there are enough; False if it is not needed."""

    @abstractmethod
    async def _size(self, about: About) -> tuple[int, int]:
        """Return the size of the collection in bytes, and the number of indexed vectors."""

    @abstractmethod
    async def delete(self) -> None:
        """Delete the collection."""

    @abstractmethod
    async def close(self) -> None:
        """Close what was opened for this collection."""

    def _vectors_put(self, about: About, vectors: Sequence[NewVector]) -> Transaction[None]:  # noqa: ARG002
        """Index vectors in the transaction that stores them."""
        yield from ()

    def _vectors_dropped(self, about: About) -> Transaction[None]:  # noqa: ARG002
        """Delete the index of vectors in the transaction that deletes them."""
        yield from ()

    # -- search

    async def search(
        self,
        query: str,
        *,
        top_k: int = TOP_K,
        min_relevance: float = MIN_RELEVANCE,
        filters: Mapping[str, Json] | None = None,
    ) -> list[RetrievalResult]:
        """Return the passages that match a query best, by meaning and keywords.

        Without an embedder or embedded passages, only keywords are used.
        """
        _require_request(query, top_k, min_relevance)
        vector = None
        if self._embedder is not None:
            vector = (await self._embedder.embed([query]))[0]
        return await self._find(SearchQuery(query, top_k, min_relevance, filters or {}), vector)

    async def _find(self, wanted: SearchQuery, vector: "Vectors | None") -> list[RetrievalResult]:
        return await self._read(self._found(wanted, vector))

    def _found(
        self, wanted: SearchQuery, vector: "Vectors | None"
    ) -> Transaction[list[RetrievalResult]]:
        about = yield from self._about()
        yield from check_filters(about, wanted.filters, self.name)
        if vector is None or not self._compares_vectors(about):
            found = yield from keyword_search(about, wanted)
        elif len(vector) != about.dimensions:
            raise self._size_error(len(vector), about.dimensions)
        else:
            found = yield from self._ranked(about, wanted, vector)
        return (yield from read_passages(about, found))

    async def embeds(self) -> bool:
        """Return whether a search uses vectors, or keywords alone."""
        return self._compares_vectors(await self._read(self._about()))

    def _about(self) -> Transaction[About]:
        return read_about(self.app, self.name)

    async def _about_or_none(self) -> About | None:
        try:
            return await self._read(self._about())
        except UnknownCollectionError:
            return None

    def _compares_vectors(self, about: About) -> bool:
        """Return whether every passage has a vector; raises RetrievalError for another model.

        A search without the missing passages would look complete although it is not.
        """
        if self._embedder is None or not about.embedder:
            return False
        if about.embedder != self._embedder.name:
            raise RetrievalError(
                f"collection {self.name} was embedded with {about.embedder}, but the model is now "
                f"{self._embedder.name}",
                hint=f"embed it again: weft collection add {self.name}, or reset WEFT_EMBEDDINGS",
            )
        return about.is_complete and about.passages > 0

    # -- changes

    async def sources(self) -> dict[str, str]:
        """Return the digest of every source; empty for a new collection."""

        def read() -> Transaction[dict[str, str]]:
            about = yield from self._about()
            return (yield from known_sources(about))

        try:
            return await self._read(read())
        except UnknownCollectionError:
            return {}

    async def put(
        self, sources: Sequence[Source], on_embedded: Callable[[int], None] | None = None
    ) -> None:
        """Write or replace sources, all or none of them.

        `on_embedded` receives the number of passages embedded since its last call, or, without
        an embedder, the number of passages that will be written.
        """
        vectors = None
        texts = [passage.content for source in sources for passage in source.passages]
        if self._embedder is not None:
            vectors = await self._embed(self._embedder, texts, on_embedded)
        elif on_embedded:
            on_embedded(len(texts))

        # Before the transaction: a database ends one that is idle for long.
        words = [" ".join(words_of(text)) for text in texts]

        def put_all() -> Transaction[None]:
            about = yield from begin_change(self.app, self.name, creates=True)
            about = yield from self._expect_vectors(about, vectors or ())
            new = yield from put_sources(about, sources, words, vectors)
            yield from self._vectors_put(about, new)

        await self._write(put_all(), creates=True)

    async def embed_missing(self, on_embedded: Callable[[int], None] | None = None) -> int:
        """Embed passages without a vector of the current model; return their number."""
        if self._embedder is None or (about := await self._about_or_none()) is None:
            return 0
        if about.embedder != self._embedder.name:
            await self._write(self._put_missing([]))
        count = 0
        while rows := await self._read(without_vectors(about, EMBEDDED_AT_ONCE)):
            texts = [text for _, text in rows]
            vectors = await self._embed(self._embedder, texts, on_embedded)
            ids = [id_ for id_, _ in rows]
            await self._write(self._put_missing(list(zip(ids, vectors, strict=True))))
            count += len(rows)
        return count

    def _put_missing(self, new: Sequence[tuple[int, bytes]]) -> Transaction[None]:
        about = yield from begin_change(self.app, self.name)
        about = yield from self._expect_vectors(about, [vector for _, vector in new])
        stored = yield from put_vectors(about, new)
        yield from self._vectors_put(about, stored)

    async def remove(self, sources: Sequence[str]) -> None:
        """Remove sources and their passages."""

        def remove_all() -> Transaction[None]:
            about = yield from begin_change(self.app, self.name)
            yield from delete_sources(about, sources)

        await self._write(remove_all())

    def _expect_vectors(self, about: About, new: Sequence[bytes]) -> Transaction[About]:
        """Drop the vectors of another model, and refuse vectors of another size."""
        if self._embedder and about.embedder != self._embedder.name:
            yield from self._vectors_dropped(about)
            about = yield from begin_vectors(about, self._embedder.name)
        if not new:
            return about
        size = len(new[0]) // 4
        if about.dimensions and size != about.dimensions:
            raise self._size_error(size, about.dimensions)
        return about if about.dimensions else (yield from describe(replace(about, dimensions=size)))

    def _size_error(self, found: int, expected: int) -> RetrievalError:
        return RetrievalError(
            f"the embedder returns vectors of {found} numbers, but collection {self.name} has "
            f"{expected}: another model has the same name",
            hint=f"remove it and add its sources again: weft collection delete {self.name}",
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

    # -- statistics

    async def stats(self) -> Stats:
        """Return the size of the collection."""
        about, sources, missing, keys = await self._read(self._counts())
        size, indexed = await self._size(about)
        vectors = about.passages - missing
        embedder = about.embedder or None
        return Stats(
            self.name, sources, about.passages, vectors, embedder, tuple(keys), size, indexed
        )

    def _counts(self) -> Transaction[tuple[About, int, int, list[str]]]:
        about = yield from self._about()
        sources, missing = yield from count_rows(about)
        return about, sources, missing, (yield from known_keys(about))


def require_numpy() -> None:
    """Raise SetupError if numpy is not installed."""
    if find_spec("numpy") is None:
        raise SetupError(
            "embeddings need a library that is not installed: numpy",
            hint='install it: pip install "weft-agents[vectors]"',
        )


def _require_request(query: str, top_k: int, min_relevance: float) -> None:
    if not query.strip():
        raise RetrievalError("the query is empty", hint="write what to search for")
    require_unicode(query, "the query")
    if not 1 <= top_k <= _MOST_RESULTS:
        raise RetrievalError(f"top_k is {top_k}", hint=f"use 1 to {_MOST_RESULTS}")
    if not 0 <= min_relevance <= 1:
        raise RetrievalError(f"min_relevance is {min_relevance}", hint="use 0 to 1")
