"""Whether a store is whole: every event can be read, and every open run will be found."""

from dataclasses import dataclass, field
from typing import Final

from weft.adapters.sql.queries import read_events
from weft.adapters.sql.statements import Row, Rows, Transaction, query
from weft.adapters.sql.store import SqlStore
from weft.errors import StoreError
from weft.ports.scope import Scope

_PAGE: Final = 500
_RUNS: Final = """
    SELECT r.app, r.run, r.seq, r.status, r.digest, w.run, p.digest FROM runs r
    LEFT JOIN work w ON w.app = r.app AND w.run = r.run
    LEFT JOIN packages p ON p.app = r.app AND p.digest = r.digest
    WHERE (r.app, r.run) > ($2, $3) ORDER BY r.app, r.run LIMIT $1
"""
_SHARED_NAMES: Final = """
    SELECT app, name, count(*) FROM runs WHERE name <> '' AND status <> 'ended'
    GROUP BY app, name HAVING count(*) > 1 ORDER BY app, name LIMIT $1
"""
_WORK_WITHOUT_RUN: Final = """
    SELECT w.app, w.run FROM work w LEFT JOIN runs r ON r.app = w.app AND r.run = w.run
    WHERE r.run IS NULL ORDER BY w.app, w.run LIMIT $1
"""


@dataclass
class CheckedStore:
    """How much a store has, and what is wrong with it."""

    runs: int = 0
    events: int = 0
    problems: list[str] = field(default_factory=list[str])


async def check_store(store: SqlStore) -> CheckedStore:
    """Read everything in a store at one moment, and change nothing."""
    checked = CheckedStore()
    try:
        checked.problems += await store.find_damage()
    except StoreError as error:
        if error.retryable:
            raise
        return CheckedStore(problems=[str(error)])
    async with store.frozen() as read:
        after = ("", "")
        while rows := await read(_fetch(_RUNS, *after)):
            for row in rows:
                checked.problems += _run_problems(row)
                app, run, seq, *_ = row
                try:
                    events = await read(read_events(Scope.operator(app), run, 0, None))
                except StoreError as error:
                    checked.problems.append(f"{app}: {error}")
                else:
                    checked.events += len(events)
                    if len(events) > seq:
                        checked.problems.append(f"{app}: run {run} has events after its last one")
            checked.runs += len(rows)
            after = rows[-1][:2]
        for app, name, count in await read(_fetch(_SHARED_NAMES)):
            checked.problems.append(f"{app}: {count} open runs have the name {name}")
        for app, run in await read(_fetch(_WORK_WITHOUT_RUN)):
            checked.problems.append(f"{app}: there is work for run {run}, which does not exist")
        [[stored]] = await read(_fetch("SELECT count(*) FROM events LIMIT $1"))
        if stored > checked.events and not checked.problems:
            checked.problems.append(f"{stored - checked.events} events belong to no run")
    return checked


def _run_problems(row: Row) -> list[str]:
    app, run, seq, status, digest, work, package = row
    problems: list[str] = []
    if status != "ended" and work is None:
        problems.append(f"{app}: run {run} is open and has no work row: no worker will find it")
    if status == "ended" and work is not None:
        problems.append(f"{app}: run {run} has ended and still has a work row")
    if seq and package is None:
        problems.append(f"{app}: package {digest[:12]} of run {run} is missing")
    return problems


def _fetch(sql: str, *values: object) -> Transaction[Rows]:
    rows = yield query(sql, (_PAGE, *values))
    return rows
