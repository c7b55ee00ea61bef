"""Collections in PostgreSQL, beside the store of runs, for any number of processes.

One connection writes; few read, in a role that sees one tenant at a time. With pgvector the
database finds the nearest vectors, in half precision, and those found are compared again in full.
Without it every search reads all vectors that may fit.
"""

import asyncio
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from weft.adapters.collections.collection import SqlCollection
from weft.adapters.collections.filters import FITTING, FITTING_COLUMNS, filter_rows
from weft.adapters.collections.keywords import keyword_search
from weft.adapters.collections.rows import (
    About,
    NewVector,
    SearchQuery,
    begin_change,
    delete_collection,
)
from weft.adapters.sql.statements import Call, Rows, Statement, Transaction, query
from weft.errors import RetrievalError, SetupError, StoreError
from weft.ports.retrieval import Embedder

try:
    from weft.adapters.sql.postgres.connections import BY_KEY, FAILURES, Database, Line, end
    from weft.adapters.sql.postgres.schema import READER, check_version, search_path
except ImportError as error:
    raise SetupError(
        f"PostgreSQL needs a library that is not installed: {error.name or error}",
        hint='install it: pip install "weft-agents[postgres]"',
    ) from error

if TYPE_CHECKING:
    from weft.ports.retrieval import Vectors

T = TypeVar("T")

#: How many connections read at once.
READERS: Final = 2

#: The number of vectors from which an index is built, and the most numbers in each.
INDEX_FROM: Final = 20_000
_MOST_INDEXED: Final = 4_000
_INDEX_SECONDS: Final = 6 * 3600.0

#: How many candidates are compared exactly per wanted passage.
_AGAIN: Final = 4
#: The number of vectors per read, without pgvector.
_BLOCK: Final = 1_000

#: The index is followed until there are enough candidates.
_SEARCHING: Final = {**BY_KEY, "hnsw.iterative_scan": "strict_order", "hnsw.ef_search": "200"}

_NAMES: Final = Statement("SELECT name FROM collections WHERE app = $1 ORDER BY name")
_EMBED: Final = Statement(
    """
    {x} INSERT INTO embeddings (passage, app, collection, source, embedding)
    SELECT x.passage, $1, $2, x.source, x.embedding::halfvec FROM x
    """,
    "passage:number source:number embedding",
)
_DROP_EMBEDDINGS: Final = Statement("DELETE FROM embeddings WHERE app = $1 AND collection = $2")
_VECTORS: Final = Statement(
    "{x} SELECT p.id, p.vector FROM x JOIN passages p ON p.app = $1 AND p.id = x.id", "id:number"
)
_FITTING: Final = Statement(f"{{x}} {FITTING}", FITTING_COLUMNS)
_NEXT: Final = """
    SELECT p.id, p.vector FROM passages p WHERE p.app = $1 AND p.collection = $2 AND p.id > $3
    {} ORDER BY p.id LIMIT $4
"""
_BYTES: Final = Statement(
    """
    SELECT coalesce(sum({size content} + coalesce({size vector}, 0)), 0)::bigint FROM passages
    WHERE app = $1 AND collection = $2
    """
)


class PostgresCollections:
    """The collections in a database; the connections are made when they are first used."""

    def __init__(self, url: str, *, schema: str = "weft") -> None:
        self.database = Database(url, schema)
        path = search_path(schema)
        self.writer = Line(self.database, search_path=path, **BY_KEY)
        reading = {"role": READER, "search_path": path, **_SEARCHING}
        self._readers = [Line(self.database, **reading) for _ in range(READERS)]
        #: Whether the database compares vectors; None until the first use.
        self.has_pgvector: bool | None = None
        #: Connects a line that another thread uses.
        self._names_line = lambda: Line(Database(url, schema), role=READER)
        self._known: set[tuple[str, str]] = set()

    def names(self, app: str) -> list[str]:
        """Return the collections of a tenant; the calling thread waits for the database."""

        async def read() -> list[str]:
            line = self._names_line()
            try:
                return [name for (name,) in await line.run(_one(_NAMES((), app)), app)]
            except StoreError as error:
                raise RetrievalError(f"collections: {error}", retryable=error.retryable) from error
            finally:
                await line.close()

        # On another thread, since an event loop may run on this one.
        with ThreadPoolExecutor(1) as pool:
            found = pool.submit(asyncio.run, read()).result()
        self._known |= {(app, name) for name in found}
        return found

    def exists(self, app: str, name: str) -> bool:
        """Return whether a tenant has a collection; the calling thread waits for the first answer.

        A collection that was found stays known: a search of one that is gone fails.
        """
        return (app, name) in self._known or name in self.names(app)

    def open(self, app: str, name: str, embedder: Embedder | None) -> SqlCollection:
        """Return a collection, which is created when something is put into it."""
        return PostgresCollection(self, app, name, embedder)

    def forget(self, app: str, name: str) -> None:
        """Forget that there is a collection."""
        self._known.discard((app, name))

    async def opened(self) -> None:
        """Look whether the tables are there, and whether they use pgvector; raises StoreError."""
        if self.has_pgvector is not None:
            return
        connection = await self.database.connect()
        try:
            await check_version(self.database, connection)
            found = await connection.fetch("SELECT to_regclass('embeddings') IS NOT NULL")
            self.has_pgvector = found[0][0]
        except FAILURES as error:
            raise self.database.explain(error) from error
        finally:
            await end(connection)

    def reader(self) -> Line:
        """Return the connection that reads and has the least to do."""
        return min(self._readers, key=lambda reader: reader.waiting)

    async def close(self) -> None:
        """Close the connections."""
        for line in (self.writer, *self._readers):
            await line.close()


class PostgresCollection(SqlCollection):
    """Searches the rows of one collection."""

    def __init__(
        self,
        store: PostgresCollections,
        app: str,
        name: str,
        embedder: Embedder | None,
        *,
        index_from: int = INDEX_FROM,
    ) -> None:
        super().__init__(app, name, embedder)
        self._store = store
        self._index_from = index_from

    async def _read(self, transaction: Transaction[T]) -> T:
        with self._explained():
            await self._store.opened()
            return await self._store.reader().run(transaction, self.app)

    async def _write(self, transaction: Transaction[T], *, creates: bool = False) -> T:  # noqa: ARG002
        with self._explained():
            await self._store.opened()
            return await self._store.writer.write(transaction)

    @contextmanager
    def _explained(self) -> Generator[None]:
        """Raise RetrievalError for what the database raises."""
        try:
            yield
        except StoreError as error:
            message = f"collection {self.name}: {error}"
            raise RetrievalError(message, retryable=error.retryable) from error
        except ValueError as error:
            raise RetrievalError(f"collection {self.name} cannot store this: {error}") from error

    def _ranked(
        self, about: About, wanted: SearchQuery, vector: "Vectors"
    ) -> Transaction[list[tuple[int, float]]]:
        # Deferred: needs numpy, which is installed if something was embedded.
        from weft.adapters.collections import vectors  # noqa: PLC0415

        sources: list[list[int]] = []
        if wanted.filters:
            fitting = filter_rows(wanted.filters)
            rows = yield _FITTING(fitting, *about.key, len(wanted.filters))
            sources = [[source for (source,) in rows]]
        count = vectors.candidates(wanted)
        nearest = _nearest if self._store.has_pgvector else _nearest_of_all
        near = yield from nearest(about, sources, vector, count)
        worded = yield from keyword_search(
            about,
            wanted._replace(top_k=count, min_relevance=0.0),
            most=vectors.most_passages(about.passages),
        )
        ids = dict.fromkeys([*near, *(passage for passage, _ in worded)])
        rows = yield _VECTORS([(id_,) for id_ in ids], about.app)
        cosines = vectors.cosines(rows, vector)
        alike = sorted((id_ for id_ in near if id_ in cosines), key=lambda id_: -cosines[id_])
        known = [passage for passage, _ in worded if passage in cosines]
        return vectors.fuse(cosines, alike[:count], known, wanted)

    def _vectors_put(self, about: About, vectors: Sequence[NewVector]) -> Transaction[None]:
        if self._store.has_pgvector and vectors:
            from weft.adapters.collections.vectors import as_matrix  # noqa: PLC0415 - needs numpy

            numbers = as_matrix([vector for *_, vector in vectors]).tolist()
            new = zip(vectors, numbers, strict=True)
            rows = [(passage, source, str(vector)) for (passage, source, _), vector in new]
            yield [_EMBED(rows, *about.key)]

    def _vectors_dropped(self, about: About) -> Transaction[None]:
        if self._store.has_pgvector:
            yield [query(f"DROP INDEX IF EXISTS {_index_name(about)}")]
            yield [_DROP_EMBEDDINGS((), *about.key)]

    async def build_index(self) -> bool:
        about = await self._about_or_none()
        if about is None or not (
            self._store.has_pgvector and 0 < about.dimensions <= _MOST_INDEXED
        ):
            return False
        if about.passages < self._index_from or await self._is_indexed(about):
            return False
        database = self._store.database
        with self._explained():
            connection: Any = await database.connect(search_path=search_path(database.schema))
            try:
                return await _build_index(connection, about)
            except FAILURES as error:
                raise database.explain(error) from error
            finally:
                await end(connection)

    async def _is_indexed(self, about: About) -> bool:
        found = "SELECT 1 FROM pg_index WHERE indisvalid AND indexrelid = to_regclass($1)"
        return bool(await self._read(_one(query(found, (_index_name(about),)))))

    async def _size(self, about: About) -> tuple[int, int]:
        [(size,)] = await self._read(_one(_BYTES((), *about.key)))
        return size, about.passages if await self._is_indexed(about) else 0

    async def delete(self) -> None:
        def delete_all() -> Transaction[None]:
            about = yield from begin_change(self.app, self.name)
            yield from self._vectors_dropped(about)
            yield from delete_collection(about)

        await self._write(delete_all())
        self._store.forget(self.app, self.name)

    async def close(self) -> None:
        """Close nothing: the connections are those of all collections."""


def _nearest(
    about: About, sources: list[list[int]], vector: "Vectors", count: int
) -> Transaction[list[int]]:
    """Return candidates for the passages with the nearest vectors, also of some sources alone."""
    # What is not the expression of the index is computed for all that fit.
    fitting, exact = ("AND e.source = ANY($3::bigint[])", "+ 0") if sources else ("", "")
    # With the number of the collection itself, since an index is of one collection.
    type_ = f"halfvec({about.dimensions})"
    sql = f"""
        SELECT e.passage FROM embeddings e
        WHERE e.app = $1 AND e.collection = {about.id} {fitting} ORDER BY
        (e.embedding::{type_} <=> (SELECT $2::{type_})) {exact}
        LIMIT {count * _AGAIN}
    """  # noqa: S608 - numbers
    rows = yield query(sql, (about.app, str(vector.tolist()), *sources))
    return [passage for (passage,) in rows]


def _nearest_of_all(
    about: About, sources: list[list[int]], vector: "Vectors", count: int
) -> Transaction[list[int]]:
    """Return the passages with the nearest vectors, without pgvector."""
    from weft.adapters.collections.vectors import cosines  # noqa: PLC0415 - needs numpy

    sql = _NEXT.format("AND p.source = ANY($5::bigint[])" if sources else "")
    best: dict[int, float] = {}
    last = 0
    while rows := (yield query(sql, (*about.key, last, _BLOCK, *sources))):
        last = rows[-1][0]
        best |= cosines(rows, vector)
        best = {id_: best[id_] for id_ in sorted(best, key=best.__getitem__)[-count:]}
    return list(best)


async def _build_index(connection: Any, about: About) -> bool:  # noqa: ANN401 - of asyncpg
    """Build the index of a collection, unless another process builds it."""
    name = _index_name(about)
    if not await connection.fetchval("SELECT pg_try_advisory_lock(hashtext($1))", name):
        return False
    # A process that was killed while it built the index has left an invalid one.
    await connection.execute(f"DROP INDEX IF EXISTS {name}")
    await connection.execute(
        f"CREATE INDEX CONCURRENTLY {name} ON embeddings "
        f"USING hnsw ((embedding::halfvec({about.dimensions})) halfvec_cosine_ops) "
        f"WHERE collection = {about.id}",
        timeout=_INDEX_SECONDS,
    )
    # Until the planner knows how many vectors there are, it would sort them all.
    await connection.execute("ANALYZE embeddings")
    return True


def _index_name(about: About) -> str:
    return f"embeddings_of_{about.id}"


def _one(call: Call) -> Transaction[Rows]:
    return (yield call)
