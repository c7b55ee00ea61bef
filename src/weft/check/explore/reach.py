"""Reachability in the chart, computed for whole sets of nodes at once."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.check.explore.chart import Chart, Edge, Nodes
from weft.check.explore.ground import first

#: Which edges count: only certain ones, those of all rules, or also those of limits.
By: TypeAlias = Literal["certainty", "rules", "limits"]


@dataclass(frozen=True, slots=True)
class Node:
    """The number of a point, and the number of a combination of values."""

    point: int
    values: int


@dataclass(frozen=True, slots=True)
class Path:
    """A path through the chart: its first node, then each edge with its target node."""

    start: Node
    steps: tuple[tuple[Edge, Node], ...]

    @property
    def last(self) -> Node:
        return self.steps[-1][1] if self.steps else self.start


def reached(chart: Chart, start: Nodes, by: By = "rules") -> Nodes:
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
    seen = [0] * len(within)
    for layer in layers_to(chart, both(goal, within), within):
        seen = [bits | new for bits, new in zip(seen, layer, strict=True)]
    return seen


def layers_to(chart: Chart, goal: Nodes, within: Nodes, by: By = "rules") -> Iterator[Nodes]:
    """Yield `goal`, then the nodes of `within` that lead there in one step, in two, and so on."""
    seen, fresh = list(goal), list(goal)
    while any(fresh):
        yield fresh
        before = [0] * len(fresh)
        for point, bits in enumerate(fresh):
            if bits:
                chart.spend(chart.into[point])
                for edge in usable(chart.into[point], by):
                    new = edge.backward(bits) & within[edge.source] & ~seen[edge.source]
                    before[edge.source] |= new
                    seen[edge.source] |= new
        fresh = before


def shortest(chart: Chart, start: Nodes, goal: Nodes, within: Nodes, by: By = "rules") -> Path:
    """Return a shortest path from `start` to `goal`, if there is one."""
    search = layers_to(chart, both(goal, within), within, by)
    layers = [next(search)]
    while not any(both(layers[-1], start)):
        layers.append(next(search))
    begin = node = first_of(both(layers.pop(), start))
    steps: list[tuple[Edge, Node]] = []
    for nearer in reversed(layers):
        edge, bits = next(
            (edge, bits)
            for edge in usable(chart.out[node.point], by)
            if (bits := edge.forward(1 << node.values) & nearer[edge.target])
        )
        node = Node(edge.target, first(bits))
        steps.append((edge, node))
    return Path(begin, tuple(steps))


def first_of(nodes: Nodes) -> Node:
    point = next(number for number, bits in enumerate(nodes) if bits)
    return Node(point, first(nodes[point]))


def usable(edges: Sequence[Edge], by: By) -> Iterator[Edge]:
    for edge in edges:
        if by == "limits" or not (edge.limit or (by == "certainty" and edge.why)):
            yield edge


def both(nodes: Nodes, others: Nodes) -> Nodes:
    return [bits & other for bits, other in zip(nodes, others, strict=True)]


def without(nodes: Nodes, others: Nodes) -> Nodes:
    return [bits & ~other for bits, other in zip(nodes, others, strict=True)]
