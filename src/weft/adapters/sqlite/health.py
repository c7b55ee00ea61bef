"""Whether a SQLite journal can be read from its first event to its last."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from weft.adapters.sqlite.errors import DAMAGED, store_error
from weft.adapters.sqlite.pieces import Row
from weft.adapters.sqlite.queries import find_unfinished
from weft.adapters.sqlite.rows import refuse_gap, to_events
from weft.adapters.sqlite.schema import open_reader, refuse_strangers
from weft.engine.rows import RunRow
from weft.errors import StoreError

#: Seconds to wait for another process that tidies the file up.
_BUSY: Final = 5.0

#: In the order of their key, each with how many its run should have.
_ALL_EVENTS: Final = """
    SELECT runs.app, runs.run, runs.seq, events.seq, at, actor, cause, turn, kind,
           CASE typeof(data) WHEN 'blob'
           THEN (SELECT content FROM blobs WHERE blobs.app = events.app AND digest = data)
           ELSE data END
    FROM runs LEFT JOIN events USING (app, run) ORDER BY runs.app, runs.run, events.seq
"""


@dataclass(frozen=True, slots=True)
class Health:
    """What a sound journal holds; `unfinished` are the runs with something to do."""

    runs: int = 0
    events: int = 0
    unfinished: tuple[RunRow, ...] = ()


def examine(path: Path) -> Health:
    """Read everything in a journal, and change nothing.

    Raises StoreError at the first thing that is damaged or missing.
    """
    try:
        with closing(open_reader(path, _BUSY)) as connection:
            if not refuse_strangers(connection, path):
                return Health()  # made just now, or a moment before its process ended
            _refuse_damage(connection, path)
            counts = list(_read_runs(connection))
            return Health(len(counts), sum(counts), tuple(find_unfinished(connection)))
    except sqlite3.Error as error:
        raise store_error(error, path) from error


def _refuse_damage(connection: sqlite3.Connection, path: Path) -> None:
    said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if said != "ok":
        raise StoreError(f"journal {path}: {DAMAGED} (SQLite says: {said})")


def _read_runs(connection: sqlite3.Connection) -> Iterator[int]:
    """Yield how many events each run has, after having read them."""
    for (_, run, last), rows in groupby(connection.execute(_ALL_EVENTS), itemgetter(0, 1, 2)):
        yield _read_run(run, last, [row[3:] for row in rows if row[3] is not None])


def _read_run(run: str, last: int, rows: list[Row]) -> int:
    events = to_events(run, rows)
    refuse_gap(run, events, 0, last)
    return len(events)
