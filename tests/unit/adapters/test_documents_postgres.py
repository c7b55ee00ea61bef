"""Documents in PostgreSQL: tenants, the index, lost connections, and what cannot be stored."""

import asyncio
import sys
from contextlib import asynccontextmanager

import asyncpg
import pytest

from support.postgres_stores import store_place
from weft.adapters.documents import rows
from weft.adapters.documents.index import ranges_of
from weft.adapters.documents.postgres import PostgresDocuments
from weft.adapters.documents.requests import Tenant, tenant_query
from weft.adapters.sql.postgres.connections import BY_KEY
from weft.adapters.sql.postgres.schema import READER
from weft.adapters.sql.postgres.text import statement_text
from weft.errors import SetupError, StoreError, UsageError
from weft.ports.documents import Collection
from weft.ports.scope import Scope

SHOP = Scope.operator("shop")
BANK = Scope.operator("bank")
ORDERS = Collection("Orders")
PLACE = ("shop", "", "Orders")


@asynccontextmanager
async def opened(url):
    """Yield documents in tables of their own, and the place of the tables."""
    async with store_place(url, is_new=True) as place:
        documents = PostgresDocuments(place.url, schema=place.schema)
        try:
            yield documents, place
        finally:
            await documents.close()


async def as_reader(place, app, text, *, prepare=""):
    settings = {"search_path": place.schema, "role": READER, **BY_KEY}
    connection = await asyncpg.connect(place.url, server_settings=settings)
    try:
        await connection.execute("SELECT set_config('weft.app', $1, false)", app)
        if prepare:
            await connection.execute(f"PREPARE search AS {prepare}")
        return [tuple(row) for row in await connection.fetch(text)]
    finally:
        await connection.close()


async def test_a_query_without_a_tenant_reads_only_the_rows_of_the_tenant(postgres_database):
    async with opened(postgres_database) as (store, place):
        for scope in (SHOP, BANK):
            await store.put(scope, ORDERS, {"_id": "a"}, {"of": scope.app})
        for table in ("documents", "document_values", "document_changes"):
            found = await as_reader(place, "shop", f"SELECT DISTINCT app FROM {table}")
            assert found == [("shop",)]
            assert await as_reader(place, "", f"SELECT app FROM {table}") == []
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await as_reader(place, "shop", "DELETE FROM documents")


async def test_a_search_uses_the_index_under_row_level_security(postgres_database):
    async with opened(postgres_database) as (store, place):
        for number in range(50):
            await store.put(
                SHOP, ORDERS, {"_id": f"k{number}"}, {"n": number, "at": {"city": "Rome"}}
            )
        query = tenant_query({"n": {"$gte": 7}, "at.city": "Rome"}, Tenant("shop"))
        ranges = ranges_of(PLACE, query)
        text, values = statement_text(rows.SEARCH(ranges, "shop", 2, 1 << 62, 1))
        given = ", ".join("'" + str(value).replace("'", "''") + "'" for value in values)
        plan = "\n".join(
            row[0]
            for row in await as_reader(
                place, "shop", f"EXPLAIN EXECUTE search ({given})", prepare=text
            )
        )
        assert "Index Only Scan using document_values_pkey" in plan, plan
        assert "documents_by_" not in plan, plan
        assert "AND (value >= " in plan, plan
        assert "Seq Scan" not in plan, plan


async def test_lost_connection_is_reopened_and_watching_continues(postgres_database):
    async with opened(postgres_database) as (store, place):
        await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
        changes = store.watch(SHOP, ORDERS)
        change = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0.2)
        await place.end_connections()
        other = PostgresDocuments(place.url, schema=place.schema)
        await other.put(SHOP, ORDERS, {"_id": "b"}, {"n": 2})
        await other.close()
        assert (await asyncio.wait_for(change, 10)).key == "b"
        await changes.aclose()
        await store.put(SHOP, ORDERS, {"_id": "c"}, {"n": 3})
        assert (await store.find(SHOP, ORDERS, {"n": 3})) == {"_id": "c", "n": 3}


async def test_a_key_with_a_character_that_the_database_cannot_store_is_refused(postgres_database):
    async with opened(postgres_database) as (store, _):
        with pytest.raises(UsageError, match="cannot store this"):
            await store.put(SHOP, ORDERS, {"_id": "a\0b"}, {"n": 1})
        with pytest.raises(UsageError, match="cannot store this"):
            await store.page(SHOP, ORDERS, after="a\0b")
        assert await store.find(SHOP, ORDERS, {"_id": "a\0b"}) is None
        assert await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": "b\0c"}) == "a"
        assert await store.find(SHOP, ORDERS, {"n": "b\0c"}) == {"_id": "a", "n": "b\0c"}


async def test_a_database_without_tables_or_without_a_server_is_explained(postgres_database):
    store = PostgresDocuments(postgres_database, schema="none")
    with pytest.raises(StoreError, match="no tables yet; run `weft store migrate`"):
        await store.opened()
    await store.close()
    store = PostgresDocuments("postgresql://127.0.0.1:1/weft", setting="WEFT_DOCUMENTS")
    with pytest.raises(StoreError, match=r"cannot be reached.*or correct WEFT_DOCUMENTS") as caught:
        await store.find(SHOP, ORDERS, {})
    assert caught.value.retryable
    await store.close()


def test_a_library_that_is_missing_is_named(monkeypatch):
    names = ["weft.adapters.documents.postgres"]
    names += [name for name in sys.modules if name.startswith("weft.adapters.sql.postgres")]
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(
        SetupError, match="PostgreSQL needs a library that is not installed"
    ) as caught:
        import weft.adapters.documents.postgres  # noqa: F401
    assert caught.value.hint == 'install it: pip install "weft-agents[postgres]"'


async def test_changes_are_read_again_after_a_connection_was_lost(postgres_database, monkeypatch):
    async with opened(postgres_database) as (store, _):
        await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
        read, failures = store._read, [True, True]

        async def lose(transaction, app):
            if failures.pop() if failures else False:
                raise StoreError("the connection was lost", retryable=True)
            return await read(transaction, app)

        changes = store.watch(SHOP, ORDERS, after="0")
        failures.pop()
        monkeypatch.setattr(store, "_read", lose)
        assert (await anext(changes)).key == "a"
        failures.extend([True, True])
        with pytest.raises(StoreError, match="the connection was lost"):
            await anext(changes)
