"""For which combinations of values a condition holds, as the engine's own `decide` answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.engine.conditions import UNKNOWN, decide
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.conditions import Condition, names

#: The values of a variable, each with the set of combinations in which it has that value.
Blocks: TypeAlias = tuple[tuple[Json, int], ...]

#: How often one condition is asked before the rest counts as open, and all of them together.
#: Conditions people write need a few dozen questions each, for one false part of an `and` settles
#: it whatever the others are.
MOST_QUESTIONS: Final = 2_000
ALL_QUESTIONS: Final = 200_000


@dataclass(frozen=True, slots=True)
class Truth:
    """The combinations for which a condition holds, does not hold, or is not known to do either."""

    yes: int
    no: int
    open: int


def truth(
    condition: Condition, variables: Mapping[str, Blocks], full: int, most: int = MOST_QUESTIONS
) -> Truth:
    """Ask the condition about every combination, all at once where a part of it decides."""
    found = {True: 0, False: 0, None: 0}
    questions = 0
    free = dict.fromkeys(names(condition), UNKNOWN)
    waiting: list[tuple[int, dict[str, Json]]] = [(full, {})]
    while waiting:
        bits, known = waiting.pop()
        questions += 1
        answer = _ask(condition, {**free, **known})
        undecided = [name for name in free if name not in known]
        if answer is not None or not undecided or questions > most:
            found[answer] |= bits
            continue
        name = undecided[0]
        for value, block in variables[name]:
            if bits & block:
                waiting.append((bits & block, {**known, name: value}))
    return Truth(found[True], found[False], found[None])


def _ask(condition: Condition, values: Mapping[str, Json]) -> bool | None:
    try:
        return decide(condition, values)
    except ExpressionError:
        # Values that cannot be compared: the rules about types speak of that.
        return None


def blocks(answer: Truth) -> Blocks:
    """Return the truth of a condition as the values of a variable that is computed by it."""
    parts = ((True, answer.yes), (False, answer.no), (UNKNOWN, answer.open))
    return tuple((value, bits) for value, bits in parts if bits)
