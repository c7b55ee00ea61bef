"""What must hold when a collection is watched."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from weft.errors import UsageError
from weft.ports.documents import Change, Collection, Documents
from weft.testing.documents.samples import BANK, ORDERS, SHOP, Check, OpenDocuments
from weft.testing.journal.samples import expect, expect_error

#: Seconds until what should happen at once must have happened.
SOON: Final = 10.0

#: The key of what is written only to see whether it is told.
_PROBE: Final = "probe"


async def changes_are_told(open_documents: OpenDocuments) -> None:
    """A watcher gets what was written, in order, and can continue from a position."""
    store = await open_documents()
    changes, first = await watching(store)
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    await store.put(BANK, ORDERS, {"_id": "theirs"}, {"n": 1})
    await store.put(SHOP, Collection("Others"), {"_id": "elsewhere"}, {"n": 1})
    told = [await next_change(changes)]
    for number in range(5):
        await store.put(SHOP, ORDERS, {"_id": f"b{number}"}, {"n": number})
        told.append(await next_change(changes))
    wanted = [
        ("a", {"_id": "a", "n": 1}),
        *((f"b{it}", {"_id": f"b{it}", "n": it}) for it in range(5)),
    ]
    expect([(it.key, it.document) for it in told], wanted, "what was told")
    expect({it.kind for it in told}, {"put"}, "the kinds of changes")
    await changes.aclose()
    await store.put(SHOP, ORDERS, {"_id": "meanwhile"}, {"n": 1})
    for position, after in (
        (first.position, "a"),
        (told[3].position, "b3"),
        (told[-1].position, "meanwhile"),
    ):
        again = store.watch(SHOP, ORDERS, after=position)
        expect((await next_change(again)).key, after, "what is told after a position")
        await again.aclose()
    nowhere = store.watch(SHOP, ORDERS, after="nowhere")
    await expect_error(UsageError, anext(nowhere), "a position that is none")
    await store.close()


async def deletions_are_told(open_documents: OpenDocuments) -> None:
    """A watcher gets what was deleted, also afterwards."""
    store = await open_documents()
    changes, first = await watching(store)
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    expect((await next_change(changes)).kind, "put", "what was told first")
    await store.delete(SHOP, ORDERS, "a")
    told = await next_change(changes)
    expect((told.kind, told.key, told.document), ("deleted", "a", None), "what was told then")
    again = store.watch(SHOP, ORDERS, after=first.position)
    while (told := await next_change(again)).kind == "put":
        expect(told.key, "a", "what may still be told")
    expect(told.key, "a", "what is told afterwards")
    for it in (changes, again):
        await it.aclose()
    await store.close()


async def watching(store: Documents) -> tuple[AsyncGenerator[Change], Change]:
    """Watch, and return the first change that is told: from then on none is missed."""
    changes = store.watch(SHOP, ORDERS)
    first = asyncio.ensure_future(anext(changes))
    for number in range(50):
        await store.put(SHOP, ORDERS, {"_id": _PROBE}, {"n": number})
        await asyncio.wait([first], timeout=0.2)
        if first.done():
            return changes, first.result()
    raise AssertionError("watching: expected to be told of what was written, found nothing")


async def next_change(changes: AsyncGenerator[Change]) -> Change:
    """Return what is told next, and soon."""
    while True:
        change = await asyncio.wait_for(anext(changes), SOON)
        if change.key != _PROBE:
            return change


WATCHING_CHECKS: Final[tuple[Check, ...]] = (changes_are_told,)
