"""A journal in memory: quick, and gone when it is closed."""

from weft.engine.codec import encode
from weft.engine.events import Event
from weft.engine.rows import Batch, RequestRow, RunRow
from weft.errors import StoreConflict, StoreError
from weft.ports.journal import Pruned
from weft.ports.scope import Scope


class MemoryJournal:
    """The journal port over plain dictionaries."""

    def __init__(self) -> None:
        self._rows: dict[str, RunRow] = {}
        self._events: dict[str, list[Event]] = {}
        self._requests: dict[tuple[str, str], RequestRow] = {}
        self._packages: dict[str, bytes] = {}
        self._closed = False

    async def append(self, batch: Batch) -> None:
        """Write a batch, whole or not at all."""
        self._refuse_if_closed()
        run = batch.run
        row = self._rows.get(run)
        stand = 0 if row is None else row.seq
        if stand != batch.expected:
            raise StoreConflict(
                f"run {run} stands at event {stand}, not at {batch.expected}: "
                "somebody else has written; read it again"
            )
        self._rows[run] = batch.row
        if batch.package is not None:
            self._packages.setdefault(batch.row.digest, batch.package)
        self._events.setdefault(run, []).extend(batch.events)
        for id_ in batch.closed:
            self._requests.pop((run, id_), None)
        for request in batch.opened:
            self._requests[run, request.id] = request

    async def read(
        self, scope: Scope, run: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        """Return the events of a run after a number, in order; none if there is no such run."""
        if self._find(scope, run) is None:
            return []
        return self._events[run][after : None if limit is None else after + limit]

    async def run(self, scope: Scope, run: str) -> RunRow | None:
        """Return what is known about a run without folding it."""
        return self._find(scope, run)

    async def runs(
        self,
        scope: Scope,
        *,
        status: str | None = None,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[RunRow]:
        """Return runs, newest first; `before` continues after the last run of a page."""
        self._refuse_if_closed()
        found = [
            row
            for row in self._rows.values()
            if scope.covers(row.app, row.user)
            and status in (None, row.status)
            and workflow in (None, row.workflow)
        ]
        if before is not None:
            last = self._find(scope, before)
            found = [row for row in found if last is not None and _age(row) < _age(last)]
        return sorted(found, key=_age, reverse=True)[:limit]

    async def requests(self, scope: Scope, *, run: str | None = None) -> list[RequestRow]:
        """Return the open questions, oldest first."""
        self._refuse_if_closed()
        found = [
            row
            for row in self._requests.values()
            if scope.covers(row.app, row.user) and run in (None, row.run)
        ]
        return sorted(found, key=lambda row: (row.opened_at, row.run, row.id))

    async def unfinished(self) -> list[RunRow]:
        """Return the runs that had something to do when they were last written, of all tenants."""
        self._refuse_if_closed()
        return sorted((row for row in self._rows.values() if row.status == "running"), key=_age)

    async def next_expiry(self) -> int | None:
        """Return when the next open question expires, of all tenants."""
        self._refuse_if_closed()
        return min((at for at, _ in self._expiring()), default=None)

    async def expired(self, now: int) -> list[RequestRow]:
        """Return the open questions whose time is over, of all tenants."""
        self._refuse_if_closed()
        over = [(at, row) for at, row in self._expiring() if at <= now]
        return [row for _, row in sorted(over, key=lambda it: (it[0], it[1].run, it[1].id))]

    async def package(self, digest: str) -> bytes | None:
        """Return the package that runs were started with; it is kept while a run needs it."""
        self._refuse_if_closed()
        return self._packages.get(digest)

    async def prune(self, scope: Scope, *, ended_before: int, dry_run: bool) -> Pruned:
        """Remove the runs that ended before a time, with all that belongs to them alone."""
        self._refuse_if_closed()
        seen = [it for it in self._rows.values() if scope.covers(it.app, it.user)]
        gone = {it.run: it for it in seen if it.status == "ended" and it.changed_at < ended_before}
        needed = {row.digest for run, row in self._rows.items() if run not in gone}
        unused = {row.digest for row in gone.values()} & self._packages.keys() - needed
        events = [event for run in gone for event in self._events[run]]
        size = sum(len(encode(event.data)) for event in events)
        size += sum(len(self._packages[digest]) for digest in unused)
        if not dry_run:
            for run in gone:
                del self._rows[run], self._events[run]
            for key in [it for it in self._requests if it[0] in gone]:
                del self._requests[key]
            for digest in unused:
                del self._packages[digest]
        return Pruned(len(gone), len(events), size)

    async def close(self) -> None:
        """Forget everything."""
        self._closed = True
        for kept in (self._rows, self._events, self._requests, self._packages):
            kept.clear()

    def _find(self, scope: Scope, run: str) -> RunRow | None:
        self._refuse_if_closed()
        row = self._rows.get(run)
        return row if row is not None and scope.covers(row.app, row.user) else None

    def _expiring(self) -> list[tuple[int, RequestRow]]:
        rows = self._requests.values()
        return [(row.expires_at, row) for row in rows if row.expires_at is not None]

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError("the journal is closed; open another")


def _age(row: RunRow) -> tuple[int, str]:
    return row.started_at, row.run
