"""The pattern of a form: which of the nine its steps and outcomes make, by one rule each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from typing import Final

from weft.spec.form import Form
from weft.spec.patterns import PATTERN_BY_NAME, Pattern


@dataclass(frozen=True)
class _Graph:
    """The steps in order; by step the steps that follow it, and whether some work in parallel."""

    ways: Mapping[str, Sequence[str]]
    #: By step, every target, with `user` and `end`.
    targets: Mapping[str, Sequence[str]]
    parallel: bool
    agents: frozenset[str]

    @cached_property
    def order(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.ways)}

    def mutual(self, one: str, other: str) -> bool:
        return other in self.ways[one] and one in self.ways[other]

    def spokes(self, hub: str) -> list[str]:
        """Return the steps that a step leads to and that lead back to it, but to no other hub."""
        return [name for name in self.ways[hub] if name != hub and self.mutual(hub, name)]


def pattern_of(form: Form) -> Pattern:
    """Return the first pattern whose rule fits; a pipeline if none does."""
    targets = {
        step.name: list(dict.fromkeys(name for to in step.outcomes.values() for name in to))
        for step in form.steps
    }
    parallel = any(len(to) > 1 for step in form.steps for to in step.outcomes.values())
    ways = {name: [to for to in found if to in targets] for name, found in targets.items()}
    agents = frozenset(step.name for step in form.steps if step.by == "agent")
    graph = _Graph(ways, targets, parallel, agents)
    return PATTERN_BY_NAME[next((name for name, fits in _RULES.items() if fits(graph)), "Pipeline")]


def _organic(graph: _Graph) -> bool:
    """Three steps that all lead to each other."""
    return any(
        all(graph.mutual(*pair) for pair in combinations(three, 2))
        for three in combinations(graph.ways, 3)
    )


def _hierarchical(graph: _Graph) -> bool:
    """A step with two spokes, one of which has a spoke besides it."""
    return any(
        len(spokes := graph.spokes(hub)) > 1
        and any(set(graph.spokes(spoke)) - {hub} for spoke in spokes)
        for hub in graph.ways
    )


def _star(graph: _Graph) -> bool:
    """A step with two spokes."""
    return any(len(graph.spokes(hub)) > 1 for hub in graph.ways)


def _triage(graph: _Graph) -> bool:
    """A step that can follow itself: it works off one task after the other."""
    return any(name in ways for name, ways in graph.ways.items())


def _escalation(graph: _Graph) -> bool:
    """Two successive agents, each of which leads on to the next step or out to the same place."""
    tiers = [
        tier in graph.agents and above in ways and len(ways) > 1 and len(set(ways) - {above}) == 1
        for (tier, ways), above in zip(graph.targets.items(), [*graph.ways][1:], strict=False)
    ]
    exits = [
        set(ways) - {above}
        for ways, above in zip(graph.targets.values(), [*graph.ways][1:], strict=False)
    ]
    return any(
        one and other and exits[place] == exits[place + 1]
        for place, (one, other) in enumerate(pairwise(tiers))
    )


def _routing(graph: _Graph) -> bool:
    """A step that leads to two later ones."""
    return any(
        sum(graph.order[to] > graph.order[name] for to in ways) > 1
        for name, ways in graph.ways.items()
    )


def _feedback(graph: _Graph) -> bool:
    """A step that leads back to an earlier one."""
    return any(
        graph.order[to] < graph.order[name] for name, ways in graph.ways.items() for to in ways
    )


_RULES: Final[Mapping[str, Callable[[_Graph], bool]]] = {
    "Redundant": lambda graph: graph.parallel,
    "Organic": _organic,
    "Hierarchical": _hierarchical,
    "Star": _star,
    "TriageWithTasks": _triage,
    "Escalation": _escalation,
    "ContextAwareRouting": _routing,
    "FeedbackLoop": _feedback,
}
