"""Ways to the end: a search through what agents can do, with the engine's own routing.

A position is an agent about to speak and the values of the variables that rules look at. From each
position the agent makes one move or none; the rules then say who is next. What tools and people
give back is taken to be what serves best.
"""

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft.adapters.models.sample_moves import ANYTHING, Step, conditions_of
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conditions import evaluate, same
from weft.engine.routing import RoutingRule, Test, routes_after, routes_before
from weft.engine.writes import BY_TRIGGER, write_error
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import TERMINATE, USER
from weft.spec.conditions import names
from weft.spec.variables import EnvironmentSource

#: A larger workflow is searched only so far.
_MOST_POSITIONS: Final = 1000

Steps: TypeAlias = Mapping[str, tuple[Step, ...]]
_Values: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Position:
    """An agent about to speak, and what rules know; no agent stands for the end."""

    agent: str
    values: _Values = field(default_factory=dict[str, Json])

    def key(self) -> str:
        """Return what tells positions apart."""
        return f"{self.agent} {json.dumps(self.values)}"


_END: Final = Position("")


@dataclass(frozen=True, slots=True)
class Ways:
    """By agent, the steps that bring a run nearer to its end, grouped, those needed first in front.

    `turns` is how many turns the shortest way from the start takes; None if none was found.
    """

    steps: Mapping[str, tuple[tuple[Step, ...], ...]]
    turns: int | None


def find_ways(compiled: CompiledWorkflow, steps: Steps) -> Ways:
    """Search for the ways to the end from wherever a run can get to."""
    first = _arrive(compiled, compiled.orchestrator.initial_agent, _start_values(compiled))
    if first is None:
        return Ways({}, None)
    places: dict[str, Position] = {first.key(): first}
    leading: dict[str, list[tuple[str, Step | None]]] = {}
    waiting = deque([] if first == _END else [first])
    while waiting and len(places) < _MOST_POSITIONS:
        here = waiting.popleft()
        for step, there in _onward(compiled, steps, here):
            leading.setdefault(there.key(), []).append((here.key(), step))
            if there.key() not in places:
                places[there.key()] = there
                if there != _END:
                    waiting.append(there)
    distances = _distances(leading)
    return Ways(_nearer(places, leading, distances), distances.get(first.key()))


def _onward(
    compiled: CompiledWorkflow, steps: Steps, here: Position
) -> Iterator[tuple[Step | None, Position]]:
    """Yield where each move of the agent leads; where rules have no answer, nowhere."""
    for step in (None, *steps.get(here.agent, ())):
        values = _after(compiled, here.values, step)
        try:
            route = next(routes_after(compiled.routing, here.agent, _test(values)))
        except ExpressionError:
            continue
        # Whoever hands over to the user gets the word back.
        target = here.agent if route.target == USER else route.target
        there = _END if target == TERMINATE else _arrive(compiled, target, values)
        if there is not None:
            yield step, there


def _arrive(compiled: CompiledWorkflow, agent: str, values: _Values) -> Position | None:
    """Follow the rules that take the word away before it is used; None where that has no end."""
    for _ in compiled.agents:
        try:
            route = next(routes_before(compiled.routing, agent, _test(values)), None)
        except ExpressionError:
            return None
        if route is None:
            return Position(agent, values)
        if route.target == TERMINATE:
            return _END
        if route.target == USER:
            return None
        agent = route.target
    return None


def _distances(leading: Mapping[str, list[tuple[str, Step | None]]]) -> dict[str, int]:
    """Count the turns from each position to the end."""
    distances = {_END.key(): 0}
    waiting = deque([_END.key()])
    while waiting:
        there = waiting.popleft()
        for here, _ in leading.get(there, ()):
            if here not in distances:
                distances[here] = distances[there] + 1
                waiting.append(here)
    return distances


def _nearer(
    places: Mapping[str, Position],
    leading: Mapping[str, list[tuple[str, Step | None]]],
    distances: Mapping[str, int],
) -> dict[str, tuple[tuple[Step, ...], ...]]:
    """Collect the steps that bring an agent nearer to the end, by how far it is from there."""
    best: dict[str, list[Step | None]] = {}
    for there, ways in leading.items():
        for here, step in ways:
            if there in distances and distances[here] == distances[there] + 1:
                best.setdefault(here, []).append(step)
    found: dict[str, dict[int, list[Step]]] = {}
    for here, ways in best.items():
        # Where nothing need be done, nothing is.
        if None not in ways:
            kept = found.setdefault(places[here].agent, {}).setdefault(distances[here], [])
            kept += [step for step in ways if step is not None]
    return {
        agent: tuple(tuple(kept[far]) for far in sorted(kept, reverse=True))
        for agent, kept in found.items()
    }


def _after(compiled: CompiledWorkflow, values: _Values, step: Step | None) -> _Values:
    """Return the values after a step; what the engine would refuse is not set."""
    values = dict(values)
    for effect in step.effects if step else ():
        name, value = effect.variable, effect.value
        fits = effect.before is ANYTHING or same(effect.before, values.get(name))
        if fits and write_error(compiled, values, name, value, BY_TRIGGER) is None:
            values[name] = value
    return values


def _start_values(compiled: CompiledWorkflow) -> _Values:
    """Return what rules know at the start; what the outside adds is not known here."""
    values: _Values = {}
    for condition in conditions_of(compiled):
        for name in names(condition):
            variable = compiled.variables.get(name)
            default = isinstance(source := variable and variable.source, EnvironmentSource)
            values[name] = source.default if default else compiled.start_values.get(name)
    return values


def _test(values: _Values) -> Test:
    def holds(rule: RoutingRule) -> bool:
        return rule.condition is not None and evaluate(rule.condition, values)

    return holds
