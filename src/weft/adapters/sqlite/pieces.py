"""Many rows in one statement."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, TypeAlias, TypeVar

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]

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
