"""Collecting beyond correlations: letters of artifacts come into the run that collects them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from weft.engine.events import ArtifactPublished, Event
from weft.engine.rows import Letter, RunRow
from weft.errors import WeftError
from weft.ports.journal import Journal
from weft.ports.scope import Scope
from weft.runtime.runs.decision import NewEvent

_log: Final = logging.getLogger("weft.runtime")

#: How many letters go into a run at once.
PAGE: Final = 100

#: How often it is tried again to bring letters, and after how many seconds.
TRIES: Final = 3
PAUSE: Final = 0.5

#: Tenant and collection.
Address = tuple[str, str]

#: Writes letters to the run that collects them, which is begun if it is not there.
Take = Callable[[str, Letter, Sequence[NewEvent]], Awaitable[None]]


async def open_run(journal: Journal, app: str, name: str) -> tuple[str, bool]:
    """Return the run that goes by a name now, and whether it has begun.

    A name is used again when the run of that name has ended: NAME, NAME#2, NAME#3 and so on.
    """
    number, last = await _last(journal, app, name)
    if last is not None and last.status != "ended":
        return last.run, True
    return _numbered(name, number + 1), False


async def last_run(journal: Journal, app: str, name: str) -> RunRow | None:
    """Return the newest run that went by a name."""
    return (await _last(journal, app, name))[1]


async def _last(journal: Journal, app: str, name: str) -> tuple[int, RunRow | None]:
    number, last = 0, None
    while (row := await journal.run(Scope(app), _numbered(name, number + 1))) is not None:
        number, last = number + 1, row
    return number, last


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}#{number}"


class Collector:
    """Brings letters to where they are collected; each collection by one task at a time."""

    def __init__(self, journal: Journal, take: Take) -> None:
        self._journal = journal
        self._take = take
        self._tasks: dict[Address, asyncio.Task[None]] = {}
        #: Where there are more letters than the task may have seen.
        self._more: set[Address] = set()
        self._closed = False

    @property
    def busy(self) -> bool:
        return bool(self._tasks)

    def look(self, app: str, events: Iterable[Event]) -> None:
        """Bring the letters of events that were just written."""
        for event in events:
            if isinstance(event.data, ArtifactPublished) and event.data.letters:
                for to in event.data.letters:
                    self.bring((app, to))

    def bring(self, address: Address) -> None:
        """Bring all letters of a collection."""
        self._more.add(address)
        if not self._closed and address not in self._tasks:
            task = asyncio.create_task(self._bring_all(address))
            self._tasks[address] = task

    async def bring_unread(self) -> None:
        """Bring what was written and not brought when a process ended."""
        for address in await self._journal.unread():
            self.bring(address)

    async def settled(self) -> None:
        """Return when no letter is on its way."""
        while self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def close(self) -> None:
        """Bring nothing any more; what is left is brought another time."""
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _bring_all(self, address: Address, tries: int = TRIES) -> None:
        app, to = address
        self._more.add(address)
        this = asyncio.current_task()
        try:
            while address in self._more:
                self._more.discard(address)
                while letters := await self._journal.letters(app, to, limit=PAGE):
                    news = [NewEvent("letter", letter.data) for letter in letters]
                    await self._take(to, letters[0], news)
        except WeftError:
            # They stay where they are: the next look, or the next process, brings them.
            _log.exception("letters to %s cannot be brought", to)
            if tries:
                await asyncio.sleep(PAUSE)
                self._tasks[address] = asyncio.create_task(self._bring_all(address, tries - 1))
        finally:
            if self._tasks.get(address) is this:
                del self._tasks[address]
