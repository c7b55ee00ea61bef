"""Which nodes of the chart lead to which: worked out for whole sets of them at once."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from weft.check.proof.chart import Chart, Edge, Nodes
from weft.check.proof.space import first

#: Which edges count: those without a doubt, all that rules lead along, or those of limits as well.
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


def joined(*paths: Path) -> Path:
    """Join ways of which each begins where the one before ends."""
    return Path(paths[0].start, tuple(step for path in paths for step in path.steps))


def reached(chart: Chart, start: Nodes, by: By = "rules") -> Nodes:
    """Return what can be reached from `start`, itself included."""
    seen, fresh = list(start), list(start)
    waiting = deque(point for point, bits in enumerate(start) if bits)
    while waiting:
        point = waiting.popleft()
        bits, fresh[point] = fresh[point], 0
        chart.effort.spend(chart.work_out[point])
        for edge in usable(chart.out[point], by):
            target = edge.target
            new = edge.forward(bits) & ~seen[target]
            if new:
                if not fresh[target]:
                    waiting.append(target)
                fresh[target] |= new
                seen[target] |= new
    return seen


def leading(
    chart: Chart, goal: Nodes, within: Nodes, by: By = "rules", *, assured: bool = False
) -> Nodes:
    """Return the nodes of `within` from which `goal` can be reached.

    `assured` asks for more: whatever the answers are that are not known, it can be reached.
    """
    seen = [bits & allowed for bits, allowed in zip(goal, within, strict=True)]
    fresh = list(seen)
    waiting = deque(point for point, bits in enumerate(seen) if bits)
    while waiting:
        point = waiting.popleft()
        bits, fresh[point] = fresh[point], 0
        chart.effort.spend(chart.work_into[point])
        for edge in usable(chart.into[point], by):
            source = edge.source
            gained = _gained(chart, edge, bits, seen) if assured else edge.backward(bits)
            new = gained & within[source] & ~seen[source]
            if new:
                if not fresh[source]:
                    waiting.append(source)
                fresh[source] |= new
                seen[source] |= new
    return seen


def _gained(chart: Chart, edge: Edge, bits: int, seen: Nodes) -> int:
    """Return from where an edge leads to `bits` for sure.

    In a group that is where every edge that is open leads to what has been seen.
    """
    if edge.group is None:
        return edge.backward(bits) if all(doubt.mild for doubt in edge.doubts) else 0
    gained = edge.guard
    chart.effort.spend(len(chart.groups[edge.group]))
    for other in chart.groups[edge.group]:
        gained &= other.always(seen[other.target], chart.ground.space.full)
    return gained


def shortest(chart: Chart, start: Nodes, goal: Nodes, by: By = "rules") -> Path:
    """Return a way from `start` to `goal` with the fewest steps, the same one every time."""
    seen = list(start)
    layers = [{point: bits for point, bits in enumerate(start) if bits}]
    while not (found := _meeting(layers[-1], goal)):
        fresh: dict[int, int] = {}
        for point, bits in layers[-1].items():
            chart.effort.spend(chart.work_out[point])
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
        chart.effort.spend(chart.work_into[node.point])
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
        if by == "limits" or not (edge.limit or (by == "certainty" and edge.doubts)):
            yield edge
