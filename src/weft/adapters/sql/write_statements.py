"""The statements that write batches and mail. What they decide is in `write`."""

from collections.abc import Iterable
from typing import Final

from weft.adapters.sql.rows import column_names
from weft.adapters.sql.statements import Statement
from weft.adapters.sql.tables import RUN_COLUMNS

_COLUMNS: Final = column_names(RUN_COLUMNS)
#: What may change with every batch. What a run is and whose it is never does; the status seldom,
#: and its indexes are left alone while it stays the same.
_CHANGING: Final = (
    "seq", "changed_at", "turns", "calls", "input_tokens", "output_tokens", "cost_usd",
    "unpriced_calls", "unmetered_calls", "preview", "outcome", "reason", "batch",
)  # fmt: skip


def _update_runs(columns: Iterable[str]) -> Statement:
    changes = ", ".join(f"{column} = excluded.{column}" for column in columns)
    return Statement(
        f"INSERT INTO runs ({', '.join(_COLUMNS)}) {{rows}} "
        f"ON CONFLICT (app, run) DO UPDATE SET {changes}",
        RUN_COLUMNS,
    )


_WITH_TIME: Final = ", ".join(
    f"coalesce({column}, {{now}})" if column in ("started_at", "changed_at") else column
    for column in _COLUMNS
)

SEE: Final = Statement(
    """
    {x} INSERT INTO received_mail (app, receiver, id, at) SELECT app, receiver, id, {now} FROM x
    WHERE true ORDER BY app, receiver, id ON CONFLICT DO NOTHING RETURNING app, receiver, id
    """,
    "app receiver id",
)
FORGET: Final = Statement("DELETE FROM received_mail WHERE {keys}", "app receiver id")
NAMED: Final = Statement(
    """
    {x} SELECT r.app, r.name, r.run FROM x {join} runs r {by runs_open_by_name}
    ON r.app = x.app AND r.name = x.name AND r.name <> '' AND r.status <> 'ended'
    """,
    "app name",
)
NEWEST: Final = Statement(
    """
    SELECT run FROM runs {by runs_by_name} WHERE app = $1 AND name = $2 AND name <> ''
    ORDER BY started_at DESC, run DESC LIMIT 1
    """
)
BEGIN_RUNS: Final = Statement(
    f"""
    {{x}} INSERT INTO runs ({", ".join(_COLUMNS)}) SELECT {_WITH_TIME} FROM x
    WHERE true ORDER BY app, name, run ON CONFLICT DO NOTHING RETURNING app, run, {{now}}
    """,  # noqa: S608 - our own names
    RUN_COLUMNS,
)
UNBEGIN: Final = Statement("DELETE FROM runs WHERE {keys}", "app run")
LOCK: Final = Statement(
    """
    {x} SELECT w.app, w.run, w.owner, w.due_at, r.seq, r.batch, r.status, {unread}, {now}
    FROM x {join} work w ON w.app = x.app AND w.run = x.run
    {join} runs r ON r.app = x.app AND r.run = x.run {lock}
    """,
    "app run",
)
#: For databases in which a statement sees what was there when it began, and not when it locked.
UNREAD: Final = Statement(
    """
    {x} SELECT app, run, (
        SELECT count(*) FROM mail m WHERE m.app = x.app AND m.run = x.run
    ) FROM x
    """,
    "app run",
)
STOOD: Final = Statement("SELECT app, run, seq, batch FROM runs WHERE {keys}", "app run")
ANSWER: Final = Statement(
    "UPDATE requests SET answered = 1 WHERE {keys} AND answered = 0 RETURNING app, run, id",
    "app run id",
)
ASKED: Final = Statement("SELECT app, run, id FROM requests WHERE {keys}", "app run id")
TAKE_MAIL: Final = Statement("DELETE FROM mail WHERE {keys} RETURNING app, run, id", "app run id")
SEND: Final = Statement(
    """
    INSERT INTO mail (app, run, id, actor, kind, data, start, request, name) {rows}
    ON CONFLICT DO NOTHING
    """,
    "app run id actor kind data start request name",
)
SET_WORK: Final = Statement(
    """
    INSERT INTO work (app, run, owner, due_at) {rows}
    ON CONFLICT (app, run) DO UPDATE SET owner = excluded.owner, due_at = excluded.due_at
    """,
    "app run owner due_at:number",
)
END_WORK: Final = Statement("DELETE FROM work WHERE {keys}", "app run")
END_SECRETS: Final = Statement("DELETE FROM secret_answers WHERE {keys}", "app run")
#: A heartbeat that is late does not count: others may have the runs of this owner by now.
REFRESH: Final = Statement(
    """
    {x} INSERT INTO workers (owner, seen_at) SELECT owner, {now} FROM x WHERE true
    ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at
    WHERE workers.seen_at >= excluded.seen_at - $1
    """,
    "owner",
)

UPDATE_WHOLE_RUNS: Final = _update_runs(_COLUMNS[2:])
UPDATE_RUNS_AND_STATUS: Final = _update_runs(("status", *_CHANGING))
UPDATE_RUNS: Final = _update_runs(_CHANGING)
