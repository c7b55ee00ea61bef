"""The values each variable can have in a run, as far as the handoffs can tell."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weft.check.explore.happenings import Happening, Setting
from weft.check.explore.samples import Questions, samples
from weft.engine.conditions import UNKNOWN, same
from weft.findings import Json
from weft.spec.sources import (
    ComputedSource,
    DerivedSource,
    EnvironmentSource,
    Source,
    StaticSource,
    Transition,
)
from weft.spec.types import print_type
from weft.spec.variables import Variable


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one variable; everything else is given as indexes into them.

    `numbers` finds a value by its written form. `initial` are those it begins with, unless it is
    `kept` from an earlier run, `free` those that a happening without a fixed value can set, and
    `allowed` the changes that are not refused, if some are.
    """

    values: tuple[Json, ...]
    numbers: Mapping[str, int]
    initial: tuple[int, ...]
    kept: bool = False
    free: tuple[int, ...] = ()
    allowed: frozenset[tuple[int, int]] | None = None

    def outcomes(self, settings: Sequence[Setting]) -> tuple[tuple[int, ...], ...]:
        """Return for each value what it may become when the settings take place at once.

        As in a run, each of them is held against the value from before, and a value that is
        refused is passed over; of the others, the last one counts.
        """
        ranked: dict[int, list[Setting]] = {}
        loose: list[Setting] = []
        for one in settings:
            (loose if one.rank is None else ranked.setdefault(one.rank, [])).append(one)
        outcomes: list[tuple[int, ...]] = []
        for old in range(len(self.values)):
            news = {old}
            for _, rivals in sorted(ranked.items()):
                news = self._after(old, news, rivals)
            if loose:
                # Whether code comes before the triggers or after them is not known.
                news = self._after(old, news, loose) | (news if ranked else set[int]())
            outcomes.append(tuple(sorted(news)))
        return tuple(outcomes)

    def _after(self, old: int, before: set[int], rivals: Sequence[Setting]) -> set[int]:
        """Return what may hold after one of several settings, given what may hold before it."""
        targets = [self._targets(old, one) for one in rivals]
        wanted = {new for found in targets for new in found}
        news = {new for new in wanted if new == old or self._allows(old, new)}
        silent = len(news) < len(wanted) or not all(targets) or any(it.keeps for it in rivals)
        return news | (before if silent else set[int]())

    def _targets(self, old: int, setting: Setting) -> tuple[int, ...]:
        if setting.origin is not UNKNOWN and not same(setting.origin, self.values[old]):
            return ()
        if setting.value is not UNKNOWN:
            return (self.index(setting.value),)
        if setting.part is not None:
            return tuple(index for index in self.free if self.values[index] is not None)
        return self.free

    def _allows(self, old: int, new: int) -> bool:
        return self.allowed is None or (old, new) in self.allowed

    def index(self, value: Json) -> int:
        """Return where a value stands among the values; raises KeyError if it does not."""
        return self.numbers[_key(value)]


def domain_of(
    name: str, variable: Variable, happenings: Iterable[Happening], asked: Questions
) -> Domain | str:
    """Return the values a variable can have, or say in words why they cannot be listed."""
    if variable.secret:
        return "it is secret"
    if isinstance(variable.source, ComputedSource):
        return "a function computes it"
    wanted = [
        setting
        for happening in happenings
        for setting in happening.settings
        if setting.variable == name
    ]
    loose = [setting for setting in wanted if setting.value is UNKNOWN]
    fixed, anything = _begin(variable.source)
    free = _free(variable, asked) if anything or loose else ()
    if free is None:
        return f"its type {print_type(variable.type)} has too many values"
    begin = (*free, *fixed) if anything else fixed
    # Code takes the value away from a variable of any type, where no transitions forbid it.
    taken = not _transitions(variable.source) and any(setting.part is None for setting in loose)
    free = (*free, None) if taken else free
    return _domain(variable, begin, free, [it.value for it in wanted if it.value is not UNKNOWN])


def _begin(source: Source) -> tuple[tuple[Json, ...], bool]:
    """Return what a variable begins with, and whether that may be any other value as well."""
    match source:
        case StaticSource(value=value) | DerivedSource(default=value):
            return (value,), False
        case EnvironmentSource(required=False, default=value):
            # In production nothing is read from the environment, not even the default holds.
            return (value, None), True
        case EnvironmentSource() | ComputedSource():
            return (None,), True
        case _:
            # The default stands in when nothing is found outside the run.
            return (source.default,), True


def _free(variable: Variable, asked: Questions) -> tuple[Json, ...] | None:
    """Return what a happening without a fixed value can set: with transitions, where they lead."""
    steps = _transitions(variable.source)
    return tuple(step.to for step in steps) if steps else samples(variable.type, asked)


def _transitions(source: Source) -> tuple[Transition, ...]:
    return source.transitions if isinstance(source, DerivedSource) else ()


def _domain(
    variable: Variable, begin: Iterable[Json], free: Iterable[Json], constants: Iterable[Json]
) -> Domain:
    source = variable.source
    transitions = _transitions(source)
    keys = {_key(value): value for value in (*begin, *free, *constants)}
    index = {key: n for n, key in enumerate(keys)}
    initial = tuple(sorted({index[_key(value)] for value in begin}))
    pairs = ((_key(step.from_), _key(step.to)) for step in transitions)
    return Domain(
        values=tuple(keys.values()),
        numbers=index,
        initial=initial,
        kept=isinstance(source, DerivedSource) and source.persist,
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
