"""Writing batches and mail: many in one transaction, each whole or refused.

Locks are taken in one order everywhere: the ids of mail, runs that begin by name, then the work
rows of all runs that are written or addressed, sorted. A run is let go of, or ends, only after its
work row was locked and then, by a later statement, its mail was looked for; who puts mail locks the
work row first. So no mail is left behind.
"""

import logging
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from weft.adapters.sql.rows import (
    INSERT_EVENTS,
    SIDE_STATEMENTS,
    MailRow,
    Written,
)
from weft.adapters.sql.statements import Call, Row, Rows, Statement, Transaction
from weft.adapters.sql.write_statements import (
    ANSWER,
    ASKED,
    BEGIN_RUNS,
    END_SECRETS,
    END_WORK,
    FORGET,
    LOCK,
    NAMED,
    NEWEST,
    REFRESH,
    SEE,
    SEND,
    SET_WORK,
    STOOD,
    TAKE_MAIL,
    UNBEGIN,
    UNREAD,
    UPDATE_RUNS,
    UPDATE_RUNS_AND_STATUS,
    UPDATE_WHOLE_RUNS,
)
from weft.adapters.store_rules import (
    MAIL_NOT_THERE,
    already_answered,
    conflict,
    name_taken,
    request_not_open,
    run_has_ended,
    run_owned,
    unread_mail,
)
from weft.engine.events import KIND_NAMES
from weft.engine.timers import NEVER
from weft.errors import StoreError
from weft.ports.store import RunKey

_log: Final = logging.getLogger(__name__)

#: Milliseconds after which a batch that keeps its run also records that its owner is alive.
REFRESH_AFTER: Final = 500

Steps: TypeAlias = Generator[Call | list[Call], Rows, None]


class Append(NamedTuple):
    """A batch that its owner wants to be written."""

    written: Written
    owner: str


class Put(NamedTuple):
    """Mail that wants to be delivered, and the package of the run that it may begin."""

    parcel: MailRow
    package: bytes | None


class Deferred(NamedTuple):
    """It must be tried again in the next transaction."""


#: Of a batch, whether mail is left; of mail, the run that gets it; or why it is refused.
Outcome: TypeAlias = bool | str | StoreError | Deferred

#: Tells other processes which runs have events, as (app, run, seq), and which are due, as (app,
#: run, owner).
Notify: TypeAlias = Callable[[Rows, Rows], list[Call]]


class _RunPosition:
    """The row of a run within this transaction; `mail` counts what is left unread."""

    __slots__ = ("batch", "due_at", "mail", "owner", "seq", "status")

    def __init__(
        self, owner: str, due_at: int, seq: int, batch: str, status: str, mail: int
    ) -> None:
        self.owner = owner
        self.due_at = due_at
        self.seq = seq
        self.batch = batch
        self.status = status
        self.mail = mail


def write_group(
    items: Sequence[Append | Put], *, notify: Notify, refreshed: dict[str, int], dead_after: int
) -> Transaction[list[Outcome]]:
    """Write batches and mail in one transaction; of a run it must be at most one batch.

    `refreshed` has the time at which each owner was last recorded to be alive.
    """
    group = Group(items)
    yield from group.lock()
    yield from group.decide()
    if group.taken:
        deleted = yield TAKE_MAIL(group.taken)
        if len(deleted) != len(group.taken):
            raise ValueError(MAIL_NOT_THERE)
    writes = group.writes()
    due = group.now - REFRESH_AFTER
    old = [(owner,) for owner in group.kept if refreshed.get(owner, 0) <= due]
    if old:
        writes.append(REFRESH(sorted(old), dead_after))
        refreshed.update((owner, group.now) for (owner,) in old)
    writes += notify(group.appended, group.woken)
    if writes:
        yield writes
    return group.outcomes


class Group:
    """What the items of one transaction come to."""

    def __init__(self, items: Sequence[Append | Put]) -> None:
        self._items = items
        self._outcomes: dict[int, Outcome] = {}
        self._appends = [
            (number, item) for number, item in enumerate(items) if isinstance(item, Append)
        ]
        self._puts = [(number, item) for number, item in enumerate(items) if isinstance(item, Put)]
        self.now = 0
        #: The open run of each name that mail is addressed to.
        self._names: dict[RunKey, str] = {}
        #: Runs that begin in this transaction, each True if it is by a batch of its own.
        self._begun: dict[RunKey, bool] = {}
        self._stands: dict[RunKey, _RunPosition] = {}
        self._stood: dict[RunKey, tuple[int, str]] = {}
        self._forgotten: Rows = []
        self._packages: Rows = []
        self._accepted: list[tuple[int, Append]] = []
        #: The runs that a batch of this group starts, and their names: mail to them comes later.
        self._starting: set[RunKey] = set()
        self._ending: set[RunKey] = set()
        #: Names whose run was gone when it was to be locked.
        self._lost: set[RunKey] = set()
        self._mail: Rows = []
        self._restarts: Rows = []
        #: The runs that begin because the run of their name ends in this transaction.
        self._next_runs: dict[RunKey, str] = {}
        self._work: dict[RunKey, tuple[str, int]] = {}
        #: Mail that goes.
        self.taken: Rows = []
        #: Owners that keep runs.
        self.kept: set[str] = set()
        #: For other processes: runs with events, and runs that are due.
        self.appended: Rows = []
        self.woken: Rows = []

    @property
    def outcomes(self) -> list[Outcome]:
        """Return what became of each item, in order."""
        return [self._outcomes[number] for number in range(len(self._items))]

    # -- locks

    def lock(self) -> Steps:
        """Find, begin and lock all runs that are written or addressed."""
        own = {item.written.key: item.written for _, item in self._appends}
        begins: Rows = []
        for written in own.values():
            if not written.batch.expected:
                begins.append(written.run)
                self._starting |= {written.key, (written.key[0], written.batch.row.name)}
        if self._puts:
            yield from self._see()
        parcels = self._addressed()
        named = {parcel.key: parcel for parcel in parcels if parcel.run is None}
        if named:
            begins += yield from self._find_names(named)
        if begins:
            yield from self._begin(begins, own)
        yield from self._lock({*own, *map(self._target, parcels)} if parcels else own)
        # Another process has begun a run of the name, or the run has ended in the meantime. To
        # look again now would be to lock out of order: the next transaction does.
        self._lost = {key for key in named if (key[0], self._names[key]) not in self._stands}
        if self._lost:
            self._defer_lost()
        closed = [key for key in own if key not in self._stands]
        if closed:
            rows = yield STOOD(closed)
            self._stood = {(app, run): (seq, batch) for app, run, seq, batch in rows}

    def _defer_lost(self) -> None:
        """Leave mail whose name has lost its run to the next transaction."""
        for number, item in self._puts:
            if item.parcel.key in self._lost:
                self._outcomes[number] = Deferred()
                self._forgotten.append((*item.parcel.key, item.parcel.mail.id))
        self._puts = [put for put in self._puts if put[0] not in self._outcomes]

    def _addressed(self) -> list[MailRow]:
        """Return all mail, except that to runs that are just starting."""
        parcels = [item.parcel for _, item in self._puts]
        for _, (written, _) in self._appends:
            parcels += (
                parcel
                for parcel in written.sent
                if parcel.run == written.key or parcel.key not in self._starting
            )
        return parcels

    def _see(self) -> Steps:
        """Set aside mail that was seen before, and mail to runs that are just starting."""
        for number, item in self._puts:
            if item.parcel.key in self._starting:
                self._outcomes[number] = Deferred()
        self._puts = [put for put in self._puts if put[0] not in self._outcomes]
        if not self._puts:
            return
        ids = [(*item.parcel.key, item.parcel.mail.id) for _, item in self._puts]
        new = set((yield SEE(ids)))
        for (number, item), id_ in zip(self._puts, ids, strict=True):
            if id_ not in new:
                yield from self._repeat(number, item.parcel)
        self._puts = [put for put, id_ in zip(self._puts, ids, strict=True) if id_ in new]

    def _repeat(self, number: int, parcel: MailRow) -> Steps:
        run = parcel.mail.to
        if parcel.run is None:
            rows = yield NAMED([parcel.key])
            if not rows:
                rows = yield NEWEST((), *parcel.key)
            run = rows[0][-1] if rows else ""
        self._outcomes[number] = run

    def _find_names(self, named: dict[RunKey, MailRow]) -> Generator[Call | list[Call], Rows, Rows]:
        """Find the open runs of names, and return the runs that begin because there is none."""
        unknown = sorted(named.keys() - self._names.keys())
        rows = yield NAMED(unknown)
        self._names.update(((app, name), run) for app, name, run in rows)
        begins = [
            row
            for key in unknown
            if key not in self._names and (row := named[key].begins) is not None
        ]
        self._names.update(((row[0], row[2]), row[1]) for row in begins)
        return begins

    def _begin(self, rows: Rows, own: dict[RunKey, Written]) -> Steps:
        """Insert runs that are not there; one whose name is taken is not inserted."""
        for app, run, now in (yield BEGIN_RUNS(rows)):
            key = (app, run)
            self.now = now
            self._begun[key] = key in own
            self._stands[key] = _RunPosition("", NEVER, 0, "", "new", 0)

    def _lock(self, keys: Iterable[RunKey]) -> Steps:
        """Lock runs that are open, in order."""
        missing = sorted(key for key in keys if key not in self._stands)
        if not missing:
            return
        rows = yield LOCK(missing)
        unread: dict[RunKey, int] = {}
        if rows and rows[0][7] is None:
            counts = yield UNREAD([row[:2] for row in rows])
            unread = {(app, run): count for app, run, count in counts}
        for app, run, owner, due_at, seq, batch, status, mail, now in rows:
            self.now = now
            count = unread.get((app, run), 0) if mail is None else mail
            self._stands[app, run] = _RunPosition(owner, due_at, seq, batch, status, count)

    def _target(self, parcel: MailRow) -> RunKey:
        """Return the run that mail goes to."""
        return parcel.run or (parcel.mail.app, self._names[parcel.key])

    # -- decisions

    def decide(self) -> Steps:
        """Decide about each item: mail first, ends last."""
        if self._puts:
            yield from self._decide_puts()
        ends: list[tuple[int, Append]] = []
        for number, item in self._appends:
            if item.written.batch.row.status == "ended":
                ends.append((number, item))
            else:
                self._outcomes[number] = self._decide(number, item)
        for number, item in ends:
            self._outcomes[number] = self._decide(number, item)
        for number, item in self._accepted:  # Mail may have come for it after its decision.
            if not self._ending or item.written.key not in self._ending:
                self._outcomes[number] = self._keep_or_free(item)

    def _decide_puts(self) -> Steps:
        answers = [
            (*self._target(item.parcel), item.parcel.mail.request)
            for _, item in self._puts
            if item.parcel.mail.request and self._target(item.parcel) in self._stands
        ]
        marked: set[Row] = set()
        known: set[Row] = set()
        if answers:
            marked = set((yield ANSWER(answers)))
            if len(marked) < len(answers):
                known = set((yield ASKED(answers)))
        for number, item in self._puts:
            parcel = item.parcel
            key = self._target(parcel)
            answer = (*key, parcel.mail.request)
            if key not in self._stands:
                self._refuse(number, parcel, run_has_ended(key[1]))
            elif parcel.mail.request and answer not in marked:
                error = already_answered if answer in known else request_not_open
                self._refuse(number, parcel, error(*answer[1:]))
            else:
                marked.discard(answer)
                known.add(answer)
                if self._begun.get(key) is False and item.package is not None and parcel.mail.start:
                    digest = parcel.mail.start.digest
                    self._packages.append((parcel.mail.app, digest, item.package))
                self._send(parcel)
                self._outcomes[number] = key[1]

    def _refuse(self, number: int, parcel: MailRow, error: StoreError) -> None:
        """Refuse mail; it may be put again."""
        self._outcomes[number] = error
        self._forgotten.append((*parcel.key, parcel.mail.id))

    def _decide(self, number: int, item: Append) -> Outcome:
        """Refuse a batch, or add it to what is written."""
        written = item.written
        batch, key = written.batch, written.key
        stand = self._stands.get(key)
        if stand is None:
            return self._decide_closed(written)
        if stand.batch == batch.id:
            return stand.owner == item.owner and stand.mail > 0
        if self.is_stale(stand.owner, item.owner):
            return run_owned(key[1], stand.owner)
        if stand.seq != batch.expected:
            return conflict(key[1], stand.seq, batch.expected)
        ends = batch.row.status == "ended"
        left = stand.mail - len(written.taken)
        if (ends and self.is_unread(left)) or (batch.direct and self.is_unread(stand.mail)):
            return unread_mail(key[1])
        for parcel in written.sent:
            if parcel.run != key and self._is_later(parcel):
                return Deferred()
        self._accepted.append((number, item))
        if ends:
            self._ending.add(key)
        if written.taken:
            stand.mail = left
            self.taken += ((*key, id_) for id_ in written.taken)
        for parcel in written.sent:
            self._send(parcel)
        return False

    def _is_later(self, parcel: MailRow) -> bool:
        """Return whether the run that mail is for starts, ends or was lost in this transaction."""
        is_unsettled = parcel.key in self._starting or parcel.key in self._lost
        return is_unsettled or self._target(parcel) in self._ending

    def _decide_closed(self, written: Written) -> Outcome:
        """Decide about a batch of a run that is not open."""
        batch, run = written.batch, written.key[1]
        stood = self._stood.get(written.key)
        if stood is None and not batch.expected:
            return name_taken(batch.row.name)
        seq, last = stood or (0, "")
        return False if last == batch.id else conflict(run, seq, batch.expected)

    def _send(self, parcel: MailRow) -> None:
        key = self._target(parcel)
        stand = self._stands.get(key)
        mail = parcel.mail
        if key in self._ending and parcel.begins is not None:
            # A run that ends sends mail to its own name: the next run of the name gets it.
            key = (mail.app, self._next_runs.setdefault(parcel.key, parcel.begins[1]))
            if key not in self._stands:
                self._stands[key] = _RunPosition("", NEVER, 0, "", "new", 0)
                self._begun[key] = False
                self._restarts.append(parcel.begins)
            stand = self._stands[key]
        elif key in self._ending or stand is None:
            _log.info("mail %s is dropped: run %s has ended", mail.id, key[1])
            return
        stand.mail += 1
        name = mail.to if parcel.start else ""
        kind = KIND_NAMES[type(mail.data)]
        self._mail.append(
            (*key, mail.id, mail.actor, kind, parcel.data, parcel.start, mail.request, name)
        )
        self._work.setdefault(key, (stand.owner, min(stand.due_at, self.now)))

    def _keep_or_free(self, item: Append) -> bool:
        """Return whether mail is left for a run, which decides whether its owner keeps it."""
        batch, key = item.written.batch, item.written.key
        stand = self._stands[key]
        left = self.is_unread(stand.mail)
        keep = batch.held or left
        self._work[key] = (item.owner, NEVER) if keep else ("", batch.due_at)
        if keep:
            self.kept.add(item.owner)
        return left

    # The rules that no store may break; the suite has a broken store for each.

    def is_stale(self, owner: str, writer: str) -> bool:
        """Return whether a run belongs to another owner than the writer."""
        return owner not in ("", writer)

    def is_unread(self, mail: int) -> bool:
        """Return whether mail is left for a run."""
        return mail > 0

    # -- writing

    def writes(self) -> list[Call]:
        """Return what is written, in order."""
        first: Rows = []
        moving: Rows = []
        staying: Rows = []
        events: Rows = []
        rows_by_table: dict[str, Rows] = {"packages": self._packages} if self._packages else {}
        for _, (written, _) in self._accepted:
            batch, key, run, new_events, changes, *_ = written
            stand = self._stands[key]
            if new_events:
                events += new_events
                self.appended.append((*key, batch.row.seq))
            for name, rows in changes.items():
                rows_by_table.setdefault(name, []).extend(rows)
            if self._begun.get(key):
                continue  # Its row was inserted whole.
            if not stand.seq:
                first.append(run)
            elif stand.status == batch.row.status:
                staying.append(run)
            else:
                moving.append(run)
        writes = [
            (UPDATE_RUNS, staying),
            (UPDATE_RUNS_AND_STATUS, moving),
            (UPDATE_WHOLE_RUNS, first),
            (INSERT_EVENTS, events),
            (BEGIN_RUNS, self._restarts),
        ]
        if rows_by_table:
            writes += (
                (statement, rows_by_table[name])
                for name, statement in SIDE_STATEMENTS.items()
                if name in rows_by_table
            )
        writes += ((SEND, self._mail), *self._work_writes(), (FORGET, self._forgotten))
        return [Call(statement, rows) for statement, rows in writes if rows]

    def _work_writes(self) -> list[tuple[Statement, Rows]]:
        rows: Rows = []
        for key, (owner, due_at) in self._work.items():
            stand = self._stands[key]
            if stand.owner == owner and stand.due_at == due_at and key not in self._begun:
                continue
            if key not in self._ending:
                rows.append((*key, owner, due_at))
                if due_at <= self.now:
                    self.woken.append((*key, owner))
        # Runs that were begun for a batch or mail that is refused.
        unneeded: Rows = [
            key for key in self._begun if key not in self._work and key not in self._ending
        ]
        ended: Rows = list(self._ending)
        return [
            (UNBEGIN, unneeded),
            (END_WORK, ended),
            (END_SECRETS, ended),
            (SET_WORK, rows),
        ]
