"""The values that each variable can have in a run, as far as handoffs distinguish them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from weft.check.explore.happenings import LAST, Happening, Setting
from weft.check.values import key_of
from weft.engine.variables.conditions import UNKNOWN, same
from weft.findings import Json
from weft.spec.conditions import And, Compare, Condition, ListOf, Name, Not, Or
from weft.spec.conditions import Scalar as Constant
from weft.spec.type_meaning import finite_values
from weft.spec.types import OptionalOf, Scalar, TypeExpr, UnionOf, print_type
from weft.spec.variables import (
    ComputedSource,
    DerivedSource,
    EnvironmentSource,
    Source,
    StaticSource,
    Variable,
)

#: A variable that is compared with more constants has too many values to try.
MOST_CONSTANTS: Final = 64


@dataclass
class Questions:
    """How conditions use one variable.

    `ordered`: it is compared by `<` and the like; `opaque`: sample values cannot represent it.
    """

    constants: list[Constant] = field(default_factory=list[Constant])
    ordered: bool = False
    opaque: bool = False


def questions_in(conditions: Iterable[Condition]) -> dict[str, Questions]:
    found: dict[str, Questions] = {}
    waiting = list(conditions)
    while waiting:
        match waiting.pop():
            case Name(name):
                # A variable alone is true unless it is empty or zero.
                found.setdefault(name, Questions()).constants.extend(("", 0))
            case And(operands) | Or(operands):
                waiting.extend(operands)
            case Not(operand):
                waiting.append(operand)
            case comparison:
                _note(comparison, found)
    return found


def _note(comparison: Compare, found: dict[str, Questions]) -> None:
    op, left, right = comparison.op, comparison.left, comparison.right
    for side, other in ((left, right), (right, left)):
        if not isinstance(side, Name):
            continue
        questions = found.setdefault(side.name, Questions())
        if isinstance(other, ListOf):
            questions.constants.extend(item.value for item in other.items)
        elif isinstance(other, Name) or op in ("in", "not in"):
            questions.opaque = True
        else:
            questions.constants.append(other.value)
            questions.ordered = questions.ordered or op not in ("==", "!=")


def samples(type_: TypeExpr, questions: Questions) -> tuple[Json, ...] | None:
    """Return sample values of the type: every other value gives the same answers as one of them.

    None means that there are too many, or that the values are unknown.
    """
    listed = finite_values(type_)
    if listed is not None:
        return listed
    if questions.opaque or len(set(questions.constants)) > MOST_CONSTANTS:
        return None
    match type_:
        case OptionalOf(of):
            return _all([(None,), samples(of, questions)])
        case UnionOf(members):
            return _all([samples(member, questions) for member in members])
        case Scalar("str"):
            return None if questions.ordered else _texts(questions.constants)
        case Scalar("int" | "float" as kind):
            return _numbers(questions.constants, whole=kind == "int")
        case _:
            return None


def _all(parts: Sequence[tuple[Json, ...] | None]) -> tuple[Json, ...] | None:
    known = [part for part in parts if part is not None]
    return tuple(value for part in known for value in part) if len(known) == len(parts) else None


def _texts(constants: Sequence[Constant]) -> tuple[Json, ...]:
    asked = dict.fromkeys(value for value in constants if isinstance(value, str))
    other = "another text"
    while other in asked:
        other += "."
    return (*asked, other)


def _numbers(constants: Iterable[Constant], *, whole: bool) -> tuple[Json, ...] | None:
    """Return the constants and a number from every interval between them."""
    numbers = (c for c in constants if isinstance(c, int | float) and not isinstance(c, bool))
    cuts = sorted(set(numbers))
    if not cuts:
        return (0,)
    if whole:
        return tuple(sorted({math.floor(cut) + n for cut in cuts for n in (-1, 0, 1)}))
    between = ((low + high) / 2 for low, high in pairwise(cuts))
    found = sorted({cuts[0] - 1, *cuts, *between, cuts[-1] + 1})
    # Between two adjacent floats there is no other float to try.
    return tuple(found) if len(found) == 2 * len(cuts) + 1 else None


@dataclass(frozen=True, slots=True)
class Domain:
    """The values of one variable; the other fields hold indexes of values.

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
        """Return for each value the possible new values when the settings happen at once.

        As in a run, each setting is checked against the old value, and refused ones are skipped;
        of the others, the last one counts.
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
        """Return the possible values after one of several settings, given those before it."""
        targets = [self._targets(old, one) for one in rivals]
        wanted = {new for found in targets for new in found}
        allowed = self.allowed
        news = {new for new in wanted if new == old or allowed is None or (old, new) in allowed}
        silent = len(news) < len(wanted) or not all(targets) or any(rival.keeps for rival in rivals)
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
    name: str,
    variable: Variable,
    happenings: Iterable[Happening],
    asked: Questions,
    *,
    given: bool = False,
) -> Domain | str:
    """Return the values of a variable, or a text that says why they cannot be listed.

    `given` means that it may begin with a field of what starts the run.
    """
    source = variable.source
    if variable.secret:
        return "it is secret"
    if isinstance(source, ComputedSource):
        return "a function computes it"
    wanted = [setting for one in happenings for setting in one.settings if setting.variable == name]
    loose = [setting for setting in wanted if setting.value is UNKNOWN]
    transitions = source.transitions if isinstance(source, DerivedSource) else ()
    begin, anything = _begin(source)
    anything = anything or given
    free: tuple[Json, ...] | None = ()
    if anything or loose:
        # With transitions, only their targets can be set.
        free = tuple(transition.to for transition in transitions) or samples(variable.type, asked)
    if free is None:
        return f"its type {print_type(variable.type)} has too many values"
    begin = (*free, *begin) if anything else begin
    # Code can remove the value of a variable, unless transitions forbid it.
    if not transitions and any(setting.rank == LAST for setting in loose):
        free = (*free, None)
    fixed = (setting.value for setting in wanted if setting.value is not UNKNOWN)
    keys = {key_of(value): value for value in (*begin, *free, *fixed)}
    index = {key: number for number, key in enumerate(keys)}
    pairs = (
        (index.get(key_of(transition.from_)), index.get(key_of(transition.to)))
        for transition in transitions
    )
    known = ((old, new) for old, new in pairs if old is not None and new is not None)
    return Domain(
        values=tuple(keys.values()),
        numbers=index,
        initial=tuple(sorted({index[key_of(value)] for value in begin})),
        free=tuple(sorted({index[key_of(value)] for value in free})),
        allowed=frozenset(known) if transitions else None,
    )


def _begin(source: Source) -> tuple[tuple[Json, ...], bool]:
    """Return the initial values of a variable, and whether it may start with any other value."""
    match source:
        case StaticSource(value=value) | DerivedSource(default=value):
            return (value,), False
        case EnvironmentSource(required=False, default=value):
            # In production the environment is not read, and the default is not used.
            return (value, None), True
        case EnvironmentSource() | ComputedSource():
            return (None,), True
        case _:
            # The default is used when the source has no value.
            return (source.default,), True
