"""What is looked up in a SQLite journal. Every query follows an index."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from pydantic_core import from_json

from weft.adapters.sqlite.rows import (
    REQUEST_COLUMNS,
    RUN_COLUMNS,
    refuse_gap,
    to_events,
    to_request,
    to_run,
)
from weft.engine.events import Event
from weft.engine.rows import DueRow, RequestRow, RunRow
from weft.findings import Json
from weft.ports.scope import Scope

#: With the last sign of life of whoever works on each.
_RUNS: Final = " ".join(
    [
        "SELECT", ", ".join(RUN_COLUMNS),
        ", coalesce((SELECT heartbeat FROM workers WHERE workers.owner = runs.owner), 0) FROM runs",
    ]
)  # fmt: skip
_REQUESTS: Final = " ".join(["SELECT", ", ".join(REQUEST_COLUMNS), "FROM requests"])
#: Milliseconds after which the last sign of life of a worker is forgotten.
FORGET_AFTER: Final = 24 * 3_600_000

#: Each with how many its run should have; a run without any is one row.
_EVENTS: Final = """
    SELECT runs.seq, events.seq, at, actor, cause, turn, kind,
           CASE typeof(data) WHEN 'blob'
           THEN (SELECT content FROM blobs WHERE blobs.app = events.app AND digest = data)
           ELSE data END
    FROM runs LEFT JOIN events
         ON events.app = runs.app AND events.run = runs.run AND events.seq > ?2
    WHERE runs.app = ?3 AND runs.run = ?1 AND (?4 IS NULL OR user = ?4)
    ORDER BY events.seq LIMIT ?5
"""


def read_events(
    connection: sqlite3.Connection, scope: Scope, run: str, after: int, limit: int | None
) -> list[Event]:
    """Return the events of a run after a number; raise StoreError if one of them is lost."""
    most = -1 if limit is None else limit
    rows = connection.execute(_EVENTS, (run, after, scope.app, scope.user, most)).fetchall()
    if not rows:
        return []
    last = rows[0][0] if limit is None else min(rows[0][0], after + limit)
    events = to_events(run, [row[1:] for row in rows if row[1] is not None])
    refuse_gap(run, events, max(after, 0), last)
    return events


def find_run(connection: sqlite3.Connection, scope: Scope, run: str) -> RunRow | None:
    where, values = within(scope)
    row = connection.execute(f"{_RUNS} WHERE run = ? AND {where}", [run, *values]).fetchone()
    return None if row is None else to_run(row)


def find_runs(
    connection: sqlite3.Connection,
    scope: Scope,
    status: str | None,
    workflow: str | None,
    before: str | None,
    limit: int,
) -> list[RunRow]:
    """Return runs, newest first."""
    where, values = within(scope)
    index = "runs_by_app" if scope.user is None else "runs_by_user"
    if workflow is not None:
        where, values = f"{where} AND workflow = ?", [*values, workflow]
        index = "runs_by_workflow" if scope.user is None else index
    if status is not None:
        where, values = f"{where} AND status = ?", [*values, status]
        index = "runs_by_status" if scope.user is None and workflow is None else index
    if before is not None:
        last = find_run(connection, scope, before)
        if last is None:
            return []
        where = f"{where} AND (started_at, run) < (?, ?)"
        values = [*values, last.started_at, last.run]
    # Named, because the planner knows nothing of how many rows a value has.
    sql = f"{_RUNS} INDEXED BY {index} WHERE {where} ORDER BY started_at DESC, run DESC LIMIT ?"
    return [to_run(row) for row in connection.execute(sql, [*values, limit]).fetchall()]


def find_requests(
    connection: sqlite3.Connection, scope: Scope, run: str | None
) -> list[RequestRow]:
    """Return the open questions, oldest first."""
    where, values = answerable(scope)
    if run is not None:
        covered, own = within(scope)
        where, values = f"run = ? AND ({where} OR {covered})", [run, *values, *own]
    return _requests(connection, f"WHERE {where} ORDER BY opened_at, run, id", values)


def find_kept(connection: sqlite3.Connection, scope: Scope, workflow: str) -> dict[str, Json]:
    """Return the values that runs of a user's have left for the next."""
    sql = "SELECT name, value FROM kept WHERE app = ? AND user = ? AND workflow = ?"
    rows = connection.execute(sql, (scope.app, scope.user or "", workflow)).fetchall()
    return {name: from_json(value) for name, value in rows}


def find_completed(
    connection: sqlite3.Connection, scope: Scope, workflows: Sequence[str]
) -> set[str]:
    """Return those of the workflows of which a run has been completed; a fork is none."""
    where, values = within(scope)
    # Named, because a partial index is used only where the planner sees that it suffices.
    ended = f"{where} AND workflow = ? AND outcome = 'completed' AND parent = ''"
    sql = f"{_RUNS} INDEXED BY runs_by_completion WHERE {ended} LIMIT 1"
    return {it for it in workflows if connection.execute(sql, [*values, it]).fetchone()}


def find_unfinished(connection: sqlite3.Connection) -> list[RunRow]:
    """Return the runs with something to do, of all tenants, oldest first."""
    sql = f"{_RUNS} WHERE status = 'running' ORDER BY started_at, run"
    return [to_run(row) for row in connection.execute(sql).fetchall()]


#: Everything that becomes due, in the columns of `DueRow`.
_DUE: Final = """
    SELECT 'request' AS kind, id, run, app, user, expires_at AS at
    FROM requests WHERE expires_at {when}
    UNION ALL SELECT 'timer', id, run, app, user, at FROM timers WHERE at {when}
"""
_NEXT_DUE: Final = f"SELECT min(at) FROM ({_DUE.format(when='> ?1')})"  # noqa: S608 - our own words
_DUE_NOW: Final = (
    f"SELECT kind, id, run, app, user, at FROM ({_DUE.format(when='<= ?1')}) "  # noqa: S608
    "WHERE (at, app, run, id) > (?2, ?3, ?4, ?5) ORDER BY at, app, run, id LIMIT ?6"
)


def find_next_due(connection: sqlite3.Connection, after: int) -> int | None:
    """Return when something is due next after a time."""
    return connection.execute(_NEXT_DUE, (after,)).fetchone()[0]


def find_due(
    connection: sqlite3.Connection, now: int, after: DueRow | None, limit: int
) -> list[DueRow]:
    """Return what is due, the longest overdue first."""
    place = (-1, "", "", "") if after is None else (after.at, after.app, after.run, after.id)
    return [DueRow(*row) for row in connection.execute(_DUE_NOW, (now, *place, limit))]


def note_beat(connection: sqlite3.Connection, owner: str, at: int) -> None:
    """Write a sign of life, and forget those of workers that died long ago."""
    connection.execute("INSERT OR REPLACE INTO workers VALUES (?, ?)", (owner, at))
    connection.execute("DELETE FROM workers WHERE heartbeat < ?", (at - FORGET_AFTER,))


def claim_run(connection: sqlite3.Connection, app: str, run: str, owner: str, before: str) -> bool:
    """Let a running run have another owner; tell whether it belonged to the one before."""
    sql = "UPDATE runs SET owner = ? WHERE app = ? AND run = ? AND owner = ? AND status = 'running'"
    return connection.execute(sql, (owner, app, run, before)).rowcount > 0


def data_version(connection: sqlite3.Connection) -> int:
    """Return a number that changes when another connection than this one has written."""
    return connection.execute("PRAGMA data_version").fetchone()[0]


def find_package(connection: sqlite3.Connection, app: str, digest: str) -> bytes | None:
    """Return the content of a workflow."""
    sql = "SELECT content FROM packages WHERE app = ? AND digest = ?"
    row = connection.execute(sql, (app, digest)).fetchone()
    return None if row is None else row[0]


def within(scope: Scope) -> tuple[str, list[Any]]:
    """Return what a row must fulfil to be in a scope."""
    if scope.user is None:
        return "app = ?", [scope.app]
    return "app = ? AND user = ?", [scope.app, scope.user]


def answerable(scope: Scope) -> tuple[str, list[Any]]:
    """Return what a question must fulfil to be the scope's to answer."""
    if scope.user is None:
        return "app = ?", [scope.app]
    asked = ", ".join("?" for _ in scope.addresses)
    return (
        f"(app = ? AND ((user = ? AND addressee = '') OR addressee IN ({asked})))",
        [scope.app, scope.user, *scope.addresses],
    )


def _requests(connection: sqlite3.Connection, rest: str, values: Sequence[Any]) -> list[RequestRow]:
    return [to_request(row) for row in connection.execute(f"{_REQUESTS} {rest}", values)]
