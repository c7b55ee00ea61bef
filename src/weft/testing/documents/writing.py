"""What must hold when documents are put into a store."""

import asyncio
from typing import Final

from weft.errors import UsageError
from weft.findings import Json
from weft.ports.documents import Collection, Document
from weft.testing.documents.samples import (
    ANYTHING,
    ARCHIVED,
    NASTY,
    ORDERS,
    SHOP,
    Check,
    OpenDocuments,
)
from weft.testing.journal.samples import expect, expect_error


async def values_come_back(open_documents: OpenDocuments) -> None:
    """A document is found as it was put, whatever is in it, and only where it was put."""
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
    """Putting changes what is named and nothing else, and doing it again changes nothing."""
    store = await open_documents()
    await store.put(SHOP, ORDERS, {"number": 7}, {"a": 1, "b": {"c": 1, "d": 2}, "list": [1, 2]})
    values: Document = {"a": 2, "b.c": 3, "e.f": 4, "list.1": 9}
    keys = [await store.put(SHOP, ORDERS, {"number": 7}, values) for _ in range(2)]
    key, wanted = keys[0], {"a": 2, "b": {"c": 3, "d": 2}, "list": [1, 9], "e": {"f": 4}}
    found = await store.page(SHOP, ORDERS)
    expect((found, keys[1]), ([{"_id": key, "number": 7, **wanted}], key), "all documents")
    await store.put(SHOP, ORDERS, {"_id": key, "number": 7}, {"_id": key, "number": 8})
    found = await store.find(SHOP, ORDERS, {"number": 8}, fields=("_id", "number"))
    expect(found, {"_id": key, "number": 8}, "a document whose query fits it no longer")
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
    """Fields of any name are kept, found and taken."""
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
    """Many that write by the same query at the same time make one document, with all they set."""
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


WRITING_CHECKS: Final[tuple[Check, ...]] = (
    values_come_back,
    fields_are_set,
    names_may_be_nasty,
    writers_make_one,
)
