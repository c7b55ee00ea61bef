"""Traps: agents that hand off among themselves for ever, once a run has come to them."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.check.explore.chart import Chart, Nodes
from weft.check.explore.reach import (
    Node,
    Path,
    both,
    first_of,
    leading,
    reached,
    shortest,
    usable,
    without,
)


@dataclass(frozen=True, slots=True)
class Trap:
    """Agents that a run cannot leave any more, and how it gets there.

    `nodes` are all nodes without escape in which one of them has its turn, `into` leads from the
    start into the trap, and `around` once around inside it.
    """

    agents: tuple[str, ...]
    nodes: Nodes
    into: Path
    around: Path


def traps(chart: Chart, seen: Nodes, lost: Nodes, certain: Nodes) -> Iterator[Trap]:
    """Yield a trap for every set of agents that share none with a trap before.

    `seen` are all nodes that can be reached, `certain` those of them that certainly can, and `lost`
    those without escape.
    """
    surely = both(lost, certain)
    remaining = surely if any(surely) else lost
    while any(remaining):
        core = both(_core(chart, first_of(remaining)), chart.at("enter"))
        agents = tuple(point.agent for point, bits in zip(chart.points, core, strict=True) if bits)
        theirs = [
            bits if point.agent in agents else 0
            for point, bits in zip(chart.points, lost, strict=True)
        ]
        by = "certainty" if any(both(core, certain)) else "limits"
        into = shortest(chart, chart.begin, core, seen, by)
        yield Trap(agents, theirs, into, _around(chart, into.last, lost))
        remaining = without(remaining, leading(chart, theirs, lost))


def _core(chart: Chart, node: Node) -> Nodes:
    """Return nodes that a node leads to and that lead to each other and no further."""
    while True:
        ahead = reached(chart, _only(chart, node))
        beyond = without(ahead, leading(chart, _only(chart, node), ahead))
        if not any(beyond):
            return ahead
        node = first_of(beyond)


def _only(chart: Chart, node: Node) -> Nodes:
    return [1 << node.values if n == node.point else 0 for n in range(len(chart.points))]


def _around(chart: Chart, node: Node, lost: Nodes) -> Path:
    after = [0] * len(chart.points)
    for edge in usable(chart.out[node.point], "rules"):
        after[edge.target] |= edge.forward(1 << node.values)
    back = shortest(chart, after, _only(chart, node), lost)
    edge = next(
        edge
        for edge in usable(chart.out[node.point], "rules")
        if edge.target == back.start.point
        and edge.forward(1 << node.values) & 1 << back.start.values
    )
    return Path(node, ((edge, back.start), *back.steps))
