"""Who works on which run: claims, heartbeats, and freeing the runs of owners that are dead.

None of these waits for a lock of another, and each may be repeated after its answer was lost.
"""

from collections.abc import Collection
from typing import Final

from weft.adapters.sql.statements import Statement, Transaction
from weft.adapters.store_rules import REMEMBER
from weft.engine.timers import NEVER
from weft.ports.store import Claimed, Heartbeat, OwnerLoad, RunKey, Workload

#: Milliseconds for which the rows of workers are kept.
_KEEP_WORKERS: Final = 30 * REMEMBER

#: `due_at` stays: a claim whose answer was lost is found again among what is mine and due.
CLAIM: Final = Statement(
    """
    WITH d AS MATERIALIZED (
        SELECT app, run FROM work WHERE owner = '' AND due_at <= {now}
        ORDER BY due_at LIMIT $2 {skip}
    )
    UPDATE work SET owner = $1 FROM d WHERE work.app = d.app AND work.run = d.run
    """
)
MINE: Final = Statement(
    "SELECT app, run, {now} FROM work WHERE owner = $1 AND due_at <= {now} ORDER BY due_at"
)
NOW: Final = Statement("SELECT {now}")
TAKE: Final = Statement(
    """
    UPDATE work SET owner = $1 WHERE app = $2 AND run = $3 AND (owner IN ('', $1) OR $4 = 1)
    RETURNING app
    """
)
BEAT: Final = Statement(
    """
    INSERT INTO workers (owner, seen_at) VALUES ($1, {now})
    ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at
    WHERE workers.seen_at >= excluded.seen_at - $2 RETURNING owner
    """
)
#: Those that hold runs, and when each was last alive.
OWNERS: Final = Statement(
    """
    SELECT o.owner, coalesce(k.seen_at, 0)
    FROM (SELECT DISTINCT owner FROM work WHERE owner > '') AS o
    LEFT JOIN workers k ON k.owner = o.owner
    """
)
FREE: Final = Statement(
    """
    WITH f AS MATERIALIZED (
        SELECT app, run FROM work WHERE owner = $1 ORDER BY app, run {skip}
    )
    UPDATE work SET owner = '', due_at = {now} FROM f WHERE work.app = f.app AND work.run = f.run
    """
)
RENAME: Final = Statement("UPDATE work SET owner = $2 WHERE owner = $1")
RENAMED: Final = Statement("SELECT app, run FROM work WHERE owner = $1 ORDER BY app, run")
RELEASE: Final = Statement(
    "UPDATE work SET owner = '', due_at = CASE WHEN $2 > 0 THEN $2 ELSE {now} END "
    "WHERE {keys} AND owner = $1",
    "app run",
)
NEXT_DUE: Final = Statement("SELECT due_at FROM work WHERE owner = '' ORDER BY due_at LIMIT 1")
WAITING: Final = Statement("SELECT count(*), {now} FROM work WHERE owner = '' AND due_at <= {now}")
#: Those that hold runs, and those that are alive and hold none.
LOADS: Final = Statement(
    """
    SELECT o.owner, sum(o.runs), max(o.seen_at)
    FROM (
        SELECT owner, count(*) AS runs, 0 AS seen_at FROM work WHERE owner > '' GROUP BY owner
        UNION ALL SELECT owner, 0, seen_at FROM workers
    ) AS o
    GROUP BY o.owner HAVING sum(o.runs) > 0 OR max(o.seen_at) >= $1 ORDER BY o.owner
    """
)
FORGET_SEEN: Final = Statement("DELETE FROM received_mail WHERE at < {now} - $1")
FORGET_WORKERS: Final = Statement("DELETE FROM workers WHERE seen_at < {now} - $1")


def claim(owner: str, limit: int) -> Transaction[Claimed]:
    """Take free runs that are due, and return all that are the owner's and due."""
    if limit > 0:
        yield CLAIM((), owner, limit)
    rows = yield MINE((), owner)
    now = rows[0][2] if rows else (yield NOW())[0][0]
    return Claimed(now, [(app, run) for app, run, _ in rows])


def take(owner: str, app: str, run: str, *, force: bool) -> Transaction[bool]:
    """Make an owner the owner of one run."""
    return bool((yield TAKE((), owner, app, run, int(force))))


def beat(owner: str, dead_after: int) -> Transaction[Heartbeat]:
    """Record that an owner is alive, unless that comes too late, and free the runs of dead ones.

    Its own runs stay: an owner that is late gives them to its next life with `rename`.
    """
    alive = bool((yield BEAT((), owner, dead_after)))
    now = (yield NOW())[0][0]
    others: dict[str, int] = {}
    for other, seen_at in (yield OWNERS()):
        if other == owner:
            continue
        if seen_at < now - dead_after:
            yield FREE((), other)
        else:
            others[other] = seen_at
    return Heartbeat(alive, now, others)


def rename(owner: str, new: str) -> Transaction[list[RunKey]]:
    """Give the runs of an owner to another, which is recorded to be alive; return its runs."""
    yield BEAT((), new, 0)
    yield [RENAME((), owner, new)]
    return [(app, run) for app, run in (yield RENAMED((), new))]


def release(owner: str, runs: Collection[RunKey], due_at: int) -> Transaction[None]:
    """Free runs of an owner."""
    if runs:
        yield RELEASE(sorted(runs), owner, due_at)


def next_due() -> Transaction[int | None]:
    """Return when the next free run is due."""
    rows = yield NEXT_DUE()
    return rows[0][0] if rows and rows[0][0] < NEVER else None


def workload(dead_after: int) -> Transaction[Workload]:
    """Return how many runs wait for a worker, and the workers."""
    waiting, now = (yield WAITING())[0]
    owners = yield LOADS((), now - dead_after)
    return Workload(
        now, waiting, [OwnerLoad(owner, int(runs), seen_at) for owner, runs, seen_at in owners]
    )


def forget() -> Transaction[None]:
    """Forget the ids of old mail, and workers without a heartbeat for a long time."""
    yield [FORGET_SEEN((), REMEMBER), FORGET_WORKERS((), _KEEP_WORKERS)]
