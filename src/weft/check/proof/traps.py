"""Traps: agents that pass the word among themselves for ever, once a run has come to them."""

from collections.abc import Iterator
from dataclasses import dataclass

from weft.check.proof.chart import Chart, States
from weft.check.proof.reach import Path, State, joined, leading, reached, shortest
from weft.check.proof.space import first


@dataclass(frozen=True, slots=True)
class Trap:
    """Agents that keep the word among themselves, and how a run gets to that.

    `states` are all states without escape in which one of them has the word, `into` leads from the
    start into the trap, and `around` once around inside it.
    """

    agents: tuple[str, ...]
    states: States
    into: Path
    around: Path


def traps(chart: Chart, lost: States, certainly: States) -> Iterator[Trap]:
    """Yield a trap for every set of agents that share none with a trap before.

    `lost` are all states without escape, and `certainly` those that a run can certainly reach.
    """
    begin = chart.begin(chart.initial)
    remaining = list(certainly)
    while any(remaining):
        into = shortest(chart, begin, remaining, certain=True)
        region = _region(chart, lost, _agents(chart, _core(chart, into.last)))
        nearest = [a & b for a, b in zip(entries(chart, region), remaining, strict=True)]
        if any(nearest):
            into = shortest(chart, begin, nearest, certain=True)
        # Up to here all is certain; what follows cannot be avoided, whichever way it goes.
        core = _core(chart, into.last)
        agents = _agents(chart, core)
        onward = shortest(chart, only(chart, into.last), entries(chart, core))
        theirs = _of(chart, lost, agents)
        yield Trap(agents, theirs, joined(into, onward), _around(chart, onward.last))
        told = leading(chart, theirs, lost)
        remaining = [bits & ~known for bits, known in zip(remaining, told, strict=True)]


def only(chart: Chart, state: State) -> States:
    """Return the set of this one state."""
    return [1 << state.values if n == state.point else 0 for n in range(len(chart.points))]


def _region(chart: Chart, lost: States, agents: tuple[str, ...]) -> States:
    """Return the states without escape in which the word can only stay with these agents."""
    theirs = _of(chart, lost, agents)
    others = [bits & ~own for bits, own in zip(lost, theirs, strict=True)]
    leaving = leading(chart, others, lost)
    return [bits & ~known for bits, known in zip(theirs, leaving, strict=True)]


def _of(chart: Chart, states: States, agents: tuple[str, ...]) -> States:
    return [
        bits if point.agent in agents else 0
        for point, bits in zip(chart.points, states, strict=True)
    ]


def _agents(chart: Chart, states: States) -> tuple[str, ...]:
    found = (point.agent for point, bits in zip(chart.points, states, strict=True) if bits)
    return tuple(dict.fromkeys(found))


def _core(chart: Chart, state: State) -> States:
    """Return states around `state` or beyond it that all lead to each other and nowhere else."""
    while True:
        ahead = reached(chart, only(chart, state))
        back = leading(chart, only(chart, state), ahead)
        beyond = [bits & ~known for bits, known in zip(ahead, back, strict=True)]
        if not any(beyond):
            return ahead
        point = next(n for n, bits in enumerate(beyond) if bits)
        state = State(point, first(beyond[point]))


def entries(chart: Chart, states: States) -> States:
    """Return those of the states in which an agent is about to speak."""
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
