"""What is looked up in a SQLite journal. Every query follows an index."""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from weft.adapters.sqlite.rows import (
    REQUEST_COLUMNS,
    RUN_COLUMNS,
    refuse_gap,
    to_events,
    to_request,
    to_run,
)
from weft.engine.events import Event
from weft.engine.rows import RequestRow, RunRow
from weft.ports.scope import Scope

_RUNS: Final = " ".join(["SELECT", ", ".join(RUN_COLUMNS), "FROM runs"])
_REQUESTS: Final = " ".join(["SELECT", ", ".join(REQUEST_COLUMNS), "FROM requests"])
#: Each with how many its run should have; a run without any is one row.
_EVENTS: Final = """
    SELECT runs.seq, events.seq, at, actor, cause, kind,
           CASE typeof(data)
           WHEN 'blob' THEN (SELECT content FROM blobs WHERE digest = data) ELSE data END
    FROM runs LEFT JOIN events ON events.run = runs.run AND events.seq > ?2
    WHERE runs.run = ?1 AND app = ?3 AND (?4 IS NULL OR user = ?4)
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
    """Return a run."""
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
    where, values = within(scope)
    if run is not None:
        where, values = f"run = ? AND {where}", [run, *values]
    return _requests(connection, f"WHERE {where} ORDER BY opened_at, run, id", values)


def find_unfinished(connection: sqlite3.Connection) -> list[RunRow]:
    """Return the runs with something to do, of all tenants, oldest first."""
    sql = f"{_RUNS} WHERE status = 'running' ORDER BY started_at, run"
    return [to_run(row) for row in connection.execute(sql).fetchall()]


def find_next_expiry(connection: sqlite3.Connection) -> int | None:
    """Return when the next open question expires."""
    sql = "SELECT min(expires_at) FROM requests WHERE expires_at IS NOT NULL"
    return connection.execute(sql).fetchone()[0]


def find_expired(connection: sqlite3.Connection, now: int) -> list[RequestRow]:
    """Return the open questions whose time is over, the longest overdue first."""
    return _requests(connection, "WHERE expires_at <= ? ORDER BY expires_at, run, id", [now])


def find_package(connection: sqlite3.Connection, digest: str) -> bytes | None:
    """Return the content of a workflow."""
    sql = "SELECT content FROM packages WHERE digest = ?"
    row = connection.execute(sql, (digest,)).fetchone()
    return None if row is None else row[0]


def within(scope: Scope) -> tuple[str, list[Any]]:
    """Return what a row must fulfil to be in a scope."""
    if scope.user is None:
        return "app = ?", [scope.app]
    return "app = ? AND user = ?", [scope.app, scope.user]


def _requests(connection: sqlite3.Connection, rest: str, values: Sequence[Any]) -> list[RequestRow]:
    return [to_request(row) for row in connection.execute(f"{_REQUESTS} {rest}", values)]
