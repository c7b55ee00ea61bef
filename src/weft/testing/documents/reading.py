"""Checks of queries, pages and tenants."""

from collections.abc import Awaitable
from typing import Final

from weft.errors import StoreConflict, UsageError
from weft.findings import Json
from weft.ports.documents import Collection, Document, Documents
from weft.ports.scope import Scope
from weft.testing.documents.samples import (
    BANK,
    FITTING,
    ORDERS,
    REFUSED,
    SHOP,
    STORED,
    Check,
    OpenDocuments,
)
from weft.testing.store.samples import expect, expect_error


async def queries_fit(open_documents: OpenDocuments) -> None:
    """Every operator matches what it matches in MongoDB."""
    store = await open_documents()
    for key, document in STORED.items():
        await store.put(SHOP, ORDERS, {"_id": key}, document)
    for query, wanted in FITTING:
        fitting = {key for key in STORED if await _fits(store, key, query)}
        expect(fitting, wanted, f"what {query} fits")
        found = await store.find(SHOP, ORDERS, query)
        key = None if found is None else str(found["_id"])
        expect(key in (wanted or {None}), wanted=True, what=f"that {query} finds one of them")
    for query in REFUSED:
        await expect_error(UsageError, store.find(SHOP, ORDERS, query), f"the query {query!r}")
    await store.close()


async def _fits(store: Documents, key: str, query: dict[str, Json]) -> bool:
    return await store.find(SHOP, ORDERS, {"$and": [{"_id": key}, query]}) is not None


async def fields_are_taken(open_documents: OpenDocuments) -> None:
    """A projection returns the named fields and nothing else."""
    store = await open_documents()
    document = {
        "a": {"b": 1, "c": {"d": 2, "e": 3}},
        "lines": [{"sku": "x", "left": 1}, {"sku": "y"}, 5],
        "text": "t",
    }
    await store.put(SHOP, ORDERS, {"_id": "k"}, document)
    for fields, wanted in (
        (("_id",), {"_id": "k"}),
        (("text", "missing", "text.deeper"), {"text": "t"}),
        (("a.b",), {"a": {"b": 1}}),
        (("a.c.d", "a.c.x"), {"a": {"c": {"d": 2}}}),
        (("a.c", "a.c.d"), {"a": {"c": {"d": 2, "e": 3}}}),
        (("lines.left",), {"lines": [{"left": 1}, {}]}),
        (("lines.0.sku",), {"lines": document["lines"]}),
        (("missing",), {}),
    ):
        found = await store.find(SHOP, ORDERS, {"_id": "k"}, fields=fields)
        expect(found, wanted, f"what is taken by {fields}")
    for field in ("", "a..b", "$a"):
        attempt = store.find(SHOP, ORDERS, {"_id": "k"}, fields=(field,))
        await expect_error(UsageError, attempt, f"the field {field!r}")
    await store.close()


async def pages_by_key(open_documents: OpenDocuments) -> None:
    """Documents are listed by key in pages, and deleted by key."""
    store = await open_documents()
    keys = sorted(["é", "🙂", "a b", "A", *(f"k{number:02}" for number in range(20))])
    for number, key in enumerate(reversed(keys)):
        await store.put(SHOP, ORDERS, {"_id": key}, {"number": number})
    seen: list[Json] = []
    after = None
    while page := await store.page(SHOP, ORDERS, after=after, limit=7):
        seen += [document["_id"] for document in page]
        after = str(seen[-1])
    expect(seen, keys, "keys of all pages")
    expect(
        await store.delete(SHOP, ORDERS, "k03"), wanted=True, what="whether there was a document"
    )
    expect(
        await store.delete(SHOP, ORDERS, "k03"), wanted=False, what="whether there was one again"
    )
    expect(await store.find(SHOP, ORDERS, {"_id": "k03"}), None, "what was deleted")
    page = await store.page(SHOP, ORDERS, after="k03", limit=1)
    expect([document["_id"] for document in page], ["k04"], "the page after what was deleted")
    expect(await store.collections(SHOP), [(ORDERS, 23)], "collections and counts")
    await store.close()


async def tenants_are_apart(open_documents: OpenDocuments) -> None:
    """No call of a tenant sees or changes documents of another."""
    store = await open_documents()
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    await store.put(BANK, ORDERS, {"_id": "b"}, {"n": 1})
    await store.put(BANK, Collection("Accounts"), {"_id": "c"}, {"n": 1})
    queries: list[dict[str, Json]] = [
        {"_id": "b"},
        {"$or": [{"_id": "b"}, {"n": 99}]},
        {"_id": {"$ne": "a"}},
        *({name: value} for name in _TENANT_NAMES for value in _OTHERS),
        *({"$or": [{name: "bank"}, {"_id": "b"}]} for name in _TENANT_NAMES),
    ]
    for query in queries:
        expect(await _seen(store, query), None, f"what another tenant finds by {query}")
    for name in _TENANT_NAMES:
        await _may_refuse(store.put(SHOP, ORDERS, {"_id": "a"}, {name: "bank"}))
        await _may_refuse(store.put(SHOP, ORDERS, {"_id": f"new {name}", name: "bank"}, {}))
        await _may_refuse(store.put(SHOP, ORDERS, {"_id": "a"}, {f"{name}.x": "bank"}))
    expect(
        await store.delete(SHOP, ORDERS, "b"),
        wanted=False,
        what="whether another tenant could delete it",
    )
    await _may_refuse(store.put(SHOP, ORDERS, {"_id": "b"}, {"n": 2}))
    expect(await store.page(BANK, ORDERS), [{"_id": "b", "n": 1}], "documents of the tenant")
    listed = [(Collection("Accounts"), 1), (ORDERS, 1)]
    expect(await store.collections(BANK), listed, "collections of the tenant")
    expect(
        await store.collections(Scope.operator("other")), [], "collections of a tenant without any"
    )
    await store.close()


#: Names a store may use for the tenant field, and queries that would widen it.
_TENANT_NAMES: Final = ("app_id", "app", "tenant", "enterprise_id")
_OTHERS: Final[tuple[Json, ...]] = ("bank", {"$ne": "shop"}, {"$in": ["shop", "bank"]}, ["bank"])


async def _seen(store: Documents, query: dict[str, Json]) -> Document | None:
    """Return a document of another tenant that a query finds."""
    try:
        found = await store.find(SHOP, ORDERS, query)
    except UsageError:
        return None
    return None if found is None or found["_id"] == "a" else found


async def _may_refuse(attempt: Awaitable[object]) -> None:
    try:
        await attempt
    except (UsageError, StoreConflict):
        return


async def the_last_written_is_found(open_documents: OpenDocuments) -> None:
    """Of several matching documents, the last written is found."""
    store = await open_documents()
    for key in ("b", "c", "a"):
        await store.put(SHOP, ORDERS, {"_id": key}, {"status": "open"})
    for key in ("c", "b", "a", "b"):
        await store.put(SHOP, ORDERS, {"_id": key}, {"seen": key})
        await store.put(SHOP, ORDERS, {"_id": key}, {"seen": None})
        for query in ({}, {"status": "open"}, {"seen": None}):
            found = await store.find(SHOP, ORDERS, query)
            expect(found and found["_id"], key, f"the document that {query} finds")
    key = await store.put(SHOP, ORDERS, {"status": "open"}, {"status": "sent"})
    expect(key, "b", "the document that is written where several fit")
    await store.close()


async def tenants_may_name_alike(open_documents: OpenDocuments) -> None:
    """Documents of two tenants are separate, even with the same key."""
    store = await open_documents()
    for scope in (SHOP, BANK):
        await store.put(scope, ORDERS, {"_id": "a"}, {"of": scope.app})
    for scope in (SHOP, BANK):
        expect(await store.page(scope, ORDERS), [{"_id": "a", "of": scope.app}], f"of {scope.app}")
    await store.delete(SHOP, ORDERS, "a")
    expect(await store.find(BANK, ORDERS, {"_id": "a"}), {"_id": "a", "of": "bank"}, "its namesake")
    await store.close()


async def many_are_found(open_documents: OpenDocuments) -> None:
    """Several documents are found, in their order, as many as asked for."""
    store = await open_documents()
    numbers: dict[str, Json] = {"a": 3, "b": None, "c": 1, "d": 10, "e": "1", "f": True, "g": 1.0}
    for key, number in numbers.items():
        at: Document = {} if number is None else {"number": number}
        await store.put(SHOP, ORDERS, {"_id": key}, {"at": at, "open": key != "d"})
    await store.put(BANK, ORDERS, {"_id": "z"}, {"open": True})
    asked: tuple[tuple[dict[str, Json], str, int, str], ...] = (
        ({}, "", 20, "gfedcba"),
        ({}, "", 2, "gf"),
        ({"open": True}, "at.number", 20, "bgcaef"),
        ({"open": True}, "-at.number", 20, "feagcb"),
        ({}, "-at.number", 3, "fed"),
        ({"open": "never"}, "at.number", 3, ""),
    )
    for query, order, limit, wanted in asked:
        found = await store.find_many(SHOP, ORDERS, query, order=order, limit=limit)
        keys = "".join(str(document["_id"]) for document in found)
        expect(keys, wanted, f"the first {limit} of {query} by {order!r}")
    found = await store.find_many(SHOP, ORDERS, {}, fields=("open",), order="-at.number", limit=3)
    expect(found, [{"open": True}, {"open": True}, {"open": False}], "one field of several")
    for order in ("-", "a..b", "$a"):
        attempt = store.find_many(SHOP, ORDERS, {}, order=order)
        await expect_error(UsageError, attempt, f"the order {order!r}")
    await store.close()


READING_CHECKS: Final[tuple[Check, ...]] = (
    queries_fit,
    fields_are_taken,
    many_are_found,
    pages_by_key,
    tenants_are_apart,
)
