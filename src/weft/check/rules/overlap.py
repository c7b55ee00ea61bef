"""Whether two conditions can hold at the same time.

A condition over literals cuts the values of a variable into a few ranges within which its answer
does not change. One value of each range stands for all of it, so that trying these values decides
the question for numbers and texts as well as for small sets.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from weft.check.explore.samples import questions_in, samples
from weft.engine.conditions import UNKNOWN, decide
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.conditions import (
    And,
    Condition,
    names,
)
from weft.spec.type_meaning import mismatch
from weft.spec.types import Scalar as ScalarType
from weft.spec.variables import ComputedSource, StaticSource, Variable

#: The values to try for each variable.
Samples: TypeAlias = dict[str, tuple[Json, ...]]

#: Combinations tried for two conditions.
_MOST_TRIES: Final = 4096
_TEXT: Final = ScalarType("str")


def domain(left: Condition, right: Condition, variables: Mapping[str, Variable]) -> Samples:
    """Choose the values to try; a variable of which too little is known has one unknown value."""
    both = And((left, right))
    return {name: _samples(name, variables.get(name), both) for name in names(both)}


def hold_together(left: Condition, right: Condition, values: Samples) -> bool:
    """Tell whether some combination may make both conditions hold; too many to try count as one."""
    both = _find(values, lambda them: _may_hold(left, them) and _may_hold(right, them))
    return both is not False


def holds_always(condition: Condition, values: Samples) -> bool:
    """Tell whether a condition holds whatever the values are; too many to try count as no."""
    return _find(values, lambda them: not _holds(condition, them)) is False


def _find(values: Samples, possible: Callable[[Mapping[str, object]], bool]) -> bool | None:
    """Tell whether a combination of values passes a test; None if there are too many to try.

    One variable after the other gets a value. What fails already while the others are unknown
    fails whatever they are, so that few combinations need to be tried.
    """
    order = tuple(values)
    waiting: list[tuple[Json, ...]] = [()]
    for _ in range(_MOST_TRIES):
        if not waiting:
            return False
        chosen = waiting.pop()
        if possible(dict.fromkeys(order, UNKNOWN) | dict(zip(order, chosen, strict=False))):
            if len(chosen) == len(order):
                return True
            waiting += [(*chosen, value) for value in values[order[len(chosen)]]]
    return None


def _holds(condition: Condition, valuation: Mapping[str, object]) -> bool:
    try:
        return decide(condition, valuation) is True
    except ExpressionError:
        return False


def _may_hold(condition: Condition, valuation: Mapping[str, object]) -> bool:
    try:
        return decide(condition, valuation) is not False
    except ExpressionError:
        # Values that cannot be compared: no answer, hence no yes. But the part that has no answer
        # may be one that a run does not get to, if something that is not known here decides first.
        return UNKNOWN in valuation.values()


def _samples(name: str, variable: Variable | None, condition: Condition) -> tuple[Json, ...]:
    found = samples(variable.type if variable else _TEXT, questions_in([condition])[name])
    if found is None:
        return (UNKNOWN,)
    return (None, *found) if variable and _may_be_empty(variable) else found


def _may_be_empty(variable: Variable) -> bool:
    source = variable.source
    if mismatch(variable.type, None, {}) is None:
        return True
    return not isinstance(source, StaticSource | ComputedSource) and source.default is None
