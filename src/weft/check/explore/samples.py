"""A few values that stand for all values of a type, as far as certain conditions can tell.

`score >= 8` cannot tell 9 from 10: 7, 8 and 9 are all that need be tried of every whole number.
That makes texts and numbers as good as listed values, if they are only compared with constants.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.findings import Json
from weft.spec.conditions import And, Compare, Condition, ListOf, Name, Not, Or
from weft.spec.conditions import Scalar as Constant
from weft.spec.type_meaning import finite_values
from weft.spec.types import LiteralOf, OptionalOf, Scalar, TypeExpr, UnionOf

#: A variable that is compared with more constants has too many values to try.
MOST_CONSTANTS: Final = 64


@dataclass
class Questions:
    """What conditions ask about one variable.

    `ordered` tells of `<` and the like, `opaque` of what no few values can stand in for.
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
                # Alone, a variable asks whether it is empty or zero.
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
    """Return values of the type of which one answers every question like any other value would.

    None means that there are too many, or no telling.
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
        case LiteralOf(values):
            return None if questions.ordered else _listed(values, questions.constants)
        case Scalar("str"):
            return None if questions.ordered else _texts(questions.constants)
        case Scalar("int" | "float" as kind):
            return _numbers(questions.constants, whole=kind == "int")
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


def _numbers(constants: Iterable[Constant], *, whole: bool) -> tuple[Json, ...] | None:
    """Take one number from every stretch that the constants cut the line into."""
    numbers = (c for c in constants if isinstance(c, int | float) and not isinstance(c, bool))
    cuts = sorted(set(numbers))
    found: dict[tuple[bool, ...], float] = {}
    for number in _near(cuts, whole=whole):
        sides = tuple(side for cut in cuts for side in (number < cut, number == cut))
        found.setdefault(sides, number)
    # Between two numbers a computer cannot tell apart there may be others it cannot write.
    complete = whole or len(found) == 2 * len(cuts) + 1
    return tuple(found.values()) if complete else None


def _near(cuts: Sequence[float], *, whole: bool) -> Iterator[float]:
    if not cuts:
        yield 0
    for index, cut in enumerate(cuts):
        base = math.floor(cut) if whole else cut
        yield from (base - 1, base, base + 1)
        if index and not whole:
            yield (cuts[index - 1] + cut) / 2
