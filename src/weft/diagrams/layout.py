"""The layout of a layered graph: where boxes stand, and along which points links run.

"Along" is the direction in which the links lead, "across" the other one; whoever draws decides
which of them is x.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias

from weft.diagrams.layers import Layered, Rows

#: A place: along, across.
Point: TypeAlias = tuple[float, float]

#: A size: along, across.
Size: TypeAlias = tuple[float, float]
_BOX_GAP: Final = 26.0
_LINK_GAP: Final = 10.0
_RANK_GAP: Final = 40.0
_WIDEST_RANK_GAP: Final = 100.0
_PORT_GAP: Final = 14.0

#: A link leaves and meets a box straight for this long, so that its tip points at the box.
_STRAIGHT_END: Final = 10.0

#: How hard a link pulls: from box to passing point, and between two passing points.
_PULL: Final = 1.0
_STRAIGHT: Final = 8.0
_MOST_SWEEPS: Final = 40

#: Items moved in all sweeps together, so that a huge graph is drawn soon, if less neatly.
_EFFORT: Final = 120_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the boxes, and for each link its points and the centre of its label."""

    boxes: tuple[Point, ...]
    #: Points in pairs: between a pair the link runs straight, from pair to pair it bends.
    tracks: tuple[tuple[Point, ...], ...]
    labels: tuple[Point, ...]
    size: Size


def arrange(graph: Layered, boxes: Sequence[Size], labels: Sequence[Size]) -> Layout:
    """Arrange boxes and labels of given sizes, in the order of the graph's nodes and links."""
    sizes = [*boxes, *((0.0, 0.0) for _ in graph.rank[graph.nodes :])]
    for link, size in enumerate(labels):
        sizes[graph.label_item(link)] = size
    places = _places(graph, sizes)
    numbers = range(len(graph.links))
    return Layout(
        boxes=tuple(places.centre(item) for item in range(graph.nodes)),
        tracks=tuple(tuple(_track(places, link)) for link in numbers),
        labels=tuple(places.centre(graph.label_item(link)) for link in numbers),
        size=(
            places.spans[-1][1],
            max(at + size[1] / 2 for at, size in zip(places.across, sizes, strict=True)),
        ),
    )


@dataclass(frozen=True, slots=True)
class _Places:
    graph: Layered
    sizes: Sequence[Size]
    across: Sequence[float]
    #: Where each rank begins and ends.
    spans: Sequence[tuple[float, float]]

    def span(self, item: int) -> tuple[float, float]:
        return self.spans[self.graph.rank[item]]

    def centre(self, item: int) -> Point:
        start, end = self.span(item)
        return (start + end) / 2, self.across[item]

    def port(self, box: int, beside: int, *, leaving: bool) -> Point:
        """Return where a link meets the side of a box: links are spread in the order they run."""
        neighbours = self.graph.after[box] if leaving else self.graph.before[box]
        ranked = sorted(neighbours, key=lambda item: (self.across[item], item))
        room = self.sizes[box][1] * 0.7
        step = min(_PORT_GAP, room / (len(ranked) - 1)) if len(ranked) > 1 else 0.0
        shift = (ranked.index(beside) - (len(ranked) - 1) / 2) * step
        along, across = self.centre(box)
        half = self.sizes[box][0] / 2
        return along + (half if leaving else -half), across + shift


def _places(graph: Layered, sizes: Sequence[Size]) -> _Places:
    gaps = [_BOX_GAP] * graph.nodes + [_LINK_GAP] * (len(sizes) - graph.nodes)
    wide = [size[1] for size in sizes]
    across = spread(graph.rows, wide, gaps, list(_pulls(graph)))
    straighten(graph.chains, graph.rows, wide, gaps, across)
    least = min(at - size / 2 for at, size in zip(across, wide, strict=True))
    across = [at - least for at in across]
    return _Places(graph, sizes, across, list(_spans(graph, sizes, across)))


def _pulls(graph: Layered) -> Iterator[dict[int, float]]:
    for item in range(len(graph.rank)):
        pulls: dict[int, float] = {}
        for other in (*graph.before[item], *graph.after[item]):
            straight = item >= graph.nodes and other >= graph.nodes
            pulls[other] = _STRAIGHT if straight else _PULL
        yield pulls


def _spans(
    graph: Layered, sizes: Sequence[Size], across: Sequence[float]
) -> Iterator[tuple[float, float]]:
    """Set the ranks apart, further where links must climb steeply from one to the next."""
    start = 0.0
    for row in graph.rows:
        end = start + max(sizes[item][0] for item in row)
        yield start, end
        climbs = [abs(across[item] - across[other]) for item in row for other in graph.after[item]]
        steep = max(climbs, default=0.0) / 4
        start = end + min(max(_RANK_GAP, steep), _WIDEST_RANK_GAP)


def _track(places: _Places, link: int) -> list[Point]:
    """Return the points of a link, from its true source to its true target."""
    graph = places.graph
    (source, target), chain = graph.links[link], graph.chains[link]
    leave = places.port(source, chain[0], leaving=True)
    enter = places.port(target, chain[-1], leaving=False)
    points = [leave, (places.span(source)[1] + _STRAIGHT_END, leave[1])]
    for item in chain:
        start, end = places.span(item)
        across = places.across[item]
        if points[-1][1] == across:
            points[-1] = (end, across)
        else:
            points += [(start, across), (end, across)]
    points += [(places.span(target)[0] - _STRAIGHT_END, enter[1]), enter]
    return points[::-1] if graph.turned[link] else points


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
