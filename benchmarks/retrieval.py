"""What retrieval costs, beside the same work by hand in the same run.

"Search" is a whole search of a collection: keywords and vectors ranked and fused, passages read.
"By hand" is numpy on the same vectors in memory, off the event loop as well, and reads nothing. The
query's vector is there already on both sides. 2,000 real passages are embedded; all further vectors
are perturbed copies of theirs. Usage: python benchmarks/retrieval.py [--enforce]
"""

import asyncio
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any, Final

import numpy as np

from weft.adapters.collections.file import Place
from weft.adapters.collections.rows import Source
from weft.adapters.collections.sqlite import SqliteCollection
from weft.adapters.collections.texts import Chunking, Passage, Text, passages
from weft.app.embeddings import open_embedder
from weft.environment import read_environment
from weft.retrieval import open_collections

RATIO_BUDGET: Final = 1.5
RECALL_BUDGET: Final = 0.95
INGESTION_BUDGET: Final = 0.7
MEMORY_BUDGET: Final = 1.3

REAL: Final = 2_000
MANY: Final = 100_000
VERY_MANY: Final = 250_000
GROUPS: Final = 100
QUERIES: Final = 40
ROUNDS: Final = 7
BLOCK: Final = 1_000
TURN: Final = 200
TOP: Final = 5

#: How long the noise is that is added to a vector of length 1.
NOISE: Final = 0.5

ROOT: Final = Path(__file__).parents[1]

Search = Callable[[int], Awaitable[Any]]


class GivenVectors:
    """An embedder whose vectors are there already, for each text."""

    name = "given"

    def __init__(self, texts: Sequence[str], vectors: Any) -> None:  # noqa: ANN401
        self._rows = {text: row for row, text in enumerate(texts)}
        self._vectors = vectors

    async def embed(self, texts: Sequence[str]) -> Any:  # noqa: ANN401
        """Look the vectors up."""
        return self._vectors[[self._rows[text] for text in texts]]

    async def close(self) -> None:
        """Nothing is open."""


def real_passages() -> list[str]:
    """Return passages of Python's own reference."""
    text = Text("\n\n".join(topics[topic] for topic in sorted(topics)))
    found = [passage.content for passage in passages(text, Chunking(400, 50))]
    return found[:REAL]


def perturbed(vectors: Any, count: int, seed: int) -> Any:  # noqa: ANN401
    """Return copies of vectors with some noise."""
    draw = np.random.default_rng(seed)
    noise = draw.standard_normal((count, vectors.shape[1]), np.float32)
    noise *= NOISE / np.sqrt(vectors.shape[1])
    copies = vectors[np.arange(count) % len(vectors)] + noise
    return copies / np.linalg.norm(copies, axis=1, keepdims=True)


async def fill(folder: Path, texts: list[str], vectors: Any) -> None:  # noqa: ANN401
    """Put passages into a collection, each of a source of its own and of one of 100 groups."""
    place = Place(folder, "bench", "Passages")
    numbered = [f"{texts[number % len(texts)]} {number}" for number in range(len(vectors))]
    collection = SqliteCollection(place, GivenVectors(numbered, vectors))
    for start in range(0, len(numbered), BLOCK):
        rows = range(start, min(start + BLOCK, len(numbered)))
        await collection.put(
            [
                Source(str(row), "", {"group": row % GROUPS}, [Passage(numbered[row], {})])
                for row in rows
            ]
        )
    await collection.build_index()
    await collection.close()


async def cost(search: Search, number: int) -> float:
    """Return the milliseconds one search takes."""
    begun = time.perf_counter()
    await search(number)
    return (time.perf_counter() - begun) * 1e3


async def best(weft: Search, hand: Search) -> tuple[float, float]:
    """Return what a search costs each way: of each the best of several rounds, on average."""
    ours, theirs = [math.inf] * QUERIES, [math.inf] * QUERIES
    for _ in range(ROUNDS):
        for number in range(QUERIES):
            ours[number] = min(ours[number], await cost(weft, number))
            theirs[number] = min(theirs[number], await cost(hand, number))
    return sum(ours) / QUERIES, sum(theirs) / QUERIES


async def compare(name: str, weft: Search, hand: Search) -> bool:
    """Print what a search costs each way, and tell whether that is within budget."""
    ours, theirs = await best(weft, hand)
    print(f"{name:<22} {ours:8.2f} {theirs:8.2f} {ours / theirs:6.2f}")
    return ours / theirs <= RATIO_BUDGET


def by_hand(vectors: Any, queries: Any) -> tuple[Search, Search]:  # noqa: ANN401
    """Return the search as somebody would write it with numpy, plain and with a filter."""
    groups = np.arange(len(vectors)) % GROUPS

    def plain(number: int) -> Any:  # noqa: ANN401
        scores = vectors @ queries[number]
        best = np.argpartition(scores, -TOP)[-TOP:]
        return best[np.argsort(-scores[best])]

    def filtered(number: int) -> Any:  # noqa: ANN401
        rows = np.flatnonzero(groups == number % GROUPS)
        scores = vectors[rows] @ queries[number]
        best = np.argpartition(scores, -TOP)[-TOP:]
        return rows[best[np.argsort(-scores[best])]]

    return (
        lambda number: asyncio.to_thread(plain, number),
        lambda number: asyncio.to_thread(filtered, number),
    )


def by_weft(collection: SqliteCollection, asked: list[str]) -> tuple[Search, Search]:
    """Return the same searches of a collection."""

    def plain(number: int) -> Awaitable[Any]:
        return collection.search(asked[number], top_k=TOP, min_relevance=0.0)

    def filtered(number: int) -> Awaitable[Any]:
        group = {"group": number % GROUPS}
        return collection.search(asked[number], top_k=TOP, min_relevance=0.0, filters=group)

    return plain, filtered


def questions(texts: list[str]) -> list[str]:
    """Return what is looked for: some words of a passage."""
    return [" ".join(texts[number * 37 % len(texts)].split()[3:11]) for number in range(QUERIES)]


async def measure_search(texts: list[str], vectors: Any) -> bool:  # noqa: ANN401
    """Compare searches of many vectors, and look how much memory they take."""
    with tempfile.TemporaryDirectory() as folder:
        await fill(Path(folder), texts, vectors)
        queries = perturbed(vectors[np.arange(QUERIES) * 37 % REAL], QUERIES, seed=2)
        place = Place(Path(folder), "bench", "Passages")
        asked = questions(texts)
        collection = SqliteCollection(place, GivenVectors(asked, queries))
        ours, theirs = by_weft(collection, asked), by_hand(vectors, queries)
        print(f"milliseconds to find {TOP} of {len(vectors):,} (budget {RATIO_BUDGET:g} x)")
        print(f"{'':<22} {'Weft':>8} {'by hand':>8} {'ratio':>6}")
        within = [
            await compare("search", ours[0], theirs[0]),
            await compare("search, 1 % filter", ours[1], theirs[1]),
        ]
        await collection.close()
        share = memory_of(Path(folder)) / vectors.nbytes
        print(f"memory of a process that searches: {share:.2f} x the vectors ({MEMORY_BUDGET} x)")
        return all(within) and share <= MEMORY_BUDGET


def memory_of(folder: Path) -> int:
    """Return the bytes that searching adds to a process, measured in one of its own."""
    words = [sys.executable, __file__, "--memory", str(folder)]
    return int(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


async def print_memory(folder: Path) -> int:
    """Search in this process, and print by how many bytes it grew."""
    before = _resident()
    asked = [f"how does a function return value {number}" for number in range(QUERIES)]
    given = GivenVectors(asked, np.ones((QUERIES, 384), np.float32))
    collection = SqliteCollection(Place(folder, "bench", "Passages"), given)
    for number, query in enumerate(asked):
        await collection.search(query, top_k=TOP, min_relevance=0.0)
        await collection.search(query, top_k=TOP, min_relevance=0.0, filters={"group": number})
    print(_resident() - before)
    await collection.close()
    return 0


def _resident() -> int:
    """Return the most bytes this process has had in memory; what its parent had does not count."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


async def measure_index(texts: list[str], vectors: Any) -> bool:  # noqa: ANN401
    """Look how many of the nearest an index of very many vectors finds."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        await fill(Path(folder), [text[:40] for text in texts], vectors)
        built = time.perf_counter() - begun
        queries = perturbed(vectors[np.arange(QUERIES) * 37 % REAL], QUERIES, seed=3)
        place = Place(Path(folder), "bench", "Passages")
        # No words at all: what is found is found by its vector alone.
        asked = ["?" * (number + 1) for number in range(QUERIES)]
        collection = SqliteCollection(place, GivenVectors(asked, queries))
        ours, theirs = by_weft(collection, asked), by_hand(vectors, queries)
        recalls = [
            sum([await _found(weft, hand, number) for number in range(QUERIES)]) / QUERIES / TOP
            for weft, hand in zip(ours, theirs, strict=True)
        ]
        print(f"{len(vectors):,} vectors, indexed in {built:.0f} s")
        print(f"recall of the nearest {TOP}: {recalls[0]:.3f}, 1 % filter {recalls[1]:.3f}")
        fast = await best(ours[0], theirs[0])
        print(f"milliseconds: Weft {fast[0]:.2f}, by hand {fast[1]:.2f}")
        await collection.close()
        return min(recalls) >= RECALL_BUDGET


async def _found(weft: Search, hand: Search, number: int) -> int:
    numbers = {int(passage.content.rpartition(" ")[2]) for passage in await weft(number)}
    return len(numbers & set((await hand(number)).tolist()))


async def measure_ingestion(texts: list[str]) -> tuple[Any, bool]:
    """Compare putting passages into a collection with embedding them; return their vectors."""
    models = {"WEFT_CACHE": str(ROOT / ".models"), **read_environment(), "WEFT_EMBEDDINGS": "local"}
    embedder = open_embedder(models)
    if embedder is None:
        raise SystemExit("no embedding model")
    await embedder.embed(texts[:20])
    found, alone, whole = [], 0.0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        async with open_collections(folder, environment={}, embedder=embedder) as collections:
            # By turns, as the machine may have other work: both have the same share of it.
            for start in range(0, len(texts), TURN):
                part = texts[start : start + TURN]
                begun = time.perf_counter()
                found.append(await embedder.embed(part))
                done = time.perf_counter()
                named = {str(start + at): text for at, text in enumerate(part)}
                await collections.add_texts("Passages", named)
                alone += done - begun
                whole += time.perf_counter() - done
    alone, whole = len(texts) / alone, len(texts) / whole
    print(f"passages a second: put {whole:.0f}, embedded alone {alone:.0f}", end="; ")
    print(f"{whole / alone:.0%} (budget {INGESTION_BUDGET:.0%})")
    return np.concatenate(found), whole / alone >= INGESTION_BUDGET


async def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    if "--memory" in sys.argv:
        return await print_memory(Path(sys.argv[-1]))
    texts = real_passages()
    real, ingested = await measure_ingestion(texts)
    within = [
        ingested,
        await measure_search(texts, perturbed(real, MANY, seed=0)),
        await measure_index(texts, perturbed(real, VERY_MANY, seed=1)),
    ]
    return 1 if "--enforce" in sys.argv and not all(within) else 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
