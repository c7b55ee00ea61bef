"""Documents in SQLite: indexes, other processes, old changes, and files that cannot be used."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest

from weft.adapters.documents import rows
from weft.adapters.documents.index import MOST_ENTRIES, MOST_RANGES, ranges_of, value_text
from weft.adapters.documents.requests import MOST_BYTES, Tenant, tenant_query
from weft.adapters.documents.sqlite import FORMAT, SqliteDocuments
from weft.adapters.sql import sqlite_database
from weft.adapters.sql.sqlite_database import statement_text
from weft.errors import StoreError, UsageError
from weft.ports.documents import Collection
from weft.ports.scope import Scope

SHOP = Scope.operator("shop")
ORDERS = Collection("Orders")
PLACE = ("shop", "", "Orders")


def ranges(query):
    return ranges_of(PLACE, tenant_query(query, Tenant("shop")))


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file with 3,000 documents."""
    path = tmp_path_factory.mktemp("large") / "documents.db"
    asyncio.run(_made(path))
    bodies = (
        {"n": n, "customer": {"id": f"c{n}"}, "price": n / 7, "tags": ["a"] if n == 5 else "b"}
        for n in range(3_000)
    )

    def put_all():
        for number, body in enumerate(bodies):
            key = {"_id": f"k{number}"}
            yield from rows.put_document(PLACE, tenant_query(key, Tenant("shop")), key, body)

    with closing(sqlite3.connect(path)) as connection, connection:
        sqlite_database.drive(connection, put_all(), 0)
    return path


async def _made(path):
    await (await SqliteDocuments.open(path)).close()


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ({"n": 2_000}, "k2000"),
        ({"n": 2_000.0}, "k2000"),
        ({"customer.id": "c123"}, "k123"),
        ({"price": 123 / 7}, "k123"),
        ({"price": {"$gte": 2_999 / 7}}, "k2999"),
        ({"n": {"$lt": 1}}, "k0"),
        ({"n": {"$in": [3, 4, "x"]}}, "k4"),
        ({"tags": "a"}, "k5"),
        ({"tags": ["a"]}, "k5"),
        ({"$or": [{"n": 8}, {"customer.id": "c9"}]}, "k9"),
        ({"n": 5, "customer.id": "c5"}, "k5"),
        ({"n": "x", "tags": "b"}, None),
        ({"_id": {"$in": ["k7", "x"]}}, "k7"),
    ],
)
def test_a_field_that_is_searched_by_is_indexed(large, query, key):
    async def found():
        store = await SqliteDocuments.open(large)
        try:
            return await store.find(SHOP, ORDERS, query)
        finally:
            await store.close()

    result = asyncio.run(found())
    assert (result and result["_id"]) == key
    wanted = ranges(query)
    with closing(sqlite3.connect(large)) as connection:
        plan = connection.execute(
            f"EXPLAIN QUERY PLAN {statement_text(rows.SEARCH, len(wanted))}",
            ("shop", 1, 1 << 62, 1, *(value for row in wanted for value in row)),
        ).fetchall()
    steps = [row[3] for row in plan]
    assert "SEARCH v USING PRIMARY KEY (app=? AND field=? AND value>? AND value<?)" in steps
    assert not any(step.startswith(("SCAN d", "SCAN v")) for step in steps), steps


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"n": {"$ne": 1}},
        {"n": {"$exists": True}},
        {"n": {"a": 1}},
        {"n": None},
        {"n": {"$in": [1, None]}},
        {"$or": [{"n": 1}, {"n": {"$ne": 2}}]},
        {"n": {"$in": list(range(MOST_RANGES))}},
    ],
    ids=lambda query: str(query)[:30],
)
def test_query_without_an_index_examines_every_document(query):
    assert ranges(query) == []


def test_a_part_of_a_query_that_cannot_be_narrowed_leaves_the_others():
    many = {"n": {"$in": list(range(MOST_RANGES))}}
    assert ranges({"a": 1, "b": {"$ne": 2}, **many}) == ranges({"a": 1})


def test_the_bounds_of_a_field_are_one_range():
    [between] = [row for row in ranges({"n": {"$gte": 2, "$lt": 3}}) if row[2] != "~"]
    assert between[2:] == (value_text(2), value_text(3))


async def test_a_document_with_very_many_values_is_found_by_each_of_them():
    store = await SqliteDocuments.open(":memory:")
    fields = {f"f{number}": number for number in range(MOST_ENTRIES + 1)}
    await store.put(SHOP, ORDERS, {"_id": "many"}, fields)
    await store.put(SHOP, ORDERS, {"_id": "other"}, {"f7": 8})
    for query in ({"f7": 7}, {"f299": {"$gt": 298}}, {"_id": "many"}):
        found = await store.find(SHOP, ORDERS, query)
        assert found == {"_id": "many", **fields}
    await store.close()


def test_the_file_is_private(tmp_path):
    asyncio.run(_made(tmp_path / "documents.db"))
    assert stat.S_IMODE((tmp_path / "documents.db").stat().st_mode) == 0o600


async def test_old_changes_are_dropped_and_reported(monkeypatch):
    monkeypatch.setattr(rows, "MOST_CHANGES", 20)
    monkeypatch.setattr(rows, "PRUNE_EVERY", 10)
    store = await SqliteDocuments.open(":memory:")
    bank, quiet = Scope.operator("bank"), Collection("Quiet")
    await store.put(bank, ORDERS, {"_id": "theirs"}, {"n": 1})
    slow = store.watch(SHOP, ORDERS, after="1")
    for number in range(49):
        await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": number})
        if number == 0:
            assert (await anext(slow)).position == "2"
    for position in ("1", "29", "51", "900"):
        with pytest.raises(StoreError, match=r"the last 20 changes are kept; read the coll"):
            await anext(store.watch(SHOP, ORDERS, after=position))
    with pytest.raises(StoreError, match="cannot continue from position 2"):
        await anext(slow)
    changes = store.watch(SHOP, ORDERS, after="30")
    positions = [(await anext(changes)).position for _ in range(20)]
    assert positions == [str(number) for number in range(31, 51)]
    await changes.aclose()
    # Nothing of these was forgotten.
    assert (await anext(store.watch(bank, ORDERS, after="0"))).key == "theirs"
    await store.put(SHOP, quiet, {"_id": "b"}, {"n": 1})
    assert (await anext(store.watch(SHOP, quiet, after="1"))).key == "b"
    await store.close()


async def test_deleted_file_is_not_reported():
    store = await SqliteDocuments.open(":memory:")
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    await store.delete(SHOP, ORDERS, "a")
    changes = store.watch(SHOP, ORDERS, after="0")
    told = await anext(changes)
    assert (told.kind, told.key, told.position) == ("deleted", "a", "2")
    await changes.aclose()
    await store.close()


async def test_writes_of_another_process_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_database, "LOOK_SECONDS", 0.02)
    path = tmp_path / "documents.db"
    write = (
        "import asyncio, sys\n"
        "from weft.adapters.documents.sqlite import SqliteDocuments\n"
        "from weft.ports.documents import Collection\n"
        "from weft.ports.scope import Scope\n"
        "async def put():\n"
        "    store = await SqliteDocuments.open(sys.argv[1])\n"
        "    scope = Scope.operator('shop')\n"
        "    await store.put(scope, Collection('Orders'), {'_id': 'theirs'}, {'n': 1})\n"
        "    await store.close()\n"
        "asyncio.run(put())\n"
    )
    store = await SqliteDocuments.open(path)
    reads = []
    real = store._read
    store._read = lambda work, app: reads.append(work) or real(work, app)
    changes = store.watch(SHOP, ORDERS)
    told = asyncio.ensure_future(anext(changes))
    await asyncio.sleep(1)
    quiet = len(reads)
    await asyncio.sleep(0.3)
    assert 2 < len(reads) == quiet
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", write, path], check=True)
    assert (await asyncio.wait_for(told, 5)).key == "theirs"
    await changes.aclose()
    await store.close()


async def test_closing_ends_watching():
    store = await SqliteDocuments.open(":memory:")
    told = asyncio.ensure_future(anext(store.watch(SHOP, ORDERS)))
    await asyncio.sleep(0.05)
    await store.close()
    with pytest.raises(StoreError, match="the store is closed"):
        await told


def _file(path, make):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(make)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: path.write_text("no database " * 100), "the file is not a database"),
        (lambda path: path.mkdir(), "the file cannot be opened"),
        (lambda path: _file(path, "CREATE TABLE mine (a)"), "a database of another program"),
        (
            lambda path: _file(
                path,
                f"CREATE TABLE a (a); PRAGMA application_id = {FORMAT.application_id};"
                "PRAGMA user_version = 99",
            ),
            "written by a newer Weft",
        ),
    ],
    ids=["text", "folder", "stranger", "newer"],
)
def test_a_file_that_cannot_be_used_is_left_alone(tmp_path, make, said):
    path = tmp_path / "documents.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreError) as caught:
        asyncio.run(SqliteDocuments.open(path))
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert not caught.value.retryable
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(StoreError, match="name a file in a folder that exists"):
        asyncio.run(SqliteDocuments.open(tmp_path / "nowhere" / "documents.db"))


async def test_a_file_that_is_busy_may_be_tried_again(tmp_path):
    path = tmp_path / "documents.db"
    store = await SqliteDocuments.open(path, busy_seconds=0.05)
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="another process is writing") as caught:
            await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 2})
        assert caught.value.retryable
        found = await store.find(SHOP, ORDERS, {"_id": "a"})
        assert found == {"_id": "a", "n": 1}
        other.execute("ROLLBACK")
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 2})
    await store.close()


async def test_many_open_a_new_file_at_once(tmp_path):
    stores = await asyncio.gather(
        *(SqliteDocuments.open(tmp_path / "documents.db") for _ in range(8))
    )
    await asyncio.gather(
        *(store.put(SHOP, ORDERS, {"n": n}, {"x": 1}) for n, store in enumerate(stores))
    )
    assert await stores[0].collections(SHOP) == [(ORDERS, 8)]
    for store in stores:
        await store.close()


def test_damaged_file_is_reported(tmp_path):
    path = tmp_path / "documents.db"

    async def fill():
        store = await SqliteDocuments.open(path)
        for number in range(200):
            await store.put(SHOP, ORDERS, {"_id": f"k{number}"}, {"text": "x" * 500})
        await store.close()

    asyncio.run(fill())
    raw = path.read_bytes()
    path.write_bytes(raw[:8192] + os.urandom(len(raw) - 8192))

    async def read():
        store = await SqliteDocuments.open(path)
        try:
            await store.page(SHOP, ORDERS, limit=500)
        finally:
            await store.close()

    with pytest.raises(StoreError, match="the file is damaged") as caught:
        asyncio.run(read())
    assert not caught.value.retryable


async def test_too_large_or_deep_value_is_refused():
    store = await SqliteDocuments.open(":memory:")
    with pytest.raises(UsageError, match="is too large: the limit is 16,777,216"):
        await store.put(SHOP, ORDERS, {"_id": "a"}, {"text": "x" * MOST_BYTES})
    deep: object = 1
    for _ in range(5000):
        deep = [deep]
    for value in (deep, "\ud800", float("inf"), {1, 2}):
        with pytest.raises(UsageError, match="a document cannot contain this"):
            await store.put(SHOP, ORDERS, {"_id": "a"}, {"text": value})
    assert await store.collections(SHOP) == []
    await store.close()


async def test_the_field_of_the_tenant_can_be_named_and_says_nothing_new():
    store = await SqliteDocuments.open(":memory:", tenant_field="enterprise_id")
    key = await store.put(SHOP, ORDERS, {"enterprise_id": "shop"}, {"enterprise_id": "shop"})
    assert await store.find(SHOP, ORDERS, {"enterprise_id": "shop"}) == {"_id": key}
    found = await store.find(SHOP, ORDERS, {}, fields=("enterprise_id",))
    assert found == {"enterprise_id": "shop"}
    for query in ({"enterprise_id": "bank"}, {"enterprise_id.x": 1}):
        with pytest.raises(UsageError, match=r"is the tenant field, which must be 'shop' here"):
            await store.find(SHOP, ORDERS, query)
    await store.close()


@pytest.mark.parametrize("name", ["", "_id", "a.b", "$a"])
def test_a_field_for_the_tenant_that_cannot_be(name):
    with pytest.raises(UsageError, match="the tenant field cannot be"):
        asyncio.run(SqliteDocuments.open(":memory:", tenant_field=name))


@pytest.mark.parametrize(
    ("before", "values", "after"),
    [
        ({"list": [1]}, {"list.1": 2}, {"list": [1, 2]}),
        ({"list": [1]}, {"list.1.a": 2}, {"list": [1, {"a": 2}]}),
        ({"list": [1]}, {"list.3": 2}, None),
        ({"list": [1]}, {"list.a": 2}, None),
        ({"text": "a"}, {"text.a": 2}, None),
    ],
)
async def test_setting_inside_lists(before, values, after):
    store = await SqliteDocuments.open(":memory:")
    await store.put(SHOP, ORDERS, {"_id": "a"}, before)
    if after is None:
        with pytest.raises(UsageError, match=r"cannot be set: there is a (list|text) where"):
            await store.put(SHOP, ORDERS, {"_id": "a"}, values)
    else:
        await store.put(SHOP, ORDERS, {"_id": "a"}, values)
    assert await store.find(SHOP, ORDERS, {}) == {"_id": "a", **(after or before)}
    await store.close()
