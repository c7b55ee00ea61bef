"""The values each variable can have in a run, as far as the handoffs can tell."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weft.check.proof.events import Event, Setting
from weft.check.proof.samples import Questions, samples
from weft.engine.conditions import UNKNOWN, same
from weft.findings import Json
from weft.spec.sources import (
    ComputedSource,
    DerivedSource,
    EnvironmentSource,
    Source,
    StaticSource,
)
from weft.spec.types import print_type
from weft.spec.variables import Variable


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one variable; everything else is given as indexes into them.

    `numbers` finds a value by its written form. `initial` are those it can certainly begin with,
    `possible` those it may begin with, `free` those that an event without a fixed value can set,
    and `allowed` the changes that are not refused, if some are.
    """

    values: tuple[Json, ...]
    numbers: Mapping[str, int]
    initial: tuple[int, ...]
    possible: tuple[int, ...]
    free: tuple[int, ...] = ()
    allowed: frozenset[tuple[int, int]] | None = None

    def outcomes(self, settings: Sequence[Setting]) -> tuple[tuple[int, ...], ...]:
        """Return for each value what it may become when one of the settings takes place."""
        wanted = [
            (found.origin, self.free if found.value is UNKNOWN else (self.index(found.value),))
            for found in settings
        ]
        outcomes: list[tuple[int, ...]] = []
        for old, value in enumerate(self.values):
            news = {
                new if self.allowed is None or (old, new) in self.allowed else old
                for origin, targets in wanted
                if origin is UNKNOWN or same(origin, value)
                for new in targets
            } | {old for found in settings if found.keeps}
            outcomes.append(tuple(sorted(news)) or (old,))
        return tuple(outcomes)

    def index(self, value: Json) -> int:
        """Return where a value stands among the values."""
        return self.numbers[_key(value)]


def domain_of(
    name: str, variable: Variable, events: Iterable[Event], asked: Questions
) -> Domain | str:
    """Return the values a variable can have, or say in words why they cannot be listed."""
    if variable.secret:
        return "it is secret"
    if isinstance(variable.source, ComputedSource):
        return "a function computes it"
    wanted = [
        setting.value for event in events for setting in event.settings if setting.variable == name
    ]
    fixed, anything = _begin(variable.source)
    free = _free(variable, asked) if anything or UNKNOWN in wanted else ()
    if free is None:
        return f"its type {print_type(variable.type)} has too many values"
    begin = (*free, *fixed) if anything else fixed
    return _domain(variable, begin, free, [value for value in wanted if value is not UNKNOWN])


def _begin(source: Source) -> tuple[tuple[Json, ...], bool]:
    """Return what a variable begins with, and whether that may be any other value as well."""
    match source:
        case StaticSource(value=value) | DerivedSource(default=value):
            return (value,), False
        case EnvironmentSource(required=True) | ComputedSource():
            return (), True
        case _:
            # The default stands in when nothing is found outside the run.
            return (source.default,), True


def _free(variable: Variable, asked: Questions) -> tuple[Json, ...] | None:
    """Return what an event without a fixed value can set: with transitions, where they lead."""
    source = variable.source
    if isinstance(source, DerivedSource) and source.transitions:
        return tuple(transition.to for transition in source.transitions)
    return samples(variable.type, asked)


def _domain(
    variable: Variable, begin: Iterable[Json], free: Iterable[Json], constants: Iterable[Json]
) -> Domain:
    source = variable.source
    transitions = source.transitions if isinstance(source, DerivedSource) else ()
    keys = {_key(value): value for value in (*begin, *free, *constants)}
    index = {key: n for n, key in enumerate(keys)}
    initial = tuple(sorted({index[_key(value)] for value in begin}))
    kept = isinstance(source, DerivedSource) and source.persist
    pairs = ((_key(step.from_), _key(step.to)) for step in transitions)
    return Domain(
        values=tuple(keys.values()),
        numbers=index,
        initial=initial,
        possible=tuple(range(len(keys))) if kept else initial,
        free=tuple(sorted({index[_key(value)] for value in free})),
        allowed=frozenset((index[a], index[b]) for a, b in pairs if a in index and b in index)
        if transitions
        else None,
    )


def _key(value: Json) -> str:
    """Tell values apart as conditions do: 1 is not true, but it is 1.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)
