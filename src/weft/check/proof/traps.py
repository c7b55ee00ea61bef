"""Traps: agents that pass the word among themselves for ever, once a run has come to them."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.check.proof.chart import Chart, States
from weft.check.proof.reach import Path, State, leading, reached, shortest
from weft.check.proof.space import first


@dataclass(frozen=True, slots=True)
class Trap:
    """States from which no others can be reached, and how a run gets into them.

    `into` leads to the state from which there is no escape any more, `onward` from there into the
    trap, and `around` once around inside it.
    """

    agents: tuple[str, ...]
    states: States
    into: Path
    onward: Path
    around: Path


def traps(chart: Chart, lost: States, certainly: States) -> Iterator[Trap]:
    """Yield a trap for every set of agents that share none with a trap before.

    `lost` are all states without escape, and `certainly` those that a run can certainly reach.
    """
    begin = chart.begin(chart.initial)
    remaining = list(certainly)
    while any(remaining):
        into = shortest(chart, begin, remaining, certain=True)
        states = _trap(chart, into.last)
        trapped = {point.agent for point, bits in zip(chart.points, states, strict=True) if bits}
        onward = shortest(chart, only(chart, into.last), _entries(chart, states))
        around = _around(chart, onward.last)
        yield Trap(_in_order(chart, trapped), states, into, onward, around)
        theirs = [
            bits if point.agent in trapped else 0
            for point, bits in zip(chart.points, lost, strict=True)
        ]
        told = leading(chart, theirs, lost)
        remaining = [bits & ~known for bits, known in zip(remaining, told, strict=True)]


def only(chart: Chart, state: State) -> States:
    """Return the set of this one state."""
    return [1 << state.values if n == state.point else 0 for n in range(len(chart.points))]


def _trap(chart: Chart, state: State) -> States:
    """Return states around `state` or beyond it that all lead to each other and nowhere else."""
    while True:
        ahead = reached(chart, only(chart, state))
        back = leading(chart, only(chart, state), ahead)
        beyond = [bits & ~known for bits, known in zip(ahead, back, strict=True)]
        if not any(beyond):
            return ahead
        point = next(n for n, bits in enumerate(beyond) if bits)
        state = State(point, first(beyond[point]))


def _entries(chart: Chart, states: States) -> States:
    return [
        bits if point.kind == "enter" else 0
        for point, bits in zip(chart.points, states, strict=True)
    ]


def _around(chart: Chart, state: State) -> Path:
    """Return the shortest way from a state back to itself."""
    after = [0] * len(chart.points)
    for edge in chart.out[state.point]:
        after[edge.target] |= edge.forward(1 << state.values)
    back = shortest(chart, after, only(chart, state))
    after_one = 1 << back.start.values
    edge = next(
        edge
        for edge in chart.out[state.point]
        if edge.target == back.start.point and edge.forward(1 << state.values) & after_one
    )
    return Path(state, ((edge, back.start), *back.steps))


def _in_order(chart: Chart, agents: set[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(point.agent for point in chart.points if point.agent in agents))
