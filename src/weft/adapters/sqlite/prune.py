"""Removing runs that ended long ago, with all that belongs to them alone."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from weft.adapters.sqlite.pieces import Row
from weft.adapters.sqlite.queries import within
from weft.adapters.sqlite.schema import transaction
from weft.ports.dispatcher import RunKey
from weft.ports.journal import Pruned
from weft.ports.scope import Scope

#: One transaction removes about so many events, then makes way for those that append.
ENOUGH_EVENTS: Final = 2000
MOST_RUNS: Final = 100

_SIZES: Final = """
    SELECT count(*), coalesce(sum(length(CAST(data AS BLOB))), 0)
    FROM events WHERE app = ? AND run = ?
"""
_BLOBS: Final = "SELECT data FROM events WHERE app = ? AND run = ? AND typeof(data) = 'blob'"
_BLOB_USES: Final = """
    SELECT length(content),
           (SELECT count(*) FROM events WHERE app = ?1 AND data = ?2 AND typeof(data) = 'blob')
    FROM blobs WHERE app = ?1 AND digest = ?2
"""
_PACKAGE_USES: Final = """
    SELECT length(content), (SELECT count(*) FROM runs WHERE app = ?1 AND digest = ?2)
    FROM packages WHERE app = ?1 AND digest = ?2
"""

#: The tables whose rows belong to runs.
_OF_RUNS: Final = ("artifacts", "consumed", "letters", "events", "requests", "timers", "runs")
_TAGS: Final = """
    SELECT app, board, tags, type, created_at, run, seq
    FROM artifacts WHERE app = ? AND run = ? AND tags != '[]'
"""
_DELETE_TAG: Final = """
    DELETE FROM artifact_tags
    WHERE app = ? AND board = ? AND tag = ? AND type = ? AND created_at = ? AND run = ? AND seq = ?
"""


class _Doomed(NamedTuple):
    """A run that is to go, and the blobs its events refer to, one for each reference."""

    run: str
    digest: str
    events: int
    size: int
    blobs: list[bytes]


def would_prune(connection: sqlite3.Connection, scope: Scope, ended_before: int) -> Pruned:
    """Count what would be removed."""
    doomed = list(_doomed(connection, scope, ended_before, limit=-1))
    blobs = Counter(blob for it in doomed for blob in it.blobs)
    packages = Counter(it.digest for it in doomed)
    freed = _freed(connection, _BLOB_USES, scope, blobs)
    freed += _freed(connection, _PACKAGE_USES, scope, packages)
    return _pruned(doomed, [size for _, size in freed])


def prune_some(connection: sqlite3.Connection, scope: Scope, ended_before: int) -> Pruned:
    """Remove some runs in one transaction; when it removes none, none are left."""
    gone: list[_Doomed] = []
    with transaction(connection):
        for it in _doomed(connection, scope, ended_before, limit=MOST_RUNS):
            gone.append(it)
            if sum(it.events for it in gone) >= ENOUGH_EVENTS:
                break
        runs = [(scope.app, it.run) for it in gone]
        tags = [it for run in runs for it in _tags(connection, run)]
        connection.executemany(_DELETE_TAG, tags)
        for table in _OF_RUNS:
            sql = f"DELETE FROM {table} WHERE app = ? AND run = ?"  # noqa: S608 - our own names
            connection.executemany(sql, runs)
        # What is left of the uses after that are uses by others.
        used = {blob: 0 for it in gone for blob in it.blobs}
        blobs = _freed(connection, _BLOB_USES, scope, used)
        packages = _freed(connection, _PACKAGE_USES, scope, {it.digest: 0 for it in gone})
        for table, freed in (("blobs", blobs), ("packages", packages)):
            sql = f"DELETE FROM {table} WHERE app = ? AND digest = ?"  # noqa: S608 - our own names
            connection.executemany(sql, [(scope.app, it) for it, _ in freed])
    return _pruned(gone, [size for _, size in blobs + packages])


def _doomed(
    connection: sqlite3.Connection, scope: Scope, ended_before: int, *, limit: int
) -> Iterator[_Doomed]:
    where, values = within(scope)
    sql = (
        "SELECT run, digest FROM runs INDEXED BY runs_by_end "  # noqa: S608 - no value is put in
        f"WHERE status = 'ended' AND {where} AND changed_at < ? ORDER BY changed_at LIMIT ?"
    )
    for run, digest in connection.execute(sql, [*values, ended_before, limit]).fetchall():
        events, size = connection.execute(_SIZES, (scope.app, run)).fetchone()
        blobs = [blob for (blob,) in connection.execute(_BLOBS, (scope.app, run))]
        yield _Doomed(run, digest, events, size, blobs)


def _tags(connection: sqlite3.Connection, run: RunKey) -> Iterator[Row]:
    """Yield the keys of the tags of a run's artifacts."""
    for app, board, tags, *place in connection.execute(_TAGS, run):
        yield from ((app, board, tag, *place) for tag in from_json(tags))


def _freed(
    connection: sqlite3.Connection, sql: str, scope: Scope, uses: dict[Any, int]
) -> list[tuple[Any, int]]:
    """Return what has no other uses than these, with its size."""
    freed: list[tuple[Any, int]] = []
    for digest, own in uses.items():
        row = connection.execute(sql, (scope.app, digest)).fetchone()
        if row is not None and row[1] == own:
            freed.append((digest, row[0]))
    return freed


def _pruned(runs: list[_Doomed], freed: list[int]) -> Pruned:
    return Pruned(
        runs=len(runs),
        events=sum(it.events for it in runs),
        bytes=sum(it.size for it in runs) + sum(freed),
    )
