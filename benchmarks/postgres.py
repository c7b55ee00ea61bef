"""What it costs to write events to PostgreSQL, beside bare inserts of the same rows.

"Bare" writes the same rows of events and runs, made beforehand, with one `INSERT ... SELECT FROM
unnest` for each table in transactions of the same size, into tables with the same keys and no other
index. It locks, checks and notifies nothing. The rows are counted after every round. Client CPU is
that of this process, server CPU that of all processes of the server.
Usage: python benchmarks/postgres.py [--enforce]
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import asyncpg

ROOT: Final = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from benchmarks.store import stories  # noqa: E402

from support.postgres_server import PostgresServer  # noqa: E402
from weft.adapters.sql.postgres.schema import migrate  # noqa: E402
from weft.adapters.sql.postgres.store import PostgresStore  # noqa: E402
from weft.adapters.sql.rows import batch_rows  # noqa: E402
from weft.adapters.sql.tables import EVENT_COLUMNS, RUN_COLUMNS  # noqa: E402
from weft.engine.rows import Batch  # noqa: E402

#: The rate of events in full groups, as a share of bare inserts.
SHARE_BUDGET: Final = 0.3
ROUNDS: Final = 3

#: Concurrent writers, and how many batches each appends in a round.
LOADS: Final = ((1, 100), (50, 40), (500, 12))

_TYPES: Final = {"": "text", "number": "bigint", "real": "float8"}


def table(name: str, columns: Sequence[str], key: str) -> tuple[str, str]:
    """Return the statements that create a bare table and write rows to it."""
    parts = [column.partition(":") for column in columns]
    types = [_TYPES[type_] for _, _, type_ in parts]
    defined = ", ".join(f"{part[0]} {type_}" for part, type_ in zip(parts, types, strict=True))
    arrays = ", ".join(f"${number}::{type_}[]" for number, type_ in enumerate(types, 1))
    changes = ", ".join(f"{part[0]} = excluded.{part[0]}" for part in parts)
    create = f"CREATE TABLE {name} ({defined}, PRIMARY KEY ({key})) WITH (fillfactor = 70)"
    rows = f"SELECT * FROM unnest({arrays})"
    return create, f"INSERT INTO {name} {rows} ON CONFLICT ({key}) DO UPDATE SET {changes}"


EVENTS: Final = table("bare_events", EVENT_COLUMNS, "app, run, seq")
RUNS: Final = table("bare_runs", RUN_COLUMNS, "app, run")


class Cost(NamedTuple):
    """Microseconds for one batch, and events in a second."""

    wall: float
    client: float
    server: float
    events: float


async def measured(
    server: PostgresServer, batches: int, events: int, work: Callable[[], Awaitable[None]]
) -> Cost:
    """Return what some work costs."""
    wall, client, before = time.perf_counter(), time.process_time(), server_cpu(server)
    await work()
    wall, client = time.perf_counter() - wall, time.process_time() - client
    used = server_cpu(server) - before
    return Cost(wall / batches * 1e6, client / batches * 1e6, used / batches * 1e6, events / wall)


def server_cpu(server: PostgresServer) -> float:
    """Return the CPU seconds of all processes of a server that live."""
    main = int((server.folder / "data" / "postmaster.pid").read_text().split()[0])
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if main in (int(stat.parent.name), int(fields[1])):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / 100


async def weft_cost(server: PostgresServer, work: list[list[Batch]]) -> Cost:
    """Measure the store."""
    schema = f"weft_{time.perf_counter_ns()}"
    await migrate(server.url, schema=schema)
    store = await PostgresStore.open(server.url, schema=schema)
    await asyncio.gather(*(store.append(keep(story[0]), owner="w") for story in work))

    async def write(story: list[Batch]) -> None:
        for batch in story[1:]:
            await store.append(keep(batch), owner="w")

    async def all_at_once() -> None:
        await asyncio.gather(*map(write, work))

    batches = sum(len(story) - 1 for story in work)
    events = sum(len(batch.events) for story in work for batch in story[1:])
    cost = await measured(server, batches, events, all_at_once)
    await store.close()
    first = sum(len(story[0].events) for story in work)
    await expect_rows(server, f"{schema}.events", events + first)
    return cost


def keep(batch: Batch) -> Batch:
    """Return a batch whose writer goes on working on the run."""
    return batch._replace(held=True)


async def bare_cost(server: PostgresServer, work: list[list[Batch]]) -> Cost:
    """Measure bare inserts."""
    connection = await cast("Any", asyncpg).connect(server.url)
    await connection.execute("DROP TABLE IF EXISTS bare_events, bare_runs")
    await connection.execute(EVENTS[0])
    await connection.execute(RUNS[0])
    groups = [
        [batch_rows(batch, new_id=str) for batch in together]
        for together in list(zip(*work, strict=True))[1:]
    ]
    rows = [
        (
            list(zip(*(event for batch in group for event in batch.events), strict=True)),
            list(zip(*(batch.run for batch in group), strict=True)),
        )
        for group in groups
    ]
    events = sum(len(columns[0]) for columns, _ in rows)

    async def insert() -> None:
        for of_events, of_runs in rows:
            async with connection.transaction():
                await connection.execute(RUNS[1], *of_runs)
                await connection.execute(EVENTS[1], *of_events)

    cost = await measured(server, len(groups) * len(work), events, insert)
    await connection.close()
    await expect_rows(server, "bare_events", events)
    await expect_rows(server, "bare_runs", len(work))
    return cost


async def expect_rows(server: PostgresServer, table: str, count: int) -> None:
    """Fail unless a table has so many rows."""
    connection = await cast("Any", asyncpg).connect(server.url)
    found = await connection.fetchval(f"SELECT count(*) FROM {table}")
    await connection.close()
    if found != count:
        raise AssertionError(f"{table}: expected {count} rows, found {found}")


async def main() -> int:
    """Print the costs; return 1 if the budget is exceeded."""
    server = PostgresServer.create({"fsync": "on", "full_page_writes": "on"})
    share = 0.0
    try:
        for writers, batches in LOADS:
            work = stories(writers, batches)
            costs = [
                (await weft_cost(server, work), await bare_cost(server, work))
                for _ in range(ROUNDS)
            ]
            weft = max((pair[0] for pair in costs), key=lambda cost: cost.events)
            bare = max((pair[1] for pair in costs), key=lambda cost: cost.events)
            share = weft.events / bare.events
            print(
                f"{writers:4} writers: {weft.events:8,.0f} events/s, bare {bare.events:8,.0f}"
                f" ({share:.0%}); batch: wall {weft.wall:5.0f} us, CPU {weft.client:4.0f} client"
                f" + {weft.server:4.0f} server; bare {bare.client:4.0f} + {bare.server:4.0f}"
            )
    finally:
        server.remove()
    print(f"share in full groups {share:.0%}, at least {SHARE_BUDGET:.0%}")
    return int(share < SHARE_BUDGET)


if __name__ == "__main__":
    failed = asyncio.run(main())
    sys.exit(failed if "--enforce" in sys.argv else 0)
