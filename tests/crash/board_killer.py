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
from weft.adapters.sqlite import SqliteJournal
from weft.adapters.system_clock import SystemClock
from weft.runtime.worker import LEASE

CASCADE = ("Scout", "Writer", "Editor")
LETTERS = ("Reader", "Pairs")


class LaterClock(SystemClock):
    """The clock of a process that begins when the ones before it count as dead."""

    def __init__(self, lives: int) -> None:
        self._ahead = lives * (LEASE + 1000)

    def now(self) -> int:
        return super().now() + self._ahead


class TellingJournal:
    """Says how many batches were written."""

    def __init__(self, journal: SqliteJournal) -> None:
        self._journal = journal
        self._written = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._journal, name)

    async def append(self, batch: object) -> None:
        """Write, and say so."""
        await self._journal.append(batch)  # pyright: ignore[reportArgumentType]
        self._written += 1
        sys.stdout.write(f"{self._written}\n")
        sys.stdout.flush()


async def main() -> None:
    path, count, lives, letters = sys.argv[1:]
    only = (*CASCADE, *(LETTERS if letters == "1" else ()))
    journal = TellingJournal(await SqliteJournal.open(Path(path), durability="normal"))
    declared = spec(only, breaker=1_000_000)
    async with host_of(declared, journal, clock=LaterClock(int(lives))) as host:
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
