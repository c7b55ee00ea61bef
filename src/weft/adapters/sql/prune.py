"""Removing runs that ended long ago, with all that belongs to them alone."""

from collections import Counter
from typing import Final, NamedTuple

from weft.adapters.sql.statements import Statement, Terms, Transaction, query
from weft.adapters.sql.tables import OF_RUNS
from weft.engine.timers import NEVER
from weft.ports.scope import Scope
from weft.ports.store import Pruned

#: One transaction removes about so many events, then makes way for those that append.
ENOUGH_EVENTS: Final = 2000
MOST_RUNS: Final = 100

#: Batches of other processes use blobs and packages that are there already. Those under way are
#: waited for, and no other begins: what is counted as unused afterwards is unused.
_ALONE: Final = Statement("{alone blobs}"), Statement("{alone packages}")
_SIZES: Final = Statement(
    """
    SELECT count(*), coalesce(sum({size data}), 0) FROM events WHERE app = $1 AND run = $2
    """
)
_BLOBS: Final = Statement(
    "SELECT data FROM events WHERE app = $1 AND run = $2 AND substr(data, 1, 1) = '#'"
)
#: How large each is, and how often it is used.
_BLOB_USES: Final = Statement(
    """
    SELECT digest, {size content}, (
        SELECT count(*) FROM events e {by events_by_blob}
        WHERE e.app = b.app AND e.data = b.digest AND substr(e.data, 1, 1) = '#'
    ) FROM blobs b WHERE {keys}
    """,
    "app digest",
)
_PACKAGE_USES: Final = Statement(
    """
    SELECT digest, {size content}, (
        SELECT count(*) FROM runs r {by runs_by_digest}
        WHERE r.app = p.app AND r.digest = p.digest
    ) FROM packages p WHERE {keys}
    """,
    "app digest",
)
_DELETE: Final = {
    table: Statement(f"DELETE FROM {table} WHERE {{keys}}", "app run")  # noqa: S608 - our names
    for table in OF_RUNS
}
_DELETE_BLOBS: Final = Statement("DELETE FROM blobs WHERE {keys}", "app digest")
_DELETE_PACKAGES: Final = Statement("DELETE FROM packages WHERE {keys}", "app digest")


class _PrunedRun(NamedTuple):
    """A run that is to go, and the blobs its events refer to, one for each reference."""

    run: str
    digest: str
    events: int
    size: int
    blobs: list[str]


def would_prune(scope: Scope, ended_before: int) -> Transaction[Pruned]:
    """Count what would be removed."""
    doomed = yield from _doomed(scope, ended_before, NEVER, NEVER)
    blobs = Counter(blob for run in doomed for blob in run.blobs)
    packages = Counter(run.digest for run in doomed)
    freed = yield from _freed(_BLOB_USES, scope, blobs)
    freed += yield from _freed(_PACKAGE_USES, scope, packages)
    return _pruned(doomed, freed)


def prune_some(scope: Scope, ended_before: int) -> Transaction[Pruned]:
    """Remove some runs in one transaction; when it removes none, none are left."""
    for statement in _ALONE:
        yield statement()
    gone = yield from _doomed(scope, ended_before, MOST_RUNS, ENOUGH_EVENTS)
    if not gone:
        return Pruned(0, 0, 0)
    runs = [(scope.app, run.run) for run in gone]
    for statement in _DELETE.values():
        yield statement(runs)
    # What is left of the uses after that are uses by others.
    unused = {blob: 0 for run in gone for blob in run.blobs}
    blobs = yield from _freed(_BLOB_USES, scope, unused)
    packages = yield from _freed(_PACKAGE_USES, scope, {run.digest: 0 for run in gone})
    for statement, freed in ((_DELETE_BLOBS, blobs), (_DELETE_PACKAGES, packages)):
        if freed:
            yield statement([(scope.app, digest) for digest, _ in freed])
    return _pruned(gone, blobs + packages)


def _doomed(
    scope: Scope, ended_before: int, most_runs: int, enough_events: int
) -> Transaction[list[_PrunedRun]]:
    # What ended before a time also started before it, which an index has.
    terms = Terms().add("app = $", scope.app).add("started_at < $", ended_before)
    terms.add("changed_at < $", ended_before)
    if scope.user is not None:
        terms.add("user_id = $", scope.user)
    values = [*terms.values, most_runs]
    rows = yield query(
        "SELECT run, digest FROM runs {by runs_ended} "  # noqa: S608 - our own words
        f"WHERE status = 'ended' AND {terms} ORDER BY started_at LIMIT ${len(values)}",
        values,
    )
    doomed: list[_PrunedRun] = []
    total = 0
    for run, digest in rows:
        events, size = (yield _SIZES((), scope.app, run))[0]
        blobs = [blob for (blob,) in (yield _BLOBS((), scope.app, run))]
        doomed.append(_PrunedRun(run, digest, events, size, blobs))
        total += events
        if total >= enough_events:
            break
    return doomed


def _freed(
    statement: Statement, scope: Scope, uses: dict[str, int]
) -> Transaction[list[tuple[str, int]]]:
    """Return what has no other uses than these, with its size."""
    if not uses:
        return []
    rows = yield statement([(scope.app, digest) for digest in uses])
    return [(digest, size) for digest, size, count in rows if count == uses[digest]]


def _pruned(runs: list[_PrunedRun], freed: list[tuple[str, int]]) -> Pruned:
    return Pruned(
        runs=len(runs),
        events=sum(run.events for run in runs),
        bytes=sum(run.size for run in runs) + sum(size for _, size in freed),
    )
