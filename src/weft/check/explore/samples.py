"""A few values that stand for all values of a type, as far as certain conditions can tell.

`score >= 8` cannot tell 9 from 10: 7, 8 and 9 are all that need be tried of every whole number.
That makes texts and numbers as good as listed values, if they are only compared with constants.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from weft.findings import Json
from weft.spec.conditions import And, Compare, Condition, ListOf, Name, Not, Or
from weft.spec.conditions import Scalar as Constant
from weft.spec.type_meaning import finite_values
from weft.spec.types import OptionalOf, Scalar, TypeExpr, UnionOf

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
    """Take numbers from every stretch that the constants cut the line into."""
    numbers = (c for c in constants if isinstance(c, int | float) and not isinstance(c, bool))
    cuts = sorted(set(numbers))
    if not cuts:
        return (0,)
    if whole:
        return tuple(sorted({math.floor(cut) + n for cut in cuts for n in (-1, 0, 1)}))
    between = ((low + high) / 2 for low, high in pairwise(cuts))
    found = sorted({cuts[0] - 1, *cuts, *between, cuts[-1] + 1})
    # Between two numbers a computer cannot tell apart there may be others it cannot write.
    return tuple(found) if len(found) == 2 * len(cuts) + 1 else None
