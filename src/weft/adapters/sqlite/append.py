"""Writing batches: many in one transaction, each whole or not at all, none spoiling the others."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Final

from pydantic_core import from_json, to_json

from weft.adapters.sqlite.board_rows import BoardRows, write_board
from weft.adapters.sqlite.errors import store_error
from weft.adapters.sqlite.pieces import Row, in_pieces, marks
from weft.adapters.sqlite.rows import (
    CHANGING,
    EVENT_COLUMNS,
    REQUEST_COLUMNS,
    RUN_COLUMNS,
    Written,
    request_values,
)
from weft.adapters.sqlite.schema import transaction
from weft.engine.rows import (
    Batch,
    KeptValue,
    RequestClosed,
    RequestRow,
    RunRow,
    TimerGone,
    TimerRow,
)
from weft.errors import StoreConflict, StoreError
from weft.ports.dispatcher import RunKey

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
    packages: dict[RunKey, bytes] = field(default_factory=dict[RunKey, bytes])
    runs: dict[RunKey, RunRow] = field(default_factory=dict[RunKey, RunRow])
    changing: list[Batch] = field(default_factory=list[Batch])
    board: BoardRows = field(default_factory=lambda: BoardRows([], [], [], [], []))


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
        stored = _stored(connection, [(it.batch.row.app, it.batch.run) for it in batches])
        group = _Group()
        stands = {run: seq for run, (seq, _) in stored.items()}
        for batch in batches:
            _take(group, stands, batch)
        statuses = {run: status for run, (_, status) in stored.items()}
        _write_runs(connection, group.runs, statuses)
        _write_events(connection, group)
        if group.packages:
            connection.executemany(
                "INSERT OR IGNORE INTO packages VALUES (?, ?, ?)",
                [(*key, content) for key, content in group.packages.items()],
            )
        for batch in group.changing:
            _write_sides(connection, batch)
        write_board(connection, group.board)
    return group.outcomes


def _stored(
    connection: sqlite3.Connection, runs: Iterable[RunKey]
) -> dict[RunKey, tuple[int, str]]:
    """Return where the runs stand, and their status. As one JSON text it is one step (PIECES)."""
    found: dict[RunKey, tuple[int, str]] = {}
    for piece in in_pieces(list(dict.fromkeys(runs))):
        values = list(chain.from_iterable(piece))
        rows = from_json(connection.execute(_select_runs(len(piece)), values).fetchone()[0])
        found.update({(app, run): (seq, status) for app, run, seq, status in rows})
    return found


def _take(group: _Group, stands: dict[RunKey, int], written: Written) -> None:
    """Add a batch to the group unless its run has moved on, be it by an earlier batch of it."""
    batch = written.batch
    app, run = key = batch.row.app, batch.run
    stand = stands.get(key, 0)
    if stand != batch.expected:
        group.outcomes.append(
            StoreConflict(
                f"run {run} stands at event {stand}, not at {batch.expected}: "
                "another process has written; read it again"
            )
        )
        return
    group.events.extend(written.events)
    group.blobs.extend(written.blobs)
    stands[key] = batch.row.seq
    group.runs[key] = batch.row
    if batch.package is not None:
        group.packages[app, batch.row.digest] = batch.package
    if batch.sides:
        group.changing.append(batch)
    if written.board is not None:
        for all_, own in zip(group.board, written.board, strict=True):
            all_.extend(own)
    group.outcomes.append(None)


def _write_runs(
    connection: sqlite3.Connection, runs: dict[RunKey, RunRow], statuses: dict[RunKey, str]
) -> None:
    """Write the rows of runs; most keep their status, and then its index is left alone."""
    staying = [it for run, it in runs.items() if statuses.get(run) == it.status]
    moving = [it for run, it in runs.items() if statuses.get(run) != it.status]
    for rows, columns in ((staying, CHANGING), (moving, ("status", *CHANGING))):
        for piece in in_pieces(rows, MOST_RUNS):
            values = list(chain.from_iterable(it[:-1] for it in piece))
            connection.execute(_insert_runs(len(piece), columns), values)


def _write_events(connection: sqlite3.Connection, group: _Group) -> None:
    if group.blobs:
        connection.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?, ?)", group.blobs)
    for piece in in_pieces(group.events):
        connection.execute(_insert_events(len(piece)), list(chain.from_iterable(piece)))


def _write_sides(connection: sqlite3.Connection, batch: Batch) -> None:
    app, run = batch.row.app, batch.run
    for side in batch.sides:
        match side:
            case RequestRow():
                connection.execute(_INSERT_REQUEST, request_values(side))
            case RequestClosed():
                connection.execute(_DELETE_REQUEST, (app, run, side.id))
            case TimerRow():
                connection.execute("INSERT OR REPLACE INTO timers VALUES (?, ?, ?, ?, ?)", side)
            case TimerGone():
                connection.execute(_DELETE_TIMER, (app, run, side.id))
            case KeptValue():
                value = to_json(side.value).decode()
                connection.execute(
                    "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?, ?)",
                    side._replace(value=value),
                )
            case _:
                pass  # Of a board: many rows go into one statement.


# Only our own column names and question marks are put together below, never a value (S608).

_INSERT_REQUEST: Final = (
    f"INSERT OR REPLACE INTO requests ({', '.join(REQUEST_COLUMNS)}) "  # noqa: S608
    f"VALUES {marks(1, len(REQUEST_COLUMNS))}"
)


_DELETE_REQUEST: Final = "DELETE FROM requests WHERE app = ? AND run = ? AND id = ?"
_DELETE_TIMER: Final = "DELETE FROM timers WHERE app = ? AND run = ? AND id = ?"


@cache
def _select_runs(count: int) -> str:
    return (
        f"WITH wanted(a, r) AS (VALUES {marks(count, 2)}) "  # noqa: S608
        "SELECT json_group_array(json_array(app, run, seq, status)) "
        "FROM wanted CROSS JOIN runs ON app = a AND run = r"
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
        f"VALUES {marks(count, len(RUN_COLUMNS))} ON CONFLICT (app, run) DO UPDATE SET {changes}"
    )
