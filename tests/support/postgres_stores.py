"""Stores in PostgreSQL for tests: each in tables of its own, as often opened as a test likes.

Tables take twenty times as long to create as to empty, so a test gets those of an earlier one.
"""

from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import asyncpg

from weft.adapters.sql.postgres.schema import migrate
from weft.adapters.sql.postgres.store import PostgresStore


class Place:
    """Tables for one test."""

    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self.schema = schema
        self._stores: list[PostgresStore] = []

    async def open(self, **options: Any) -> PostgresStore:
        """Open the store, as another process would."""
        store = await PostgresStore.open(self.url, schema=self.schema, **options)
        self._stores.append(store)
        return store

    async def sql(self, text: str, *values: object) -> list[Any]:
        """Run a statement as the owner of the tables."""
        connection = await asyncpg.connect(self.url, server_settings={"search_path": self.schema})
        try:
            return [tuple(row) for row in await connection.fetch(text, *values)]
        finally:
            await connection.close()

    async def end_connections(self) -> None:
        """End all connections of stores of this test."""
        await self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'weft'"
            " AND datname = current_database()"
        )

    async def empty(self) -> None:
        """Delete all rows."""
        found = await self.sql("SELECT tablename FROM pg_tables WHERE schemaname = $1", self.schema)
        tables = [name for (name,) in found if name != "schema_version"]
        deleted = ", ".join(f"{name}_rows AS (DELETE FROM {name})" for name in tables)
        await self.sql(f"WITH {deleted} SELECT 1")

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


#: By database: schemas whose tables are empty and not in use.
_free: defaultdict[str, list[str]] = defaultdict(list)


@asynccontextmanager
async def store_place(url: str, *, is_new: bool = False) -> AsyncGenerator[Place]:
    """Yield tables for one test, and close all stores afterwards.

    A test that changes more than rows, or looks at statistics, needs tables that are new.
    """
    free = [] if is_new else _free[url]
    place = Place(url, free.pop() if free else f"test_{uuid4().hex[:12]}")
    await migrate(url, schema=place.schema)
    try:
        yield place
    finally:
        await place.close()
    if not is_new:
        await place.empty()
        _free[url].append(place.schema)
