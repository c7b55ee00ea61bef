"""Records of a server: all of a kind, those that every request reads, and logs."""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.records import Record, Records

#: The tenant of records that belong to the whole server.
SERVER: Final = ""

#: Milliseconds for which a record that was read counts as current, and how many are remembered.
_CURRENT: Final = 5_000
_MOST: Final = 10_000

#: How many entries are kept of each log, and after how many new ones older ones are removed.
KEPT: Final = 1_000
_TRIM_EVERY: Final = 100

_PAGE: Final = 500


async def all_records(records: Records, app: str, kind: str) -> AsyncGenerator[Record]:
    """Yield all records of a kind, by their keys."""
    after = ""
    while page := await records.records(app, kind, after=after, limit=_PAGE):
        for record in page:
            yield record
        after = page[-1].key


async def delete_all(records: Records, app: str, kind: str) -> None:
    """Delete all records of a kind."""
    async for record in all_records(records, app, kind):
        await records.delete_record(app, kind, record.key)


class RecordCache:
    """Reads records that every request needs: again only after five seconds."""

    def __init__(self, records: Records, clock: Clock) -> None:
        self._records = records
        self._clock = clock
        self._known: dict[tuple[str, str, str], tuple[Record | None, int]] = {}

    async def read(self, app: str, kind: str, key: str) -> Record | None:
        """Return a record."""
        now, place = self._clock.now(), (app, kind, key)
        record, read_at = self._known.get(place, (None, -_CURRENT))
        if not 0 <= now - read_at < _CURRENT:
            if len(self._known) >= _MOST:  # Of keys that somebody makes up.
                self._known.clear()
            record = await self._records.record(app, kind, key)
            self._known[place] = record, now
        return record

    def forget(self, app: str, kind: str, key: str) -> None:
        """Read a record again: it has changed."""
        self._known.pop((app, kind, key), None)


class RecordLog:
    """Writes and reads logs; the name of a log is its kind of records."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._added: Counter[tuple[str, str]] = Counter()

    async def add(self, app: str, log: str, at: int, id_: str, entry: Mapping[str, Json]) -> None:
        """Write an entry: one for each time and id."""
        await self._records.add_record(app, log, f"{at:015}-{id_}", {"at": at, **entry})
        self._added[app, log] += 1
        if self._added[app, log] % _TRIM_EVERY == 0:
            await self._trim(app, log)

    async def page(self, app: str, log: str, *, cursor: str = "", limit: int = 50) -> list[Record]:
        """Return entries, newest first; the cursor is the key of the last one of a page."""
        return await self._records.records(app, log, after=cursor, limit=limit, newest=True)

    async def _trim(self, app: str, log: str) -> None:
        cursor = ""
        for _ in range(KEPT // _PAGE):
            page = await self.page(app, log, cursor=cursor, limit=_PAGE)
            if len(page) < _PAGE:
                return
            cursor = page[-1].key
        while page := await self.page(app, log, cursor=cursor, limit=_PAGE):
            for record in page:
                await self._records.delete_record(app, log, record.key)
