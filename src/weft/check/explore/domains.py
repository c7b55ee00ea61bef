"""The values each variable can have in a run, as far as the handoffs can tell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from weft.check.explore.happenings import LAST, Happening, Setting
from weft.check.explore.samples import Questions, samples
from weft.check.values import key_of
from weft.engine.variables.conditions import UNKNOWN, same
from weft.findings import Json
from weft.spec.types import print_type
from weft.spec.variables import (
    ComputedSource,
    DerivedSource,
    EnvironmentSource,
    Source,
    StaticSource,
    Variable,
)


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one variable; everything else is given as indexes into them.

    `numbers` finds a value by its written form. `initial` are those it begins with, `free` those
    that a happening without a fixed value can set, and `allowed` the changes that are not refused,
    if some are.
    """

    values: tuple[Json, ...]
    numbers: Mapping[str, int]
    initial: tuple[int, ...]
    free: tuple[int, ...] = ()
    allowed: frozenset[tuple[int, int]] | None = None

    def outcomes(self, settings: Sequence[Setting]) -> tuple[tuple[int, ...], ...]:
        """Return for each value what it may become when the settings take place at once.

        As in a run, each of them is held against the value from before, and a value that is
        refused is passed over; of the others, the last one counts.
        """
        ranked: dict[int, list[Setting]] = {}
        for one in settings:
            ranked.setdefault(one.rank, []).append(one)
        outcomes: list[tuple[int, ...]] = []
        for old in range(len(self.values)):
            news = {old}
            for _, rivals in sorted(ranked.items()):
                news = self._after(old, news, rivals)
            outcomes.append(tuple(sorted(news)))
        return tuple(outcomes)

    def _after(self, old: int, before: set[int], rivals: Sequence[Setting]) -> set[int]:
        """Return what may hold after one of several settings, given what may hold before it."""
        targets = [self._targets(old, one) for one in rivals]
        wanted = {new for found in targets for new in found}
        allowed = self.allowed
        news = {new for new in wanted if new == old or allowed is None or (old, new) in allowed}
        silent = len(news) < len(wanted) or not all(targets) or any(it.keeps for it in rivals)
        return news | before if silent else news

    def _targets(self, old: int, setting: Setting) -> tuple[int, ...]:
        if setting.origin is not UNKNOWN and not same(setting.origin, self.values[old]):
            return ()
        if setting.value is not UNKNOWN:
            return (self.numbers[key_of(setting.value)],)
        if setting.rank < LAST:
            return tuple(index for index in self.free if self.values[index] is not None)
        return self.free


def domain_of(
    name: str, variable: Variable, happenings: Iterable[Happening], asked: Questions
) -> Domain | str:
    """Return the values a variable can have, or say in words why they cannot be listed."""
    source = variable.source
    if variable.secret:
        return "it is secret"
    if isinstance(source, ComputedSource):
        return "a function computes it"
    wanted = [it for one in happenings for it in one.settings if it.variable == name]
    loose = [it for it in wanted if it.value is UNKNOWN]
    transitions = source.transitions if isinstance(source, DerivedSource) else ()
    begin, anything = _begin(source)
    free: tuple[Json, ...] | None = ()
    if anything or loose:
        # With transitions, nothing is set but what they lead to.
        free = tuple(it.to for it in transitions) or samples(variable.type, asked)
    if free is None:
        return f"its type {print_type(variable.type)} has too many values"
    begin = (*free, *begin) if anything else begin
    # Code takes the value away from a variable of any type, where no transitions forbid it.
    if not transitions and any(it.rank == LAST for it in loose):
        free = (*free, None)
    fixed = (it.value for it in wanted if it.value is not UNKNOWN)
    keys = {key_of(value): value for value in (*begin, *free, *fixed)}
    index = {key: number for number, key in enumerate(keys)}
    pairs = ((index.get(key_of(it.from_)), index.get(key_of(it.to))) for it in transitions)
    known = ((old, new) for old, new in pairs if old is not None and new is not None)
    return Domain(
        values=tuple(keys.values()),
        numbers=index,
        initial=tuple(sorted({index[key_of(value)] for value in begin})),
        free=tuple(sorted({index[key_of(value)] for value in free})),
        allowed=frozenset(known) if transitions else None,
    )


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
