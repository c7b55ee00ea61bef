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
    start into the trap, and `around` once around inside it.
    """

    agents: tuple[str, ...]
    nodes: Nodes
    into: Path
    around: Path


def traps(chart: Chart, lost: Nodes, certainly: Nodes) -> Iterator[Trap]:
    """Yield a trap for every set of agents that share none with a trap before.

    `lost` are all nodes without escape, and `certainly` those that a run can certainly reach.
    """
    begin = chart.begin(chart.initial)
    remaining = list(certainly)
    while any(remaining):
        into = shortest(chart, begin, remaining, by="certainty")
        region = _region(chart, lost, _agents(chart, _core(chart, into.last)))
        nearest = [a & b for a, b in zip(entries(chart, region), remaining, strict=True)]
        if any(nearest):
            into = shortest(chart, begin, nearest, by="certainty")
        # Up to here all is certain; that it goes on without end is certain too, but not always how.
        core = _core(chart, into.last)
        agents = _agents(chart, core)
        theirs = _of(chart, lost, agents)
        onward, around = _onward(chart, into.last, core, theirs)
        yield Trap(agents, theirs, joined(into, onward), around)
        told = leading(chart, theirs, lost)
        remaining = [bits & ~known for bits, known in zip(remaining, told, strict=True)]


def _onward(chart: Chart, node: Node, core: Nodes, theirs: Nodes) -> tuple[Path, Path]:
    """Return a way on from a node and once around, the most certain one that there is."""
    start = only(chart, node)
    surely = _core(chart, node, "certainty")
    tries: tuple[tuple[Nodes, By], ...] = ((surely, "certainty"), (theirs, "rules"))
    for goal, by in tries:
        try:
            onward = shortest(chart, start, entries(chart, goal), by)
            return onward, _around(chart, onward.last, by)
        except LookupError:
            continue
    onward = shortest(chart, start, entries(chart, core))
    return onward, _around(chart, onward.last, "rules")


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


def _agents(chart: Chart, nodes: Nodes) -> tuple[str, ...]:
    found = (point.agent for point, bits in zip(chart.points, nodes, strict=True) if bits)
    return tuple(dict.fromkeys(found))


def _core(chart: Chart, node: Node, by: By = "rules") -> Nodes:
    """Return nodes around `node` or beyond it that all lead to each other and nowhere else."""
    while True:
        ahead = reached(chart, only(chart, node), by)
        back = leading(chart, only(chart, node), ahead, by)
        beyond = [bits & ~known for bits, known in zip(ahead, back, strict=True)]
        if not any(beyond):
            return ahead
        point = next(n for n, bits in enumerate(beyond) if bits)
        node = Node(point, first(beyond[point]))


def entries(chart: Chart, nodes: Nodes) -> Nodes:
    """Return those of the nodes in which an agent is about to speak."""
    return [
        bits if point.kind == "enter" else 0
        for point, bits in zip(chart.points, nodes, strict=True)
    ]


def _around(chart: Chart, node: Node, by: By) -> Path:
    """Return the shortest way from a node back to itself."""
    after = [0] * len(chart.points)
    onward = list(usable(chart.out[node.point], by))
    for edge in onward:
        after[edge.target] |= edge.forward(1 << node.values)
    back = shortest(chart, after, only(chart, node), by)
    after_one = 1 << back.start.values
    edge = next(
        edge
        for edge in onward
        if edge.target == back.start.point and edge.forward(1 << node.values) & after_one
    )
    return Path(node, ((edge, back.start), *back.steps))
