"""What it costs to write events, beside writing the same bytes by hand in the same run.

"SQL" is hand-written sqlite3: the same event rows, made beforehand, with `executemany` into a table
with the same key, in transactions of the same size and with the same durability. "File" appends
the same bytes to a file, with as many calls of fsync. Neither checks anything, keeps rows of runs
or leaves its thread. Every cost is the best of several rounds that take turns.

The budget of wall time is for durability `full`. The budget of added CPU is for `normal`: while a
disk is waited for, other programs empty the caches of the processor, and on a busy machine filling
them again costs more than the work itself. Usage: python benchmarks/store.py [--enforce]
"""

import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.adapters.memory import MemoryStore
from weft.adapters.sql import SqliteStore
from weft.engine.events import (
    ContextAssembled,
    EventData,
    HandedOff,
    ModelReplied,
    ToolCalled,
    ToolRequest,
    ToolReturned,
    TurnEnded,
    TurnStarted,
    Usage,
    VariableSet,
)
from weft.engine.events.codec import encode
from weft.engine.rows import Batch
from weft.ports.store import Durability, Store
from weft.testing.store.samples import SampleRun

RATIO_BUDGET: Final = 3.0
ADDED_CPU_BUDGET_MS: Final = 0.25
GROWTH_BUDGET: Final = 1.1
ROUNDS: Final = 5

#: Concurrent writers, and how many batches each appends in a round.
LOADS: Final = ((1, 200), (50, 40), (500, 12))

#: The batches of a turn with one tool call, as the runtime writes them.
TURN: Final[tuple[tuple[EventData, ...], ...]] = (
    (
        TurnStarted("Router"),
        ContextAssembled(
            "Router",
            1,
            {"segments": [{"origin": f"section:{number}", "tokens": 40} for number in range(8)]},
            "0" * 64,
        ),
    ),
    (
        ModelReplied(
            call=1,
            text="I will look up where the parcel is and then come back to you. " * 3,
            tool_requests=(ToolRequest("1.1.1", "find_parcel", {"order": "A-1001"}),),
            usage=Usage(420, 36, 0, 0.0011),
            model="a-model",
        ),
        ToolCalled("1.1.1", "find_parcel", {"order": "A-1001"}),
    ),
    (
        ToolReturned("1.1.1", {"order": "A-1001", "status": "sent", "days": 3}),
        VariableSet("parcel_status", "sent", "tool:find_parcel"),
    ),
    (TurnEnded("Router"), HandedOff("Router", "Parcels", "rule", 2)),
)


@dataclass(frozen=True)
class Cost:
    """Microseconds for one batch."""

    wall: float
    cpu: float


class Watch:
    """Measures what happens between its making and its reading."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def read(self, batches: int) -> Cost:
        """Return the cost of one of so many batches."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return Cost(wall / batches * 1e6, cpu / batches * 1e6)


def stories(writers: int, batches: int) -> list[list[Batch]]:
    """Return the batches that each writer appends."""
    runs = [SampleRun(f"019a8f3c-{number:04}-7c1e-9d2b-5f6a7b8c9d0e") for number in range(writers)]
    return [
        [run.batch(*TURN[number % len(TURN)], held=True) for number in range(batches)]
        for run in runs
    ]


async def append_all(store: Store, work: list[list[Batch]]) -> Cost:
    """Let all writers append at the same time; the first batch of each is not measured."""

    async def write(story: list[Batch]) -> None:
        for batch in story[1:]:
            await store.append(batch, owner="worker")

    await asyncio.gather(*(store.append(story[0], owner="worker") for story in work))
    watch = Watch()
    await asyncio.gather(*map(write, work))
    cost = watch.read(sum(len(story) - 1 for story in work))
    await store.close()
    return cost


def weft_cost(folder: Path, durability: Durability, work: list[list[Batch]]) -> Cost:
    """Measure the store."""

    async def measured() -> Cost:
        store = await SqliteStore.open(folder / "weft.db", durability=durability)
        return await append_all(store, work)

    return asyncio.run(measured())


def memory_cost(work: list[list[Batch]]) -> Cost:
    """Measure the store in memory."""

    async def measured() -> Cost:
        return await append_all(MemoryStore(), work)

    return asyncio.run(measured())


Rows = list[tuple[str, int, int, str, int, str, str]]


def by_hand(work: list[list[Batch]]) -> list[Rows]:
    """Return the rows of each transaction: one batch of every writer, as they wait together."""
    return [
        [
            (batch.run, at.seq, at.at, at.actor, at.cause, type(at.data).__name__, text(at.data))
            for batch in together
            for at in batch.events
        ]
        for together in list(zip(*work, strict=True))[1:]
    ]


def text(data: EventData) -> str:
    """Return what is stored of an event."""
    return encode(data).decode()


def sql_cost(folder: Path, durability: Durability, work: list[list[Batch]]) -> Cost:
    """Measure hand-written SQL."""
    groups = by_hand(work)
    with closing(sqlite3.connect(folder / "hand.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {durability}")
        connection.execute(
            "CREATE TABLE events (run TEXT, seq INTEGER, at INTEGER, actor TEXT, cause INTEGER, "
            "kind TEXT, data TEXT, PRIMARY KEY (run, seq))"
        )
        watch = Watch()
        for rows in groups:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            connection.execute("COMMIT")
        return watch.read(len(groups) * len(work))


def file_cost(folder: Path, durability: Durability, work: list[list[Batch]]) -> Cost:
    """Measure a file."""
    groups = ["\n".join(map(str, rows)).encode() for rows in by_hand(work)]
    with (folder / "hand.log").open("ab", buffering=0) as file:
        watch = Watch()
        for group in groups:
            file.write(group)
            if durability == "full":
                os.fsync(file.fileno())
        return watch.read(len(groups) * len(work))


def best(costs: list[Cost]) -> Cost:
    """Return the least that was ever needed."""
    return Cost(min(cost.wall for cost in costs), min(cost.cpu for cost in costs))


def in_turns(*kinds: Callable[[Path], Cost]) -> Iterator[Cost]:
    """Measure each in turn, several times, and yield the best of each."""
    rounds: list[list[Cost]] = [[] for _ in kinds]
    for _ in range(ROUNDS):
        for kind, costs in zip(kinds, rounds, strict=True):
            with tempfile.TemporaryDirectory() as folder:
                costs.append(kind(Path(folder)))
    yield from map(best, rounds)


def report_cost(durability: Durability, writers: int, batches: int) -> bool:
    """Print what a batch costs each way, and tell whether that is within budget."""
    work = stories(writers, batches)
    weft, sql, file = in_turns(
        lambda folder: weft_cost(folder, durability, work),
        lambda folder: sql_cost(folder, durability, work),
        lambda folder: file_cost(folder, durability, work),
    )
    ratio, added = weft.wall / sql.wall, (weft.cpu - sql.cpu) / 1000
    events = sum(map(len, TURN)) / len(TURN) / weft.wall * 1e6
    print(
        f"{durability:>7} {writers:>7} |"
        f" {weft.wall:7.0f} {sql.wall:7.0f} {file.wall:7.1f} |"
        f" {weft.cpu:6.0f} {sql.cpu:6.0f} {file.cpu:6.1f} |"
        f" {ratio:5.2f} {weft.wall / file.wall:6.1f} {weft.cpu / sql.cpu:5.2f} |"
        f" {added:6.3f} {events:8.0f}"
    )
    if durability == "full":
        return ratio <= RATIO_BUDGET
    return writers > 1 or added <= ADDED_CPU_BUDGET_MS


def bytes_per_event(count: int) -> float:
    """Return how large a file of one long run is, for each event."""
    with tempfile.TemporaryDirectory() as folder:
        batches = count // (sum(map(len, TURN)) // len(TURN))
        weft_cost(Path(folder), "normal", stories(1, batches))
        return (Path(folder) / "weft.db").stat().st_size / count


def report_growth() -> bool:
    """Print how the file grows, and tell whether that is within budget."""
    small, large = bytes_per_event(1_000), bytes_per_event(10_000)
    plain = sum(len(text(event)) for part in TURN for event in part) / sum(map(len, TURN))
    print(f"bytes per event: {small:.0f} at 1,000, {large:.0f} at 10,000 (JSON alone: {plain:.0f})")
    print(f"growth: {large / small:.2f} x (budget {GROWTH_BUDGET})")
    return large / small <= GROWTH_BUDGET


def main() -> int:
    """Measure, print, and fail with --enforce where a budget is exceeded."""
    print("microseconds for one batch of two events, and ratios of Weft to doing it by hand")
    print(f"{'':>15} | {'wall time':^23} | {'CPU time':^20} | {'ratios':^18} | {'added':>6}")
    print(
        f"{'durable':>7} {'writers':>7} |"
        f" {'Weft':>7} {'SQL':>7} {'file':>7} |"
        f" {'Weft':>6} {'SQL':>6} {'file':>6} |"
        f" {'SQL':>5} {'file':>6} {'CPU':>5} |"
        f" {'CPU ms':>6} {'events/s':>8}"
    )
    durabilities: tuple[Durability, ...] = ("full", "normal")
    within = [report_cost(durability, *load) for durability in durabilities for load in LOADS]
    print(
        f"budgets: {RATIO_BUDGET:g} x SQL in wall time with full; "
        f"{ADDED_CPU_BUDGET_MS:g} ms of added CPU for one writer with normal"
    )
    memory = best([memory_cost(stories(50, 100)) for _ in range(ROUNDS)])
    print(f"in memory: {memory.cpu:.1f} microseconds for one batch")
    within.append(report_growth())
    return 1 if "--enforce" in sys.argv and not all(within) else 0


if __name__ == "__main__":
    raise SystemExit(main())
