"""A journal in memory: quick, and gone when it is closed."""

from collections.abc import AsyncGenerator, Sequence
from functools import partial

from weft.adapters.memory.board import MemoryBoard
from weft.engine.events import Event
from weft.engine.events.codec import encode
from weft.engine.rows import (
    Batch,
    DueRow,
    KeptValue,
    Letter,
    RequestClosed,
    RequestRow,
    RunRow,
    TimerGone,
    TimerRow,
)
from weft.errors import StoreConflict, StoreError
from weft.findings import Json
from weft.ports.board import ArtifactPage, ArtifactQuery, Consumption
from weft.ports.dispatcher import RunKey
from weft.ports.journal import Pruned
from weft.ports.scope import Scope
from weft.runtime.runs.live_stream import Feed, follow


class MemoryJournal:
    """The journal port over plain dictionaries, each keyed by tenant first."""

    def __init__(self) -> None:
        self._rows: dict[RunKey, RunRow] = {}
        self._events: dict[RunKey, list[Event]] = {}
        self._requests: dict[tuple[str, str, str], RequestRow] = {}
        self._timers: dict[tuple[str, str, str], TimerRow] = {}
        self._packages: dict[tuple[str, str], bytes] = {}
        self._kept: dict[tuple[str, str, str], dict[str, Json]] = {}
        #: The runs that were completed: by tenant and workflow, then by user.
        self._completed: dict[tuple[str, str], dict[str, set[str]]] = {}
        self._board = MemoryBoard()
        self._beats: dict[str, int] = {}
        self._feed = Feed()
        self._closed = False

    async def append(self, batch: Batch) -> None:
        self._refuse_if_closed()
        app, run = key = batch.row.app, batch.run
        row = self._rows.get(key)
        stand = 0 if row is None else row.seq
        if stand != batch.expected:
            raise StoreConflict(
                f"run {run} stands at event {stand}, not at {batch.expected}: "
                "another process has written; read it again"
            )
        self._rows[key] = batch.row
        if batch.row.outcome == "completed" and not batch.row.parent:
            by_user = self._completed.setdefault((app, batch.row.workflow), {})
            by_user.setdefault(batch.row.user, set()).add(run)
        if batch.package is not None:
            self._packages.setdefault((app, batch.row.digest), batch.package)
        self._events.setdefault(key, []).extend(batch.events)
        for side in batch.sides:
            match side:
                case RequestRow():
                    self._requests[app, run, side.id] = side
                case RequestClosed():
                    self._requests.pop((app, run, side.id), None)
                case TimerRow():
                    self._timers[app, run, side.id] = side
                case TimerGone():
                    self._timers.pop((app, run, side.id), None)
                case KeptValue():
                    kept = self._kept.setdefault((side.app, side.user, side.workflow), {})
                    kept[side.name] = side.value
                case _:
                    pass
        self._board.take(batch)
        self._feed.tell(key, batch.events)

    async def read(
        self, scope: Scope, run: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        if self._find(scope, run) is None:
            return []
        events = self._events[scope.app, run]
        return events[after : None if limit is None else after + limit]

    async def follow(self, scope: Scope, run: str, *, after: int = 0) -> AsyncGenerator[Event]:
        row = self._find(scope, run)
        if row is None or (row.status == "ended" and after >= row.seq):
            return
        read = partial(self._read_after, scope, run)
        async for event in follow(self._feed, (scope.app, run), read, after):
            yield event

    async def run(self, scope: Scope, run: str) -> RunRow | None:
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
        return [self._alive(row) for row in sorted(found, key=_age, reverse=True)[:limit]]

    async def requests(self, scope: Scope, *, run: str | None = None) -> list[RequestRow]:
        self._refuse_if_closed()
        found = [
            row
            for row in self._requests.values()
            if run in (None, row.run)
            and (
                scope.answers(row.app, row.user, row.addressee)
                or (run is not None and scope.covers(row.app, row.user))
            )
        ]
        return sorted(found, key=lambda row: (row.opened_at, row.run, row.id))

    async def kept(self, scope: Scope, workflow: str) -> dict[str, Json]:
        self._refuse_if_closed()
        return dict(self._kept.get((scope.app, scope.user or "", workflow), {}))

    async def completed(self, scope: Scope, workflows: Sequence[str]) -> set[str]:
        self._refuse_if_closed()
        found = {name: self._completed.get((scope.app, name), {}) for name in workflows}
        user = scope.user
        return {name for name, by in found.items() if (by if user is None else user in by)}

    async def artifacts(self, query: ArtifactQuery, *, count: bool = False) -> ArtifactPage:
        self._refuse_if_closed()
        return self._board.find(query, count=count)

    async def consumed(
        self, app: str, board: str, *, agent: str | None = None, artifact: str | None = None,
        limit: int = 100,
    ) -> list[Consumption]:  # fmt: skip
        self._refuse_if_closed()
        return self._board.consumed(app, board, agent, artifact, limit)

    async def letters(self, app: str, to: str, *, limit: int = 100) -> list[Letter]:
        self._refuse_if_closed()
        return self._board.letters(app, to, limit)

    async def unread(self) -> list[tuple[str, str]]:
        self._refuse_if_closed()
        return self._board.unread()

    async def unfinished(self) -> list[RunRow]:
        self._refuse_if_closed()
        running = (row for row in self._rows.values() if row.status == "running")
        return [self._alive(row) for row in sorted(running, key=_age)]

    async def next_due(self, after: int) -> int | None:
        self._refuse_if_closed()
        return min((row.at for row in self._due() if row.at > after), default=None)

    async def due(self, now: int, *, after: DueRow | None = None, limit: int = 100) -> list[DueRow]:
        self._refuse_if_closed()
        found = sorted((row for row in self._due() if row.at <= now), key=_due_place)
        if after is not None:
            found = [row for row in found if _due_place(row) > _due_place(after)]
        return found[:limit]

    async def beat(self, owner: str, at: int) -> None:
        self._refuse_if_closed()
        self._beats[owner] = at

    async def claim(self, app: str, run: str, *, owner: str, before: str) -> bool:
        self._refuse_if_closed()
        row = self._rows.get((app, run))
        if row is None or row.status != "running" or row.owner != before:
            return False
        self._rows[app, run] = row._replace(owner=owner)
        return True

    async def package(self, app: str, digest: str) -> bytes | None:
        self._refuse_if_closed()
        return self._packages.get((app, digest))

    async def prune(self, scope: Scope, *, ended_before: int, dry_run: bool) -> Pruned:
        self._refuse_if_closed()
        seen = [(key, row) for key, row in self._rows.items() if scope.covers(row.app, row.user)]
        gone = {
            key: row for key, row in seen if row.status == "ended" and row.changed_at < ended_before
        }
        needed = {(row.app, row.digest) for key, row in self._rows.items() if key not in gone}
        unused = {(row.app, row.digest) for row in gone.values()} & self._packages.keys() - needed
        events = [event for key in gone for event in self._events[key]]
        size = sum(len(encode(event.data)) for event in events)
        size += sum(len(self._packages[package]) for package in unused)
        if not dry_run:
            for key, row in gone.items():
                self._forget_completed(row)
                del self._rows[key], self._events[key]
            for sides in (self._requests, self._timers):
                for side in [key for key in sides if key[:2] in gone]:
                    del sides[side]
            self._board.forget(gone.keys())
            for package in unused:
                del self._packages[package]
        return Pruned(len(gone), len(events), size)

    async def close(self) -> None:
        self._closed = True
        kept = (self._rows, self._events, self._requests, self._timers, self._packages, self._kept)
        for table in (*kept, self._completed):
            table.clear()
        self._board.clear()
        self._feed.look_again()

    def _forget_completed(self, row: RunRow) -> None:
        by_user = self._completed.get((row.app, row.workflow), {})
        runs = by_user.get(row.user, set())
        runs.discard(row.run)
        if not runs:
            by_user.pop(row.user, None)

    async def _read_after(self, scope: Scope, run: str, after: int) -> list[Event]:
        return await self.read(scope, run, after=after)

    def _find(self, scope: Scope, run: str) -> RunRow | None:
        self._refuse_if_closed()
        row = self._rows.get((scope.app, run))
        return self._alive(row) if row is not None and scope.covers(row.app, row.user) else None

    def _alive(self, row: RunRow) -> RunRow:
        beat = self._beats.get(row.owner)
        return row if beat is None else row._replace(heartbeat=beat)

    def _due(self) -> list[DueRow]:
        questions = (
            DueRow(
                "request", request.id, request.run, request.app, request.user, request.expires_at
            )
            for request in self._requests.values()
            if request.expires_at is not None
        )
        timers = (
            DueRow("timer", timer.id, timer.run, timer.app, timer.user, timer.at)
            for timer in self._timers.values()
        )
        return [*questions, *timers]

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError("the journal is closed; open another")


def _age(row: RunRow) -> tuple[int, str]:
    return row.started_at, row.run


def _due_place(row: DueRow) -> tuple[int, str, str, str]:
    return row.at, row.app, row.run, row.id
