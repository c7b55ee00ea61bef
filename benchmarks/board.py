"""What it costs to read a board and to publish on it, beside the same SQL written by hand.

**Reading.** A file with a million artifacts in 10,000 correlations, and one with 1,000 in ten; the
correlations have grown side by side. Asked are the newest 50 of a correlation, and the newest 20 of
a type with a tag. "By hand" is sqlite3 through `asyncio.to_thread` on the same tables, by the same
index and decoded in the same way; who may see what is not asked there, and the reader may see all.
Every number is the median of many queries, by both in turns.

**Publishing.** 1,000 correlations publish 100 artifacts each at the same time, safely on disk. "By
hand" is `executemany` of the same rows, made beforehand, into the same tables and indexes in the
same transactions, without checking anything or leaving its thread.

Usage: python benchmarks/board.py [--enforce] [--only read|publish]
"""

import argparse
import asyncio
import gc
import random
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import closing
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Final

from by_hand import Rows, insert, noted_batches, open_connection, rows_of
from weft.adapters.sql import SqliteStore
from weft.adapters.sql.rows import batch_rows, to_names
from weft.engine.board.state import Artifact, BoardState
from weft.engine.board.visibility import Audience, Identity
from weft.engine.events import ArtifactPublished, Event
from weft.engine.events.codec import decode
from weft.engine.rows import Batch, board_index_changes, run_row
from weft.engine.state import State
from weft.ports.board import ArtifactQuery, StoredArtifact

GROWTH_BUDGET: Final = 3.0
READ_BUDGET: Final = 2.0
PUBLISH_BUDGET: Final = 3.0

#: How many artifacts, in how many correlations.
SMALL: Final = (1_000, 10)
LARGE: Final = (1_000_000, 10_000)
QUERIES: Final = 1_000
PUBLISHED: Final = (100_000, 1_000)
ROUNDS: Final = 3

APP: Final = "shop"
BOARD: Final = "Research"
TYPES: Final = 10
TAGS: Final = 20
READER: Final = Identity("Editor", frozenset({"press", "legal"}), APP)
NOW: Final = 2_000_000_000
POLICIES: Final = (
    {"kind": "public"},
    {"kind": "private", "agents": ["Writer", "Editor"]},
    {"kind": "labelled", "labels": ["press"]},
    {"kind": "tenant", "tenant": None},
)

Find = Callable[[int], Awaitable[list[StoredArtifact]]]


def correlation(number: int) -> str:
    """Return the name of a correlation; that of its run resembles it."""
    return f"019a8f3c-{number:05}-7c1e-9d2b-5f6a7b8c9d0e"


def artifact(number: int) -> ArtifactPublished:
    """Return one of the artifacts. Six of ten are for everybody."""
    return ArtifactPublished(
        type=f"Finding{number % TYPES}",
        payload={"title": f"Finding {number}", "score": number / 7, "text": "It is so. " * 15},
        by=f"Scout{number % 5}",
        id=blake2b(str(number).encode(), digest_size=16).hexdigest(),
        tags=(f"topic{number * 7 % TAGS}", "checked" if number % 3 else "open"),
        partition=f"region{number % 50}" if number % 4 == 0 else "",
        visibility=POLICIES[max(number % 10 - 6, 0)],
        wakes={"Editor.1": ""},
    )


def published(count: int, correlations: int) -> Iterator[tuple[State, Event]]:
    """Yield one artifact after the other, each of another correlation and then over again."""
    states = [
        State(f"r-{name}", workflow=BOARD, app=APP, user="ann", board=BoardState(name))
        for name in map(correlation, range(correlations))
    ]
    for number in range(count):
        seq, at = number // correlations + 1, 1_000_000 + number * 3
        yield states[number % correlations], Event(seq, at, "host", 0, 0, artifact(number))


def rows(state: State, event: Event) -> Rows:
    """Return what publishing an artifact writes, except for the row of its run."""
    return rows_of([batch_rows(published_batch(state, event), str)])


def published_batch(state: State, event: Event) -> Batch:
    """Return the batch that publishes an artifact."""
    row = run_row(state, event.at, f"{state.run}.{event.seq}")
    row = row._replace(status="running", seq=event.seq)
    sides = tuple(board_index_changes(state, [event]))
    return Batch(state.run, event.seq - 1, [event], row, sides, held=True)


def together(some: Iterable[Rows]) -> Rows:
    """Return the rows of many."""
    found: Rows = {"events": [], "artifacts": [], "tags": []}
    for row in some:
        for table, own in row.items():
            found[table].extend(own)
    return found


def insert_at_once(connection: sqlite3.Connection, written_rows: Rows) -> None:
    """Write rows by hand, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    insert(connection, written_rows)
    connection.execute("COMMIT")


def fill(path: Path, count: int, correlations: int) -> None:
    """Make a store with artifacts; what that costs is not the question here."""
    with closing(open_connection(path, "normal")) as connection:
        for quick in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -2000000"):
            connection.execute(f"PRAGMA {quick}")
        indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql NOT NULL"
        made = connection.execute(indexes).fetchall()
        for name, _ in made:
            connection.execute(f"DROP INDEX {name}")
        parts = (rows(*publication) for publication in published(count, correlations))
        while (some := together(islice(parts, 10_000)))["events"]:
            insert_at_once(connection, some)
        for _, sql in made:
            connection.execute(sql)
        connection.execute("PRAGMA journal_mode = WAL")


_SELECT: Final = """
    SELECT a.created_at, a.run, a.seq, a.id, a.correlation, a.visible_at, a.policy, a.names, e.data
    FROM {source} JOIN events AS e ON e.app = a.app AND e.run = a.run AND e.seq = a.seq
    WHERE {where} ORDER BY {by}.created_at DESC, {by}.run DESC, {by}.seq DESC LIMIT {limit}
"""
BY_CORRELATION: Final = _SELECT.format(
    source="artifacts AS a INDEXED BY artifacts_by_correlation",
    where="a.app = ? AND a.board = ? AND a.correlation = ?",
    by="a",
    limit=50,
)
BY_TYPE_AND_TAG: Final = _SELECT.format(
    source="artifact_tags AS t CROSS JOIN artifacts AS a "
    "ON a.app = t.app AND a.run = t.run AND a.seq = t.seq",
    where="t.app = ? AND t.board = ? AND t.type = ? AND t.tag = ?",
    by="t",
    limit=20,
)


def stored(row: tuple[Any, ...]) -> StoredArtifact:
    """Return an artifact from a row."""
    created_at, run, seq, id_, correlation_, visible_at, policy, names, raw = row
    data = decode("ArtifactPublished", raw)
    if not isinstance(data, ArtifactPublished):
        raise TypeError(data)
    found = Artifact(
        id_, data.type, data.payload, data.by, data.tags, data.partition, correlation_, created_at
    )
    seen = Audience(visible_at, policy, to_names(names))
    return StoredArtifact(found, seen, run, seq, data.version)


def by_hand(
    connection: sqlite3.Connection, sql: str, values: Callable[[int], tuple[str, ...]]
) -> Find:
    """Return a query as somebody would write it."""

    def read(number: int) -> list[StoredArtifact]:
        return [stored(row) for row in connection.execute(sql, (APP, BOARD, *values(number)))]

    return lambda number: asyncio.to_thread(read, number)


def by_weft(store: SqliteStore, query: Callable[[int], dict[str, Any]]) -> Find:
    """Return a query as a provider of context asks it."""

    async def find(number: int) -> list[StoredArtifact]:
        page = await store.artifacts(ArtifactQuery(APP, BOARD, READER, NOW, ("",), **query(number)))
        return page.items

    return find


async def p50(numbers: Sequence[int], *ways: Find) -> list[float]:
    """Return the microseconds that a query takes in the median, each way."""
    times: list[list[float]] = [[] for _ in ways]
    for number in numbers:
        found: list[list[StoredArtifact]] = []
        for way, spent in zip(ways, times, strict=True):
            begun = time.perf_counter()
            found.append(await way(number))
            spent.append((time.perf_counter() - begun) * 1e6)
        if not found[0] or any(answer != found[0] for answer in found):
            raise SystemExit("what was found is not the same each way, or nothing")
    return [median(taken) for taken in times]


async def read_cost(path: Path, correlations: int) -> list[list[float]]:
    """Return what each kind of query takes, by Weft and by hand."""
    store = await SqliteStore.open(path)
    chance = random.Random(11)
    numbers = [chance.randrange(correlations) for _ in range(QUERIES)]
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        costs = [
            await p50(
                numbers,
                by_weft(store, lambda number: {"correlation": correlation(number), "limit": 50}),
                by_hand(connection, BY_CORRELATION, lambda number: (correlation(number),)),
            ),
            await p50(
                numbers,
                by_weft(
                    store,
                    lambda number: {"types": (kind(number),), "tags": (tag(number),), "limit": 20},
                ),
                by_hand(connection, BY_TYPE_AND_TAG, lambda number: (kind(number), tag(number))),
            ),
        ]
    await store.close()
    return costs


def kind(number: int) -> str:
    """Return a type that is asked for."""
    return f"Finding{number % TYPES}"


def tag(number: int) -> str:
    """Return a tag that artifacts of that type have."""
    return f"topic{number % TYPES * 7 % TAGS}"


def report_reading(folder: Path) -> bool:
    """Print what queries take, and tell whether that is within budget."""
    costs: list[list[list[float]]] = []
    for name, (count, correlations) in (("small", SMALL), ("large", LARGE)):
        begun, path = time.perf_counter(), folder / f"{name}.db"
        fill(path, count, correlations)
        size, took = path.stat().st_size / 1e6, time.perf_counter() - begun
        print(f"{count:,} artifacts in {correlations:,} correlations: {size:,.0f} MB, {took:.0f} s")
        costs.append(asyncio.run(read_cost(path, correlations)))
    print(f"{'p50 in microseconds':<20} {'at 1,000':>9} {'at 1,000,000':>12} {'growth':>7} "
          f"{'by hand':>8} {'ratio':>6}")  # fmt: skip
    within = True
    for name, (small, _), (large, hand) in zip(
        ("correlation, 50", "type and tag, 20"), *costs, strict=True
    ):
        growth, ratio = large / small, large / hand
        print(f"{name:<20} {small:9.0f} {large:12.0f} {growth:7.2f} {hand:8.0f} {ratio:6.2f}")
        within &= growth <= GROWTH_BUDGET and ratio <= READ_BUDGET
    print(f"budgets: growth {GROWTH_BUDGET:g}, ratio {READ_BUDGET:g}")
    return within


def stories(count: int, correlations: int) -> list[list[Batch]]:
    """Return what each correlation publishes, one artifact in a batch."""
    found: dict[str, list[Batch]] = {}
    for state, event in published(count, correlations):
        found.setdefault(state.run, []).append(published_batch(state, event))
    return list(found.values())


async def publish(path: Path, work: list[list[Batch]]) -> tuple[float, list[Rows]]:
    """Let all correlations publish; return the seconds, and what each transaction wrote."""

    async def write(story: list[Batch]) -> None:
        for batch in story:
            await store.append(batch, owner="worker")

    with noted_batches() as groups:
        store = await SqliteStore.open(path, durability="full")
        begun = time.perf_counter()
        await asyncio.gather(*map(write, work))
        took = time.perf_counter() - begun
        await store.close()
    return took, [rows_of(group) for group in groups]


def publish_by_hand(path: Path, groups: list[Rows]) -> float:
    """Write the same rows in the same transactions; return the seconds."""
    with closing(open_connection(path, "full")) as connection:
        begun = time.perf_counter()
        for group in groups:
            insert_at_once(connection, group)
        return time.perf_counter() - begun


def report_publishing(folder: Path) -> bool:
    """Print what publishing costs, and tell whether that is within budget."""
    count, correlations = PUBLISHED
    work = stories(count, correlations)
    gc.collect()
    gc.freeze()  # The collector need not look at what only a benchmark holds.
    costs: list[tuple[float, float]] = []
    for number in range(ROUNDS):
        ours, groups = asyncio.run(publish(folder / f"weft{number}.db", work))
        hand = publish_by_hand(folder / f"hand{number}.db", groups)
        costs.append((ours, hand))
        print(
            f"{count:,} artifacts in {correlations:,} correlations and {len(groups)} transactions:"
            f" {ours:.2f} s, by hand {hand:.2f} s"
        )
    ours, hand = (min(pair) for pair in zip(*costs, strict=True))
    print(
        f"microseconds for an artifact: {ours / count * 1e6:.0f}, by hand {hand / count * 1e6:.0f},"
        f" ratio {ours / hand:.2f} (budget {PUBLISH_BUDGET:g})"
    )
    return ours / hand <= PUBLISH_BUDGET


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--enforce", action="store_true")
    parser.add_argument("--only", choices=("read", "publish"))
    options = parser.parse_args()
    within = True
    with tempfile.TemporaryDirectory() as folder:
        if options.only != "publish":
            within &= report_reading(Path(folder))
        if options.only != "read":
            within &= report_publishing(Path(folder))
    return 1 if options.enforce and not within else 0


if __name__ == "__main__":
    raise SystemExit(main())
