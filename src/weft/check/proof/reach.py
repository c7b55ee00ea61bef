"""Which states lead to which: worked out for whole sets of states at once."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.check.proof.chart import Chart, Edge, States
from weft.check.proof.space import first


@dataclass(frozen=True, slots=True)
class State:
    """One state: the number of a point, and the number of a combination of values."""

    point: int
    values: int


@dataclass(frozen=True, slots=True)
class Path:
    """A way through the chart: its first state, then each edge with the state it leads to."""

    start: State
    steps: tuple[tuple[Edge, State], ...]

    @property
    def last(self) -> State:
        """The state in which the path ends."""
        return self.steps[-1][1] if self.steps else self.start


def joined(*paths: Path) -> Path:
    """Join ways of which each begins where the one before ends."""
    return Path(paths[0].start, tuple(step for path in paths for step in path.steps))


def reached(chart: Chart, start: States, *, certain: bool = False) -> States:
    """Return what can be reached from `start`, itself included; `certain`: without any doubt."""
    seen, fresh = list(start), list(start)
    waiting = deque(point for point, bits in enumerate(start) if bits)
    while waiting:
        point = waiting.popleft()
        bits, fresh[point] = fresh[point], 0
        for edge in _usable(chart.out[point], certain=certain):
            target = edge.target
            new = edge.forward(bits) & ~seen[target]
            if new:
                if not fresh[target]:
                    waiting.append(target)
                fresh[target] |= new
                seen[target] |= new
    return seen


def leading(chart: Chart, goal: States, within: States, *, assured: bool = False) -> States:
    """Return the states of `within` from which `goal` can be reached.

    `assured` asks for more: whatever the answers are that are not known, it can be reached.
    """
    seen = [bits & allowed for bits, allowed in zip(goal, within, strict=True)]
    fresh = list(seen)
    waiting = deque(point for point, bits in enumerate(seen) if bits)
    while waiting:
        point = waiting.popleft()
        bits, fresh[point] = fresh[point], 0
        for edge in chart.into[point]:
            source = edge.source
            gained = _gained(chart, edge, bits, seen) if assured else edge.backward(bits)
            new = gained & within[source] & ~seen[source]
            if new:
                if not fresh[source]:
                    waiting.append(source)
                fresh[source] |= new
                seen[source] |= new
    return seen


def _gained(chart: Chart, edge: Edge, bits: int, seen: States) -> int:
    """Return from where an edge leads to `bits` for sure.

    In a group that is where every edge that is open leads to what has been seen.
    """
    if edge.group is None:
        return edge.backward(bits) if all(doubt.mild for doubt in edge.doubts) else 0
    gained = edge.guard
    for other in chart.groups[edge.group]:
        gained &= other.backward(seen[other.target]) | ~other.guard
    return gained


def shortest(chart: Chart, start: States, goal: States, *, certain: bool = False) -> Path:
    """Return a way from `start` to `goal` with the fewest steps, the same one every time."""
    seen = list(start)
    layers = [{point: bits for point, bits in enumerate(start) if bits}]
    while not (found := _meeting(layers[-1], goal)):
        fresh: dict[int, int] = {}
        for point, bits in layers[-1].items():
            for edge in _usable(chart.out[point], certain=certain):
                new = edge.forward(bits) & ~seen[edge.target]
                if new:
                    seen[edge.target] |= new
                    fresh[edge.target] = fresh.get(edge.target, 0) | new
        if not fresh:
            raise LookupError("no way leads there")
        layers.append(fresh)
    return _retrace(chart, layers, found, certain=certain)


def _meeting(layer: dict[int, int], goal: States) -> State | None:
    meeting = [(point, bits & goal[point]) for point, bits in layer.items() if bits & goal[point]]
    if not meeting:
        return None
    point, bits = min(meeting)
    return State(point, first(bits))


def _retrace(chart: Chart, layers: Sequence[dict[int, int]], last: State, *, certain: bool) -> Path:
    steps: list[tuple[Edge, State]] = []
    state = last
    for layer in reversed(layers[:-1]):
        edge, before = next(
            (edge, before)
            for edge in _usable(chart.into[state.point], certain=certain)
            if (before := edge.backward(1 << state.values) & layer.get(edge.source, 0))
        )
        steps.append((edge, state))
        state = State(edge.source, first(before))
    return Path(state, tuple(reversed(steps)))


def _usable(edges: Sequence[Edge], *, certain: bool) -> Iterator[Edge]:
    return (edge for edge in edges if not (certain and edge.doubts))
