"""A graph in layers: the rank of every node, and where each link passes the ranks between.

Links lead from lower to higher ranks. Every link gets an item of its own in each rank that it
passes, so that no link runs over a box and every label has a place that nothing else takes. The
order within the ranks is chosen so that few links cross.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

#: With more passing points than this, links get only the first and the last of theirs: the picture
#: is less neat, but memory and time stay within bounds whatever a package declares.
MOST_PASSING: Final = 50_000

#: From node to node, by number.
Link: TypeAlias = tuple[int, int]

#: Items by rank, in order.
Rows: TypeAlias = list[list[int]]
_MOST_SWEEPS: Final = 24

#: Items looked at in all sweeps together, so that a huge graph is drawn soon, if less neatly.
_EFFORT: Final = 60_000


@dataclass(frozen=True, slots=True)
class Layered:
    """Items are numbered: first the nodes, then the passing points of the links."""

    nodes: int
    #: The links, all leading from lower to higher ranks, and which of them had to be turned round.
    links: tuple[Link, ...]
    turned: tuple[bool, ...]
    #: The passing points of each link.
    chains: tuple[tuple[int, ...], ...]
    rank: tuple[int, ...]
    rows: Rows
    #: The neighbours of each item in the ranks before and after its own.
    before: tuple[list[int], ...]
    after: tuple[list[int], ...]

    def label_item(self, link: int) -> int:
        """Return the passing point that carries the label: the one next to the true source."""
        return self.chains[link][-1 if self.turned[link] else 0]


def layered(nodes: int, links: Sequence[Link]) -> Layered:
    """Put the nodes of a graph in layers; no link may lead to its own source."""
    forward = without_cycles(nodes, links)
    rank = ranks(nodes, forward)
    before: list[list[int]] = [[] for _ in range(nodes)]
    after: list[list[int]] = [[] for _ in range(nodes)]
    chains: list[tuple[int, ...]] = []
    huge = sum(rank[target] - rank[source] for source, target in forward) > MOST_PASSING
    for source, target in forward:
        passed: Sequence[int] = range(rank[source] + 1, rank[target])
        if huge:
            passed = sorted({passed[0], passed[-1]})
        chain = tuple(range(len(rank), len(rank) + len(passed)))
        rank += passed
        before += ([here] for here in (source, *chain[:-1]))
        after += ([there] for there in (*chain[1:], target))
        after[source].append(chain[0])
        before[target].append(chain[-1])
        chains.append(chain)
    return Layered(
        nodes=nodes,
        links=tuple(forward),
        turned=tuple(one != other for one, other in zip(forward, links, strict=True)),
        chains=tuple(chains),
        rank=tuple(rank),
        rows=order(_rows(rank), before, after),
        before=tuple(before),
        after=tuple(after),
    )


def _rows(rank: Sequence[int]) -> Rows:
    rows: Rows = [[] for _ in range(max(rank) + 1)]
    for item, here in enumerate(rank):
        rows[here].append(item)
    return rows


def without_cycles(count: int, links: Sequence[Link]) -> list[Link]:
    """Turn round the links that close a cycle, looking from the first node on."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    for number, (source, _) in enumerate(links):
        leaving[source].append(number)
    turned: set[int] = set()
    done: set[int] = set()
    for root in range(count):
        if root not in done:
            turned |= _closing(root, links, leaving, done)
    return [
        (target, source) if number in turned else (source, target)
        for number, (source, target) in enumerate(links)
    ]


def _closing(
    root: int, links: Sequence[Link], leaving: list[list[int]], done: set[int]
) -> set[int]:
    """Walk in depth from `root` and return the links that lead back into the present walk."""
    found: set[int] = set()
    walk = [(root, iter(leaving[root]))]
    inside = {root}
    while walk:
        node, pending = walk[-1]
        number = next(pending, None)
        if number is None:
            walk.pop()
            inside.discard(node)
            done.add(node)
            continue
        target = links[number][1]
        if target in inside:
            found.add(number)
        elif target not in done:
            inside.add(target)
            walk.append((target, iter(leaving[target])))
    return found


def ranks(count: int, links: Sequence[Link]) -> list[int]:
    """Give every node the rank of its longest way in, two per link: labels stand between."""
    leaving: list[list[int]] = [[] for _ in range(count)]
    entering = [0] * count
    for source, target in links:
        leaving[source].append(target)
        entering[target] += 1
    found = [0] * count
    ready = [node for node in range(count) if not entering[node]]
    first = list(ready)
    for node in ready:
        for target in leaving[node]:
            found[target] = max(found[target], found[node] + 2)
            entering[target] -= 1
            if not entering[target]:
                ready.append(target)
    # A node that nothing leads to stands close to what it leads to, not far off at the edge.
    for node in first[1:]:
        if leaving[node]:
            found[node] = max(0, min(found[target] for target in leaving[node]) - 2)
    return found


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
