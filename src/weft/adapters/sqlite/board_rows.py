"""What a batch writes of a board, as SQLite keeps it."""

import sqlite3
from collections.abc import Sequence
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from pydantic_core import from_json, to_json

from weft.adapters.sqlite.pieces import Row, in_pieces, marks
from weft.engine.events.codec import encode
from weft.engine.rows import ArtifactRow, ConsumedRow, IndexChange, Letter, LetterTaken

#: How many rows go into one statement; more would be more values than an older SQLite takes.
MOST_ROWS: Final = 64

#: How many columns each table has.
COLUMNS: Final = {"artifacts": 14, "artifact_tags": 7, "consumed": 7, "letters": 8}
_LETTER_COLUMNS: Final = "(id, run, app, receiver, workflow, digest, user, data)"


class BoardRows(NamedTuple):
    """What batches write of boards, by table; `taken` are the letters that go."""

    artifacts: list[Row]
    artifact_tags: list[Row]
    consumed: list[Row]
    letters: list[Row]
    taken: list[Row]


def board_rows(run: str, sides: Sequence[IndexChange]) -> BoardRows:
    """Return the rows of a batch; raises TypeError or ValueError if a letter is no JSON."""
    rows = BoardRows([], [], [], [], [])
    for side in sides:
        match side:
            case ArtifactRow():
                tags = to_json(side.tags).decode()
                rows.artifacts.append(side._replace(names=names_text(side.names), tags=tags))
                place = side.created_at, side.run, side.seq
                for tag in dict.fromkeys(side.tags):
                    rows.artifact_tags.append((side.app, side.board, tag, side.type, *place))
            case ConsumedRow():
                rows.consumed.append(side)
            case Letter():
                data = encode(side.data)
                rows.letters.append((side.data.letter, run, *side[:-1], data))
            case LetterTaken():
                rows.taken.append(side)
            case _:
                pass
    return rows


def write_board(connection: sqlite3.Connection, rows: BoardRows) -> None:
    """Write rows of boards."""
    for table, some in zip(COLUMNS, rows[:-1], strict=True):
        for piece in in_pieces(some, MOST_ROWS):
            values = list(chain.from_iterable(piece))
            connection.execute(_insert(table, len(piece)), values)
    if rows.taken:
        # After those that are written: one may be taken in the transaction that writes it.
        connection.executemany("DELETE FROM letters WHERE app = ? AND id = ?", rows.taken)


def names_text(names: Sequence[str]) -> str:
    """Return names as a list of JSON texts in JSON: SQLite cuts off a plain one at a zero byte."""
    return to_json([name_text(it) for it in names]).decode() if names else "[]"


def name_text(name: str) -> str:
    """Return a name as it stands in such a list."""
    return to_json(name).decode()


def to_names(text: str) -> tuple[str, ...]:
    """Return the names of such a list."""
    return () if text == "[]" else tuple(from_json(it) for it in from_json(text))


@cache
def _insert(table: str, count: int) -> str:
    # Letters are numbered as they come.
    columns = _LETTER_COLUMNS if table == "letters" else ""
    rows = marks(count, COLUMNS[table])
    # Whoever writes undoes the whole transaction if this fails: told so, SQLite need not be able to
    # undo this statement alone, which costs as much again.
    return f"INSERT OR FAIL INTO {table} {columns} VALUES {rows} ON CONFLICT DO NOTHING"  # noqa: S608 - no value is put in
