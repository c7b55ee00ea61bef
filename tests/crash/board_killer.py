"""A process that works on a board until it has no more to do, or is killed.

It publishes what is missing, says so, and works; each line it prints is how many turns it has seen
begin. Usage: python board_killer.py FILE COUNT LIVES ALL; LIVES processes came before it, and ALL
is 1 where agents collect beyond the correlation as well.
"""

import asyncio
import sys
from pathlib import Path

from support.board_cascade import NAME, host_of, spec
from support.run_play import ADA
from support.stopping_store import LaterClock
from weft.adapters.sql import SqliteStore
from weft.engine.rows import Batch

CASCADE = ("Scout", "Writer", "Editor")
LETTERS = ("Reader", "Pairs")


class CountingStore:
    """Says how many batches were written."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._written = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def append(self, batch: Batch, *, owner: str) -> bool:
        """Write, and say so."""
        left = await self._store.append(batch, owner=owner)
        self._written += 1
        sys.stdout.write(f"{self._written}\n")
        sys.stdout.flush()
        return left


async def main() -> None:
    path, count, lives, letters = sys.argv[1:]
    only = (*CASCADE, *(LETTERS if letters == "1" else ()))
    clock = LaterClock(int(lives))
    opened = await SqliteStore.open(Path(path), durability="normal", clock=clock)
    declared = spec(only, max_wakes_per_input=1_000_000)
    async with host_of(declared, CountingStore(opened), clock=clock) as host:
        await host.recover()
        for number in range(int(count)):
            await host.publish(
                NAME,
                "Seed",
                {"label": f"{number}"},
                scope=ADA,
                correlation="c1" if letters == "0" else f"c{number % 3}",
                id=f"seed-{number}",
            )
        await host.quiet()


if __name__ == "__main__":
    asyncio.run(main())
