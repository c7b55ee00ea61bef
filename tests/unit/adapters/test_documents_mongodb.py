"""Documents in MongoDB: databases that others have made, servers that fail, and what is said."""

import asyncio
import sys
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from bson import Decimal128, Int64, ObjectId, Regex, Timestamp
from bson.binary import Binary, UuidRepresentation
from pymongo import MongoClient, errors

from weft.adapters.documents.mongodb import MongoDocuments
from weft.adapters.documents.mongodb_values import as_json, as_key, key_forms, to_port_error
from weft.errors import SetupError, StoreConflict, StoreError, UsageError
from weft.ports.documents import Collection
from weft.ports.scope import Scope

SHOP = Scope.operator("shop")
ORDERS = Collection("Orders")
SECRET = "canary-7f3a"
NOON = datetime(2026, 11, 17, 12, 30, 15, 250_000, tzinfo=UTC)


def fill(database: str, *documents: dict[str, object], collection: str = "Orders") -> None:
    with MongoClient(database, uuidRepresentation="standard") as client:
        client.get_default_database()[collection].insert_many(list(documents))


def with_store(url: str, story, **options):
    async def whole():
        store = MongoDocuments(url, **options)
        try:
            return await asyncio.wait_for(story(store), 30)
        finally:
            await store.close()

    return asyncio.run(whole())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Int64(5), 5),
        (2.5, 2.5),
        (float("nan"), "nan"),
        (True, True),
        (Decimal128("12.50"), 12.5),
        (Decimal128("12"), 12),
        (Decimal128("1E+6000"), "1E+6000"),
        (Decimal128("NaN"), "NaN"),
        (NOON, "2026-11-17T12:30:15.250Z"),
        (NOON.astimezone(timezone(timedelta(hours=2))), "2026-11-17T12:30:15.250Z"),
        (Timestamp(0, 1), "1970-01-01T00:00:00.000Z"),
        (ObjectId("65f0000000000000000000aa"), "65f0000000000000000000aa"),
        (b"\x00\xff", "AP8="),
        (Binary(b"ab", 5), "YWI="),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ({"a": [NOON, {"b": Int64(1)}]}, {"a": ["2026-11-17T12:30:15.250Z", {"b": 1}]}),
        (None, None),
    ],
    ids=repr,
)
def test_values_of_a_database_become_json(value, expected):
    found = as_json(value)
    assert (found, type(found)) == (expected, type(expected))


def test_whatever_else_there_is_becomes_text():
    assert isinstance(as_json(Regex("a.b")), str)


@pytest.mark.parametrize(
    ("key", "forms"),
    [
        ("a-c", []),
        ("65f0000000000000000000aa", [ObjectId("65f0000000000000000000aa")]),
        ("-12", [-12]),
        ("2.5", [2.5]),
        ("007", []),
        (str(2**63), []),
        ("true", [True]),
        ('{"a": 1}', [{"a": 1}]),
        ("AP8=", [b"\x00\xff"]),
        (str(UUID(int=7)), [UUID(int=7)]),
        ("2026-11-17T12:30:15.250Z", [NOON]),
        ("2026-02-31T00:00:00Z", []),
    ],
)
def test_a_key_is_looked_for_in_every_form_it_may_have(key, forms):
    found = key_forms(key)
    assert found[0] == key
    assert [item for item in found[1:] if not isinstance(item, bytes) or item in forms] == forms
    assert all(as_key(item) == key for item in found)


def test_a_database_that_others_have_made(mongodb_database):
    identity = ObjectId()
    # MongoDB compares binary keys by length first, SecantusDB by bytes; here both come to the same.
    keys = [2.5, 7, "text", {"a": 1}, b"\x00\x00", UUID(int=3), identity, True, NOON]
    fill(
        mongodb_database,
        *({"_id": key, "app_id": "shop", "n": n} for n, key in enumerate(keys)),
        {"_id": "theirs", "app_id": "bank"},
        {"_id": "nobody's"},
    )

    async def story(store: MongoDocuments):
        shown = [as_key(key) for key in keys]
        assert [entry["_id"] for entry in await store.page(SHOP, ORDERS)] == shown
        walked: list[str] = []
        while page := await store.page(SHOP, ORDERS, after=walked[-1] if walked else None, limit=1):
            walked.append(str(page[0]["_id"]))
        assert walked == shown
        for number, key in enumerate(shown):
            found = await store.find(SHOP, ORDERS, {"_id": key})
            assert found == {"_id": key, "n": number}
            assert await store.put(SHOP, ORDERS, {"_id": key}, {"seen": True}) == key
        assert await store.collections(SHOP) == [(ORDERS, 9)]
        assert await store.delete(SHOP, ORDERS, str(identity))
        assert await store.find(SHOP, ORDERS, {"_id": str(identity)}) is None

    with_store(mongodb_database, story)


def test_dates_and_identities_are_found_as_they_are_shown(mongodb_database):
    customer = ObjectId()
    fill(
        mongodb_database,
        {"_id": "a", "app_id": "shop", "customer": customer, "at": NOON, "tags": [NOON]},
    )
    noon, later = "2026-11-17T12:30:15.250Z", "2026-11-18T00:00:00+00:00"
    fitting = [
        {"customer": str(customer)},
        {"customer": {"$in": ["x", str(customer)]}},
        {"at": noon},
        {"at": {"$lt": later}},
        {"at": {"$gte": "2026-11-17T13:30:15.250+01:00"}},
        {"tags": noon},
        {"at": {"$ne": later}},
    ]
    others = [{"customer": {"$ne": str(customer)}}, {"at": {"$gt": later}}, {"at": "2026-11-17"}]

    async def story(store: MongoDocuments):
        for query in fitting:
            assert await store.find(SHOP, ORDERS, query, fields=("_id",)) == {"_id": "a"}, query
        for query in others:
            assert await store.find(SHOP, ORDERS, query) is None, query

    with_store(mongodb_database, story)


def test_tenant_field_cannot_be_bypassed(mongodb_database):
    fill(mongodb_database, {"_id": "b", "enterprise_id": "bank", "n": 1})

    async def story(store: MongoDocuments):
        key = await store.put(SHOP, ORDERS, {"enterprise_id": "shop"}, {"n": 2})
        again = await store.put(SHOP, ORDERS, {"enterprise_id": "shop"}, {"enterprise_id": "shop"})
        assert again == key
        assert await store.find(SHOP, ORDERS, {"enterprise_id": "shop"}) == {"_id": key, "n": 2}
        found = await store.find(SHOP, ORDERS, {}, fields=("enterprise_id",))
        assert found == {"enterprise_id": "shop"}
        for query in (
            {"enterprise_id": "bank"},
            {"$or": [{"enterprise_id": "bank"}]},
            {"enterprise_id": {"$exists": True}},
            {"enterprise_id.x": 1},
        ):
            with pytest.raises(UsageError, match="is the tenant field"):
                await store.find(SHOP, ORDERS, query)
        with pytest.raises(UsageError, match="is the tenant field"):
            await store.put(SHOP, ORDERS, {"_id": key}, {"enterprise_id": "bank"})
        return key

    key = with_store(mongodb_database, story, tenant_field="enterprise_id")
    with MongoClient(mongodb_database) as client:
        kept = list(client.get_default_database()["Orders"].find({}).sort("n"))
    assert kept == [
        {"_id": "b", "enterprise_id": "bank", "n": 1},
        {"_id": key, "enterprise_id": "shop", "n": 2},
    ]


def test_a_key_that_another_tenant_has_is_refused_and_nothing_changes(mongodb_database):
    fill(mongodb_database, {"_id": "a", "app_id": "bank", "n": 1})

    async def story(store: MongoDocuments):
        with pytest.raises(StoreConflict, match="this key already exists"):
            await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 2})
        assert await store.find(Scope.operator("bank"), ORDERS, {"_id": "a"}) == {
            "_id": "a",
            "n": 1,
        }

    with_store(mongodb_database, story)


def test_the_greatest_key_is_taken_where_several_fit(mongodb_database):
    fill(
        mongodb_database,
        *({"_id": name, "app_id": "shop", "status": "open"} for name in ("c", "a", "b")),
    )

    async def story(store: MongoDocuments):
        found = await store.find(SHOP, ORDERS, {"status": "open"})
        assert found == {"_id": "c", "status": "open"}
        assert await store.put(SHOP, ORDERS, {"status": "open"}, {"n": 1}) == "c"

    with_store(mongodb_database, story)


def test_watcher_learns_that_a_collection_was_removed(mongodb_database):
    async def story(store: MongoDocuments):
        await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 0})
        changes = store.watch(SHOP, ORDERS)
        told = asyncio.ensure_future(anext(changes))
        number = 0
        while not told.done():
            number += 1
            await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": number})
            await asyncio.wait([told], timeout=0.2)
        with MongoClient(mongodb_database) as client:
            client.get_default_database()["Orders"].drop()
        with pytest.raises(StoreError, match="Orders was removed; watch it again"):
            _ = [change async for change in changes]

    with_store(mongodb_database, story)


@pytest.mark.parametrize(
    "collection",
    [Collection("a", "admin"), Collection("a", "with space"), Collection("a..b"), Collection(".a")],
    ids=str,
)
def test_names_that_mongodb_has_for_itself_or_cannot_have(collection):
    async def story(store: MongoDocuments):
        with pytest.raises(UsageError):
            await store.page(SHOP, collection)

    with_store("mongodb://127.0.0.1:9", story)


def test_a_server_that_is_not_there():
    async def story(store: MongoDocuments):
        for attempt in (
            lambda: store.find(SHOP, ORDERS, {}),
            lambda: store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1}),
            lambda: anext(store.watch(SHOP, ORDERS)),
        ):
            with pytest.raises(StoreError) as caught:
                await attempt()
            assert caught.value.retryable
            assert str(caught.value).startswith("documents mongodb://127.0.0.1:9: 127.0.0.1:9: ")
            assert "timeout" not in str(caught.value).lower()
            assert SECRET not in f"{caught.value}{caught.value.__cause__}"

    url = f"mongodb://ann:{SECRET}@127.0.0.1:9/shop"
    with_store(url, story, connect_seconds=0.2)


async def test_a_server_that_does_not_answer():
    async def silent(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    store = MongoDocuments(f"mongodb://127.0.0.1:{port}", connect_seconds=5, answer_seconds=0.2)
    with pytest.raises(StoreError, match=r"no answer within 0\.2 seconds") as caught:
        await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    assert (caught.value.retryable, caught.value.uncertain) == (True, True)
    await store.close()
    server.close()


@pytest.mark.parametrize(
    "url",
    [
        f"mongodb://ann:{SECRET}@@127.0.0.1/",
        f"mongodb://ann:{SECRET}@127.0.0.1:99999/",
        f"mongodb://ann:x/{SECRET}@127.0.0.1/",
        "mongodb://",
        "mongodb://127.0.0.1:port/",
    ],
)
def test_invalid_address_is_refused_without_its_password(url):
    with pytest.raises(UsageError, match="is not the address of a MongoDB server") as caught:
        MongoDocuments(url)
    assert SECRET not in f"{caught.value}{caught.value.hint}{caught.value.__notes__}"
    assert caught.value.__cause__ is None


def test_a_login_that_is_refused(tmp_path):
    error = errors.OperationFailure("Authentication failed.", 18)
    fault = to_port_error(error, "mongodb://host")
    assert isinstance(fault, StoreError)
    assert str(fault) == (
        "documents mongodb://host: the user, password or permissions were refused"
        " (Authentication failed.)"
    )
    assert not fault.retryable


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (errors.OperationFailure("x", 286), StoreError, False),
        (errors.OperationFailure("x", 10107), StoreError, True),
        (errors.OperationFailure("x", 1), StoreError, False),
        (errors.AutoReconnect("x"), StoreError, True),
        (errors.OperationFailure("x", 28), UsageError, None),
        (errors.DocumentTooLarge("x"), UsageError, None),
        (errors.DuplicateKeyError("x", 11000), StoreConflict, False),
    ],
    ids=repr,
)
def test_mongodb_errors_become_port_errors(error, kind, retryable):
    fault = to_port_error(error, "mongodb://host", writing=True)
    assert type(fault) is kind
    assert getattr(fault, "retryable", None) == retryable


def test_numbers_and_names_that_bson_cannot_hold(mongodb_database):
    async def story(store: MongoDocuments):
        for values in ({"n": 2**70}, {"n": {"a\0b": 1}}):
            with pytest.raises(UsageError, match="MongoDB cannot store this"):
                await store.put(SHOP, ORDERS, {"_id": "a"}, values)
        with pytest.raises(UsageError):
            await store.put(SHOP, ORDERS, {"_id": "a"}, {"text": "x" * 17_000_000})
        assert await store.collections(SHOP) == []

    with_store(mongodb_database, story)


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "weft.adapters.documents.mongodb")
    monkeypatch.setitem(sys.modules, "pymongo", None)
    with pytest.raises(SetupError, match="MongoDB needs a library that is not installed") as caught:
        import weft.adapters.documents.mongodb  # noqa: F401
    assert caught.value.hint == 'install it: pip install "weft-agents[mongodb]"'


def test_uuids_of_the_standard_are_read(mongodb_database):
    fill(
        mongodb_database,
        {
            "_id": UUID(int=9),
            "app_id": "shop",
            "of": Binary.from_uuid(UUID(int=5), UuidRepresentation.STANDARD),
        },
    )

    async def story(store: MongoDocuments):
        assert await store.page(SHOP, ORDERS) == [{"_id": str(UUID(int=9)), "of": str(UUID(int=5))}]

    with_store(mongodb_database, story)
