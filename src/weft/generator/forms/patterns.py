"""The pattern of a form: which of the nine its steps and outcomes make, by one rule each."""

from collections.abc import Callable, Mapping
from itertools import combinations, pairwise
from typing import Final

from weft.spec.form import Form
from weft.spec.patterns import PATTERN_BY_NAME, Pattern


def pattern_of(form: Form) -> Pattern:
    """Return the first pattern whose rule fits; a pipeline if none does."""
    graph = _Graph(form)
    return PATTERN_BY_NAME[next((name for name, fits in _RULES.items() if fits(graph)), "Pipeline")]


class _Graph:
    """The steps in order; by step all that follows, and the steps among it."""

    def __init__(self, form: Form) -> None:
        self.names = [step.name for step in form.steps]
        self.agents = {step.name for step in form.steps if step.by == "agent"}
        self.targets = {
            step.name: {name for to in step.outcomes.values() for name in to} for step in form.steps
        }
        self.ways = {name: to.intersection(self.names) for name, to in self.targets.items()}
        self.parallel = any(len(to) > 1 for step in form.steps for to in step.outcomes.values())

    def mutual(self, one: str, other: str) -> bool:
        return other in self.ways[one] and one in self.ways[other]

    def spokes(self, hub: str) -> set[str]:
        """Return the other steps that a step leads to, and that lead back to it."""
        return {name for name in self.ways[hub] if name != hub and self.mutual(hub, name)}

    def later(self, name: str) -> set[str]:
        """Return the steps that a step leads to and that come after it."""
        return self.ways[name].intersection(self.names[self.names.index(name) + 1 :])


def _organic(graph: _Graph) -> bool:
    """Three steps that all lead to each other."""
    return any(
        all(graph.mutual(*pair) for pair in combinations(three, 2))
        for three in combinations(graph.names, 3)
    )


def _hierarchical(graph: _Graph) -> bool:
    """A step with two spokes, one of which has a spoke besides it."""
    return any(
        len(spokes := graph.spokes(hub)) > 1
        and any(graph.spokes(spoke) - {hub} for spoke in spokes)
        for hub in graph.names
    )


def _star(graph: _Graph) -> bool:
    """A step with two spokes."""
    return any(len(graph.spokes(hub)) > 1 for hub in graph.names)


def _escalation(graph: _Graph) -> bool:
    """Two successive agents, each of which leads on to the next step or out to the same place."""
    exits = [
        graph.targets[tier] - {above}
        if tier in graph.agents and above in graph.ways[tier]
        else set[str]()
        for tier, above in pairwise(graph.names)
    ]
    return any(len(one) == 1 and one == other for one, other in pairwise(exits))


_RULES: Final[Mapping[str, Callable[[_Graph], bool]]] = {
    "Redundant": lambda graph: graph.parallel,
    "Organic": _organic,
    "Hierarchical": _hierarchical,
    "Star": _star,
    # A step that can follow itself works off one task after the other.
    "TriageWithTasks": lambda graph: any(name in graph.ways[name] for name in graph.names),
    "Escalation": _escalation,
    "ContextAwareRouting": lambda graph: any(len(graph.later(name)) > 1 for name in graph.names),
    # A step that leads back.
    "FeedbackLoop": lambda graph: any(graph.ways[name] - graph.later(name) for name in graph.names),
}
