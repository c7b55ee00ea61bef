"""Collections in PostgreSQL: tenants, indexes, lost connections, and what cannot be stored."""

import asyncio
import sys
from contextlib import asynccontextmanager

import asyncpg
import numpy as np
import pytest

from support.postgres_stores import store_place
from support.retrieval_play import INSECTS
from weft.adapters.collections import keywords
from weft.adapters.collections.postgres import (
    _SEARCHING,
    PostgresCollection,
    PostgresCollections,
    _nearest,
)
from weft.adapters.collections.rows import SearchQuery, Source
from weft.adapters.collections.texts import Passage
from weft.adapters.sql.postgres.schema import READER, search_path
from weft.adapters.sql.postgres.text import statement_text
from weft.app.collections import open_collections
from weft.errors import RetrievalError, SetupError
from weft.testing import WordEmbedder

TABLES = ("collections", "sources", "passages", "source_labels", "embeddings", "words")


class NumberedVectors:
    """An embedder with given vectors, by the number at the end of a text."""

    def __init__(self, vectors, name="given"):
        self.vectors = vectors
        self.name = name

    async def embed(self, texts):
        return self.vectors[[int(text.rpartition(" ")[2]) for text in texts]]

    async def close(self):
        pass


def sources(texts, **metadata):
    return [
        Source(name, "", {"source": name, **metadata}, [Passage(text, {"start": 0})])
        for name, text in texts.items()
    ]


@asynccontextmanager
async def opened(url):
    """Yield collections in tables of their own, and the place of the tables."""
    async with store_place(url) as place:
        store = PostgresCollections(place.url, schema=place.schema)
        try:
            yield store, place
        finally:
            await store.close()


@asynccontextmanager
async def reader(place, app):
    """Yield a connection that reads as collections do."""
    settings = {"search_path": search_path(place.schema), "role": READER, **_SEARCHING}
    connection = await asyncpg.connect(place.url, server_settings=settings)
    try:
        await connection.execute("SELECT set_config('weft.app', $1, false)", app)
        yield connection
    finally:
        await connection.close()


async def plan(connection, call):
    """Return how the database performs a statement, whatever its values are."""
    text, values = statement_text(call)
    given = ", ".join("'" + str(value).replace("'", "''") + "'" for value in values)
    await connection.execute(f"PREPARE asked AS {text}")
    rows = await connection.fetch(f"EXPLAIN EXECUTE asked ({given})")
    await connection.execute("DEALLOCATE asked")
    return "\n".join(row[0] for row in rows)


async def test_a_query_without_a_tenant_reads_only_the_rows_of_the_tenant(postgres_database):
    async with opened(postgres_database) as (store, place):
        for app in ("shop", "bank"):
            await store.open(app, "Insects", WordEmbedder()).put(sources(INSECTS))
        for table in TABLES:
            found = f"SELECT DISTINCT app FROM {table}"
            async with reader(place, "shop") as connection:
                assert [row[0] for row in await connection.fetch(found)] == ["shop"]
            async with reader(place, "") as connection:
                assert await connection.fetch(found) == []
        async with reader(place, "shop") as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("DELETE FROM passages")


async def test_a_collection_id_of_another_tenant_finds_nothing(postgres_database):
    async with opened(postgres_database) as (store, _):
        ours, theirs = (store.open(app, "Insects", WordEmbedder()) for app in ("shop", "bank"))
        for collection in (ours, theirs):
            await collection.put(sources(INSECTS))
        about = await theirs._read(theirs._about())
        wanted = SearchQuery("bees flowers", 5, 0.0, {})
        vector = (await WordEmbedder().embed(["bees flowers"]))[0]
        for app, count in (("shop", 0), ("bank", 1)):
            read = store.reader().run
            assert len(await read(keywords.keyword_search(about, wanted), app)) == count
            near = await read(theirs._ranked(about, wanted, vector), app)
            assert bool(near) is bool(count)


async def test_a_search_uses_the_indexes_under_row_level_security(postgres_database, monkeypatch):
    # Of few vectors it is cheaper to sort all.
    monkeypatch.setitem(_SEARCHING, "enable_sort", "off")
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((600, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    async with opened(postgres_database) as (store, place):
        given = NumberedVectors(vectors)
        many = PostgresCollection(store, "shop", "Many", given, index_from=500)
        for group in range(2):
            texts = {f"s{number}": f"w {number}" for number in range(group, 400, 2)}
            await many.put(sources(texts, group=group))
        assert not await many.build_index()
        await many.put(sources({f"s{number}": f"w {number}" for number in range(400, 600)}))
        assert (await many.stats()).indexed == 0
        # As a process leaves it that is killed while it builds the index.
        about = await many._read(many._about())
        name = f"embeddings_of_{about.id}"
        await place.sql(f"CREATE INDEX {name} ON embeddings (passage)")
        await place.sql(
            f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{name}'::regclass"
        )
        assert await many.build_index()
        assert not await many.build_index()
        assert (await many.stats()).indexed == 600
        # The planner follows the index only if it knows of the vectors in it.
        known = await place.sql(
            "SELECT most_common_vals::text FROM pg_stats WHERE schemaname = current_schema()"
            " AND tablename = 'embeddings' AND attname = 'collection'"
        )
        assert known == [(f"{{{about.id}}}",)]

        async with reader(place, "shop") as connection:
            nearest = next(_nearest(about, [], vectors[0], 30))
            assert f"Index Scan using {name}" in await plan(connection, nearest)
            counted = next(keywords.count_of(about, '"17"', 600))
            assert "passages_by_word" in await plan(connection, counted)

        found = 0
        for number in range(60):
            hits = await many.search(f"? {number}", min_relevance=0)
            exact = np.argsort(-(vectors @ vectors[number]))[:5]
            found += len({int(hit.content[2:]) for hit in hits} & set(exact.tolist()))
        assert found / 300 > 0.95
        hits = await many.search("? 3", min_relevance=0, filters={"group": 0})
        exact = np.argsort(-(vectors[:400:2] @ vectors[3]))[:5] * 2
        assert {int(hit.content[2:]) for hit in hits} == set(exact.tolist())

        # Vectors of another model have another size.
        other = NumberedVectors(np.ones((600, 4), np.float32) / 2, "other")
        again = PostgresCollection(store, "shop", "Many", other)
        assert await again.embed_missing() == 600
        assert (await again.stats()).indexed == 0
        assert (await again.search("? 1"))[0].score == 1
        await again.delete()
        assert await place.sql("SELECT passage FROM embeddings") == []


async def test_two_processes_change_one_collection_in_turn(postgres_database):
    async with opened(postgres_database) as (store, place):
        other = PostgresCollections(place.url, schema=place.schema)
        texts = [{f"{start}-{number}": f"bees {number}" for number in range(10)} for start in "ab"]
        await asyncio.gather(
            *(
                each.open("shop", "Insects", WordEmbedder()).put(sources({name: text}))
                for each, part in zip((store, other), texts, strict=True)
                for name, text in part.items()
            )
        )
        await other.close()
        stats = await store.open("shop", "Insects", WordEmbedder()).stats()
        assert (stats.sources, stats.passages, stats.vectors) == (20, 20, 20)


async def test_a_lost_connection_is_opened_again(postgres_database):
    async with opened(postgres_database) as (store, place):
        insects = store.open("shop", "Insects", None)
        await insects.put(sources(INSECTS))
        assert len(await insects.search("bees")) == 1
        await place.end_connections()
        await asyncio.sleep(0.2)  # Until the loss is noticed.
        assert len(await insects.search("bees")) == 1
        await insects.put(sources({"more": "more bees"}))
        assert len(await insects.search("bees")) == 2


async def test_a_character_that_the_database_cannot_store(postgres_database):
    async with opened(postgres_database) as (store, _):
        insects = store.open("shop", "Insects", None)
        await insects.put(sources({"bees": "bees\0and\x1fants", "wasps": "wasps"}))
        [found] = await insects.search("ants", min_relevance=0.5)
        assert found.content == "bees\ufffdand\ufffdants"
        with pytest.raises(RetrievalError, match="collection Insects cannot store this"):
            await insects.put(sources({"a\0b": "bees"}))


async def test_words_are_compared_as_in_sqlite(postgres_database, tmp_path):
    texts = {
        "form": "Hand in form T-17 (see docs/forms.md).",
        "cafe": "Le CAFÉ “Zürich” dances",
        "stop": "to be or not to be",
        "code": "call snake_case",
    }
    queries = (
        "t 17",
        "forms md",
        "cafe",
        "café",
        "zurich",
        "dancing",
        "to be",
        "snake_case",
        "snake",
    )
    async with opened(postgres_database) as (store, _):
        given = store.open("shop", "Words", None)
        await given.put(sources(texts))
        found = [[hit.source_id for hit in await given.search(query)] for query in queries]
    async with open_collections(tmp_path, environment={"WEFT_EMBEDDINGS": "none"}) as collections:
        await collections.add_texts("Words", texts)
        expected = [
            [hit.source_id for hit in await collections.search("Words", query)] for query in queries
        ]
    assert found == expected
    assert all(found)


async def test_a_database_without_tables_or_without_a_server_is_explained(postgres_database):
    environment = {"WEFT_STORE": postgres_database, "WEFT_EMBEDDINGS": "none"}
    async with open_collections(environment=environment) as collections:
        with pytest.raises(RetrievalError, match="run `weft store migrate`"):
            await collections.add_texts("Insects", INSECTS)
        with pytest.raises(RetrievalError, match="run `weft store migrate`"):
            collections.names()
    environment["WEFT_STORE"] = "postgresql://127.0.0.1:1/weft"
    async with open_collections(environment=environment) as collections:
        with pytest.raises(RetrievalError, match="cannot be reached") as caught:
            await collections.search("Insects", "bees")
    assert caught.value.retryable


def test_a_library_that_is_missing_is_named(monkeypatch):
    names = ["weft.adapters.collections.postgres"]
    names += [name for name in sys.modules if name.startswith("weft.adapters.sql.postgres")]
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(SetupError, match="PostgreSQL needs a library") as caught:
        open_collections(environment={"WEFT_STORE": "postgresql://localhost/weft"})
    assert caught.value.hint == 'install it: pip install "weft-agents[postgres]"'
