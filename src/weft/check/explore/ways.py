"""Ways to the end, or to a handoff: what an agent can do that brings a run nearer to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from weft.check.explore.chart import Chart, Nodes, Point, TooMuchWorkError
from weft.check.explore.draw import draw
from weft.check.explore.exploration import MOST_STEPS, STATE_LIMIT
from weft.check.explore.ground import change, forward, survey
from weft.check.explore.happenings import Setting
from weft.check.explore.reach import both, layers_to, reached, shortest
from weft.check.subject import Subject
from weft.check.values import key_of
from weft.findings import Json


@dataclass(frozen=True)
class Ways:
    """The chart of a workflow, and its nodes by how far they are from an end, or another goal.

    `turns` is how many turns the shortest way takes; None if no way leads to an end.
    """

    chart: Chart
    layers: tuple[Nodes, ...]
    turns: int | None

    def values(self, name: str) -> tuple[Json, ...]:
        """Return the values of a variable that make a difference; none if it is not followed."""
        domain = self.chart.ground.domains.get(name)
        return tuple(it for it in domain.values if it is not None) if domain else ()

    def nearer(self, agent: str, settings: Sequence[Setting], *, reply: bool) -> tuple[int, ...]:
        """Return how far from the end a run is that is nearer to it once an agent has set this.

        `reply` tells that it is the agent's reply that does, and not a call before.
        """
        ground = self.chart.ground
        changes = [
            change(ground.space.axes[it.variable], ground.domains[it.variable].outcomes([it]))
            for it in settings
            if it.variable in ground.domains
            and key_of(it.value) in ground.domains[it.variable].numbers
        ]
        here = self.chart.numbers[Point("speak", agent)]
        called = "work" if agent in self.chart.routing.pre else "speak"
        there = self.chart.numbers[Point("said" if reply else called, agent)]
        found: list[int] = []
        near = 0
        for distance, nodes in enumerate(self.layers):
            # Where nothing need be set, nothing is.
            if forward(changes, nodes[here] & ~near) & near:
                found.append(distance)
            near |= nodes[there]
        return tuple(found)


def ways_to_end(subject: Subject) -> Ways | None:
    """Find the ways to the end of a sound workflow; None if it is too large to be explored."""
    ground = survey(subject, STATE_LIMIT)
    if isinstance(ground, str):
        return None
    chart = draw(subject, ground, MOST_STEPS, chosen=False)
    end = chart.at("end")
    try:
        seen = reached(chart, chart.begin)
        layers = tuple(layers_to(chart, both(end, seen), seen))
        steps = shortest(chart, chart.begin, end, seen).steps if layers else ()
    except TooMuchWorkError:
        return None
    ways = ((chart.points[it.source].kind, chart.points[it.target].kind) for it, _ in steps)
    turns = sum(way in (("enter", "speak"), ("arrive", "speak")) for way in ways)
    return Ways(chart, layers, turns if layers else None)


def ways_to_handoff(found: Ways, rule: int) -> Ways | None:
    """Find the ways to where the handoff of an index takes place; None if no way is found."""
    chart = found.chart
    goal = [0] * len(chart.points)
    for edge in chart.edges:
        if edge.rule == rule:
            goal[edge.source] |= edge.guard
    try:
        seen = reached(chart, chart.begin)
        layers = tuple(layers_to(chart, both(goal, seen), seen))
    except TooMuchWorkError:
        return None
    return Ways(chart, layers, found.turns) if layers else None
