"""A process that writes to a store until it is killed, and prints what it knows to be written.

Every event says how many there are in its batch and which of them it is, so that half a batch can
be recognised. Usage: python store_appender.py FILE DURABILITY NUMBER
"""

import asyncio
import sys
from itertools import count
from pathlib import Path
from random import Random

from weft.adapters.sql import SqliteStore
from weft.engine.events import ToolReturned
from weft.engine.rows import RequestClosed
from weft.testing.store.samples import ME, SCOPE, SampleRun

RUNS = 8
CHANCE = Random(7)


def events(run: SampleRun) -> list[ToolReturned]:
    """Make the events of the next batch, sometimes large."""
    size = CHANCE.randint(1, 6)
    padding = "x" * CHANCE.choice((10, 200, 200, 5000, 40_000))
    return [
        ToolReturned(f"{run.seq}", {"of": size, "number": number, "padding": padding})
        for number in range(size)
    ]


async def grow(store: SqliteStore, name: str) -> None:
    """Append to one run for ever; each batch asks a question and closes the one before."""
    row = await store.run(SCOPE, name)
    run = SampleRun(name, seq=row.seq if row else 0)
    while True:
        asked = run.request(f"q{run.seq}")
        before = (RequestClosed(row.id) for row in await store.requests(SCOPE, run=name))
        batch = run.batch(*events(run), changes=(asked, *before))
        await store.append(batch, owner=ME)
        sys.stdout.write(f"{name} {run.seq}\n")
        sys.stdout.flush()


async def churn(store: SqliteStore, process: int) -> None:
    """Let short runs come, end and be removed for ever."""
    for number in count():
        run = SampleRun(f"gone-{process}-{number}", app="churn", digest=f"d{number}")
        await store.append(run.batch(*events(run), package=b"content"), owner=ME)
        await store.append(run.batch(*events(run), status="ended"), owner=ME)
        if number % 10 == 9:
            await store.prune(run.scope, ended_before=10_000, dry_run=False)


async def main() -> None:
    path, durability, process = sys.argv[1:]
    store = await SqliteStore.open(Path(path), durability=durability)
    await asyncio.gather(
        churn(store, int(process)), *(grow(store, f"r{number}") for number in range(RUNS))
    )


if __name__ == "__main__":
    asyncio.run(main())
