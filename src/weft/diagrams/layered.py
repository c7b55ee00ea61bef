"""A graph in layers: which rank every node has, and where each link passes the ranks between.

Every link gets an item of its own in each rank that it passes, so that no link runs over a box and
every label has a place that nothing else takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.diagrams.layers import Link, ranks, without_cycles
from weft.diagrams.ordering import Rows, order

#: With more passing points than this, links get only the first and the last of theirs: the picture
#: is less neat, but memory and time stay within bounds whatever a package declares.
MOST_PASSING: Final = 50_000


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
