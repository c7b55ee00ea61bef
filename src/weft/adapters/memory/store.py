"""The store in memory: all methods of the port.

Events and rows are kept as they are and not encoded. No method waits for anything while it reads or
writes, so that each is a transaction, and no other process can use this store.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from functools import partial
from itertools import islice

from weft.adapters.followers import Followers, follow
from weft.adapters.memory.runs import MemoryRuns
from weft.adapters.store_rules import DEAD_AFTER
from weft.adapters.system_clock import SystemClock
from weft.engine.events import Event
from weft.engine.rows import Batch, Mail, OutgoingEvent, RequestRow, RunRow, Snapshot
from weft.errors import StoreError
from weft.findings import Json
from weft.ports.board import ArtifactPage, ArtifactQuery, Consumption
from weft.ports.clock import Clock
from weft.ports.records import Record
from weft.ports.scope import Scope
from weft.ports.store import Claimed, Heartbeat, Pruned, RunKey, Workload


class MemoryStore:
    """The store port over dictionaries. Belongs to the event loop that it is used in."""

    is_shared = False

    def __init__(self, clock: Clock | None = None, *, dead_after: int = DEAD_AFTER) -> None:
        self._all = MemoryRuns(clock or SystemClock(), dead_after)
        self._followers = Followers()
        self._is_closed = False

    # -- the log

    async def append(self, batch: Batch, *, owner: str) -> bool:
        left = self._opened.append(batch, owner)
        if self._followers and batch.events:
            self._followers.add((batch.row.app, batch.run), batch.events)
        return left

    async def read(
        self, scope: Scope, run: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        found = self._opened.find(scope, run)
        if found is None:
            return []
        start = max(after, 0)
        return found.events[start : None if limit is None else start + max(limit, 0)]

    async def follow(self, scope: Scope, run: str, *, after: int = 0) -> AsyncGenerator[Event]:
        row = await self.run(scope, run)
        if row is None or (row.status == "ended" and after >= row.seq):
            return
        read = partial(self._read_after, scope, run)
        async for event in follow(self._followers, (scope.app, run), read, after):
            yield event

    async def _read_after(self, scope: Scope, run: str, after: int) -> list[Event]:
        return await self.read(scope, run, after=after)

    async def snapshot(self, app: str, run: str) -> Snapshot | None:
        found = self._opened.runs.get((app, run))
        return None if found is None else found.snapshot

    async def save_snapshot(self, app: str, run: str, snapshot: Snapshot) -> None:
        found = self._opened.runs.get((app, run))
        row = None if found is None else found.row
        if found is None or row is None or row.status == "ended" or row.seq < snapshot.seq:
            return
        if found.snapshot is None or found.snapshot.seq <= snapshot.seq:
            found.snapshot = snapshot

    async def package(self, app: str, digest: str) -> bytes | None:
        return self._opened.packages.get((app, digest))

    async def prune(self, scope: Scope, *, ended_before: int, dry_run: bool) -> Pruned:
        return self._opened.prune(scope, ended_before, dry_run=dry_run)

    # -- the queue

    async def claim(self, owner: str, *, limit: int = 50) -> Claimed:
        return self._opened.queue.claim(owner, limit)

    async def take(self, owner: str, app: str, run: str, *, force: bool = False) -> bool:
        return self._opened.queue.take(owner, (app, run), force=force)

    async def beat(self, owner: str) -> Heartbeat:
        return self._opened.queue.beat(owner)

    async def rename(self, owner: str, new: str) -> list[RunKey]:
        return self._opened.queue.rename(owner, new)

    async def release(self, owner: str, runs: Collection[RunKey], *, due_at: int = 0) -> None:
        self._opened.queue.release(owner, runs, due_at)

    async def next_due(self) -> int | None:
        return self._opened.queue.next_due()

    async def workload(self) -> Workload:
        return self._opened.queue.workload()

    async def wait(self, seconds: float) -> bool:
        _ = self._opened
        await asyncio.sleep(seconds)
        return False

    # -- mail

    async def put(self, mail: Mail, *, package: bytes | None = None) -> str:
        return self._opened.put(mail, package)

    async def pending(self, app: str, run: str, *, limit: int = 100) -> list[Mail]:
        found = self._opened.runs.get((app, run))
        return [] if found is None else list(islice(found.mail.values(), max(limit, 0)))

    # -- lists

    async def run(self, scope: Scope, run: str) -> RunRow | None:
        opened = self._opened
        return opened.row(opened.find(scope, run))

    async def named(self, app: str, name: str) -> RunRow | None:
        opened = self._opened
        run = opened.names.get((app, name))
        return opened.row(run if run and run.events else opened.lists.newest(app, name))

    async def open_run(self, app: str, name: str) -> str | None:
        run = self._opened.names.get((app, name))
        return None if run is None else run.key[1]

    async def runs(
        self,
        scope: Scope,
        *,
        status: str | None = None,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[RunRow]:
        opened = self._opened
        last = None if before is None else await self.run(scope, before)
        if before is not None and last is None:
            return []
        page = opened.lists.page(scope, status, workflow, last, limit)
        return [row for run in page if (row := opened.row(run)) is not None]

    async def requests(
        self,
        scope: Scope,
        *,
        run: str | None = None,
        after: tuple[int, str, str] | None = None,
        limit: int | None = None,
    ) -> list[RequestRow]:
        opened = self._opened
        if run is None:
            return opened.lists.requests(scope, after, limit)
        found = opened.runs.get((scope.app, run))
        return [] if found is None else opened.lists.requests_of(found, scope, after, limit)

    async def carried(self, scope: Scope, workflow: str) -> dict[str, Json]:
        return self._opened.lists.carried(scope, workflow)

    async def apps(self) -> list[str]:
        return self._opened.lists.apps()

    async def completed(self, scope: Scope, workflows: Sequence[str]) -> set[str]:
        return self._opened.lists.completed(scope, workflows)

    async def artifacts(self, query: ArtifactQuery, *, count: bool = False) -> ArtifactPage:
        return self._opened.board.find(query, count=count)

    async def consumed(
        self, app: str, board: str, *, owners: tuple[str, ...] | None, agent: str | None = None,
        artifact: str | None = None, limit: int = 100,
    ) -> list[Consumption]:  # fmt: skip
        return self._opened.board.consumed(app, board, owners, agent, artifact, limit)

    # -- events for webhooks

    async def take_outgoing(self, *, limit: int, hold: int) -> list[OutgoingEvent]:
        return self._opened.outgoing.take(limit, hold)

    async def postpone_outgoing(self, events: Sequence[OutgoingEvent], *, hold: int) -> None:
        self._opened.outgoing.postpone(events, hold)

    async def remove_outgoing(self, events: Sequence[OutgoingEvent]) -> None:
        self._opened.outgoing.remove(events)

    # -- records of a server

    async def record(self, app: str, kind: str, key: str) -> Record | None:
        return self._opened.records.find(app, kind, key)

    async def records(
        self, app: str, kind: str, *, after: str = "", limit: int = 50, newest: bool = False
    ) -> list[Record]:
        return self._opened.records.page(app, kind, after, limit, newest=newest)

    async def add_record(self, app: str, kind: str, key: str, value: Mapping[str, Json]) -> bool:
        return self._opened.records.add(app, kind, key, value)

    async def put_record(
        self,
        app: str,
        kind: str,
        key: str,
        value: Mapping[str, Json],
        *,
        version: int | None = None,
    ) -> bool:
        return self._opened.records.put(app, kind, key, value, version)

    async def delete_record(self, app: str, kind: str, key: str) -> bool:
        return self._opened.records.delete(app, kind, key)

    # -- the end

    async def close(self) -> None:
        self._is_closed = True
        self._followers.read_again()

    @property
    def _opened(self) -> MemoryRuns:
        """What is in the store, unless it is closed."""
        if self._is_closed:
            raise StoreError("the store in memory is closed; open another")
        return self._all
