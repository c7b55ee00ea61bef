"""A few values that stand for all values of a type, as far as certain conditions can tell.

`score >= 8` cannot tell 9 from 10: 7, 8 and 9 are all that need be tried of every whole number.
That makes texts and numbers as good as listed values, if they are only compared with constants.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from weft.findings import Json
from weft.spec.conditions import And, Compare, Condition, ListOf, Name, Not, Or
from weft.spec.conditions import Scalar as Constant
from weft.spec.type_meaning import finite_values
from weft.spec.types import LiteralOf, OptionalOf, Scalar, TypeExpr, UnionOf


@dataclass
class Tests:
    """How conditions look at one variable.

    `ordered` tells of `<` and the like, `opaque` of tests for which no few values can stand in.
    """

    constants: list[Constant] = field(default_factory=list[Constant])
    ordered: bool = False
    opaque: bool = False


def tests_in(conditions: Iterable[Condition]) -> dict[str, Tests]:
    """Collect how conditions look at each variable they mention."""
    found: dict[str, Tests] = {}
    waiting = list(conditions)
    while waiting:
        match waiting.pop():
            case Name(name):
                # Alone, a variable asks whether it is empty or zero.
                found.setdefault(name, Tests()).constants.extend(("", 0))
            case And(operands) | Or(operands):
                waiting.extend(operands)
            case Not(operand):
                waiting.append(operand)
            case Compare() as comparison:
                _note(comparison, found)
    return found


def _note(comparison: Compare, found: dict[str, Tests]) -> None:
    op, left, right = comparison.op, comparison.left, comparison.right
    for side, other in ((left, right), (right, left)):
        if not isinstance(side, Name):
            continue
        tests = found.setdefault(side.name, Tests())
        if isinstance(other, ListOf):
            tests.constants.extend(item.value for item in other.items)
        elif isinstance(other, Name) or op in ("in", "not in"):
            tests.opaque = True
        else:
            tests.constants.append(other.value)
            tests.ordered = tests.ordered or op not in ("==", "!=")


def samples(type_: TypeExpr, tests: Tests) -> tuple[Json, ...] | None:
    """Return values of the type of which one answers every test like any other value would.

    None means that there are too many, or no telling.
    """
    listed = finite_values(type_)
    if listed is not None:
        return listed
    if tests.opaque:
        return None
    match type_:
        case OptionalOf(of):
            return _all([(None,), samples(of, tests)])
        case UnionOf(members):
            return _all([samples(member, tests) for member in members])
        case LiteralOf(values):
            return None if tests.ordered else _listed(values, tests.constants)
        case Scalar("str"):
            return None if tests.ordered else _texts(tests.constants)
        case Scalar("int" | "float" as kind):
            numbers = {c for c in tests.constants if isinstance(c, int | float)}
            return _numbers(sorted(numbers), whole=kind == "int")
        case _:
            return None


def _all(parts: Sequence[tuple[Json, ...] | None]) -> tuple[Json, ...] | None:
    known = [part for part in parts if part is not None]
    return tuple(value for part in known for value in part) if len(known) == len(parts) else None


def _listed(values: Sequence[Json], constants: Sequence[Constant]) -> tuple[Json, ...]:
    """Keep the listed values that are asked for, and one of the others for all others."""
    asked = [value for value in values if value in constants]
    others = [value for value in values if value not in constants]
    return (*asked, *others[:1])


def _texts(constants: Sequence[Constant]) -> tuple[Json, ...]:
    asked = dict.fromkeys(value for value in constants if isinstance(value, str))
    other = "another text"
    while other in asked:
        other += "."
    return (*asked, other)


def _numbers(constants: Sequence[float], *, whole: bool) -> tuple[Json, ...] | None:
    """Take one number from every stretch that the constants cut the line into."""
    found: dict[tuple[bool, ...], float] = {}
    for number in _near(constants, whole=whole):
        sides = tuple(side for c in constants for side in (number < c, number == c))
        found.setdefault(sides, number)
    # Between two numbers a computer cannot tell apart there may be others it cannot write.
    complete = whole or len(found) == 2 * len(constants) + 1
    return tuple(found.values()) if complete else None


def _near(constants: Sequence[float], *, whole: bool) -> Iterator[float]:
    if not constants:
        yield 0
    for index, constant in enumerate(constants):
        base = math.floor(constant) if whole else constant
        yield from (base - 1, base, base + 1)
        if index and not whole:
            yield (constants[index - 1] + constant) / 2
