"""Collections in SQLite: a file for each, with a mapped file of vectors and an index beside it."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from weft.adapters.collections import file
from weft.adapters.collections.collection import SqlCollection
from weft.adapters.collections.file import (
    FORMAT,
    Place,
    collection_error,
    read_name,
    tenant_folder,
)
from weft.adapters.collections.rows import About, SearchQuery, UnknownCollectionError
from weft.adapters.sql.sqlite_database import SqliteDatabase
from weft.adapters.sql.statements import Transaction
from weft.errors import StoreError
from weft.ports.retrieval import Embedder, RetrievalResult

if TYPE_CHECKING:
    from weft.adapters.collections.vectors import Snapshot
    from weft.ports.retrieval import Vectors

T = TypeVar("T")

#: The number of vectors from which an index is built.
INDEX_FROM: Final = 200_000


class SqliteCollections:
    """The collections in a folder; `prepare` is called before the first file is created."""

    def __init__(self, folder: Path, prepare: Callable[[], None] | None = None) -> None:
        self._folder = folder
        self._prepare = prepare

    def names(self, app: str) -> list[str]:
        """Return the collections of a tenant."""
        files = tenant_folder(self._folder, app).glob("*.db")
        return sorted(name for name in map(read_name, files) if name is not None)

    def exists(self, app: str, name: str) -> bool:
        """Return whether a tenant has a collection."""
        return Place(self._folder, app, name).inode() is not None

    def open(self, app: str, name: str, embedder: Embedder | None) -> SqlCollection:
        """Return a collection, which is created when something is put into it."""
        return SqliteCollection(Place(self._folder, app, name), embedder, prepare=self._prepare)

    async def close(self) -> None:
        """Close nothing: every collection has its own connections."""


class _OutdatedSnapshot(Exception):
    """The vectors in memory are not those of the database."""


class SqliteCollection(SqlCollection):
    """Searches the files of one collection."""

    def __init__(
        self,
        place: Place,
        embedder: Embedder | None,
        *,
        index_from: int = INDEX_FROM,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(place.app, place.name, embedder)
        self._place = place
        self._index_from = index_from
        self._prepare = prepare
        self._opening = asyncio.Lock()
        self._database: SqliteDatabase | None = None
        self._inode: int | None = None
        self._snapshot: Snapshot | None = None
        # What a snapshot has cached belongs to one search at a time.
        self._turn = asyncio.Lock()

    async def _find(self, wanted: SearchQuery, vector: "Vectors | None") -> list[RetrievalResult]:
        async with self._turn:
            while True:
                try:
                    return await super()._find(wanted, vector)
                except _OutdatedSnapshot:
                    await self._refresh_snapshot()

    def _ranked(
        self, about: About, wanted: SearchQuery, vector: "Vectors"
    ) -> Transaction[list[tuple[int, float]]]:
        snapshot = self._snapshot
        if snapshot is None or snapshot.generation < about.generation:
            raise _OutdatedSnapshot
        return (yield from snapshot.search(wanted, vector))

    async def _read(self, transaction: Transaction[T]) -> T:
        with _explained(self.name):
            return await (await self._open_database(creates=False)).read(transaction)

    async def _write(self, transaction: Transaction[T], *, creates: bool = False) -> T:
        with _explained(self.name):
            return await (await self._open_database(creates=creates)).write(transaction)

    async def _open_database(self, *, creates: bool) -> SqliteDatabase:
        """Return the database of the file, which may have been replaced."""
        async with self._opening:
            inode = self._place.inode()
            if inode is None and not creates:
                raise UnknownCollectionError(self.name)
            if self._database is None or inode != self._inode:
                await self._close_database()
                if inode is None and self._prepare is not None:
                    self._prepare()
                self._place.database.parent.mkdir(parents=True, exist_ok=True)
                self._database = await SqliteDatabase.open(
                    "collection", self._place.database, FORMAT, busy_seconds=file.BUSY_SECONDS
                )
                self._inode = self._place.inode()
        return self._database

    async def _refresh_snapshot(self) -> None:
        await self._write(self._map_vectors())

    def _map_vectors(self) -> Transaction[None]:
        """Map the present vectors into memory, while every passage has one."""
        # Deferred: needs numpy, which is installed if something was embedded.
        from weft.adapters.collections.vectors import Snapshot, open_vectors  # noqa: PLC0415

        about = yield from self._about()
        if not about.is_complete:
            return
        known = self._snapshot
        vectors = yield from open_vectors(about, self._place.vectors, known and known.vectors)
        index = known.index if known and known.vectors.epoch == vectors.epoch else None
        if index is None and self._place.index.exists() and _can_index():
            from weft.adapters.collections.index import open_index  # noqa: PLC0415 - needs usearch

            index = open_index(self._place.index, vectors)
        self._snapshot = Snapshot(about, vectors, index)

    async def build_index(self) -> bool:
        about = await self._about_or_none()
        if (
            about is None
            or about.passages < self._index_from
            or not (about.dimensions and _can_index())
        ):
            return False
        await self._refresh_snapshot()
        if self._snapshot is None:
            return False
        from weft.adapters.collections.index import build_index  # noqa: PLC0415 - needs usearch

        # This may take minutes, during which searches work as before.
        vectors = self._snapshot.vectors
        built = await asyncio.to_thread(build_index, self._place.index, vectors)
        if built:
            self._snapshot = None
        return built

    async def _size(self, about: About) -> tuple[int, int]:
        if about.dimensions and self._place.index.exists():
            await self._refresh_snapshot()
        index = self._snapshot and self._snapshot.index
        return self._place.size(), index.rows if index else 0

    async def delete(self) -> None:
        await self.close()
        self._place.delete()

    async def close(self) -> None:
        async with self._opening:
            await self._close_database()

    async def _close_database(self) -> None:
        self._snapshot = None
        if self._database is not None:
            await self._database.close()
            self._database = None


@contextmanager
def _explained(name: str) -> Generator[None]:
    """Raise RetrievalError for what files and SQLite raise."""
    try:
        yield
    except StoreError as error:
        raise collection_error(error.__cause__, name) from error
    except (OSError, ValueError) as error:
        raise collection_error(error, name) from error


def _can_index() -> bool:
    return find_spec("usearch") is not None
