"""The conformance suite of document stores.

    @pytest.mark.parametrize("check", DOCUMENT_CHECKS, ids=lambda check: check.__name__)
    def test_my_store(check, tmp_path):
        asyncio.run(check(lambda: MyDocuments.open(tmp_path / "store")))

Each check takes a function that opens the store, which must be empty. A check that fails
raises AssertionError with the expected and the actual value.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from weft.errors import StoreError, UsageError
from weft.findings import Json
from weft.ports.documents import Change, Collection, Document, Documents
from weft.testing.documents.reading import (
    READING_CHECKS,
    tenants_may_name_alike,
    the_last_written_is_found,
)
from weft.testing.documents.samples import (
    ANYTHING,
    ARCHIVED,
    BANK,
    NASTY,
    ORDERS,
    SHOP,
    Check,
    OpenDocuments,
)
from weft.testing.store.samples import expect, expect_error


async def closed_is_closed(open_documents: OpenDocuments) -> None:
    """A closed store refuses every call except close."""
    store = await open_documents()
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    await store.close()
    await store.close()
    for name, attempt in {
        "find": lambda: store.find(SHOP, ORDERS, {}),
        "find_many": lambda: store.find_many(SHOP, ORDERS, {}),
        "page": lambda: store.page(SHOP, ORDERS),
        "collections": lambda: store.collections(SHOP),
        "put": lambda: store.put(SHOP, ORDERS, {"_id": "a"}, {}),
        "delete": lambda: store.delete(SHOP, ORDERS, "a"),
        "watch": lambda: anext(store.watch(SHOP, ORDERS)),
        "position": lambda: store.position(SHOP, ORDERS),
    }.items():
        await expect_error(StoreError, attempt(), f"{name} of a closed store")


async def everything_is_there_again(open_documents: OpenDocuments) -> None:
    """Documents are found after reopening, and watching continues from a position."""
    store = await open_documents()
    await store.put(SHOP, ORDERS, {"_id": "before"}, {"n": 1})
    position = await store.position(SHOP, ORDERS)
    await store.put(SHOP, ORDERS, {"_id": "a"}, ANYTHING)
    await store.close()
    store = await open_documents()
    found = await store.find(SHOP, ORDERS, {"text": ANYTHING["text"]})
    expect(found, {"_id": "a", **ANYTHING}, "a document after opening again")
    again = store.watch(SHOP, ORDERS, after=position)
    expect((await next_change(again)).key, "a", "the change after reopening")
    await again.aclose()
    await store.close()


async def stores_are_shared(open_documents: OpenDocuments) -> None:
    """Writes of one connection reach the other; concurrent writes create one document."""
    here, there = await open_documents(), await open_documents()
    changes, _ = await watching(here)
    puts = [store.put(SHOP, ORDERS, {"number": 7}, {"n": 1}) for store in (here, there) * 10]
    (key,) = set(await asyncio.gather(*puts))
    expect((await next_change(changes)).key, key, "the change that the other sees")
    await there.put(SHOP, ORDERS, {"number": 7}, {"n": 2})
    change = await next_change(changes)
    expect(change.document, {"_id": key, "number": 7, "n": 2}, "the change of the other")
    expect(
        await here.find(SHOP, ORDERS, {"number": 7}), change.document, "the document that both find"
    )
    await changes.aclose()
    for store in (here, there):
        await store.close()


#: The time limit in seconds for changes that should arrive at once.
SOON: Final = 10.0

#: The key of a document that is written only to see whether watching has started.
_PROBE: Final = "probe"


async def changes_are_reported(open_documents: OpenDocuments) -> None:
    """A watcher gets writes in order, and can continue from a position."""
    store = await open_documents()
    changes, first = await watching(store)
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    await store.put(BANK, ORDERS, {"_id": "theirs"}, {"n": 1})
    await store.put(SHOP, Collection("Others"), {"_id": "elsewhere"}, {"n": 1})
    seen = [await next_change(changes)]
    for number in range(5):
        await store.put(SHOP, ORDERS, {"_id": f"b{number}"}, {"n": number})
        seen.append(await next_change(changes))
    wanted = [
        ("a", {"_id": "a", "n": 1}),
        *((f"b{number}", {"_id": f"b{number}", "n": number}) for number in range(5)),
    ]
    expect([(change.key, change.document) for change in seen], wanted, "the changes")
    expect({change.kind for change in seen}, {"put"}, "the kinds of changes")
    await changes.aclose()
    await store.put(SHOP, ORDERS, {"_id": "meanwhile"}, {"n": 1})
    for position, after in (
        (first.position, "a"),
        (seen[3].position, "b3"),
        (seen[-1].position, "meanwhile"),
    ):
        again = store.watch(SHOP, ORDERS, after=position)
        expect((await next_change(again)).key, after, "the change after a position")
        await again.aclose()
    nowhere = store.watch(SHOP, ORDERS, after="nowhere")
    await expect_error(UsageError, anext(nowhere), "a position that is none")
    await store.close()


async def deletions_are_reported(open_documents: OpenDocuments) -> None:
    """A watcher gets deletions, also afterwards."""
    store = await open_documents()
    changes, first = await watching(store)
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    expect((await next_change(changes)).kind, "put", "the first change")
    await store.delete(SHOP, ORDERS, "a")
    change = await next_change(changes)
    expect(
        (change.kind, change.key, change.document),
        ("deleted", "a", None),
        "the second change",
    )
    again = store.watch(SHOP, ORDERS, after=first.position)
    while (change := await next_change(again)).kind == "put":
        expect(change.key, "a", "a change that may still arrive")
    expect(change.key, "a", "the change afterwards")
    for watcher in (changes, again):
        await watcher.aclose()
    await store.close()


async def watching(store: Documents) -> tuple[AsyncGenerator[Change], Change]:
    """Watch a collection, and return after the first change: from then on none is missed."""
    changes = store.watch(SHOP, ORDERS)
    first = asyncio.ensure_future(anext(changes))
    for number in range(50):
        await store.put(SHOP, ORDERS, {"_id": _PROBE}, {"n": number})
        await asyncio.wait([first], timeout=0.2)
        if first.done():
            return changes, first.result()
    raise AssertionError("watching: expected a change, found none")


async def next_change(changes: AsyncGenerator[Change]) -> Change:
    """Return the next change within the time limit."""
    while True:
        change = await asyncio.wait_for(anext(changes), SOON)
        if change.key != _PROBE:
            return change


async def values_come_back(open_documents: OpenDocuments) -> None:
    """A document is found unchanged, and only in its collection."""
    store = await open_documents()
    expect(await store.find(SHOP, ORDERS, {"_id": "a"}), None, "a document before it is put")
    for collection in (ORDERS, ARCHIVED):
        expect(await store.put(SHOP, collection, {"_id": "a"}, ANYTHING), "a", "the key")
        found = await store.find(SHOP, collection, {"_id": "a"})
        expect(found, {"_id": "a", **ANYTHING}, "the document")
    expect(await store.find(SHOP, Collection("orders"), {"_id": "a"}), None, "another collection")
    key = await store.put(SHOP, ORDERS, {"number": 7, "at.city": "Rome"}, {"total": 1})
    found = await store.find(SHOP, ORDERS, {"number": 7})
    made = {"_id": key, "number": 7, "at": {"city": "Rome"}, "total": 1}
    expect(found, made, "a document that was made by a query")
    large = {"text": "x" * 1_000_000, "list": list(range(10_000))}
    await store.put(SHOP, ORDERS, {"_id": "large"}, large)
    expect(
        await store.find(SHOP, ORDERS, {"_id": "large"}), {"_id": "large", **large}, "a large one"
    )
    await store.delete(SHOP, ARCHIVED, "a")
    await store.close()


async def fields_are_set(open_documents: OpenDocuments) -> None:
    """Put changes the named fields only, and repeating it changes nothing."""
    store = await open_documents()
    await store.put(SHOP, ORDERS, {"number": 7}, {"a": 1, "b": {"c": 1, "d": 2}, "list": [1, 2]})
    values: Document = {"a": 2, "b.c": 3, "e.f": 4, "list.1": 9}
    keys = [await store.put(SHOP, ORDERS, {"number": 7}, values) for _ in range(2)]
    key, wanted = keys[0], {"a": 2, "b": {"c": 3, "d": 2}, "list": [1, 9], "e": {"f": 4}}
    found = await store.page(SHOP, ORDERS)
    expect((found, keys[1]), ([{"_id": key, "number": 7, **wanted}], key), "all documents")
    await store.put(SHOP, ORDERS, {"_id": key, "number": 7}, {"_id": key, "number": 8})
    found = await store.find(SHOP, ORDERS, {"number": 8}, fields=("_id", "number"))
    expect(found, {"_id": key, "number": 8}, "a document that does not match its query any more")
    other = await store.put(SHOP, ORDERS, {"number": 7}, {})
    expect(await store.find(SHOP, ORDERS, {"number": 7}), {"_id": other, "number": 7}, "a new one")
    refused: tuple[tuple[Document, Document], ...] = (
        ({}, {"a": 1}),
        ({"number": {"$gt": 1}}, {"a": 1}),
        ({"_id": 5}, {"a": 1}),
        ({"_id": key}, {"_id": "other"}),
        ({"_id": key}, {"a.x": 1}),
        ({"_id": key}, {"b": 1, "b.c": 2}),
        ({"_id": key}, {"$inc": 1}),
        ({"_id": key}, {"a": float("nan")}),
    )
    for query, changed in refused:
        attempt = store.put(SHOP, ORDERS, query, changed)
        await expect_error(UsageError, attempt, f"putting {changed} by {query}")
    found = await store.find(SHOP, ORDERS, {"_id": key})
    expect(found, {"_id": key, "number": 8, **wanted}, "after what was refused")
    await store.close()


async def names_may_be_nasty(open_documents: OpenDocuments) -> None:
    """Fields of any name are stored, found and projected."""
    store = await open_documents()
    await store.put(SHOP, ORDERS, {"_id": "a"}, dict.fromkeys(NASTY, "x"))
    for number, name in enumerate(NASTY):
        await store.put(SHOP, ORDERS, {f"deep.{name}": number}, {name: number})
        query: dict[str, Json] = {f"deep.{name}": number, name: {"$lte": number}}
        found = await store.find(SHOP, ORDERS, query, fields=(name, f"deep.{name}"))
        expect(found, {"deep": {name: number}, name: number}, f"a document by {name!r}")
    whole = await store.find(SHOP, ORDERS, {"_id": "a"})
    expect(whole, {"_id": "a", **dict.fromkeys(NASTY, "x")}, "a document with all of them")
    for name in ("", "a$b", "system.users", "x" * 121):
        await expect_error(UsageError, store.page(SHOP, Collection(name)), f"collection {name!r}")
    await store.close()


async def writers_make_one(open_documents: OpenDocuments) -> None:
    """Concurrent writers with the same query create one document with all their fields."""
    store = await open_documents()
    fields = [f"f{number}" for number in range(20)]
    puts = (store.put(SHOP, ORDERS, {"number": 7}, {field: 1}) for field in fields)
    (key,) = set(await asyncio.gather(*puts))
    expect(
        await store.page(SHOP, ORDERS),
        [{"_id": key, "number": 7, **dict.fromkeys(fields, 1)}],
        "all",
    )
    await store.close()


#: For every store; each check opens it once.
DOCUMENT_CHECKS: Final[tuple[Check, ...]] = (
    values_come_back,
    fields_are_set,
    names_may_be_nasty,
    writers_make_one,
    *READING_CHECKS,
    changes_are_reported,
    closed_is_closed,
)

#: For stores without other writers, which know the tenant of every deleted document.
OWN_DOCUMENT_CHECKS: Final[tuple[Check, ...]] = (
    the_last_written_is_found,
    tenants_may_name_alike,
    deletions_are_reported,
)

#: For durable stores: they are opened several times, also concurrently.
LASTING_DOCUMENT_CHECKS: Final[tuple[Check, ...]] = (everything_is_there_again, stores_are_shared)
