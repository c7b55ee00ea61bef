"""Collections: what a search finds and what it does not, and what is kept when files change."""

import asyncio
import os
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from support.cases import read_cases
from support.retrieval_play import (
    INSECTS,
    by_keywords,
    by_words,
    clear_collections,
    collection_database,
)
from weft.adapters.collections.file import Place
from weft.adapters.collections.sqlite import SqliteCollection
from weft.adapters.system_clock import SystemClock
from weft.app.hosts import open_outside
from weft.errors import RetrievalError, SetupError
from weft.retrieval import Chunking, Collection, Progress, RetrieverRegistry, open_collections
from weft.testing import InMemoryVectorAdapter, WordEmbedder

CASES = read_cases(__file__)


class Insects(Collection):
    """Passages about insects."""


@pytest.fixture(scope="module")
def pgvector(postgres_url):
    with collection_database(postgres_url) as url:
        yield url


@pytest.fixture(scope="module")
def plain_postgres(postgres_url):
    with collection_database(postgres_url, pgvector=False) as url:
        yield url


def address(request, store):
    """Return the address of an empty store of collections; '' for the files of the workspace."""
    if store == "files":
        return ""
    url = request.getfixturevalue(store)
    clear_collections(url)
    return url


@pytest.fixture(params=["files", "pgvector", "plain_postgres"])
def store(request):
    return address(request, request.param)


@pytest.fixture(
    params=["files", "pgvector", "plain_postgres", "files keywords", "pgvector keywords"]
)
def opened(request, tmp_path):
    """Open collections with embeddings, and without, in files and in PostgreSQL."""
    name, _, how = request.param.partition(" ")
    url = address(request, name)
    return lambda: (by_keywords if how else by_words)(tmp_path, url)


@pytest.fixture(params=["words", "keywords"])
def in_files(request, tmp_path):
    """Open collections in files."""
    return lambda: by_words(tmp_path) if request.param == "words" else by_keywords(tmp_path)


def play(work):
    return asyncio.run(work)


def only(place_of, ending):
    [file] = place_of.glob(f".weft/collections/*/*{ending}")
    return file


async def test_the_best_passage_is_first_and_says_where_it_stands(opened):
    async with opened() as collections:
        await collections.add_texts(Insects, INSECTS, metadata={"about": "insects"})
        [best, *_] = await collections.search(Insects, "bees and flowers", min_relevance=0.2)
    assert best.source_id == "bees"
    assert best.content == INSECTS["bees"]
    assert 0.2 <= best.score <= 1
    assert best.metadata == {
        "about": "insects",
        "kind": "text",
        "source": "bees",
        "start": 0,
        "end": len(best.content),
        "line": 1,
    }


async def test_top_k_and_min_relevance_limit_what_is_found(opened):
    async with opened() as collections:
        await collections.add_texts(
            Insects, {f"s{number}": f"bees number{number}" for number in range(9)}
        )
        few = await collections.search(Insects, "bees", top_k=2, min_relevance=0.1)
        many = await collections.search(Insects, "bees", top_k=20, min_relevance=0.1)
        none = await collections.search(Insects, "bees locusts", min_relevance=1)
        exact = await collections.search(Insects, "bees number3", min_relevance=0.99)
        assert (len(few), len(many), len(none), [item.source_id for item in exact]) == (
            2,
            9,
            0,
            ["s3"],
        )


async def test_filters_are_part_of_the_search(opened):
    async with opened() as collections:
        for year in (2024, 2025, 2026):
            texts = {f"{year}-{number}": f"bees of {year}, part {number}" for number in range(20)}
            labels = {"year": year, "tags": ["bees", f"y{year}"], "draft": year == 2026}
            await collections.add_texts(Insects, texts, metadata=labels)

        async def years(**filters):
            found = await collections.search(
                Insects, "bees part", top_k=50, min_relevance=0, filters=filters
            )
            return {item.metadata["year"] for item in found}, len(found)

        outcome = [
            await years(year=2025),
            await years(year=2025.0),
            await years(year=[2024, 2026]),
            await years(tags="y2024"),
            await years(year=[2024, 2025], draft=False),
            await years(year=2024, draft=True),
            await years(year="2024"),
            await years(year=["2024.0", "x"], draft="false"),
            await years(draft="False"),
            await years(source="2026-3"),
            await years(kind="text"),
        ]
    assert outcome == [
        ({2025}, 20),
        ({2025}, 20),
        ({2024, 2026}, 40),
        ({2024}, 20),
        ({2024, 2025}, 40),
        (set(), 0),
        ({2024}, 20),
        ({2024}, 20),
        (set(), 0),
        ({2026}, 1),
        ({2024, 2025, 2026}, 50),
    ]


@pytest.mark.parametrize(
    ("stored", "asked", "fits"), CASES["test_a_text_that_spells_a_value_is_the_same_in_filters"]
)
async def test_a_text_that_spells_a_value_is_the_same_in_filters(opened, stored, asked, fits):
    async with opened() as collections:
        await collections.add_texts(Insects, INSECTS, metadata={"label": stored})
        outcome = await collections.search(
            Insects, "bees", min_relevance=0, filters={"label": asked}
        )
    assert bool(outcome) is fits


def test_a_filter_that_cannot_be(opened):
    async def work(filters):
        async with opened() as collections:
            await collections.add_texts(Insects, INSECTS, metadata={"year": 2026})
            await collections.search(Insects, "bees", filters=filters)

    with pytest.raises(RetrievalError, match='no passage of Insects has the key "yaer"') as raised:
        play(work({"yaer": 2026}))
    assert raised.value.hint == "available: kind, source, year"
    for wrong in ({"a": 1}, [[1]], [0] * 501):
        with pytest.raises(RetrievalError, match="invalid value for the filter"):
            play(work({"year": wrong}))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"query": " "}, "the query is empty"),
        ({"query": "b\ud800"}, "the query is not valid Unicode text"),
        ({"top_k": 0}, "top_k is 0"),
        ({"min_relevance": 1.5}, "min_relevance is 1.5"),
    ],
)
def test_a_search_that_cannot_be(opened, asked, said):
    async def work():
        async with opened() as collections:
            await collections.add_texts(Insects, INSECTS)
            await collections.search(Insects, **{"query": "bees", **asked})

    with pytest.raises(RetrievalError, match=said):
        play(work())


def test_an_unknown_collection_is_named_with_those_there_are(opened):
    async def work(name, known=()):
        async with opened() as collections:
            for item in known:
                await collections.add_texts(item, INSECTS)
            await collections.search(name, "bees")

    with pytest.raises(RetrievalError, match='no collection "Insects"') as raised:
        play(work(Insects))
    assert raised.value.hint == "create it: weft collection add Insects FILE..."
    with pytest.raises(RetrievalError) as raised:
        play(work("Insect", ["Insects"]))
    assert raised.value.hint == "did you mean Insects?"
    with pytest.raises(RetrievalError) as raised:
        play(work("Zoo", ["Insects"]))
    assert raised.value.hint == "available: Insects"
    for name in ("", "x" * 101, "a\nb"):
        with pytest.raises(RetrievalError, match="cannot be the name of a collection"):
            play(work(name))


async def test_tenants_find_only_their_own(opened):
    async with opened() as collections:
        await collections.add_texts(Insects, {"ours": "bees of shop"}, app="shop")
        await collections.add_texts(Insects, {"theirs": "bees of Shop"}, app="Shop")
        await collections.add_texts("Other", {"other": "bees of shop"}, app="shop")
        found = [
            [
                item.source_id
                for item in await collections.search(Insects, "bees", app=app, min_relevance=0)
            ]
            for app in ("shop", "Shop")
        ]
        assert collections.adapter("sho", "Insects") is None
        assert collections.adapter("../shop", "Insects") is None
        assert collections.names() == []
        assert (found, collections.names(app="shop"), collections.names(app="Shop")) == (
            [["ours"], ["theirs"]],
            ["Insects", "Other"],
            ["Insects"],
        )


async def test_only_what_has_changed_is_read_again(tmp_path, opened):
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("# Bees\n\nBees dance.")
    (folder / "deep" / "b.txt").write_text("Ants smell.")
    (folder / "c.py").write_text("nothing = 1")
    (folder / ".hidden.md").write_text("Nobody.")

    def counts(done):
        return done.added, done.changed, done.unchanged, done.removed

    async with opened() as collections:
        first = await collections.add(Insects, [folder])
        again = await collections.add(Insects, [folder, folder / "a.md"])
        (folder / "a.md").write_text("Bees dance no more.")
        (folder / "deep" / "b.txt").unlink()
        (folder / "d.txt").write_text("Moths fly.")
        third = await collections.add(Insects, [folder])
        small = await collections.add(Insects, [folder], chunking=Chunking(50, 0))
        other = await collections.add(
            Insects, [folder], metadata={"a": 1}, chunking=Chunking(50, 0)
        )
        found = await collections.search(Insects, "dance", min_relevance=0, filters={"a": 1})
        sources = await collections.sources(Insects)
        done, found = [first, again, third, small, other], found[0].content
    assert [counts(item) for item in done] == [
        (2, 0, 0, 0),
        (0, 0, 2, 0),
        (1, 1, 0, 1),
        (0, 2, 0, 0),
        (0, 2, 0, 0),
    ]
    assert done[0].ignored == {".py": 1}
    assert found == "Bees dance no more."
    assert sources == ["notes/a.md", "notes/d.txt"]


async def test_only_files_that_are_gone_from_the_folder_are_removed(tmp_path, opened):
    folder, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    for item in (folder / "a", folder / "b", elsewhere):
        item.mkdir(parents=True)
    for file in (folder / "a" / "one.txt", folder / "b" / "two.log", elsewhere / "three.txt"):
        file.write_text(f"bees {file.name}")
    async with open_collections(folder, environment={"WEFT_EMBEDDINGS": "none"}) as collections:
        await collections.add_texts(Insects, {"a": "bees of no file", "b/x.txt": "nor this"})
        await collections.add(Insects, [folder / "a", folder / "b" / "two.log", elsewhere])
        before = await collections.sources(Insects)
        kept = (await collections.add(Insects, [folder, elsewhere])).removed
        (elsewhere / "three.txt").rename(tmp_path / "three.txt")
        inside = (await collections.add(Insects, [folder])).removed
        other = (await collections.add(Insects, [elsewhere])).removed
        (folder / "b" / "two.log").unlink()
        gone = (await collections.add(Insects, [folder])).removed
        removed, after = (
            [kept, inside, other, gone],
            await collections.sources(Insects),
        )
    outside = str((elsewhere / "three.txt").resolve())
    assert before == sorted([outside, "a", "a/one.txt", "b/two.log", "b/x.txt"])
    assert removed == [0, 0, 1, 1]
    assert after == ["a", "a/one.txt", "b/x.txt"]


async def test_files_that_cannot_be_read_are_named_and_others_are_put(
    tmp_path, opened, monkeypatch
):
    (tmp_path / "good.unknown").write_text("Bees dance.")
    (tmp_path / "bad.txt").write_bytes(b"\xff")
    (tmp_path / "large.txt").write_text("too much")
    (tmp_path / "empty.txt").write_text("")
    monkeypatch.setattr("weft.adapters.collections.ingest._MOST_BYTES", 11)
    names = ("good.unknown", "bad.txt", "empty.txt")
    (tmp_path / "long.txt").write_text("x" * 12)
    async with opened() as collections:
        done = await collections.add(Insects, [tmp_path / item for item in (*names, "long.txt")])
        stats = await collections.stats(Insects)
    assert done.failed == [
        ("bad.txt", "it is not text in UTF-8; convert it: iconv -f LATIN1 -t UTF-8 FILE"),
        ("long.txt", "it is larger than 0 MiB"),
    ]
    assert (stats.sources, stats.passages) == (2, 1)


def test_additions_that_are_refused(tmp_path, opened):
    (tmp_path / "empty").mkdir()

    async def work(paths, **options):
        async with opened() as collections:
            await collections.add(Insects, paths, **options)

    with pytest.raises(RetrievalError, match="there is no file"):
        play(work([tmp_path / "nowhere"]))
    with pytest.raises(RetrievalError, match="no readable file found"):
        play(work([tmp_path / "empty"]))
    for key in ("kind", "two words", ""):
        with pytest.raises(RetrievalError, match="invalid metadata key"):
            play(work([tmp_path], metadata={key: 1}))
    with pytest.raises(RetrievalError, match="no collection"):
        play(work([]))
    assert not list(tmp_path.glob(".weft/collections/*/*.db"))


async def test_invalid_unicode_names_and_texts(tmp_path, opened):
    (tmp_path / os.fsdecode(b"bees-\xff.txt")).write_text("Bees dance.")
    async with opened() as collections:
        await collections.add(Insects, [tmp_path])
        for wrong in ({"a": "b\ud800"}, {"b\ud800": "a"}):
            with pytest.raises(RetrievalError, match="not valid Unicode text"):
                await collections.add_texts(Insects, wrong)
        assert (await collections.sources(Insects)) == ["bees-\ufffd.txt"]


async def test_progress_is_reported(tmp_path, opened):
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("Bees dance. " * 40)
    told: list[Progress] = []
    async with opened() as collections:
        await collections.add(Insects, [tmp_path], on_progress=told.append)
    assert told[-1].files == told[-1].of_files == 3
    assert told[-1].share == 1
    assert [item.share for item in told] == sorted(item.share for item in told)
    assert len({item.share for item in told}) > 1


async def test_unreadable_folder_does_not_count_as_empty(tmp_path, opened, monkeypatch):
    folder = tmp_path / "docs"
    for name in ("open", "locked", ".hidden"):
        (folder / name).mkdir(parents=True)
        (folder / name / "bees.md").write_text("Bees dance.")
    listed = os.scandir

    def scandir(path):
        if str(path).endswith(("locked", ".hidden")):
            raise PermissionError(13, "Permission denied", str(path))
        return listed(path)

    async with opened() as collections:
        await collections.add(Insects, [folder])
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", scandir)
            with pytest.raises(RetrievalError, match=r"locked cannot be read: Permission"):
                await collections.add(Insects, [folder])
            done = await collections.add(Insects, [folder / "open"])
        (unchanged, sources) = done.unchanged, await collections.sources(Insects)
    assert unchanged == 1
    assert sorted(sources) == ["docs/locked/bees.md", "docs/open/bees.md"]


async def test_sources_and_collections_are_removed(tmp_path, opened):
    async with opened() as collections:
        await collections.add_texts(Insects, INSECTS)
        await collections.search(Insects, "bees", min_relevance=0)
        await collections.remove(Insects, ["bees"])
        found = await collections.search(Insects, "bees flowers lamps", min_relevance=0)
        with pytest.raises(RetrievalError, match="has no source beez") as raised:
            await collections.remove(Insects, ["beez"])
        assert raised.value.hint is not None
        assert raised.value.hint.startswith("available: ants")
        with pytest.raises(RetrievalError) as raised:
            await collections.remove(Insects, ["ant"])
        assert raised.value.hint == "did you mean ants?"
        await collections.remove(Insects)
        assert collections.adapter("local", "Insects") is None
        assert "bees" not in ([item.source_id for item in found])
    assert list((tmp_path / ".weft" / "collections").glob("*/*")) == []


async def test_an_adapter_is_found_and_follows_what_others_do(tmp_path, opened):
    async with opened() as mine, opened() as theirs:
        await theirs.add_texts(Insects, INSECTS)
        adapter = mine.adapter("local", "Insects")
        assert adapter is mine.adapter("local", "Insects")
        before = await adapter.search("bees", min_relevance=0.1)
        await theirs.add_texts(Insects, {"more": "bees bees bees"})
        after = await adapter.search("bees", min_relevance=0.1)
        await theirs.remove(Insects)
        with pytest.raises(RetrievalError, match="no collection"):
            await adapter.search("bees")
        await theirs.add_texts(Insects, {"new": "bees again"})
        anew = await adapter.search("bees", min_relevance=0.1)
        assert ([[item.source_id for item in found] for found in (before, after, anew)]) == [
            ["bees"],
            ["more", "bees"],
            ["new"],
        ]


async def test_a_name_is_found_though_its_vector_is_not_near(tmp_path, store):
    texts = {f"s{number}": f"about {number} bees and their flowers" for number in range(60)}
    async with by_words(tmp_path, store, dimensions=8) as collections:
        await collections.add_texts(Insects, {**texts, "form": "receipts go with form T-17"})
        assert (await collections.search(Insects, "which form is T-17", min_relevance=0))[
            0
        ].source_id == "form"


async def test_words_that_are_everywhere_and_words_that_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("weft.adapters.collections.vectors._FEW_PASSAGES", 2)
    monkeypatch.setattr("weft.adapters.collections.vectors._MOST_PLACES", 0.1)
    monkeypatch.setattr("weft.adapters.collections.vectors._MOST_FILTERS", 1)
    async with by_words(tmp_path) as collections:
        texts = {f"s{number}": f"bees w{number} v{number // 2}" for number in range(30)}
        await collections.add_texts(Insects, texts)
        found = [
            (
                await collections.search(
                    Insects, f"bees w{number} v{number // 2}", min_relevance=0.9
                )
            )[0]
            for number in range(30)
        ]
        for source in ("s1", "s2", "s1"):
            [one] = await collections.search(
                Insects, "bees", min_relevance=0, filters={"source": source}
            )
            assert one.source_id == source
        assert ([item.source_id for item in found]) == [f"s{number}" for number in range(30)]


def test_another_model_needs_new_vectors(tmp_path, store):
    async def added():
        async with by_keywords(tmp_path, store) as collections:
            await collections.add_texts(Insects, INSECTS)
            assert not await collections.compares_meanings(Insects)
            assert (await collections.stats(Insects)).embedder is None

    async def embedded_first():
        async with by_words(tmp_path, store) as collections:
            # Nothing was embedded so far: keywords alone, although there is a model now.
            assert not await collections.compares_meanings(Insects)
            assert (await collections.search(Insects, "bees"))[0].score == 1
            done = await collections.add(Insects)
            assert (done.embedded, await collections.compares_meanings(Insects)) == (3, True)
            assert (await collections.add(Insects)).embedded == 0

    async def embedded_anew():
        async with by_words(tmp_path, store, name="others", dimensions=32) as collections:
            with pytest.raises(RetrievalError, match="embedded with words") as raised:
                await collections.search(Insects, "bees")
            assert "weft collection add Insects" in str(raised.value.hint)
            await collections.add(Insects)
            found = await collections.search(Insects, "bees flowers", min_relevance=0.1)
            stats = await collections.stats(Insects)
            return found[0].source_id, stats.embedder, stats.vectors

    play(added())
    play(embedded_first())
    assert play(embedded_anew()) == ("bees", "others", 3)

    async def without():
        async with by_keywords(tmp_path, store) as collections:
            return await collections.search(Insects, "bees")

    assert play(without())[0].score == 1


async def test_while_something_is_not_embedded_search_is_by_keywords(tmp_path, store):
    async with by_words(tmp_path, store) as collections:
        await collections.add_texts(Insects, INSECTS)
        assert await collections.compares_meanings(Insects)
    async with by_keywords(tmp_path, store) as collections:
        await collections.add_texts(Insects, {"wasps": "Wasps sting."})
    async with by_words(tmp_path, store) as collections:
        assert not await collections.compares_meanings(Insects)
        [found] = await collections.search(Insects, "wasps")
        assert (found.source_id, found.score) == ("wasps", 1)
        assert (await collections.add(Insects)).embedded == 1
        assert await collections.compares_meanings(Insects)


async def test_another_model_of_the_same_name_is_refused(tmp_path, store):
    async with by_words(tmp_path, store) as collections:
        await collections.add_texts(Insects, INSECTS)
    async with by_words(tmp_path, store, dimensions=32) as collections:
        for again in (
            collections.search(Insects, "bees"),
            collections.add_texts(Insects, {"wasps": "Wasps sting."}),
        ):
            with pytest.raises(RetrievalError, match="vectors of 32 numbers") as raised:
                await again
            assert "weft collection delete Insects" in str(raised.value.hint)
        assert (await collections.sources(Insects)) == sorted(INSECTS)


class Failing(WordEmbedder):
    """Fails from some text on."""

    async def embed(self, texts):
        if len(self.texts) >= 40:
            raise RetrievalError("the endpoint is down", retryable=True)
        return await super().embed(texts)


async def test_collection_stays_when_the_embedder_is_down(tmp_path, store):
    async with open_collections(
        tmp_path, environment={"WEFT_STORE": store}, embedder=Failing()
    ) as collections:
        await collections.add_texts(Insects, INSECTS)
        more = {f"s{number}": f"wasps {number}" for number in range(200)}
        with pytest.raises(RetrievalError, match="down"):
            await collections.add_texts(Insects, {**more, "bees": "no bees"})
    async with by_words(tmp_path, store) as collections:
        half = await collections.sources(Insects)
        [best, *_] = await collections.search(Insects, "bees flowers", min_relevance=0.1)
        assert best.source_id == "bees"
        done = await collections.add_texts(Insects, {**more, "bees": "no bees"})
        stats = await collections.stats(Insects)
        assert (len(half) < 203, done.added + done.unchanged, stats.sources, stats.vectors) == (
            True,
            200,
            203,
            203,
        )


# What can happen to the file of vectors, which is made of what the database has.
def cut(file):
    os.truncate(file, file.stat().st_size - 100)


def emptied(file):
    file.write_bytes(b"")


def changed(file):
    raw = bytearray(file.read_bytes())
    raw[-200] ^= 1
    file.write_bytes(raw)


def of_another(file):
    raw = bytearray(file.read_bytes())
    raw[10] ^= 1
    file.write_bytes(raw)


def with_a_rest(file):
    """As a process leaves it that is killed while it adds rows."""
    with file.open("ab") as end:
        end.write(b"\x07" * 1234)


@pytest.mark.parametrize(
    "damage",
    [cut, emptied, changed, of_another, with_a_rest, os.unlink],
    ids=lambda item: item.__name__,
)
def test_a_damaged_file_of_vectors_is_made_anew(tmp_path, damage):
    async def search():
        async with by_words(tmp_path) as collections:
            await collections.add_texts(Insects, {"wasps": "Wasps sting."})
            found = await collections.search(Insects, "bees flowers", min_relevance=0.2)
            last = await collections.search(Insects, "wasps sting", min_relevance=0.9)
            return [item.source_id for item in (*found[:1], *last)]

    async def fill():
        async with by_words(tmp_path) as collections:
            await collections.add_texts(Insects, INSECTS)
            await collections.search(Insects, "bees")

    play(fill())
    damage(only(tmp_path, ".vectors"))
    assert play(search()) == ["bees", "wasps"]
    assert play(search()) == ["bees", "wasps"]


async def test_vectors_of_passages_that_are_gone_are_left_out_and_then_dropped(tmp_path):
    async with by_words(tmp_path) as collections:
        texts = {f"s{number}": f"bees {number}" for number in range(40)}
        await collections.add_texts(Insects, texts)
        sizes = []
        for gone in range(12):
            found = await collections.search(Insects, "bees", top_k=50, min_relevance=0)
            assert {item.source_id for item in found} == {
                f"s{number}" for number in range(gone, 40)
            }
            sizes.append(only(tmp_path, ".vectors").stat().st_size)
            await collections.remove(Insects, [f"s{gone}"])
    assert len(set(sizes)) == 2
    assert sizes[-1] < sizes[0]


def test_unreadable_database_is_reported(tmp_path, in_files):
    async def work():
        async with in_files() as collections:
            await collections.search(Insects, "bees")

    async def fill():
        async with in_files() as collections:
            await collections.add_texts(Insects, INSECTS)

    play(fill())
    file = only(tmp_path, ".db")
    file.write_bytes(b"not a database at all" * 100)
    with pytest.raises(RetrievalError, match="the file is not a database") as raised:
        play(work())
    assert (
        raised.value.hint == "remove it and add its sources again: weft collection delete Insects"
    )
    file.unlink()
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE t (a)")
        other.execute("PRAGMA user_version = 1")
    other.close()
    with pytest.raises(RetrievalError, match="a database of another program"):
        play(work())
    file.unlink()
    play(fill())
    with sqlite3.connect(file) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(RetrievalError, match="written by a newer Weft"):
        play(work())


def test_a_folder_that_cannot_be_written(tmp_path, in_files):
    (tmp_path / ".weft").mkdir()
    (tmp_path / ".weft" / "collections").write_text("a file")

    async def work():
        async with in_files() as collections:
            await collections.add_texts(Insects, INSECTS)

    with pytest.raises(RetrievalError, match="collection Insects: ") as raised:
        play(work())
    assert raised.value.hint == "check its folder and the disk"


async def test_a_collection_that_another_process_writes_to(tmp_path, in_files, monkeypatch):
    monkeypatch.setattr("weft.adapters.collections.file.BUSY_SECONDS", 0.05)
    async with in_files() as collections:
        await collections.add_texts(Insects, INSECTS)
        with sqlite3.connect(only(tmp_path, ".db"), isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(RetrievalError, match="another process is writing") as raised:
                await collections.add_texts(Insects, {"more": "more"})
        other.close()
        await collections.add_texts(Insects, {"more": "more"})
        assert (raised.value.retryable, len(await collections.sources(Insects))) == (True, 4)


class Given:
    """An embedder with the vectors it was given, by the number at the end of a text."""

    name = "given"

    def __init__(self, vectors):
        self.vectors = vectors

    async def embed(self, texts):
        return self.vectors[[int(text.rpartition(" ")[2]) for text in texts]]

    async def close(self):
        pass


def test_an_index_finds_almost_all_of_the_nearest_and_is_extended(tmp_path):
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((600, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    place = Place(tmp_path, "local", "Many")

    def collection():
        return SqliteCollection(place, Given(vectors), index_from=100)

    def nearest(number, rows):
        return set(np.argsort(-(vectors[rows] @ vectors[number]))[:5].tolist())

    async def put(collections, start, end, group):
        from weft.adapters.collections.rows import Source
        from weft.adapters.collections.texts import Passage

        sources = [
            Source(f"s{number}", "", {"group": group}, [Passage(f"¶ {number}", {})])
            for number in range(start, end)
        ]
        await collections.put(sources)

    async def recall(many, rows, **options):
        found = 0
        for number in range(60):
            hits = await many.search(f"? {number}", min_relevance=0, **options)
            found += len({int(hit.content[2:]) for hit in hits} & nearest(number, rows))
        return found / 300

    async def work():
        many = collection()
        await put(many, 0, 90, "a")
        assert not await many.build_index()
        await put(many, 90, 500, "a")
        assert await many.build_index()
        indexed = [(await many.stats()).indexed]
        await put(many, 500, 530, "b")
        assert not await many.build_index()  # a few rows more are searched one by one
        found = [await recall(many, np.arange(530))]
        found.append(await recall(many, np.arange(500), filters={"group": "a"}))
        await put(many, 530, 600, "b")
        assert await many.build_index()
        indexed.append((await many.stats()).indexed)
        await many.close()
        again = collection()
        found.append(await recall(again, np.arange(600)))
        await again.remove([f"s{number}" for number in range(0, 590, 5)])
        hits = await again.search("? 0", min_relevance=0, top_k=20)
        assert not {int(hit.content[2:]) for hit in hits} & set(range(0, 590, 5))
        assert len(hits) == 20
        await again.close()
        place.index.write_bytes(place.index.read_bytes()[:-7])
        damaged = collection()
        assert (await damaged.stats()).indexed == 0
        assert len(await damaged.search("? 1", min_relevance=0)) == 5
        await damaged.close()
        return indexed, found

    indexed, found = play(work())
    assert indexed == [500, 600]
    assert min(found) > 0.95


def test_an_index_and_the_local_model_are_in_one_process():
    code = "import weft.adapters.collections.index, onnxruntime; print('alive')"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.stdout == "alive\n"


def test_adapters_are_swapped_without_touching_who_uses_them(tmp_path):
    ours, theirs = InMemoryVectorAdapter[Insects](), InMemoryVectorAdapter[Insects]()
    ours.seed(("Bees dance.", 0.9), ("Ants smell.", 0.7), ("Moths fly.", 0.5))
    theirs.seed(("Bees of one tenant.", 0.8))

    async def work():
        async with by_words(tmp_path) as collections:
            await collections.add_texts(Insects, INSECTS)
            registry = RetrieverRegistry(others=collections)
            found = [registry.adapter("local", "Insects")]
            registry.register(Insects, ours)
            found.append(registry.adapter("local", "Insects"))
            registry.register("Insects", theirs, app="shop")
            found.append(registry.adapter("shop", "Insects"))
            found.append(registry.adapter("local", "Insects"))
            assert registry.adapter("local", "Others") is None
            return [[message.content for message in await one.search("bees")] for one in found]

    assert RetrieverRegistry().adapter("local", "Insects") is None
    both = ["Bees dance.", "Ants smell."]
    first, *others = play(work())
    assert others == [both, ["Bees of one tenant."], both]
    assert first == []  # no passage of the embedded collection is 0.7 alike to one word


def test_an_adapter_for_tests_knows_scores_filters_and_what_it_was_asked():
    from weft.retrieval import RetrievalResult

    library = InMemoryVectorAdapter[Insects]()
    about = {"year": 2026, "tags": ["bee", "ant"]}
    library.seed(("a", 0.75), RetrievalResult("b", 0.9, "s", about))

    async def work():
        return [
            [message.content for message in await library.search("q", **asked)]
            for asked in (
                {},
                {"top_k": 1},
                {"min_relevance": 0.8},
                {"filters": {"year": 2026}},
                {"filters": {"year": [2025, 2026]}},
                {"filters": {"year": 2025}},
                {"filters": {"tags": "ant"}},
                {"filters": {"tags": ["moth", "bee"], "year": 2026.0}},
                {"filters": {"tags": "moth"}},
            )
        ]

    assert play(work()) == [["b", "a"], ["b"], ["b"], ["b"], ["b"], [], ["b"], ["b"], []]
    assert library.searches[1].top_k == 1
    assert library.searches[2].min_relevance == 0.8
    assert library.searches[3].filters == {"year": 2026}
    with pytest.raises(RetrievalError, match='no passage of the adapter has the key "other"'):
        play(library.search("q", filters={"other": 1}))
    with pytest.raises(RetrievalError, match="invalid value for the filter"):
        play(library.search("q", filters={"year": {"from": 2025}}))


def test_an_adapter_of_a_tenant_that_counts_as_false_is_that_of_the_tenant():
    class Empty(InMemoryVectorAdapter[Insects]):
        def __len__(self):
            return 0

    own, others = Empty(), InMemoryVectorAdapter[Insects]()
    registry = RetrieverRegistry()
    registry.register(Insects, others)
    registry.register(Insects, own, app="shop")
    assert registry.adapter("shop", "Insects") is own
    assert registry.adapter("local", "Insects") is others


async def test_hosts_of_a_workspace_search_its_collections(tmp_path, store):
    library = InMemoryVectorAdapter[Insects]()
    library.seed(("Given.", 1.0))
    async with by_keywords(tmp_path, store) as collections:
        await collections.add_texts(Insects, INSECTS, app="shop")
    outside = open_outside(
        tmp_path,
        {"WEFT_EMBEDDINGS": "none", "WEFT_STORE": store},
        SystemClock(),
        {"Library": library},
    )
    assert outside.retrievers is not None
    kept = outside.retrievers.adapter("shop", "Insects")
    given = outside.retrievers.adapter("shop", "Library")
    assert outside.retrievers.adapter("local", "Insects") is None
    assert kept is not None
    assert given is not None
    found = [(await item.search("bees"))[0].content for item in (kept, given)]
    await outside.close()
    assert found == [INSECTS["bees"], "Given."]


def test_invalid_embeddings_setting_is_reported_by_a_search(tmp_path):
    async def work():
        async with by_keywords(tmp_path) as collections:
            await collections.add_texts(Insects, INSECTS)
        async with open_collections(tmp_path, environment={"WEFT_EMBEDDINGS": "x:y"}) as wrong:
            adapter = wrong.adapter("local", "Insects")
            assert adapter is not None
            await adapter.search("bees")

    with pytest.raises(RetrievalError, match="there is no model provider x"):
        play(work())


def test_a_collection_is_a_class_and_no_object():
    assert Insects.collection_name() == "Insects"
    with pytest.raises(TypeError, match="Insects stands for a collection"):
        Insects()


def test_without_numpy_keywords_work_and_embeddings_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("weft.adapters.collections.collection.find_spec", lambda _: None)

    async def work(collections):
        async with collections:
            await collections.add_texts(Insects, INSECTS)
            return await collections.search(Insects, "bees")

    assert play(work(by_keywords(tmp_path)))[0].source_id == "bees"
    with pytest.raises(SetupError, match="numpy") as raised:
        play(work(by_words(tmp_path)))
    assert raised.value.hint == 'install it: pip install "weft-agents[vectors]"'
    code = "import sys, weft.retrieval; print('numpy' in sys.modules, 'onnxruntime' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "False False\n"
