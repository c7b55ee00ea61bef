"""Positions across the ranks: items as close to their neighbours as their order and size allow."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from weft.diagrams.ordering import Rows

_MOST_SWEEPS: Final = 40
#: Items moved in all sweeps together, so that a huge graph is drawn soon, if less neatly.
_EFFORT: Final = 120_000


def spread(
    rows: Rows, sizes: Sequence[float], gaps: Sequence[float], links: Sequence[dict[int, float]]
) -> list[float]:
    """Return the centre of every item across the ranks.

    `sizes` and `gaps` say how much room an item takes and keeps free around itself; `links` gives
    its neighbours with the strength by which they pull.
    """
    centres = [0.0] * len(sizes)
    for row in rows:
        _settle(row, [0.0] * len(row), [1.0] * len(row), sizes, gaps, centres)
    mass = [sum(pulls.values()) for pulls in links]
    sweeps = min(_MOST_SWEEPS, max(2, _EFFORT // (len(sizes) + 1)))
    for sweep in range(sweeps):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wishes = [_pulled(item, links[item], mass[item], centres) for item in row]
            _settle(row, wishes, [mass[item] or 0.1 for item in row], sizes, gaps, centres)
    return centres


def straighten(
    chains: Sequence[Sequence[int]],
    rows: Rows,
    sizes: Sequence[float],
    gaps: Sequence[float],
    centres: list[float],
) -> None:
    """Move the items of each chain in line with its first one, as far as their rows leave room."""
    left = {there: here for row in rows for here, there in pairwise(row)}
    right = {here: there for row in rows for here, there in pairwise(row)}
    for chain in chains:
        line = centres[chain[0]]
        for item in chain[1:]:
            if item in left:
                line = max(line, centres[left[item]] + _apart(left[item], item, sizes, gaps))
            if item in right:
                line = min(line, centres[right[item]] - _apart(item, right[item], sizes, gaps))
            centres[item] = line


def _apart(one: int, other: int, sizes: Sequence[float], gaps: Sequence[float]) -> float:
    """How far two neighbours must at least stand from each other, from centre to centre."""
    return (sizes[one] + sizes[other]) / 2 + max(gaps[one], gaps[other])


def _pulled(item: int, links: dict[int, float], mass: float, centres: Sequence[float]) -> float:
    """Return where the neighbours of an item want it."""
    if not mass:
        return centres[item]
    return sum([centres[other] * strength for other, strength in links.items()]) / mass


def _settle(
    row: Sequence[int],
    wishes: Sequence[float],
    weights: Sequence[float],
    sizes: Sequence[float],
    gaps: Sequence[float],
    centres: list[float],
) -> None:
    """Put a row as near to its wishes as possible without overlap.

    The best places in the sense of least squares: items that would overlap are joined to groups,
    and a group stands where the mean of its members' wishes is.
    """
    offsets = _offsets(row, sizes, gaps)
    groups: list[tuple[float, float, int]] = []
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        mean, mass, count = wish - offset, weight, 1
        while groups and groups[-1][0] > mean:
            other, more, members = groups.pop()
            mean = (mean * mass + other * more) / (mass + more)
            mass += more
            count += members
        groups.append((mean, mass, count))
    starts = [mean for mean, _, count in groups for _ in range(count)]
    for item, start, offset in zip(row, starts, offsets, strict=True):
        centres[item] = start + offset


def _offsets(row: Sequence[int], sizes: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """How far each item must at least stand from the first of its row."""
    offsets: list[float] = []
    last: int | None = None
    for item in row:
        if last is None:
            offsets.append(0.0)
        else:
            offsets.append(offsets[-1] + _apart(last, item, sizes, gaps))
        last = item
    return offsets
