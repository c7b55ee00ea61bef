"""Documents in one SQLite file, which several processes may share.

A field is indexed when it is first searched by. `watch` tells what was written by this process at
once and what others have written within a quarter of a second, and costs a look at a file in
between. Of every tenant the last 10,000 changes are kept.
"""

import asyncio
import sqlite3
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from weft.adapters.documents.requests import (
    TENANT_FIELD,
    Tenant,
    project,
    projection_paths,
    require_collection_name,
    require_tenant_field,
    split_update,
    tenant_query,
)
from weft.adapters.documents.sqlite_rows import (
    MOST_INDEXES,
    Place,
    as_document,
    changes_after,
    delete_document,
    last_change,
    make_index,
    newest,
    put_document,
    search_for,
)
from weft.adapters.sqlite_file import (
    IN_MEMORY,
    FileFormat,
    UnusableFile,
    connect,
    explain,
    open_file,
    transaction,
)
from weft.errors import StoreError, UsageError
from weft.findings import Json
from weft.ports.documents import Change, Collection, Document
from weft.ports.scope import Scope

T = TypeVar("T")

#: How often it is looked whether another process has written, and how often it is asked what,
#: after it has: what is in the log of a file can be read only a moment later.
LOOK_SECONDS: Final = 0.25
_LOOKS_AFTER_CHANGE: Final = 20


#: A document gets a new number with every write, so the last one written has the highest; every
#: index ends with it implicitly. The tenant is part of every key. `forgotten` has the number of the
#: last change of a collection that is no longer stored.
_TABLES: Final = (
    """
    CREATE TABLE documents (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, app TEXT NOT NULL, database TEXT NOT NULL,
        collection TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL,
        UNIQUE (app, database, collection, key)
    )
    """,
    "CREATE INDEX documents_by_age ON documents (app, database, collection)",
    """
    CREATE TABLE changes (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, app TEXT NOT NULL, database TEXT NOT NULL,
        collection TEXT NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL
    )
    """,
    "CREATE INDEX changes_by_collection ON changes (app, database, collection)",
    """
    CREATE TABLE forgotten (
        app TEXT NOT NULL, database TEXT NOT NULL, collection TEXT NOT NULL, seq INTEGER NOT NULL,
        PRIMARY KEY (app, database, collection)
    ) WITHOUT ROWID
    """,
)

#: The number is "WFDC".
FORMAT: Final = FileFormat(0x57464443, 1, _TABLES)


class SqliteDocuments:
    """The documents port over a file, opened or created when it is first used.

    ":memory:" is gone when it is closed. `busy_seconds` is how long to wait for another process,
    and `prepare` is called before the file is opened. Belongs to the event loop it is used in.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        tenant_field: str = TENANT_FIELD,
        busy_seconds: float = 5.0,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        require_tenant_field(tenant_field)
        self._path = str(path)
        self._tenant_field = tenant_field
        self._busy_seconds = busy_seconds
        self._prepare = prepare
        self._writing = _thread("writer")
        # A database in memory is seen by one connection only.
        self._reading = self._writing if self._path == IN_MEMORY else _thread("reader")
        self._opening = asyncio.Lock()
        self._connections: tuple[sqlite3.Connection, sqlite3.Connection] | None = None
        self._indexed: set[str] = set()
        self._watching: set[asyncio.Event] = set()
        self._closed = False

    @classmethod
    async def open(
        cls, path: Path | str, *, tenant_field: str = TENANT_FIELD, busy_seconds: float = 5.0
    ) -> "SqliteDocuments":
        """Open a file now; raises StoreError if it cannot be used."""
        store = cls(path, tenant_field=tenant_field, busy_seconds=busy_seconds)
        await store.opened()
        return store

    async def opened(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        """Return the connections of the writer and of the reader."""
        connections = self._connections
        if connections is None:
            async with self._opening:
                connections = self._connections
                if connections is None:
                    loop = asyncio.get_running_loop()
                    connections = await loop.run_in_executor(self._writing, self._open_both)
                    self._connections = connections
        return connections

    def _open_both(self) -> tuple[sqlite3.Connection, sqlite3.Connection]:
        if self._prepare is not None:
            self._prepare()
        try:
            writer = open_file(self._path, FORMAT, busy_seconds=self._busy_seconds)
        except UnusableFile as error:
            raise _store_error(error, self._path) from error
        reader = writer if self._path == IN_MEMORY else connect(self._path, self._busy_seconds)
        return writer, reader

    async def find(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),
    ) -> Document | None:
        tenant, place = self._place(scope, collection)
        wanted, paths = tenant_query(query, tenant), projection_paths(fields)
        search = search_for(wanted)
        await self._index(search.fields)
        found = await self._read(partial(newest, place, wanted, search))
        if found is None or not paths:
            return found
        return project({**found, tenant.field: tenant.app}, paths)

    async def page(
        self, scope: Scope, collection: Collection, *, after: str | None = None, limit: int = 50
    ) -> list[Document]:
        _, place = self._place(scope, collection)
        rows = await self._read(
            _all_rows(
                "SELECT key, body FROM documents WHERE app = ? AND database = ? "
                "AND collection = ? AND key > ? ORDER BY key LIMIT ?",
                (*place, after or "", limit),
            )
        )
        return [as_document(*row) for row in rows]

    async def collections(
        self, scope: Scope, *, database: str | None = None
    ) -> list[tuple[Collection, int]]:
        rows = await self._read(
            _all_rows(
                "SELECT collection, count(*) FROM documents WHERE app = ? AND database = ? "
                "GROUP BY collection ORDER BY collection",
                (scope.app, database or ""),
            )
        )
        return [(Collection(name, database), count) for name, count in rows]

    async def put(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        values: Mapping[str, Json],
    ) -> str:
        tenant, place = self._place(scope, collection)
        wanted, (found, given) = tenant_query(query, tenant), split_update(query, values, tenant)
        search = search_for(wanted)
        await self._index(search.fields)
        return await self._write(partial(put_document, place, wanted, search, found, given))

    async def delete(self, scope: Scope, collection: Collection, key: str) -> bool:
        _, place = self._place(scope, collection)
        return await self._write(partial(delete_document, place, key))

    async def watch(
        self, scope: Scope, collection: Collection, *, after: str | None = None
    ) -> AsyncGenerator[Change]:
        _, place = self._place(scope, collection)
        if after is not None and not (after.isascii() and after.isdecimal()):
            raise UsageError(f"{after!r} is no position", hint="take that of an earlier change")
        log, look, looks = Path(f"{self._path}-wal"), (0, 0), 0
        news = asyncio.Event()
        self._watching.add(news)
        try:
            position = await self._read(last_change) if after is None else int(after)
            while True:
                news.clear()
                rows = await self._read(partial(changes_after, place, position))
                for seq, change in rows:
                    position = seq
                    if change is not None:
                        yield change
                while not rows and not await _wait_for_news(news):
                    if (now := _log_stamp(log)) != look:
                        look, looks = now, _LOOKS_AFTER_CHANGE
                    if looks:
                        looks -= 1
                        break
        finally:
            self._watching.discard(news)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._notify_watchers()
        if self._connections is not None:
            writer, reader = self._connections
            loop = asyncio.get_running_loop()
            # The writer last: the last connection to a file tidies it up.
            for thread, connection in ((self._reading, reader), (self._writing, writer)):
                await loop.run_in_executor(thread, connection.close)
        for thread in {self._reading, self._writing}:
            thread.shutdown()

    def _place(self, scope: Scope, collection: Collection) -> tuple[Tenant, Place]:
        require_collection_name(collection)
        place = scope.app, collection.database or "", collection.name
        return Tenant(scope.app, self._tenant_field), place

    async def _index(self, fields: frozenset[str]) -> None:
        """Index fields that are searched by for the first time."""
        for field in fields - self._indexed:
            if len(self._indexed) < MOST_INDEXES:
                await self._write(partial(make_index, field))
                self._indexed.add(field)

    async def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await self._run(self._reading, work)

    async def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def write(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                return work(connection)

        result = await self._run(self._writing, write, writing=True)
        self._notify_watchers()
        return result

    async def _run(
        self,
        thread: ThreadPoolExecutor,
        work: Callable[[sqlite3.Connection], T],
        *,
        writing: bool = False,
    ) -> T:
        if self._closed:
            raise StoreError(f"documents {self._path}: the store is closed; open it again")
        writer, reader = await self.opened()
        connection = writer if writing else reader
        try:
            return await asyncio.get_running_loop().run_in_executor(thread, work, connection)
        except sqlite3.Error as error:
            raise _store_error(explain(error), self._path) from error

    def _notify_watchers(self) -> None:
        for news in self._watching:
            news.set()


def _store_error(error: UnusableFile, path: str) -> StoreError:
    remedy = f"; {error.remedy}" if error.remedy else ""
    return StoreError(f"documents {path}: {error}{remedy}", retryable=error.retryable)


def _thread(kind: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, f"weft-documents-{kind}")


def _all_rows(
    sql: str, values: tuple[Json, ...]
) -> Callable[[sqlite3.Connection], list[tuple[str, Any]]]:
    return lambda connection: connection.execute(sql, values).fetchall()


async def _wait_for_news(news: asyncio.Event) -> bool:
    """Wait a while for news of this process."""
    try:
        return await asyncio.wait_for(news.wait(), LOOK_SECONDS)
    except TimeoutError:
        return False


def _log_stamp(log: Path) -> tuple[int, int]:
    """Return when the log of a file was last written and how long it is."""
    try:
        found = log.stat()
    except OSError:  # it is gone when the last process has closed the file
        return 0, 0
    return found.st_mtime_ns, found.st_size
