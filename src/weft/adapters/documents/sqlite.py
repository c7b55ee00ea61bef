"""Documents in one SQLite file, which several processes may share.

`watch` yields writes of this process at once and those of others soon after, and costs a look at a
file in between.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from weft.adapters.documents.requests import TENANT_FIELD
from weft.adapters.documents.sql import SqlDocuments
from weft.adapters.sql.sqlite_database import SqliteDatabase, file_format
from weft.adapters.sql.statements import Transaction
from weft.adapters.sql.tables import DOCUMENT_TABLES

T = TypeVar("T")

#: The number is "WFDO".
FORMAT: Final = file_format(0x5746444F, 1, DOCUMENT_TABLES)


class SqliteDocuments(SqlDocuments):
    """The documents port over a file, opened or created when it is first used.

    ":memory:" is gone when it is closed. `busy_seconds` is how long to wait for another process,
    and `prepare` is called before the file is opened.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        tenant_field: str = TENANT_FIELD,
        busy_seconds: float = 5.0,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(f"documents {path}", tenant_field=tenant_field)
        self._path = path
        self._busy_seconds = busy_seconds
        self._prepare = prepare
        self._opening = asyncio.Lock()
        self._database: SqliteDatabase | None = None

    @classmethod
    async def open(
        cls, path: Path | str, *, tenant_field: str = TENANT_FIELD, busy_seconds: float = 5.0
    ) -> "SqliteDocuments":
        """Open a file now; raises StoreError if it cannot be used."""
        store = cls(path, tenant_field=tenant_field, busy_seconds=busy_seconds)
        await store.opened()
        return store

    async def opened(self) -> SqliteDatabase:
        async with self._opening:
            if self._database is None:
                if self._prepare is not None:
                    self._prepare()
                self._database = await SqliteDatabase.open(
                    "documents", self._path, FORMAT, busy_seconds=self._busy_seconds
                )
        return self._database

    async def _read(self, transaction: Transaction[T], app: str) -> T:  # noqa: ARG002 - one file
        return await (await self.opened()).read(transaction)

    async def _write(self, transaction: Transaction[T], app: str) -> T:  # noqa: ARG002 - one file
        return await (await self.opened()).write(transaction)

    async def _watch(self) -> None:
        database = await self.opened()
        database.watch(lambda: bool(self._watching), self._on_change)

    async def _on_change(self) -> None:
        self._wake_watchers()

    async def _close(self) -> None:
        if self._database is not None:
            await self._database.close()
