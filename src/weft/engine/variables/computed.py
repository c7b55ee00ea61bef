"""Computed variables: computed from others whenever one of these changes.

A condition is evaluated at once. A function is called after the turn in which an input changed,
before the next model call, and before the first turn of a run.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from weft.engine.events import VariableRefused, VariableSet
from weft.engine.state import State
from weft.engine.turn.hook_points import HookFunction, computed_function
from weft.engine.variables.conditions import evaluate, same
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import Condition
from weft.spec.variables import ComputedSource, Variable

WRITER = "computed"


@dataclass(frozen=True, slots=True)
class ComputedRules:
    """The computed variables, and how each is computed."""

    #: The computed variables that have a variable among their inputs.
    dependents: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    #: The conditions and functions, each after its inputs.
    conditions: Mapping[str, Condition] = field(default_factory=dict[str, Condition])
    functions: Mapping[str, HookFunction] = field(default_factory=dict[str, HookFunction])
    #: The entity variable whose document keeps a value as well.
    persist_to: Mapping[str, str] = field(default_factory=dict[str, str])


def link_computed(variables: Mapping[str, Variable]) -> ComputedRules:
    """Sort the computed variables of a workflow."""
    sources = {
        name: variable.source
        for name, variable in variables.items()
        if isinstance(variable.source, ComputedSource)
    }
    dependents: dict[str, list[str]] = {}
    conditions: dict[str, Condition] = {}
    functions: dict[str, HookFunction] = {}
    for name in _inputs_first(sources):
        source = sources[name]
        for artifact in source.inputs:
            dependents.setdefault(artifact, []).append(name)
        function = computed_function(name, source)
        if function is not None:
            functions[name] = function
        else:
            conditions[name] = parse_condition(source.computation)
    return ComputedRules(
        dependents={name: tuple(found) for name, found in dependents.items()},
        conditions=conditions,
        functions=functions,
        persist_to={
            name: each_source.persist_to
            for name, each_source in sources.items()
            if each_source.persist_to
        },
    )


def _inputs_first(sources: Mapping[str, ComputedSource]) -> list[str]:
    """Return names so that each comes after its inputs; the checker refuses cycles."""
    ordered: dict[str, None] = {}

    def add(name: str, above: frozenset[str]) -> None:
        if name in sources and name not in above and name not in ordered:
            for artifact in sources[name].inputs:
                add(artifact, above | {name})
            ordered[name] = None

    for name in sources:
        add(name, frozenset())
    return list(ordered)


def all_conditions(
    rules: ComputedRules, values: Mapping[str, Json]
) -> list[VariableSet | VariableRefused]:
    """Return the values of all conditions at the start of a run."""
    known = dict(values)
    found: list[VariableSet | VariableRefused] = []
    for name in rules.conditions:
        made = _evaluated(rules, known, name)
        if isinstance(made, VariableSet):
            known[name] = made.value
        found += [made] if made else []
    return found


def recompute(
    rules: ComputedRules, values: Mapping[str, Json], changed: str
) -> list[VariableSet | VariableRefused]:
    """Return the values of the conditions that depend on a changed variable."""
    return [
        made
        for name in rules.dependents.get(changed, ())
        if name in rules.conditions and (made := _evaluated(rules, values, name))
    ]


def preview_values(
    rules: ComputedRules, values: Mapping[str, Json], changed: Iterable[str]
) -> Mapping[str, Json]:
    """Return the values after all dependent conditions are computed."""
    waiting = list(changed)
    while waiting:
        for made in recompute(rules, values, waiting.pop(0)):
            if isinstance(made, VariableSet):
                values = {**values, made.name: made.value}
                waiting.append(made.name)
    return values


def mark_all(rules: ComputedRules, state: State) -> None:
    """Mark every function to be called, at the start of a run."""
    if rules.functions:
        state.dirty = {0: frozenset(rules.functions)}


def computed_write(values: Mapping[str, Json], name: str, value: Json) -> list[VariableSet]:
    """Return the write of a function's result, if the value has changed."""
    return [] if same(values.get(name), value) else [VariableSet(name, value, WRITER)]


def outdated_documents(rules: ComputedRules, values: Mapping[str, Json]) -> list[str]:
    """Return the entity variables whose documents lack the last computed value."""
    return [
        entity
        for name, entity in rules.persist_to.items()
        if isinstance(held := values.get(entity), dict)
        and not same(cast("dict[str, Json]", held).get(name), values.get(name))
    ]


def mark(rules: ComputedRules, state: State, turn: int, changed: Iterable[str]) -> None:
    """Mark the functions whose inputs have changed."""
    found: set[str] = set()
    waiting = list(changed)
    while waiting:
        for name in rules.dependents.get(waiting.pop(), ()):
            if name in rules.functions:
                found.add(name)
            waiting.append(name)
    if found:
        owner = turn if turn in state.own else 0
        state.dirty = {**state.dirty, owner: state.dirty.get(owner, frozenset()) | found}


def next_function(rules: ComputedRules, state: State, turn: int) -> tuple[str, HookFunction] | None:
    """Return the next marked function of a turn, or None."""
    dirty = state.dirty.get(turn if turn in state.own else 0)
    if not dirty:
        return None
    return next((entry for entry in rules.functions.items() if entry[0] in dirty), None)


def unmark(state: State, turn: int, name: str) -> None:
    """Remove the mark of a function that was called."""
    owner = turn if turn in state.own else 0
    rest = state.dirty.get(owner, frozenset()) - {name}
    others = {key: names for key, names in state.dirty.items() if key != owner}
    state.dirty = {**others, owner: rest} if rest else others


def _evaluated(
    rules: ComputedRules, values: Mapping[str, Json], name: str
) -> VariableSet | VariableRefused | None:
    try:
        value = evaluate(rules.conditions[name], values)
    except ExpressionError as error:
        return VariableRefused(name, WRITER, str(error))
    return None if same(values.get(name), value) else VariableSet(name, value, WRITER)
