"""Traps: agents that pass the word among themselves for ever, once a run has come to them."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.check.proof.chart import Chart, Nodes
from weft.check.proof.reach import By, Node, Path, joined, leading, reached, shortest, usable
from weft.check.proof.space import first


@dataclass(frozen=True, slots=True)
class Trap:
    """Agents that keep the word among themselves, and how a run gets to that.

    `nodes` are all nodes without escape in which one of them has the word, `into` leads from the
    start into the trap, and `around` once around inside it; None if it is not known how it goes on.
    """

    agents: tuple[str, ...]
    nodes: Nodes
    into: Path
    around: Path | None


def traps(chart: Chart, lost: Nodes, certainly: Nodes) -> Iterator[Trap]:
    """Yield a trap for every set of agents that share none with a trap before.

    `lost` are all nodes without escape, and `certainly` those that a run can certainly reach.
    """
    begin = chart.begin(chart.initial)
    remaining = list(certainly)
    while any(remaining):
        into = shortest(chart, begin, remaining, by="certainty")
        region = _region(chart, lost, _agents(chart, *_settled(chart, into.last)))
        nearest = _both(entries(chart, region), remaining)
        if any(nearest):
            into = shortest(chart, begin, nearest, by="certainty")
        last, ahead = _settled(chart, into.last)
        onward, around = _onward(chart, into.last, last, ahead)
        agents = _agents(chart, last, ahead)
        theirs = _of(chart, lost, agents)
        yield Trap(agents, theirs, joined(into, onward), around)
        told = leading(chart, theirs, lost)
        remaining = [bits & ~known for bits, known in zip(remaining, told, strict=True)]


def _onward(chart: Chart, node: Node, last: Node, ahead: Nodes) -> tuple[Path, Path | None]:
    """Return a way on from a node and once around, as far as a run can certainly go it.

    That there is no end is certain in any case, but where something unknown decides, not how: then
    the way leads to where one of those `ahead` is about to speak, or else to the `last` node.
    """
    start = only(chart, node)
    turning = entries(chart, _core(chart, last))
    try:
        onward = shortest(chart, start, turning, "certainty")
        return onward, _around(chart, onward.last)
    except LookupError:
        goals = (entries(chart, ahead), only(chart, last))
    certain = reached(chart, start, "certainty")
    goal = next(goal for goal in goals if any(_both(goal, certain)))
    return shortest(chart, start, goal, "certainty"), None


def only(chart: Chart, node: Node) -> Nodes:
    """Return the set of this one node."""
    return [1 << node.values if n == node.point else 0 for n in range(len(chart.points))]


def _region(chart: Chart, lost: Nodes, agents: tuple[str, ...]) -> Nodes:
    """Return the nodes without escape in which the word can only stay with these agents."""
    theirs = _of(chart, lost, agents)
    others = [bits & ~own for bits, own in zip(lost, theirs, strict=True)]
    leaving = leading(chart, others, lost)
    return [bits & ~known for bits, known in zip(theirs, leaving, strict=True)]


def _of(chart: Chart, nodes: Nodes, agents: tuple[str, ...]) -> Nodes:
    return [
        bits if point.agent in agents else 0
        for point, bits in zip(chart.points, nodes, strict=True)
    ]


def _both(nodes: Nodes, others: Nodes) -> Nodes:
    return [bits & other for bits, other in zip(nodes, others, strict=True)]


def _agents(chart: Chart, last: Node, ahead: Nodes) -> tuple[str, ...]:
    """Return the agents that may still get the word, or keep it in the turn of the last node."""
    halts = any(doubt.halts for edge in chart.out[last.point] for doubt in edge.doubts)
    keeping = chart.points[last.point].agent if halts else None
    coming = zip(chart.points, entries(chart, ahead), strict=True)
    return tuple(
        point.agent
        for point, bits in coming
        if bits or (point.kind == "enter" and point.agent == keeping)
    )


def _settled(chart: Chart, node: Node) -> tuple[Node, Nodes]:
    """Return how far a run can certainly go on without a way back, and all that may follow then."""
    while True:
        ahead, beyond = _beyond(chart, node, "rules")
        sure = _both(beyond, reached(chart, only(chart, node), "certainty"))
        if not any(sure):
            return node, ahead
        node = _any(sure)


def _core(chart: Chart, node: Node) -> Nodes:
    """Return nodes around `node` or beyond it that certainly lead to each other and no further."""
    while True:
        ahead, beyond = _beyond(chart, node, "certainty")
        if not any(beyond):
            return ahead
        node = _any(beyond)


def _beyond(chart: Chart, node: Node, by: By) -> tuple[Nodes, Nodes]:
    """Return what can be reached from a node, and what of it does not lead back there."""
    ahead = reached(chart, only(chart, node), by)
    back = leading(chart, only(chart, node), ahead, by)
    return ahead, [bits & ~known for bits, known in zip(ahead, back, strict=True)]


def _any(nodes: Nodes) -> Node:
    point = next(number for number, bits in enumerate(nodes) if bits)
    return Node(point, first(nodes[point]))


def entries(chart: Chart, nodes: Nodes) -> Nodes:
    """Return those of the nodes in which an agent is about to speak."""
    return [
        bits if point.kind == "enter" else 0
        for point, bits in zip(chart.points, nodes, strict=True)
    ]


def _around(chart: Chart, node: Node) -> Path:
    """Return the shortest way from a node back to itself that a run can certainly go."""
    after = [0] * len(chart.points)
    onward = list(usable(chart.out[node.point], "certainty"))
    for edge in onward:
        after[edge.target] |= edge.forward(1 << node.values)
    back = shortest(chart, after, only(chart, node), "certainty")
    after_one = 1 << back.start.values
    edge = next(
        edge
        for edge in onward
        if edge.target == back.start.point and edge.forward(1 << node.values) & after_one
    )
    return Path(node, ((edge, back.start), *back.steps))
