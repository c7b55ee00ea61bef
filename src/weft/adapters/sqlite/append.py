"""Writing batches: many in one transaction, each whole or not at all, none spoiling the others."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

from pydantic_core import from_json

from weft.adapters.sqlite.errors import store_error
from weft.adapters.sqlite.rows import (
    CHANGING,
    EVENT_COLUMNS,
    REQUEST_COLUMNS,
    RUN_COLUMNS,
    Row,
    Written,
    in_pieces,
    marks,
    request_values,
)
from weft.adapters.sqlite.schema import transaction
from weft.engine.rows import Batch, RunRow
from weft.errors import StoreConflict, StoreError

#: What a batch is to blame for, and not the file: values that no column or no JSON can hold.
UNFIT: Final = (
    TypeError,
    ValueError,
    OverflowError,
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)

#: How many runs go into one statement; more would be more values than an older SQLite takes.
MOST_RUNS: Final = 32


@dataclass(frozen=True, slots=True)
class _Group:
    """What the batches of one transaction come to, as far as they have been taken in."""

    outcomes: list[StoreError | None] = field(default_factory=list[StoreError | None])
    events: list[Row] = field(default_factory=list[Row])
    blobs: list[Row] = field(default_factory=list[Row])
    packages: dict[str, bytes] = field(default_factory=dict[str, bytes])
    runs: dict[str, RunRow] = field(default_factory=dict[str, RunRow])
    asking: list[Batch] = field(default_factory=list[Batch])


def write_group(
    connection: sqlite3.Connection, batches: Sequence[Written], path: Path
) -> list[StoreError | None]:
    """Write batches in one transaction and return, for each, what kept it from being written."""
    try:
        return _write(connection, batches)
    except UNFIT as error:
        if len(batches) > 1:
            return [it for batch in batches for it in write_group(connection, [batch], path)]
        return [unfit(batches[0].batch, error)]
    except sqlite3.Error as error:
        return [store_error(error, path) for _ in batches]


def unfit(batch: Batch, error: Exception) -> StoreError:
    """Return what is said of a batch that nothing could be kept of."""
    return StoreError(f"events of run {batch.run} cannot be stored: {error}")


def _write(connection: sqlite3.Connection, batches: Sequence[Written]) -> list[StoreError | None]:
    with transaction(connection):
        stored = _stored(connection, [it.batch.run for it in batches])
        group = _Group()
        stands = {run: seq for run, (seq, _) in stored.items()}
        for batch in batches:
            _take(group, stands, batch)
        statuses = {run: status for run, (_, status) in stored.items()}
        _write_runs(connection, group.runs, statuses)
        _write_events(connection, group)
        if group.packages:
            connection.executemany(
                "INSERT OR IGNORE INTO packages VALUES (?, ?)", group.packages.items()
            )
        for batch in group.asking:
            _write_requests(connection, batch)
    return group.outcomes


def _stored(connection: sqlite3.Connection, runs: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Return where the runs stand, and their status. As one JSON text it is one step (PIECES)."""
    found: dict[str, tuple[int, str]] = {}
    for piece in in_pieces(list(dict.fromkeys(runs))):
        found.update(from_json(connection.execute(_select_runs(len(piece)), piece).fetchone()[0]))
    return found


def _take(group: _Group, stands: dict[str, int], written: Written) -> None:
    """Add a batch to the group unless its run has moved on, be it by an earlier batch of it."""
    batch = written.batch
    run = batch.run
    stand = stands.get(run, 0)
    if stand != batch.expected:
        group.outcomes.append(
            StoreConflict(
                f"run {run} stands at event {stand}, not at {batch.expected}: "
                "somebody else has written; read it again"
            )
        )
        return
    group.events.extend(written.events)
    group.blobs.extend(written.blobs)
    stands[run] = batch.row.seq
    group.runs[run] = batch.row
    if batch.package is not None:
        group.packages[batch.row.digest] = batch.package
    if batch.opened or batch.closed:
        group.asking.append(batch)
    group.outcomes.append(None)


def _write_runs(
    connection: sqlite3.Connection, runs: dict[str, RunRow], statuses: dict[str, str]
) -> None:
    """Write the rows of runs; most keep their status, and then its index is left alone."""
    staying = [it for run, it in runs.items() if statuses.get(run) == it.status]
    moving = [it for run, it in runs.items() if statuses.get(run) != it.status]
    for rows, columns in ((staying, CHANGING), (moving, ("status", *CHANGING))):
        for piece in in_pieces(rows, MOST_RUNS):
            values = list(chain.from_iterable(piece))
            connection.execute(_insert_runs(len(piece), columns), values)


def _write_events(connection: sqlite3.Connection, group: _Group) -> None:
    if group.blobs:
        connection.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?)", group.blobs)
    for piece in in_pieces(group.events):
        connection.execute(_insert_events(len(piece)), list(chain.from_iterable(piece)))


def _write_requests(connection: sqlite3.Connection, batch: Batch) -> None:
    closed = [(batch.run, id_) for id_ in batch.closed]
    connection.executemany("DELETE FROM requests WHERE run = ? AND id = ?", closed)
    opened = [request_values(it) for it in batch.opened]
    connection.executemany(_INSERT_REQUEST, opened)


# Only our own column names and question marks are put together below, never a value (S608).

_INSERT_REQUEST: Final = (
    f"INSERT OR REPLACE INTO requests ({', '.join(REQUEST_COLUMNS)}) "  # noqa: S608
    f"VALUES {marks(1, len(REQUEST_COLUMNS))}"
)


@cache
def _select_runs(count: int) -> str:
    return (
        "SELECT json_group_object(run, json_array(seq, status)) FROM runs "  # noqa: S608
        f"WHERE run IN {marks(1, count)}"
    )


@cache
def _insert_events(count: int) -> str:
    return (
        f"INSERT INTO events ({', '.join(EVENT_COLUMNS)}) "  # noqa: S608
        f"VALUES {marks(count, len(EVENT_COLUMNS))}"
    )


@cache
def _insert_runs(count: int, columns: tuple[str, ...]) -> str:
    changes = ", ".join(f"{it} = excluded.{it}" for it in columns)
    return (
        f"INSERT INTO runs ({', '.join(RUN_COLUMNS)}) "  # noqa: S608
        f"VALUES {marks(count, len(RUN_COLUMNS))} ON CONFLICT (run) DO UPDATE SET {changes}"
    )
