"""Events and rows as SQLite keeps them, and back."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from pydantic_core import from_json, to_json

from weft.engine.codec import decode, encode
from weft.engine.events import KIND_NAMES, Event
from weft.engine.rows import Batch, RequestRow, RunRow
from weft.errors import StoreError

#: Event data of more bytes than this is kept apart, under its hash.
LARGEST_INLINE: Final = 32 * 1024

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]

#: What may change with every batch, besides the status; what a run is and whose it is never does.
CHANGING: Final = (
    "seq", "changed_at", "turns", "calls", "input_tokens", "output_tokens", "cost_usd", "unpriced",
    "uncounted", "preview", "outcome", "reason", "owner", "batch",
)  # fmt: skip
#: What a batch writes of a run; when its owner was last alive is kept elsewhere.
RUN_COLUMNS: Final = RunRow._fields[:-1]
REQUEST_COLUMNS: Final = RequestRow._fields
EVENT_COLUMNS: Final = ("app", "run", "seq", "at", "actor", "cause", "turn", "kind", "data")

#: A statement with many rows is one step for SQLite, so that the writing thread gives up and
#: regains the interpreter once and not once for each row.
PIECES: Final = (128, 64, 32, 16)


def in_pieces(rows: list[T], largest: int = PIECES[0]) -> Iterator[list[T]]:
    """Cut a list into pieces of few different lengths, so that few different statements arise."""
    if len(rows) < PIECES[-1]:
        yield from [rows] if rows else []
        return
    start = 0
    for length in PIECES:
        while length <= min(largest, len(rows) - start):
            yield rows[start : start + length]
            start += length
    if start < len(rows):
        yield rows[start:]


@cache
def marks(rows: int, columns: int) -> str:
    """Return the question marks for many rows of values.

    >>> marks(2, 3)
    '(?,?,?),(?,?,?)'
    """
    return ",".join([f"({','.join('?' * columns)})"] * rows)


class Written(NamedTuple):
    """A batch as it is going to be written.

    It is made where the batch comes from and not on the thread that writes: while that works on
    values of Python, it and the event loop take turns, and everybody waits for its transaction.
    """

    batch: Batch
    events: list[Row]
    #: What is large among the data of the events.
    blobs: list[Row]


def written(batch: Batch) -> Written:
    """Return a batch with its rows; raises TypeError or ValueError if its events are no JSON."""
    app, run = batch.row.app, batch.run
    rows: list[Row] = []
    blobs: list[Row] = []
    for seq, at, actor, cause, turn, data in batch.events:
        raw = encode(data)
        kept: str | bytes
        if len(raw) > LARGEST_INLINE:
            kept = hashlib.sha256(raw).digest()
            blobs.append((app, kept, raw))
        else:
            kept = raw.decode()
        rows.append((app, run, seq, at, actor, cause, turn, KIND_NAMES[type(data)], kept))
    return Written(batch, rows, blobs)


def request_values(row: RequestRow) -> Row:
    """Return an open question as a row."""
    return row._replace(payload=to_json(row.payload).decode(), sets=to_json(row.sets).decode())


def to_events(run: str, rows: Iterable[Row]) -> list[Event]:
    """Return events from rows without their run."""
    events: list[Event] = []
    for seq, at, actor, cause, turn, kind, raw in rows:
        try:
            data = decode(kind, raw)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"event {seq} of run {run} cannot be read ({kind}: {error}); "
                "it was damaged, or written by a newer Weft"
            ) from error
        events.append(Event(seq, at, actor, cause, turn, data))
    return events


def refuse_gap(run: str, events: Sequence[Event], after: int, last: int) -> None:
    """Raise StoreError unless events are all of a run after a number, up to the last."""
    numbers = range(after + 1, last + 1)
    if len(events) < len(numbers):
        there = {event.seq for event in events}
        missing = next(seq for seq in numbers if seq not in there)
        raise StoreError(
            f"the journal lacks event {missing} of run {run}, which has had {last}: "
            "it was removed or lost"
        )


def to_run(row: Row) -> RunRow:
    return RunRow(*row)


def to_request(row: Row) -> RequestRow:
    """Return an open question from its row."""
    request = RequestRow(*row)
    sets = tuple(from_json(str(request.sets)))
    return request._replace(payload=from_json(str(request.payload)), sets=sets)
