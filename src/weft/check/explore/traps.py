"""Traps: agents that hand off among themselves for ever, once a run has come to them."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.check.explore.chart import Chart, Nodes
from weft.check.explore.reach import (
    By,
    Node,
    Path,
    both,
    leading,
    reached,
    shortest,
    usable,
    without,
)
from weft.check.explore.space import first


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


def traps(chart: Chart, lost: Nodes, remaining: Nodes, by: By) -> Iterator[Trap]:
    """Yield a trap for every set of agents that share none with a trap before.

    `lost` are all nodes without escape, and `remaining` those that can be reached by such edges.
    """
    while any(remaining):
        core = _core(chart, shortest(chart, chart.begin, remaining, by).last)
        agents = tuple(
            point.agent
            for point, bits in zip(chart.points, _entries(chart, core), strict=True)
            if bits
        )
        theirs = [
            bits if point.agent in agents else 0
            for point, bits in zip(chart.points, lost, strict=True)
        ]
        into = _into(chart, _entries(chart, core), remaining, by)
        yield Trap(agents, theirs, into, _around(chart, into.last))
        remaining = without(remaining, leading(chart, theirs, lost))


def _into(chart: Chart, goal: Nodes, remaining: Nodes, by: By) -> Path:
    """Return a way into a trap; where the unknown decides about its end, that is shown as well."""
    try:
        return shortest(chart, chart.begin, goal, by)
    except LookupError:
        way = shortest(chart, chart.begin, remaining, by)
        onward = shortest(chart, _only(chart, way.last), goal)
        return Path(way.start, (*way.steps, *onward.steps))


def _core(chart: Chart, node: Node) -> Nodes:
    """Return nodes that a node leads to and that lead to each other and no further."""
    while True:
        ahead = reached(chart, _only(chart, node))
        beyond = without(ahead, leading(chart, _only(chart, node), ahead))
        if not any(beyond):
            return ahead
        point = next(number for number, bits in enumerate(beyond) if bits)
        node = Node(point, first(beyond[point]))


def _only(chart: Chart, node: Node) -> Nodes:
    return [1 << node.values if n == node.point else 0 for n in range(len(chart.points))]


def _entries(chart: Chart, nodes: Nodes) -> Nodes:
    """Return those of the nodes in which an agent is about to speak."""
    return both(nodes, chart.at("enter"))


def _around(chart: Chart, node: Node) -> Path:
    """Return the shortest way from a node back to itself."""
    after = [0] * len(chart.points)
    onward = list(usable(chart.out[node.point], "rules"))
    for edge in onward:
        after[edge.target] |= edge.forward(1 << node.values)
    back = shortest(chart, after, _only(chart, node))
    edge = next(
        edge
        for edge in onward
        if edge.target == back.start.point
        and edge.forward(1 << node.values) & 1 << back.start.values
    )
    return Path(node, ((edge, back.start), *back.steps))
