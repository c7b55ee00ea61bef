"""Batches, mail and requests as rows, and back.

Rows are made where a batch comes from and not where it is written: while the thread that writes
works on values of Python, it and the event loop take turns, and all others wait for it.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias, cast

from pydantic_core import from_json, to_json

from weft.adapters.sql.statements import Row, Rows, Statement
from weft.adapters.sql.tables import (
    ARTIFACT_COLUMNS,
    EVENT_COLUMNS,
    REQUEST_COLUMNS,
    RUN_COLUMNS,
)
from weft.engine.events import KIND_NAMES, Event, EventData, RunStarted
from weft.engine.events.codec import decode, encode
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
from weft.errors import StoreError
from weft.ports.store import RunKey

#: Makes the id of a run that mail may begin.
NewId: TypeAlias = Callable[[], str]
#: Puts the fields of a row into the order of its columns.
_Order: TypeAlias = Callable[[Row], Row]

#: Event data of more bytes than this is in `blobs`, under its hash.
LARGEST_INLINE: Final = 8 * 1024

#: The mark before the hash of a blob; JSON of an event begins with a brace.
BLOB_MARK: Final = "#"

_STARTED: Final = KIND_NAMES[RunStarted]


def column_names(columns: Iterable[str]) -> list[str]:
    """Return columns without their types."""
    return [column.partition(":")[0] for column in columns]


def insertion(table: str, columns: Sequence[str], otherwise: str = "") -> Statement:
    """Return the statement that inserts rows into a table."""
    sql = f"INSERT INTO {table} ({', '.join(column_names(columns))}) {{rows}} {otherwise}"
    return Statement(sql, columns)


_REOPEN: Final = ", ".join(
    f"{column} = excluded.{column}" for column in column_names(REQUEST_COLUMNS[3:])
)

#: What a batch changes besides its run, its events and its mail, in the order it is written: a
#: request may be opened and closed in one transaction.
SIDE_STATEMENTS: Final = {
    "blobs": insertion("blobs", ("app", "digest", "content"), "ON CONFLICT DO NOTHING"),
    "packages": insertion("packages", ("app", "digest", "content:bytes"), "ON CONFLICT DO NOTHING"),
    "requests": insertion(
        "requests",
        REQUEST_COLUMNS,
        f"ON CONFLICT (app, run, id) DO UPDATE SET {_REOPEN}, answered = 0",
    ),
    "closed": Statement("DELETE FROM requests WHERE {keys}", "app run id"),
    "carried": insertion(
        "carried_values",
        ("app", "user_id", "workflow", "name", "value"),
        "ON CONFLICT (app, user_id, workflow, name) DO UPDATE SET value = excluded.value",
    ),
    "artifacts": insertion("artifacts", ARTIFACT_COLUMNS),
    "tags": insertion(
        "artifact_tags",
        ("app", "run", "seq:number", "tag", "board", "type", "created_at:number", "owner"),
    ),
    "consumed": insertion(
        "consumed_artifacts",
        ("app", "board", "agent", "artifact", "run", "turn:number", "at:number", "owner"),
        "ON CONFLICT DO NOTHING",
    ),
    "outgoing": insertion(
        "webhook_events",
        ("app", "run", "seq:number", "webhook", "at:number", "due_at:number"),
        "ON CONFLICT DO NOTHING",
    ),
}

INSERT_EVENTS: Final = insertion("events", EVENT_COLUMNS)


class MailRow(NamedTuple):
    """Mail in its stored form.

    `run` is its receiver; None if it goes to the open run of its name, or else to the run that it
    `begins`.
    """

    mail: Mail
    data: str
    run: RunKey | None
    start: str | None = None
    begins: Row | None = None

    @property
    def key(self) -> RunKey:
        """The run, or the name of the run."""
        return self.mail.app, self.mail.to


class Written(NamedTuple):
    """A batch in its stored form."""

    batch: Batch
    key: RunKey
    run: Row
    events: Rows
    #: By name in SIDE_STATEMENTS.
    rows_by_table: dict[str, Rows]
    sent: list[MailRow]
    taken: list[str]


def batch_rows(batch: Batch, new_id: NewId) -> Written:
    """Return a batch with its rows; raises TypeError or ValueError if something is not JSON."""
    row = batch.row
    app, run = key = row.app, batch.run
    rows_by_table: dict[str, Rows] = {}
    events = _event_rows(batch, rows_by_table)
    sent: list[MailRow] = []
    taken: list[str] = []
    if batch.package is not None:
        rows_by_table["packages"] = [(app, row.digest, batch.package)]
    for change in batch.changes:
        match change:
            case RequestRow():
                rows_by_table.setdefault("requests", []).append(_request_values(change))
            case RequestClosed():
                rows_by_table.setdefault("closed", []).append((app, run, change.id))
            case CarriedValue():
                value = to_json(change.value).decode()
                rows_by_table.setdefault("carried", []).append((*change[:-1], value))
            case MailTaken():
                taken.append(change.id)
            case Mail():
                mail = mail_row(change, new_id)
                is_own = mail.key == (app, row.name)
                sent.append(mail._replace(run=key) if is_own else mail)
            case ArtifactRow():
                rows_by_table.setdefault("artifacts", []).append(
                    (
                        *change[:-3],
                        names_text(change.visible_to),
                        to_json(change.tags).decode(),
                        change.owner,
                    )
                )
                place, about = (
                    change[:3],
                    (change.board, change.type, change.created_at, change.owner),
                )
                rows_by_table.setdefault("tags", []).extend(
                    (*place, tag, *about) for tag in dict.fromkeys(change.tags)
                )
            case ConsumedRow():
                rows_by_table.setdefault("consumed", []).append(change)
            case OutgoingEvent():
                rows_by_table.setdefault("outgoing", []).append((*change, change.at))
            case _:
                pass
    return Written(batch, key, _run_values(row), events, rows_by_table, sent, taken)


def _event_rows(batch: Batch, rows_by_table: dict[str, Rows]) -> Rows:
    """Return the rows of events; large data goes into a row of its own."""
    app, run = batch.row.app, batch.run
    events: Rows = []
    for seq, at, actor, cause, turn, data in batch.events:
        raw = encode(data)
        text = raw.decode()
        if len(raw) > LARGEST_INLINE:
            digest = BLOB_MARK + hashlib.sha256(raw).hexdigest()
            rows_by_table.setdefault("blobs", []).append((app, digest, text))
            text = digest
        events.append((app, run, seq, at, actor, cause, turn, KIND_NAMES[type(data)], text))
    return events


def mail_row(mail: Mail, new_id: NewId) -> MailRow:
    """Return the stored form of mail; raises TypeError or ValueError if it is not JSON."""
    data = encode(mail.data).decode()
    if mail.start is None:
        return MailRow(mail, data, (mail.app, mail.to))
    start = mail.start
    begun = (
        mail.app, new_id(), mail.to, start.user, start.workflow, start.digest, "new", 0,
        None, None, 0, 0, 0, 0, 0.0, 0, 0, "", None, "", "", "",
    )  # fmt: skip
    return MailRow(mail, data, None, encode(start).decode(), begun)


def to_mail(row: Row) -> Mail:
    """Return mail from its row."""
    app, run, name, id_, actor, kind, data, start, request = row
    begins = None if start is None else cast("RunStarted", to_data(run, 1, _STARTED, start))
    return Mail(app, name or run, id_, actor, to_data(run, 0, kind, data), begins, request)


def to_events(run: str, rows: Iterable[Row]) -> list[Event]:
    """Return events from rows without their run."""
    return [
        Event(seq, at, actor, cause, turn, to_data(run, seq, kind, raw))
        for seq, at, actor, cause, turn, kind, raw in rows
    ]


def to_data(run: str, seq: int, kind: str, raw: str | None) -> EventData:
    """Return the data of an event."""
    if raw is None:
        raise StoreError(f"the store lacks the data of event {seq} of run {run}: it was lost")
    try:
        return decode(kind, raw)
    except (KeyError, TypeError, ValueError) as error:
        what = f"event {seq}" if seq else "mail"
        raise StoreError(
            f"{what} of run {run} cannot be read ({kind}: {error}); "
            "it was damaged, or written by a newer Weft"
        ) from error


def refuse_gap(run: str, events: Sequence[Event], after: int, last: int) -> None:
    """Raise StoreError unless events are all of a run after a number, up to the last."""
    numbers = range(after + 1, last + 1)
    if len(events) < len(numbers):
        there = {event.seq for event in events}
        missing = next(seq for seq in numbers if seq not in there)
        raise StoreError(
            f"the store lacks event {missing} of run {run}, which has had {last}: "
            "it was removed or lost"
        )


# -- rows of runs and requests: the order of the columns is not that of the fields

_COLUMN_OF: Final = {"user": "user_id", "by": "producer"}


def _order(fields: Sequence[str], columns: Sequence[str]) -> _Order:
    """Return what puts the fields of a row into the order of columns."""
    named = [_COLUMN_OF.get(field, field) for field in fields]
    return itemgetter(*(named.index(column) for column in column_names(columns)))


_run_values = _order(RunRow._fields, RUN_COLUMNS)
_request_order = _order(RequestRow._fields, REQUEST_COLUMNS)


def _request_values(row: RequestRow) -> Row:
    return _request_order(
        row._replace(payload=to_json(row.payload).decode(), sets=to_json(row.sets).decode())
    )


#: What a row of a run says besides its columns, as it is selected.
_OF_WORK: Final = {
    "owner": "coalesce(w.owner, '')",
    "heartbeat": "coalesce(k.seen_at, 0)",
    "due_at": "coalesce(w.due_at, 4611686018427387904)",
}

SELECT_RUNS: Final = (
    "SELECT "  # noqa: S608 - our own words
    + ", ".join(
        _OF_WORK.get(field) or f"r.{_COLUMN_OF.get(field, field)}" for field in RunRow._fields
    )
    + " FROM runs r {by %s} LEFT JOIN work w ON w.app = r.app AND w.run = r.run"
    " LEFT JOIN workers k ON k.owner = w.owner"
)
SELECT_REQUESTS: Final = (
    "SELECT "  # noqa: S608
    + ", ".join(_COLUMN_OF.get(field, field) for field in RequestRow._fields)
    + " FROM requests {by %s}"
)


def to_request(row: Row) -> RequestRow:
    """Return an open request from its row."""
    request = RequestRow(*row)
    sets = tuple(from_json(str(request.sets)))
    return request._replace(payload=from_json(str(request.payload)), sets=sets)


# -- names of people that may see an artifact


def names_text(names: Iterable[str]) -> str:
    """Return names as one text, in which SQL searches for `name_text` of a name.

    >>> names_text(["a", "b"])
    '\\n"a"\\n\\n"b"\\n'
    """
    return "".join(map(name_text, names))


def name_text(name: str) -> str:
    """Return a name as it appears in `names_text`: JSON has no line breaks inside."""
    return f"\n{to_json(name).decode()}\n"


def to_names(text: str) -> tuple[str, ...]:
    """Return the names of such a text."""
    return tuple(from_json(line) for line in text.split("\n") if line)
