"""What is read of runs. Every query follows an index."""

from collections.abc import Sequence
from typing import Final

from pydantic_core import from_json

from weft.adapters.sql.rows import (
    SELECT_REQUESTS,
    SELECT_RUNS,
    refuse_gap,
    to_events,
    to_mail,
    to_request,
)
from weft.adapters.sql.statements import Row, Statement, Terms, Transaction, query
from weft.engine.events import Event
from weft.engine.rows import Mail, RequestRow, RunRow, Snapshot
from weft.engine.timers import NEVER
from weft.findings import Json
from weft.ports.scope import Scope
from weft.ports.store import RunKey

#: The data of an event, which may be large and elsewhere.
EVENT_DATA: Final = """
    CASE WHEN substr(e.data, 1, 1) = '#'
    THEN (SELECT b.content FROM blobs b WHERE b.app = e.app AND b.digest = e.data)
    ELSE e.data END
"""
#: Each with how many its run should have; a run without any is one row.
_EVENTS: Final = f"""
    SELECT r.seq, e.seq, e.at, e.actor, e.cause, e.turn, e.kind, {EVENT_DATA}
    FROM runs r LEFT JOIN events e ON e.app = r.app AND e.run = r.run AND e.seq > $1
    WHERE r.app = $2 AND r.run = $3 %s ORDER BY e.seq LIMIT $4
"""  # noqa: S608 - our own words
_PENDING: Final = Statement(
    """
    SELECT app, run, name, id, actor, kind, data, start, request
    FROM mail WHERE app = $1 AND run = $2 ORDER BY number LIMIT $3
    """
)
_PACKAGE: Final = Statement("SELECT content FROM packages WHERE app = $1 AND digest = $2")
_SNAPSHOT: Final = Statement(
    "SELECT seq, format, digest, content FROM snapshots WHERE app = $1 AND run = $2"
)
_SAVE: Final = Statement(
    """
    INSERT INTO snapshots (app, run, seq, format, digest, content)
    SELECT app, run, $3, $4, $5, $6 FROM runs
    WHERE app = $1 AND run = $2 AND status <> 'ended' AND seq >= $3 {share}
    ON CONFLICT (app, run) DO UPDATE SET seq = excluded.seq, format = excluded.format,
    digest = excluded.digest, content = excluded.content WHERE snapshots.seq <= excluded.seq
    """
)
_SEQS: Final = Statement("SELECT app, run, seq FROM runs WHERE {keys}", "app run")
_PUT_SECRET: Final = Statement(
    """
    INSERT INTO secret_answers (app, run, request, content) VALUES ($1, $2, $3, $4)
    ON CONFLICT (app, run, request) DO UPDATE SET content = excluded.content
    """
)
_SECRETS: Final = (
    "FROM secret_answers WHERE app = $1 AND run = $2 AND substr(request, 1, length($3)) = $3"
)
_FIND_SECRETS: Final = Statement(f"SELECT request, content {_SECRETS}")
_DROP_SECRETS: Final = Statement(f"DELETE {_SECRETS}")
_OPEN: Final = """
    SELECT run FROM runs {by runs_open_by_name}
    WHERE app = $1 AND name = $2 AND name <> '' AND status <> 'ended'
"""
_CARRIED: Final = Statement(
    "SELECT name, value FROM carried_values WHERE app = $1 AND user_id = $2 AND workflow = $3"
)


def read_events(scope: Scope, run: str, after: int, limit: int | None) -> Transaction[list[Event]]:
    """Return the events of a run after a number; raise StoreError if one of them is lost."""
    values: list[object] = [after, scope.app, run, NEVER if limit is None else max(limit, 0)]
    own = ""
    if scope.user is not None:
        own = "AND r.user_id = $5"
        values.append(scope.user)
    rows = yield query(_EVENTS % own, values)
    if not rows:
        return []
    last = rows[0][0] if limit is None else min(rows[0][0], after + limit)
    events = to_events(run, [row[1:] for row in rows if row[1] is not None])
    refuse_gap(run, events, max(after, 0), last)
    return events


def find_run(scope: Scope, run: str) -> Transaction[RunRow | None]:
    """Return the row of a run."""
    terms = _within(scope).add("r.run = $", run).add("r.seq > 0")
    rows = yield query(f"{_runs('')} WHERE {terms}", terms.values)
    return RunRow(*rows[0]) if rows else None


def find_named(app: str, name: str) -> Transaction[RunRow | None]:
    """Return the open run of a name, else the newest that has ended."""
    terms = Terms().add("r.app = $", app).add("r.name = $", name).add("r.seq > 0")
    open_ = f"{_runs('runs_open_by_name')} WHERE {terms} AND r.name <> '' AND r.status <> 'ended'"
    rows = yield query(open_, terms.values)
    if not rows:
        newest = f"{_runs('runs_by_name')} WHERE {terms} AND r.name <> ''"
        rows = yield query(f"{newest} ORDER BY r.started_at DESC, r.run DESC LIMIT 1", terms.values)
    return RunRow(*rows[0]) if rows else None


def find_open(app: str, name: str) -> Transaction[str | None]:
    """Return the id of the open run of a name."""
    rows = yield query(_OPEN, [app, name])
    return rows[0][0] if rows else None


def find_runs(
    scope: Scope, status: str | None, workflow: str | None, before: str | None, limit: int
) -> Transaction[list[RunRow]]:
    """Return runs, newest first."""
    terms = _within(scope)
    index = "runs_by_app" if scope.user is None else "runs_by_user"
    if workflow is not None:
        terms.add("r.workflow = $", workflow)
        index = "runs_by_workflow" if scope.user is None else index
    if status is not None:
        terms.add("r.status = $", status)
        if index == "runs_by_app" and status == "running":
            terms.add("r.status = 'running'")
            index = "runs_running"
        elif index == "runs_by_app" and status != "ended":
            terms.add("r.status <> 'ended'")
            index = "runs_open"
    if before is not None:
        last = yield from find_run(scope, before)
        if last is None:
            return []
        terms.add("(r.started_at, r.run) < ($, $)", last.started_at, last.run)
    # The index is named, because the planner knows nothing of how many rows a value has.
    values = [*terms.values, max(limit, 0)]
    rows = yield query(
        f"{_runs(index)} WHERE {terms} AND r.seq > 0 "
        f"ORDER BY r.started_at DESC, r.run DESC LIMIT ${len(values)}",
        values,
    )
    return [RunRow(*row) for row in rows]


def find_requests(
    scope: Scope, run: str | None, after: tuple[int, str, str] | None, limit: int | None
) -> Transaction[list[RequestRow]]:
    """Return open requests, oldest first; those of a user are merged from several indexes."""
    parts: list[tuple[str, Terms]] = []
    if run is not None:
        parts = [("", Terms().add("run = $", run))]
        if scope.user is not None:
            marks = ", ".join("$" for _ in scope.addresses)
            parts[0][1].add(
                f"(user_id = $ OR addressee IN ({marks}))", scope.user, *scope.addresses
            )
    elif scope.user is None:
        parts = [("requests_by_app", Terms())]
    else:
        own = Terms().add("user_id = $ AND addressee = ''", scope.user)
        parts = [("requests_by_user", own)] + [
            ("requests_by_addressee", Terms().add("addressee = $ AND addressee <> ''", address))
            for address in dict.fromkeys(scope.addresses)
        ]
    sql: list[str] = []
    values: list[object] = [NEVER if limit is None else max(limit, 0)]
    order = "ORDER BY opened_at, run, id LIMIT $1"
    for index, terms in parts:
        terms.add("app = $", scope.app).add("answered = 0")
        if after is not None:
            terms.add("(opened_at, run, id) > ($, $, $)", *after)
        selected = f"{_requests(index)} WHERE {terms.text(len(values))}"
        sql.append(f"{{part}}{selected}{{top {order}}}" if len(parts) > 1 else selected)
        values += terms.values
    rows = yield query(f"{' UNION ALL '.join(sql)} {order}", values)
    return [to_request(row) for row in rows]


def find_carried(scope: Scope, workflow: str) -> Transaction[dict[str, Json]]:
    """Return the values that runs of a user have left for later runs."""
    rows = yield _CARRIED((), scope.app, scope.user or "", workflow)
    return {name: from_json(value) for name, value in rows}


def find_apps() -> Transaction[list[str]]:
    """Return the tenants that have runs, with one step for each, however many runs there are."""
    first = "SELECT r.app FROM runs r {by runs_by_app} WHERE r.seq > 0 ORDER BY r.app LIMIT 1"
    apps: list[str] = []
    rows = yield query(first, [])
    while rows:
        apps.append(rows[0][0])
        rows = yield query(first.replace("WHERE", "WHERE r.app > $1 AND"), [apps[-1]])
    return apps


def find_completed(scope: Scope, workflows: Sequence[str]) -> Transaction[set[str]]:
    """Return those of the workflows that have a completed run; a fork does not count."""
    found: set[str] = set()
    for workflow in dict.fromkeys(workflows):
        terms = _within(scope).add("r.workflow = $", workflow)
        rows = yield query(
            "SELECT 1 FROM runs r {by runs_by_completion} "  # noqa: S608 - our own words
            f"WHERE {terms} AND r.outcome = 'completed' AND r.parent = '' LIMIT 1",
            terms.values,
        )
        if rows:
            found.add(workflow)
    return found


def find_mail(app: str, run: str, limit: int) -> Transaction[list[Mail]]:
    """Return the unread mail of a run, in the order it came."""
    rows = yield _PENDING((), app, run, max(limit, 0))
    return [to_mail(row) for row in rows]


def find_package(app: str, digest: str) -> Transaction[bytes | None]:
    """Return the package of runs."""
    rows = yield _PACKAGE((), app, digest)
    return rows[0][0] if rows else None


def find_snapshot(app: str, run: str) -> Transaction[Snapshot | None]:
    """Return the last saved state of a run."""
    rows = yield _SNAPSHOT((), app, run)
    return Snapshot(*rows[0]) if rows else None


def save_snapshot(app: str, run: str, snapshot: Snapshot) -> Transaction[None]:
    """Save the state of a run, unless a later one is saved."""
    yield [_SAVE((), app, run, *snapshot)]


def put_secret(run: RunKey, request: str, content: bytes) -> Transaction[None]:
    """Store the encrypted answer to a request."""
    yield [_PUT_SECRET((), *run, request, content)]


def find_secrets(run: RunKey, prefix: str) -> Transaction[list[tuple[str, bytes]]]:
    """Return the encrypted answers to the requests of a run that begin with a prefix."""
    rows = yield _FIND_SECRETS((), *run, prefix)
    return [(request, content) for request, content in rows]


def drop_secrets(run: RunKey, prefix: str) -> Transaction[None]:
    """Delete the encrypted answers to the requests of a run that begin with a prefix."""
    yield [_DROP_SECRETS((), *run, prefix)]


def find_seqs(runs: Sequence[RunKey]) -> Transaction[dict[RunKey, int]]:
    """Return how many events each run has."""
    rows: list[Row] = yield _SEQS(runs)
    return {(app, run): seq for app, run, seq in rows}


def _within(scope: Scope) -> Terms:
    """Return the terms of runs in a scope that have events."""
    terms = Terms().add("r.app = $", scope.app)
    return terms if scope.user is None else terms.add("r.user_id = $", scope.user)


def _runs(index: str) -> str:
    return SELECT_RUNS.replace("{by %s}", f"{{by {index}}}" if index else "")


def _requests(index: str) -> str:
    return SELECT_REQUESTS.replace("{by %s}", f"{{by {index}}}" if index else "")
