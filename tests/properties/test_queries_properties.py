"""Queries mean the same everywhere: what fits by the rules is what SQLite and MongoDB find."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.effort import TIMES
from support.mongodb_server import empty_database
from weft.adapters.documents.index import value_text
from weft.adapters.documents.mongodb import MongoDocuments
from weft.adapters.documents.sqlite import SqliteDocuments
from weft.ports.documents import Collection, Documents
from weft.ports.scope import Scope
from weft.spec.queries import kind_of, matches_query, parse_query

SHOP = Scope.operator("shop")

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 1.0, 0.1, 1e300, 2**53 + 1, 2**60, 7 / 3])
TEXTS = st.sampled_from(["", "a", "ab", "é", "0", "a\0b", "🙂"])
ATOMS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("0"), inner, max_size=2)
    ),
    max_leaves=5,
)
DOCUMENTS = st.lists(st.dictionaries(NAMES, VALUES, max_size=3), min_size=1, max_size=4)
FIELDS = st.lists(NAMES | st.sampled_from(["0", "1"]), min_size=1, max_size=3).map(".".join)
TESTS = (
    VALUES
    | st.builds(lambda op, item: {op: item}, st.sampled_from(["$eq", "$ne"]), VALUES)
    | st.builds(
        lambda op, item: {op: item},
        st.sampled_from(["$gt", "$gte", "$lt", "$lte"]),
        NUMBERS | TEXTS,
    )
    | st.builds(lambda item: {"$in": item}, st.lists(VALUES, max_size=3))
    | st.builds(lambda item: {"$exists": item}, st.booleans())
)
QUERIES = st.recursive(
    st.dictionaries(FIELDS, TESTS, min_size=1, max_size=2),
    lambda inner: st.builds(
        lambda op, item: {op: item},
        st.sampled_from(["$or", "$and"]),
        st.lists(inner, min_size=1, max_size=2),
    ),
    max_leaves=3,
)


async def _finds_what_fits(open_documents: Callable[[], Awaitable[Documents]], documents, queries):
    store, place = await open_documents(), Collection(f"c{uuid4().hex}")
    for number, document in enumerate(documents):
        await store.put(SHOP, place, {"_id": f"k{number}"}, document)
    for query in queries:
        parsed = parse_query(query)
        fitting = [
            f"k{item}" for item, document in enumerate(documents) if matches_query(parsed, document)
        ]
        found = await store.find(SHOP, place, query, fields=("_id",))
        assert found == ({"_id": fitting[-1]} if fitting else None), query
    await store.close()


@settings(max_examples=40 * TIMES)
@given(DOCUMENTS, st.lists(QUERIES, min_size=1, max_size=8))
def test_sqlite_finds_what_fits(documents, queries):
    asyncio.run(_finds_what_fits(lambda: SqliteDocuments.open(":memory:"), documents, queries))


@pytest.fixture(scope="module")
def database(mongodb_url):
    with empty_database(mongodb_url) as url:
        yield url


async def open_mongodb(address: str) -> Documents:
    return MongoDocuments(address)


@settings(max_examples=8 * TIMES)
@given(DOCUMENTS, st.lists(QUERIES, min_size=1, max_size=8))
def test_mongodb_finds_what_fits(database, documents, queries):
    asyncio.run(_finds_what_fits(lambda: open_mongodb(database), documents, queries))


SCALARS = st.one_of(
    st.integers(),
    st.integers(-(10**16), 10**16),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.text("ab\x00\x1f ~", min_size=98, max_size=104),
)


@given(SCALARS, SCALARS)
def test_the_texts_of_the_index_have_the_order_of_the_values(one, other):
    if kind_of(one) != kind_of(other):
        assert value_text(one)[0] != value_text(other)[0]
    elif one <= other:
        assert value_text(one) <= value_text(other)
    if one == other:
        assert value_text(one) == value_text(other)
