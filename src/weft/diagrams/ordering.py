"""The order of items within their ranks, chosen so that few links cross."""

from bisect import bisect_right, insort
from collections.abc import Sequence
from typing import Final, TypeAlias

#: Items by rank, in order.
Rows: TypeAlias = list[list[int]]

_MOST_SWEEPS: Final = 24
#: Items looked at in all sweeps together, so that a huge graph is drawn soon, if less neatly.
_EFFORT: Final = 60_000


def order(rows: Rows, before: Sequence[list[int]], after: Sequence[list[int]]) -> Rows:
    """Sort each row by the mean place of its neighbours, to and fro, and keep the best order.

    `before` and `after` list the neighbours of each item in the row before and after its own.
    """
    items = sum(len(row) for row in rows)
    best, least = rows, _crossings(rows, after)
    present = rows
    for sweep in range(min(_MOST_SWEEPS, max(2, _EFFORT // (items + 1)))):
        if not least:
            break
        present = _swept(present, before, after, forward=sweep % 2 == 0)
        crossings = _crossings(present, after)
        if crossings < least:
            best, least = present, crossings
    return best


def _swept(
    rows: Rows, before: Sequence[list[int]], after: Sequence[list[int]], *, forward: bool
) -> Rows:
    neighbours = before if forward else after
    place: dict[int, float] = {item: spot for row in rows for spot, item in enumerate(row)}
    result = list(rows)
    for number in range(len(rows)) if forward else reversed(range(len(rows))):
        means = {
            item: sum(place[other] for other in neighbours[item]) / len(neighbours[item])
            if neighbours[item]
            else place[item]
            for item in rows[number]
        }
        result[number] = sorted(rows[number], key=means.__getitem__)
        place.update((item, spot) for spot, item in enumerate(result[number]))
    return result


def _crossings(rows: Rows, after: Sequence[list[int]]) -> int:
    place = {item: spot for row in rows for spot, item in enumerate(row)}
    total = 0
    for row in rows:
        seen: list[int] = []
        for item in row:
            ends = sorted(place[other] for other in after[item])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total
