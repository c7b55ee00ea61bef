"""The suite every store of documents must pass.

    @pytest.mark.parametrize("check", DOCUMENT_CHECKS, ids=lambda it: it.__name__)
    def test_my_store(check, tmp_path):
        asyncio.run(check(lambda: MyDocuments.open(tmp_path / "store")))

Each check is given a function that opens the store, and needs an empty one. A check that fails
raises AssertionError saying what was expected and what was found.
"""

import asyncio
from typing import Final

from weft.errors import StoreError
from weft.testing.documents.reading import (
    READING_CHECKS,
    tenants_may_name_alike,
    the_last_written_is_found,
)
from weft.testing.documents.samples import ANYTHING, ORDERS, SHOP, Check, OpenDocuments
from weft.testing.documents.watching import (
    WATCHING_CHECKS,
    deletions_are_told,
    next_change,
    watching,
)
from weft.testing.documents.writing import WRITING_CHECKS
from weft.testing.journal.samples import expect, expect_error


async def closed_is_closed(open_documents: OpenDocuments) -> None:
    """A closed store refuses everything but being closed again."""
    store = await open_documents()
    await store.put(SHOP, ORDERS, {"_id": "a"}, {"n": 1})
    await store.close()
    await store.close()
    for name, attempt in {
        "find": lambda: store.find(SHOP, ORDERS, {}),
        "page": lambda: store.page(SHOP, ORDERS),
        "collections": lambda: store.collections(SHOP),
        "put": lambda: store.put(SHOP, ORDERS, {"_id": "a"}, {}),
        "delete": lambda: store.delete(SHOP, ORDERS, "a"),
        "watch": lambda: anext(store.watch(SHOP, ORDERS)),
    }.items():
        await expect_error(StoreError, attempt(), f"{name} of a closed store")


async def everything_is_there_again(open_documents: OpenDocuments) -> None:
    """What was put is found after opening again, and watching goes on from where it was."""
    store = await open_documents()
    changes, first = await watching(store)
    await changes.aclose()
    await store.put(SHOP, ORDERS, {"_id": "a"}, ANYTHING)
    await store.close()
    store = await open_documents()
    found = await store.find(SHOP, ORDERS, {"text": ANYTHING["text"]})
    expect(found, {"_id": "a", **ANYTHING}, "a document after opening again")
    again = store.watch(SHOP, ORDERS, after=first.position)
    expect((await next_change(again)).key, "a", "what is told after opening again")
    await again.aclose()
    await store.close()


async def stores_are_shared(open_documents: OpenDocuments) -> None:
    """What one writes another finds and is told of; both at the same time make one document."""
    here, there = await open_documents(), await open_documents()
    changes, _ = await watching(here)
    puts = [it.put(SHOP, ORDERS, {"number": 7}, {"n": 1}) for it in (here, there) * 10]
    (key,) = set(await asyncio.gather(*puts))
    expect((await next_change(changes)).key, key, "what one is told")
    await there.put(SHOP, ORDERS, {"number": 7}, {"n": 2})
    told = await next_change(changes)
    expect(told.document, {"_id": key, "number": 7, "n": 2}, "what one is told of the other")
    expect(await here.find(SHOP, ORDERS, {"number": 7}), told.document, "what both find")
    await changes.aclose()
    for store in (here, there):
        await store.close()


#: For every store; it is opened once in each.
DOCUMENT_CHECKS: Final[tuple[Check, ...]] = (
    *WRITING_CHECKS,
    *READING_CHECKS,
    *WATCHING_CHECKS,
    closed_is_closed,
)

#: For stores that no other program writes to, and that therefore know whose a document is and was.
OWN_DOCUMENT_CHECKS: Final[tuple[Check, ...]] = (
    the_last_written_is_found,
    tenants_may_name_alike,
    deletions_are_told,
)

#: For stores that outlive their opening: they are opened several times, also at the same time.
LASTING_DOCUMENT_CHECKS: Final[tuple[Check, ...]] = (everything_is_there_again, stores_are_shared)
