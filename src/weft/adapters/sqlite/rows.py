"""Events and rows as SQLite keeps them, and back."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pydantic_core import from_json, to_json

from weft.adapters.sqlite.board_rows import BoardRows, board_rows
from weft.adapters.sqlite.pieces import Row
from weft.engine.events import KIND_NAMES, Event, EventData
from weft.engine.events.codec import decode, encode
from weft.engine.rows import Batch, RequestRow, RunRow
from weft.errors import StoreError

#: Event data of more bytes than this is kept apart, under its hash.
LARGEST_INLINE: Final = 32 * 1024

#: What may change with every batch, besides the status; what a run is and whose it is never does.
CHANGING: Final = (
    "seq", "changed_at", "turns", "calls", "input_tokens", "output_tokens", "cost_usd", "unpriced",
    "uncounted", "preview", "outcome", "reason", "owner", "batch",
)  # fmt: skip
#: What a batch writes of a run; when its owner was last alive is kept elsewhere.
RUN_COLUMNS: Final = RunRow._fields[:-1]
REQUEST_COLUMNS: Final = RequestRow._fields
EVENT_COLUMNS: Final = ("app", "run", "seq", "at", "actor", "cause", "turn", "kind", "data")


class Written(NamedTuple):
    """A batch as it is going to be written.

    It is made where the batch comes from and not on the thread that writes: while that works on
    values of Python, it and the event loop take turns, and everybody waits for its transaction.
    """

    batch: Batch
    events: list[Row]
    #: What is large among the data of the events.
    blobs: list[Row]
    #: What it says of a board; None if it says nothing beside its events.
    board: BoardRows | None


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
    return Written(batch, rows, blobs, board_rows(run, batch.sides) if batch.sides else None)


def request_values(row: RequestRow) -> Row:
    """Return an open question as a row."""
    return row._replace(payload=to_json(row.payload).decode(), sets=to_json(row.sets).decode())


def to_events(run: str, rows: Iterable[Row]) -> list[Event]:
    """Return events from rows without their run."""
    return [
        Event(seq, at, actor, cause, turn, to_data(run, seq, kind, raw))
        for seq, at, actor, cause, turn, kind, raw in rows
    ]


def to_data(run: str, seq: int, kind: str, raw: str | bytes) -> EventData:
    """Return the data of an event."""
    try:
        return decode(kind, raw)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(
            f"event {seq} of run {run} cannot be read ({kind}: {error}); "
            "it was damaged, or written by a newer Weft"
        ) from error


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
