"""Paths to the end or to a handoff: which settings by an agent bring a run closer."""

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
    """The chart of a workflow, and its nodes by their distance from an end or another goal.

    `turns` is the number of turns of the shortest path; None if no path leads to an end.
    """

    chart: Chart
    layers: tuple[Nodes, ...]
    turns: int | None

    def values(self, name: str) -> tuple[Json, ...]:
        """Return the values of a variable that conditions distinguish, if it is followed."""
        domain = self.chart.ground.domains.get(name)
        return tuple(value for value in domain.values if value is not None) if domain else ()

    def nearer(self, agent: str, settings: Sequence[Setting], *, reply: bool) -> tuple[int, ...]:
        """Return the distances from the end at which an agent's settings bring a run closer.

        `reply`: the agent's reply sets it, not a call before it.
        """
        ground = self.chart.ground
        changes = [
            change(
                ground.space.axes[setting.variable],
                ground.domains[setting.variable].outcomes([setting]),
            )
            for setting in settings
            if setting.variable in ground.domains
            and key_of(setting.value) in ground.domains[setting.variable].numbers
        ]
        here = self.chart.numbers[Point("speak", agent)]
        called = "work" if agent in self.chart.routing.pre else "speak"
        there = self.chart.numbers[Point("said" if reply else called, agent)]
        found: list[int] = []
        near = 0
        for distance, nodes in enumerate(self.layers):
            # No setting is made where none is needed.
            if forward(changes, nodes[here] & ~near) & near:
                found.append(distance)
            near |= nodes[there]
        return tuple(found)


def ways_to_end(subject: Subject) -> Ways | None:
    """Return the paths to the end of a valid workflow; None if it is too large to explore."""
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
    ways = ((chart.points[edge.source].kind, chart.points[edge.target].kind) for edge, _ in steps)
    turns = sum(way in (("enter", "speak"), ("arrive", "speak")) for way in ways)
    return Ways(chart, layers, turns if layers else None)


def ways_to_handoff(found: Ways, rule: int) -> Ways | None:
    """Return the paths to the handoff with an index; None if there is none."""
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
