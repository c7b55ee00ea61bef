"""The runs of a store in memory: how batches and mail are written, and how runs are removed.

Each is refused before anything is changed, or written whole.
"""

import logging
from collections.abc import Mapping
from typing import Final

from pydantic_core import to_json

from weft.adapters.memory.board import MemoryBoard
from weft.adapters.memory.lists import MemoryLists
from weft.adapters.memory.outgoing import MemoryOutgoing
from weft.adapters.memory.queue import MemoryQueue, MemoryRun
from weft.adapters.memory.records import MemoryRecords
from weft.adapters.store_rules import (
    FORGET_EVERY,
    MAIL_NOT_THERE,
    REMEMBER,
    UNFIT,
    already_answered,
    conflict,
    name_taken,
    request_not_open,
    run_has_ended,
    run_owned,
    unfit_batch,
    unfit_mail,
    unread_mail,
)
from weft.engine.events.codec import encode
from weft.engine.rows import (
    ArtifactRow,
    Batch,
    CarriedValue,
    ConsumedRow,
    Mail,
    MailTaken,
    OutgoingEvent,
    RequestClosed,
    RequestRow,
    RunRow,
)
from weft.engine.timers import NEVER
from weft.ports.clock import Clock
from weft.ports.scope import Scope
from weft.ports.store import Pruned, RunKey

_log: Final = logging.getLogger(__name__)


class MemoryRuns:
    """All runs with their mail and their lists, and the records of a server."""

    def __init__(self, clock: Clock, dead_after: int) -> None:
        self._clock = clock
        self.runs: dict[RunKey, MemoryRun] = {}
        #: The open runs by tenant and name.
        self.names: dict[RunKey, MemoryRun] = {}
        self.packages: dict[tuple[str, str], bytes] = {}
        self.queue = MemoryQueue(clock, dead_after)
        self.lists = MemoryLists()
        self.board = MemoryBoard()
        self.outgoing = MemoryOutgoing(clock)
        self.records = MemoryRecords(clock)
        #: The ids of mail that was put, by receiver, and when that was.
        self._seen: dict[tuple[str, str, str], int] = {}
        self._forgot_at = clock.now()

    def find(self, scope: Scope, run: str) -> MemoryRun | None:
        """Return a run within a scope that has events."""
        found = self.runs.get((scope.app, run))
        if found is None or found.row is None or not found.events:
            return None
        return found if scope.covers(scope.app, found.row.user) else None

    def row(self, run: MemoryRun | None) -> RunRow | None:
        """Return the row of a run with what the store adds."""
        if run is None or run.row is None:
            return None
        heartbeat = self.queue.heartbeat(run.owner)
        return run.row._replace(owner=run.owner, heartbeat=heartbeat, due_at=run.due_at)

    # -- batches

    def append(self, batch: Batch, owner: str) -> bool:
        """Write a batch, or refuse it; return whether its run has unread mail."""
        try:
            to_json((batch.events, batch.changes))
        except UNFIT as error:
            raise unfit_batch(batch.run, error) from error
        key = batch.row.app, batch.run
        run = self.runs.get(key)
        if run is None:
            run = self._new(key, batch)
        elif run.row is not None and run.row.batch == batch.row.batch:
            return run.owner == owner and bool(run.mail)
        taken = self._mail_to_take(run, batch, owner)
        # From here on nothing fails.
        for id_ in taken:
            del run.mail[id_]
        if key not in self.runs:
            self._begin(run)
        return self._write(run, batch, owner)

    def _new(self, key: RunKey, batch: Batch) -> MemoryRun:
        """Return the run that a batch begins, or refuse the batch."""
        row = batch.row
        is_open = not batch.expected and row.status != "ended"
        if is_open and (row.app, row.name) in self.names:
            raise name_taken(row.name)
        return MemoryRun(key, row.name, row.digest)

    def _mail_to_take(self, run: MemoryRun, batch: Batch, owner: str) -> list[str]:
        """Return the mail that a batch takes, or refuse the batch."""
        if run.owner not in ("", owner):
            raise run_owned(batch.run, run.owner)
        is_closed = run.key in self.runs and run.key not in self.queue.open
        if is_closed or len(run.events) != batch.expected:
            raise conflict(batch.run, len(run.events), batch.expected)
        changes = batch.changes
        taken = [each.id for each in changes if isinstance(each, MailTaken)] if changes else []
        is_end = batch.row.status == "ended"
        if (is_end and len(run.mail) > len(taken)) or (batch.direct and run.mail):
            raise unread_mail(batch.run)
        if len(run.mail.keys() & taken) != len(taken):
            raise unfit_batch(batch.run, MAIL_NOT_THERE)
        return taken

    def _write(self, run: MemoryRun, batch: Batch, owner: str) -> bool:
        row, now = batch.row, self._clock.now()
        is_first, is_end = not run.events, row.status == "ended"
        run.row, run.digest = row, row.digest
        if batch.package is not None:
            self.packages.setdefault((row.app, row.digest), batch.package)
        if batch.events:
            run.events += batch.events
            if is_first:
                self.lists.add(run, row)
        if is_end:  # What it sends to its own name begins the next run of the name.
            self._end(run, row)
        if batch.changes:
            self._write_sides(run, batch, now)
        if is_end:
            return False
        if batch.held or run.mail:
            self.queue.set_work(run, owner, NEVER)
            self.queue.refresh(owner, now)
        else:
            self.queue.set_work(run, "", batch.due_at)
        return bool(run.mail)

    def _write_sides(self, run: MemoryRun, batch: Batch, now: int) -> None:
        closed: list[str] = []
        for change in batch.changes:
            match change:
                case RequestRow():
                    self.lists.open_request(run, change)
                case RequestClosed():
                    closed.append(change.id)
                case CarriedValue():
                    self.lists.carry(change)
                case Mail():
                    self._send(change, now)
                case ArtifactRow():
                    self.board.publish(change, run.events)
                case ConsumedRow():
                    self.board.consume(change)
                case OutgoingEvent():
                    self.outgoing.add(change)
                case _:
                    pass
        for id_ in closed:  # A batch may open a request and close it.
            self.lists.close_request(run, id_)

    # -- mail

    def put(self, mail: Mail, package: bytes | None) -> str:
        """Deliver mail, or refuse it; return the run that gets it."""
        try:
            to_json(mail)
        except UNFIT as error:
            raise unfit_mail(mail.to, error) from error
        now = self._clock.now()
        self._forget(now)
        run = self._receiver(mail)
        id_ = mail.app, mail.to, mail.id
        if id_ in self._seen:
            run = run or self.lists.newest(mail.app, mail.to)
            return mail.to if mail.start is None else run.key[1] if run is not None else ""
        if run is None and mail.start is None:
            raise run_has_ended(mail.to)
        if mail.request:
            self._answer(run, mail)
        if run is None:
            run = self._begin_named(mail)
            if package is not None:
                self.packages.setdefault((mail.app, run.digest), package)
        self._seen[id_] = now
        self._deliver(run, mail, now)
        return run.key[1]

    def _receiver(self, mail: Mail) -> MemoryRun | None:
        """Return the open run that mail is for."""
        runs = self.queue.open if mail.start is None else self.names
        return runs.get((mail.app, mail.to))

    def _answer(self, run: MemoryRun | None, mail: Mail) -> None:
        """Mark the request that mail answers, or refuse the mail."""
        if run is not None and mail.request in run.answered:
            raise already_answered(run.key[1], mail.request)
        if run is None or mail.request not in run.requests:
            raise request_not_open(mail.to if run is None else run.key[1], mail.request)
        self.lists.close_request(run, mail.request)
        run.answered.add(mail.request)

    def _send(self, mail: Mail, now: int) -> None:
        """Deliver mail of a batch."""
        run = self._receiver(mail)
        if run is None and mail.start is None:
            _log.info("mail %s is dropped: run %s has ended", mail.id, mail.to)
        else:
            self._deliver(run or self._begin_named(mail), mail, now)

    def _deliver(self, run: MemoryRun, mail: Mail, now: int) -> None:
        run.mail.setdefault(mail.id, mail)
        self.queue.set_work(run, run.owner, min(run.due_at, now))

    def _forget(self, now: int) -> None:
        """Forget the ids of old mail now and then."""
        if now - self._forgot_at >= FORGET_EVERY:
            self._forgot_at = now
            self._seen = {id_: at for id_, at in self._seen.items() if at >= now - REMEMBER}

    # -- the first and the last of a run

    def _begin(self, run: MemoryRun) -> None:
        self.runs[run.key] = self.queue.open[run.key] = run
        if run.name:  # Of a run that begins and ends at once, another may have the name.
            self.names.setdefault((run.key[0], run.name), run)

    def _begin_named(self, mail: Mail) -> MemoryRun:
        """Begin the run of a name; it has no events yet."""
        digest = mail.start.digest if mail.start is not None else ""
        run = MemoryRun((mail.app, self._clock.new_id()), mail.to, digest)
        self._begin(run)
        return run

    def _end(self, run: MemoryRun, row: RunRow) -> None:
        self.queue.end(run)
        self.lists.count_completed(row, 1)
        if self.names.get((row.app, run.name)) is run:
            del self.names[row.app, run.name]

    def prune(self, scope: Scope, ended_before: int, *, dry_run: bool) -> Pruned:
        """Remove runs that ended before a time, or count them."""
        gone: dict[RunKey, RunRow] = {}
        needed: set[tuple[str, str]] = set()
        for key, run in self.runs.items():
            row = run.row
            if (
                row is not None
                and row.status == "ended"
                and row.changed_at < ended_before
                and scope.covers(row.app, row.user)
            ):
                gone[key] = row
            else:
                needed.add((key[0], run.digest))
        packages = {(row.app, row.digest) for row in gone.values()} & self.packages.keys() - needed
        events = [event for key in gone for event in self.runs[key].events]
        size = sum(len(encode(event.data)) for event in events)
        size += sum(len(self.packages[package]) for package in packages)
        if not dry_run:
            self._remove(gone)
            for package in packages:
                del self.packages[package]
        return Pruned(len(gone), len(events), size)

    def _remove(self, gone: Mapping[RunKey, RunRow]) -> None:
        for key in gone:
            run = self.runs.pop(key)
            for id_ in list(run.requests):
                self.lists.close_request(run, id_)
        self.lists.remove(gone)
        self.board.forget(gone.keys())
        self.outgoing.forget(gone.keys())
