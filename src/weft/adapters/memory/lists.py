"""What a store in memory lists: runs, open requests, values for later runs, completed workflows."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from weft.adapters.memory.queue import MemoryRun
from weft.engine.rows import CarriedValue, RequestRow, RunRow
from weft.findings import Json
from weft.ports.scope import Scope
from weft.ports.store import RunKey


class _Listed(NamedTuple):
    """A run in a list; the first two fields are its place, and no two of a tenant have the same."""

    started_at: int
    id: str
    run: MemoryRun


class MemoryLists:
    """Lists of runs that have events, and of what they leave for people and for later runs."""

    def __init__(self) -> None:
        #: By tenant, then all of them, those of one user or those of one name.
        self._runs: dict[tuple[str, str, str], list[_Listed]] = {}
        #: The open requests by tenant and addressee, which is the user of the run if none is named.
        self._requests: dict[tuple[str, str], dict[tuple[str, str], RequestRow]] = {}
        self._carried: dict[tuple[str, str, str], dict[str, Json]] = {}
        #: How many runs were completed, by tenant, workflow and user; None is all users together.
        self._completed: Counter[tuple[str, str, str | None]] = Counter()

    # -- runs

    def add(self, run: MemoryRun, row: RunRow) -> None:
        """Add a run with its first events."""
        for key in _lists(row):
            insort(self._runs.setdefault(key, []), _Listed(row.started_at, row.run, run))

    def count_completed(self, row: RunRow, difference: int) -> None:
        """Count a run that was completed, or is removed; a fork does not count."""
        if row.outcome == "completed" and not row.parent:
            for user in (row.user, None):
                self._completed[row.app, row.workflow, user] += difference

    def remove(self, gone: Mapping[RunKey, RunRow]) -> None:
        """Remove runs."""
        for row in gone.values():
            self.count_completed(row, -1)
        for key in {key for row in gone.values() for key in _lists(row)}:
            left = [listed for listed in self._runs.get(key, ()) if listed.run.key not in gone]
            if left:
                self._runs[key] = left
            else:
                self._runs.pop(key, None)

    def newest(self, app: str, name: str) -> MemoryRun | None:
        """Return the newest run of a name."""
        listed = self._runs.get((app, "name", name))
        return listed[-1].run if listed else None

    def page(
        self,
        scope: Scope,
        status: str | None,
        workflow: str | None,
        before: RunRow | None,
        limit: int,
    ) -> list[MemoryRun]:
        """Return runs, newest first; those before a run if one is given."""
        user = scope.user
        listed = self._runs.get((scope.app, "", "") if user is None else (scope.app, "user", user))
        if not listed:
            return []
        place = len(listed)
        if before is not None:
            place = bisect_left(listed, (before.started_at, before.run))
        found = (
            listed[number].run
            for number in range(place - 1, -1, -1)
            if _fits(listed[number].run.row, status, workflow)
        )
        return list(islice(found, max(limit, 0)))

    def apps(self) -> list[str]:
        """Return the tenants that have runs, in order."""
        return sorted(app for app, kind, _ in self._runs if not kind)

    def completed(self, scope: Scope, workflows: Sequence[str]) -> set[str]:
        """Return those of the workflows that have a completed run."""
        return {name for name in workflows if self._completed[scope.app, name, scope.user]}

    # -- requests

    def open_request(self, run: MemoryRun, request: RequestRow) -> None:
        """Add a request, or open it again."""
        if request.id in run.requests or request.id in run.answered:
            self.close_request(run, request.id)
        run.requests[request.id] = request
        self._requests.setdefault(_addressee(request), {})[request.run, request.id] = request

    def close_request(self, run: MemoryRun, id_: str) -> None:
        """Remove a request if it is there."""
        run.answered.discard(id_)
        request = run.requests.pop(id_, None)
        if request is not None:
            address = _addressee(request)
            del self._requests[address][request.run, request.id]
            if not self._requests[address]:
                del self._requests[address]

    def requests(
        self, scope: Scope, after: tuple[int, str, str] | None, limit: int | None
    ) -> list[RequestRow]:
        """Return the open requests that the scope may answer, oldest first."""
        if scope.user is not None:
            lists = [
                self._requests.get((scope.app, address), {})
                for address in dict.fromkeys(scope.addresses)
            ]
        else:
            lists = [asked for (app, _), asked in self._requests.items() if app == scope.app]
        return _oldest_first((row for asked in lists for row in asked.values()), after, limit)

    def requests_of(
        self, run: MemoryRun, scope: Scope, after: tuple[int, str, str] | None, limit: int | None
    ) -> list[RequestRow]:
        """Return the open requests of a run that the scope may see, oldest first."""
        addresses = scope.addresses
        seen = (
            row
            for row in run.requests.values()
            if scope.covers(row.app, row.user) or row.addressee in addresses
        )
        return _oldest_first(seen, after, limit)

    # -- values for later runs

    def carry(self, kept: CarriedValue) -> None:
        """Add the value that a run leaves, in place of an earlier one."""
        values = self._carried.setdefault((kept.app, kept.user, kept.workflow), {})
        values[kept.name] = kept.value

    def carried(self, scope: Scope, workflow: str) -> dict[str, Json]:
        """Return the values that runs of a user have left."""
        return dict(self._carried.get((scope.app, scope.user or "", workflow), {}))


def _lists(row: RunRow) -> Collection[tuple[str, str, str]]:
    """Return the lists that a run is in."""
    lists = [(row.app, "", ""), (row.app, "user", row.user)]
    return [*lists, (row.app, "name", row.name)] if row.name else lists


def _fits(row: RunRow | None, status: str | None, workflow: str | None) -> bool:
    return row is not None and status in (None, row.status) and workflow in (None, row.workflow)


def _addressee(request: RequestRow) -> tuple[str, str]:
    """Return the tenant and the address of those who are asked."""
    return request.app, request.addressee or f"user:{request.user}"


def _oldest_first(
    found: Iterator[RequestRow], after: tuple[int, str, str] | None, limit: int | None
) -> list[RequestRow]:
    rows = sorted((row for row in found if after is None or _place(row) > after), key=_place)
    return rows if limit is None else rows[: max(limit, 0)]


def _place(row: RequestRow) -> tuple[int, str, str]:
    return row.opened_at, row.run, row.id
