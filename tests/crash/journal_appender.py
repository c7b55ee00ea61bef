"""A process that writes to a journal until it is killed, and says what it was told is written.

Every event says how many there are in its batch and which of them it is, so that half a batch can
be recognised. Usage: python journal_appender.py FILE DURABILITY NUMBER
"""

import asyncio
import sys
from itertools import count
from pathlib import Path
from random import Random

from weft.adapters.sqlite import SqliteJournal
from weft.engine.events import ToolReturned
from weft.engine.rows import RequestClosed
from weft.testing.journal.samples import SCOPE, SampleRun

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


async def grow(journal: SqliteJournal, name: str) -> None:
    """Append to one run for ever; each batch asks a question and closes the one before."""
    row = await journal.run(SCOPE, name)
    run = SampleRun(name, seq=row.seq if row else 0)
    while True:
        asked = run.request(f"q{run.seq}")
        before = (RequestClosed(it.id) for it in await journal.requests(SCOPE, run=name))
        batch = run.batch(*events(run), sides=(asked, *before))
        await journal.append(batch)
        sys.stdout.write(f"{name} {run.seq}\n")
        sys.stdout.flush()


async def churn(journal: SqliteJournal, process: int) -> None:
    """Let short runs come, end and be removed for ever."""
    for number in count():
        run = SampleRun(f"gone-{process}-{number}", app="churn", digest=f"d{number}")
        await journal.append(run.batch(*events(run), package=b"content"))
        await journal.append(run.batch(*events(run), status="ended"))
        if number % 10 == 9:
            await journal.prune(run.scope, ended_before=10_000, dry_run=False)


async def main() -> None:
    path, durability, process = sys.argv[1:]
    journal = await SqliteJournal.open(Path(path), durability=durability)
    await asyncio.gather(
        churn(journal, int(process)), *(grow(journal, f"r{number}") for number in range(RUNS))
    )


if __name__ == "__main__":
    asyncio.run(main())
