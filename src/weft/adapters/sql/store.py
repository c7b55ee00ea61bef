"""The store over a database: all methods of the port, each one transaction.

A database adds how transactions are run, and how it hears of other processes.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Protocol, TypeVar, cast

from weft.adapters.followers import Followers, follow
from weft.adapters.sql import outbox, prune, queries, queue, records
from weft.adapters.sql.board import find_artifacts, find_consumed
from weft.adapters.sql.group import GroupCommit, Items, Then
from weft.adapters.sql.rows import batch_rows, mail_row
from weft.adapters.sql.statements import Call, Rows, Transaction
from weft.adapters.sql.write import Append, Outcome, Put, write_group
from weft.adapters.store_rules import DEAD_AFTER, FORGET_EVERY, UNFIT, unfit_batch, unfit_mail
from weft.engine.events import Event
from weft.engine.rows import Batch, Mail, OutgoingEvent, RequestRow, RunRow, Snapshot
from weft.errors import StoreError
from weft.findings import Json
from weft.ports.board import ArtifactPage, ArtifactQuery, Consumption
from weft.ports.clock import Clock
from weft.ports.records import Record
from weft.ports.scope import Scope
from weft.ports.store import Claimed, Heartbeat, Pruned, RunKey, Workload

T = TypeVar("T")


class ReadFrozen(Protocol):
    """Runs transactions that read, all at the same moment."""

    async def __call__(self, transaction: Transaction[T]) -> T: ...


class SqlStore(ABC):
    """The store port over one database. Belongs to the event loop that it is used in."""

    #: What the database is called in messages.
    name = "store"
    is_shared = True

    def __init__(self, clock: Clock, dead_after: int = DEAD_AFTER) -> None:
        self._clock = clock
        self._dead_after = dead_after
        self._followers = Followers()
        self._refreshed: dict[str, int] = {}
        self._forgot_at = 0
        self._closing: asyncio.Task[None] | None = None
        self._group = GroupCommit(self._write_group, self._perform, self._on_written)

    # -- what a database adds

    @abstractmethod
    def _perform(self, transaction: Transaction[list[Outcome]], then: Then) -> None:
        """Run the transaction of a group, as durable as the store is, and call a function.

        An error that is the fault of a value, and not of the database, is one of UNFIT.
        """

    @abstractmethod
    async def _write(self, transaction: Transaction[T]) -> T:
        """Run another transaction that writes."""

    @abstractmethod
    async def _queue(self, transaction: Transaction[T]) -> T:
        """Run a transaction of the queue, which need not be on disk: an append that follows is."""

    @abstractmethod
    async def _read(self, transaction: Transaction[T], app: str) -> T:
        """Run a transaction that reads rows of one tenant."""

    @abstractmethod
    async def wait(self, seconds: float) -> bool:
        """Return after so many seconds, or sooner and True if another process may have written."""

    @abstractmethod
    async def _close(self) -> None:
        """Close the connections."""

    def _notify(self, appended: Rows, woken: Rows) -> list[Call]:  # noqa: ARG002
        """Return what tells other processes of runs with new events, and of runs that are due."""
        return []

    @abstractmethod
    def _watch(self) -> None:
        """Begin to look for events that other processes write: a run has a follower."""

    # -- for operators: rows of all tenants

    @abstractmethod
    def frozen(self) -> AbstractAsyncContextManager[ReadFrozen]:
        """Return what reads rows of all tenants as they are at one moment."""

    async def load(self, transaction: Transaction[None]) -> None:
        """Write rows as they are; raises ValueError for a value that the database cannot hold."""
        self._refuse_if_closed()
        await self._write(transaction)

    async def find_damage(self) -> list[str]:
        """Return what the database itself finds wrong with its files."""
        return []

    # -- the log

    async def append(self, batch: Batch, *, owner: str) -> bool:
        """Write a batch, whole or not at all.

        A caller that is cancelled while waiting here does not know whether it was written.
        """
        self._refuse_if_closed()
        try:
            item = Append(batch_rows(batch, self._clock.new_id), owner)
            return cast("bool", await self._group.submit(item))
        except UNFIT as error:
            raise unfit_batch(batch.run, error) from error

    async def put(self, mail: Mail, *, package: bytes | None = None) -> str:
        self._refuse_if_closed()
        try:
            item = Put(mail_row(mail, self._clock.new_id), package)
            return cast("str", await self._group.submit(item))
        except UNFIT as error:
            raise unfit_mail(mail.to, error) from error

    async def read(
        self, scope: Scope, run: str, *, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        return await self._ask(queries.read_events(scope, run, after, limit), scope.app)

    async def follow(self, scope: Scope, run: str, *, after: int = 0) -> AsyncGenerator[Event]:
        row = await self.run(scope, run)
        if row is None or (row.status == "ended" and after >= row.seq):
            return
        self._watch()
        read = partial(self._read_after, scope, run)
        async for event in follow(self._followers, (scope.app, run), read, after):
            yield event

    async def snapshot(self, app: str, run: str) -> Snapshot | None:
        return await self._ask(queries.find_snapshot(app, run), app)

    async def save_snapshot(self, app: str, run: str, snapshot: Snapshot) -> None:
        self._refuse_if_closed()
        await self._queue(queries.save_snapshot(app, run, snapshot))

    async def package(self, app: str, digest: str) -> bytes | None:
        return await self._ask(queries.find_package(app, digest), app)

    async def prune(self, scope: Scope, *, ended_before: int, dry_run: bool) -> Pruned:
        if dry_run:
            return await self._ask(prune.would_prune(scope, ended_before), scope.app)
        total = Pruned(0, 0, 0)
        while True:
            self._refuse_if_closed()
            some = await self._write(prune.prune_some(scope, ended_before))
            if not some.runs:
                return total
            total = Pruned(*(sum(pair) for pair in zip(total, some, strict=True)))

    # -- the queue

    async def claim(self, owner: str, *, limit: int = 50) -> Claimed:
        self._refuse_if_closed()
        return await self._queue(queue.claim(owner, limit))

    async def take(self, owner: str, app: str, run: str, *, force: bool = False) -> bool:
        self._refuse_if_closed()
        return await self._queue(queue.take(owner, app, run, force=force))

    async def beat(self, owner: str) -> Heartbeat:
        self._refuse_if_closed()
        beat = await self._queue(queue.beat(owner, self._dead_after))
        if beat.alive:
            self._refreshed[owner] = beat.now
        if beat.now - self._forgot_at >= FORGET_EVERY:
            self._forgot_at = beat.now
            await self._queue(queue.forget())
        return beat

    async def rename(self, owner: str, new: str) -> list[RunKey]:
        self._refuse_if_closed()
        return await self._queue(queue.rename(owner, new))

    async def release(self, owner: str, runs: Collection[RunKey], *, due_at: int = 0) -> None:
        self._refuse_if_closed()
        # What is under way would claim them again.
        await self._group.flush()
        await self._queue(queue.release(owner, runs, due_at))

    async def next_due(self) -> int | None:
        return await self._ask(queue.next_due(), "")

    async def workload(self) -> Workload:
        # Not a read for a person or an agent: those see one tenant each.
        self._refuse_if_closed()
        return await self._queue(queue.workload(self._dead_after))

    async def pending(self, app: str, run: str, *, limit: int = 100) -> list[Mail]:
        return await self._ask(queries.find_mail(app, run, limit), app)

    # -- encrypted answers, for a vault

    async def put_secret(self, run: RunKey, request: str, content: bytes) -> None:
        self._refuse_if_closed()
        await self._write(queries.put_secret(run, request, content))

    async def secrets(self, run: RunKey, prefix: str) -> list[tuple[str, bytes]]:
        return await self._ask(queries.find_secrets(run, prefix), run[0])

    async def drop_secrets(self, run: RunKey, prefix: str) -> None:
        self._refuse_if_closed()
        await self._write(queries.drop_secrets(run, prefix))

    # -- lists

    async def run(self, scope: Scope, run: str) -> RunRow | None:
        return await self._ask(queries.find_run(scope, run), scope.app)

    async def named(self, app: str, name: str) -> RunRow | None:
        return await self._ask(queries.find_named(app, name), app)

    async def open_run(self, app: str, name: str) -> str | None:
        return await self._ask(queries.find_open(app, name), app)

    async def runs(
        self,
        scope: Scope,
        *,
        status: str | None = None,
        workflow: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[RunRow]:
        return await self._ask(queries.find_runs(scope, status, workflow, before, limit), scope.app)

    async def requests(
        self,
        scope: Scope,
        *,
        run: str | None = None,
        after: tuple[int, str, str] | None = None,
        limit: int | None = None,
    ) -> list[RequestRow]:
        return await self._ask(queries.find_requests(scope, run, after, limit), scope.app)

    async def carried(self, scope: Scope, workflow: str) -> dict[str, Json]:
        return await self._ask(queries.find_carried(scope, workflow), scope.app)

    async def apps(self) -> list[str]:
        # Not a read for a person or an agent: those see one tenant each.
        self._refuse_if_closed()
        return await self._queue(queries.find_apps())

    async def completed(self, scope: Scope, workflows: Sequence[str]) -> set[str]:
        return await self._ask(queries.find_completed(scope, workflows), scope.app)

    async def artifacts(self, query: ArtifactQuery, *, count: bool = False) -> ArtifactPage:
        return await self._ask(find_artifacts(query, count=count), query.app)

    async def consumed(
        self, app: str, board: str, *, owners: tuple[str, ...] | None, agent: str | None = None,
        artifact: str | None = None, limit: int = 100,
    ) -> list[Consumption]:  # fmt: skip
        return await self._ask(find_consumed(app, board, owners, agent, artifact, limit), app)

    # -- events for webhooks

    async def take_outgoing(self, *, limit: int, hold: int) -> list[OutgoingEvent]:
        self._refuse_if_closed()
        return await self._write(outbox.take(limit, hold))

    async def postpone_outgoing(self, events: Sequence[OutgoingEvent], *, hold: int) -> None:
        self._refuse_if_closed()
        await self._queue(outbox.postpone(events, hold))

    async def remove_outgoing(self, events: Sequence[OutgoingEvent]) -> None:
        self._refuse_if_closed()
        await self._queue(outbox.remove(events))

    # -- records of a server

    async def record(self, app: str, kind: str, key: str) -> Record | None:
        return await self._ask(records.find(app, kind, key), app)

    async def records(
        self, app: str, kind: str, *, after: str = "", limit: int = 50, newest: bool = False
    ) -> list[Record]:
        return await self._ask(records.find_page(app, kind, after, limit, newest=newest), app)

    async def add_record(self, app: str, kind: str, key: str, value: Mapping[str, Json]) -> bool:
        self._refuse_if_closed()
        return await self._write(records.add(app, kind, key, value))

    async def put_record(
        self,
        app: str,
        kind: str,
        key: str,
        value: Mapping[str, Json],
        *,
        version: int | None = None,
    ) -> bool:
        self._refuse_if_closed()
        return await self._write(records.put(app, kind, key, value, version))

    async def delete_record(self, app: str, kind: str, key: str) -> bool:
        self._refuse_if_closed()
        return await self._write(records.delete(app, kind, key))

    # -- the end

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close_all())
        # Shielded: cancelling one waiter must not cancel the shutdown for the others.
        await asyncio.shield(self._closing)

    async def _close_all(self) -> None:
        await self._group.flush()
        self._followers.read_again()
        await self._close()

    async def _ask(self, transaction: Transaction[T], app: str) -> T:
        self._refuse_if_closed()
        return await self._read(transaction, app)

    async def _read_after(self, scope: Scope, run: str, after: int) -> list[Event]:
        return await self.read(scope, run, after=after)

    def _write_group(self, items: Items) -> Transaction[list[Outcome]]:
        return write_group(
            items, notify=self._notify, refreshed=self._refreshed, dead_after=self._dead_after
        )

    def _on_written(self, item: Append) -> None:
        batch = item.written.batch
        if self._followers and batch.events:
            self._followers.add(item.written.key, batch.events)

    def _refuse_if_closed(self) -> None:
        if self._closing is not None:
            raise StoreError(f"{self.name} is closed; open it again")
