"""Which nodes of the chart lead to which: worked out for whole sets of them at once."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.check.explore.chart import Chart, Edge, Nodes
from weft.check.explore.space import first

#: Which edges count: the certain ones, all that rules lead along, or those of limits as well.
By: TypeAlias = Literal["certainty", "rules", "limits"]


@dataclass(frozen=True, slots=True)
class Node:
    """The number of a point, and the number of a combination of values."""

    point: int
    values: int


@dataclass(frozen=True, slots=True)
class Path:
    """A way through the chart: its first node, then each edge with the node it leads to."""

    start: Node
    steps: tuple[tuple[Edge, Node], ...]

    @property
    def last(self) -> Node:
        """The node in which the path ends."""
        return self.steps[-1][1] if self.steps else self.start


def reached(chart: Chart, start: Nodes, by: By = "rules") -> Nodes:
    """Return what can be reached from `start`, itself included."""
    seen, fresh = list(start), list(start)
    waiting = deque(point for point, bits in enumerate(start) if bits)
    while waiting:
        point = waiting.popleft()
        bits, fresh[point] = fresh[point], 0
        chart.spend(chart.out[point])
        for edge in usable(chart.out[point], by):
            new = edge.forward(bits) & ~seen[edge.target]
            if new:
                if not fresh[edge.target]:
                    waiting.append(edge.target)
                fresh[edge.target] |= new
                seen[edge.target] |= new
    return seen


def leading(chart: Chart, goal: Nodes, within: Nodes) -> Nodes:
    """Return the nodes of `within` from which `goal` can be reached by the rules."""
    seen = both(goal, within)
    for layer in layers_to(chart, seen, within):
        seen = [bits | new for bits, new in zip(seen, layer, strict=True)]
    return seen


def layers_to(chart: Chart, goal: Nodes, within: Nodes) -> Iterator[Nodes]:
    """Yield `goal`, then the nodes of `within` that lead there in one step, in two, and so on."""
    seen, fresh = list(goal), list(goal)
    while any(fresh):
        yield fresh
        before = [0] * len(fresh)
        for point, bits in enumerate(fresh):
            if bits:
                chart.spend(chart.into[point])
                for edge in usable(chart.into[point], "rules"):
                    new = edge.backward(bits) & within[edge.source] & ~seen[edge.source]
                    before[edge.source] |= new
                    seen[edge.source] |= new
        fresh = before


def shortest(chart: Chart, start: Nodes, goal: Nodes, by: By = "rules") -> Path:
    """Return a way from `start` to `goal` with the fewest steps, the same one every time.

    Raises LookupError if there is none.
    """
    seen = list(start)
    layers = [{point: bits for point, bits in enumerate(start) if bits}]
    while not (found := _meeting(layers[-1], goal)):
        fresh: dict[int, int] = {}
        for point, bits in layers[-1].items():
            chart.spend(chart.out[point])
            for edge in usable(chart.out[point], by):
                new = edge.forward(bits) & ~seen[edge.target]
                if new:
                    seen[edge.target] |= new
                    fresh[edge.target] = fresh.get(edge.target, 0) | new
        if not fresh:
            raise LookupError("no way leads there")
        layers.append(fresh)
    return _retrace(chart, layers, found, by)


def _meeting(layer: dict[int, int], goal: Nodes) -> Node | None:
    meeting = [(point, bits & goal[point]) for point, bits in layer.items() if bits & goal[point]]
    if not meeting:
        return None
    point, bits = min(meeting)
    return Node(point, first(bits))


def _retrace(chart: Chart, layers: Sequence[dict[int, int]], last: Node, by: By) -> Path:
    steps: list[tuple[Edge, Node]] = []
    node = last
    for layer in reversed(layers[:-1]):
        chart.spend(chart.into[node.point])
        edge, before = next(
            (edge, before)
            for edge in usable(chart.into[node.point], by)
            if (before := edge.backward(1 << node.values) & layer.get(edge.source, 0))
        )
        steps.append((edge, node))
        node = Node(edge.source, first(before))
    return Path(node, tuple(reversed(steps)))


def usable(edges: Sequence[Edge], by: By) -> Iterator[Edge]:
    """Yield the edges that count."""
    for edge in edges:
        if by == "limits" or not (edge.limit or (by == "certainty" and edge.why)):
            yield edge


def both(nodes: Nodes, others: Nodes) -> Nodes:
    """Return the nodes that are in both sets."""
    return [bits & other for bits, other in zip(nodes, others, strict=True)]


def without(nodes: Nodes, others: Nodes) -> Nodes:
    """Return the nodes that are not among the others."""
    return [bits & ~other for bits, other in zip(nodes, others, strict=True)]
