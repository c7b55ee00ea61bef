"""Whether a condition holds, given the values of variables.

`decide` also answers for values that are not known, which the checker's exploration needs.
`evaluate` is `decide` where everything is known, so the explorer and a run cannot disagree.
"""

import operator
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias, cast

from weft.errors import ExpressionError
from weft.ids import nearest
from weft.spec.conditions import Compare, Condition, ListOf, Name, Not, Or, Value, print_condition


class Unknown(Enum):
    """The type of `UNKNOWN`."""

    UNKNOWN = "unknown"


#: Bound to a name whose value may be anything.
UNKNOWN: Final = Unknown.UNKNOWN

Values: TypeAlias = Mapping[str, object]

_ORDERS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

#: Types compared in one step; asking for them first keeps `same` fast.
_PLAIN: Final = frozenset({str, int, float, type(None)})


def evaluate(condition: Condition, values: Values) -> bool:
    """Return whether a condition holds; raise ExpressionError where it has no answer."""
    answer = decide(condition, values)
    if answer is None:
        raise ExpressionError(
            f"'{print_condition(condition)}' depends on a value that is not known",
            hint="give every variable of the condition a value before the condition is evaluated",
        )
    return answer


def decide(condition: Condition, values: Values) -> bool | None:
    """Return whether a condition holds, or None if that depends on names bound to `UNKNOWN`.

    Raises ExpressionError for a name without a value and for known values that cannot be compared,
    also behind an operand that is not known: a run may get there.
    """
    if isinstance(condition, Compare):
        return _compare(condition, values)
    if isinstance(condition, Name):
        value = _operand(condition, values)
        return None if value is UNKNOWN else bool(value)
    if isinstance(condition, Not):
        answer = decide(condition.operand, values)
        return None if answer is None else not answer
    return _join(condition.operands, values, decisive=isinstance(condition, Or))


def _join(operands: tuple[Condition, ...], values: Values, *, decisive: bool) -> bool | None:
    """Stop at the first operand that decides: a true one under `or`, a false one under `and`."""
    answer: bool | None = not decisive
    for operand in operands:
        result = decide(operand, values)
        if result is decisive:
            return decisive
        if result is None:
            answer = None
    return answer


def _compare(condition: Compare, values: Values) -> bool | None:
    left = _operand(condition.left, values)
    right = _operand(condition.right, values)
    if left is UNKNOWN or right is UNKNOWN:
        return None
    match condition.op:
        case "==":
            return same(left, right)
        case "!=":
            return not same(left, right)
        case "in":
            return _contains(condition, left, right)
        case "not in":
            return not _contains(condition, left, right)
        case _:
            return _ordered(condition, left, right)


def _operand(operand: Name | Value | ListOf, values: Values) -> object:
    if isinstance(operand, Value):
        return operand.value
    if isinstance(operand, ListOf):
        return tuple(item.value for item in operand.items)
    try:
        return values[operand.name]
    except KeyError:
        return value_at(values, operand.name)


def value_at(values: Values, path: str) -> object:
    """Return a variable or a part of it; raise ExpressionError if there is none.

    A part of null is null; a part of an unknown value is unknown.
    """
    name, *parts = path.split(".")
    if name not in values:
        raise _missing(name, values)
    found = values[name]
    for part in parts:
        if found is None or found is UNKNOWN:
            return found
        if not isinstance(found, Mapping) or part not in found:
            raise ExpressionError(f"'{path}' is not there: there is no '{part}' in it")
        found = cast("Values", found)[part]
    return found


def _missing(name: str, values: Values) -> ExpressionError:
    close = nearest(name, values)
    hint = f"did you mean '{close}'?" if close else "declare the variable, or correct the name"
    return ExpressionError(f"the variable '{name}' has no value", hint=hint)


def same(left: object, right: object) -> bool:
    """Compare two values as JSON does: by value, and true and false are not numbers."""
    # A stack instead of recursion: values come from outside and may be nested deeply.
    pairs = [(left, right)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, bool) or isinstance(b, bool):
            equal = a is b
        elif type(a) in _PLAIN:
            equal = a == b
        elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
            items_a, items_b = cast("list[object]", a), cast("list[object]", b)
            equal = len(items_a) == len(items_b)
            pairs.extend(zip(items_a, items_b, strict=False))
        elif isinstance(a, Mapping) and isinstance(b, Mapping):
            fields_a, fields_b = cast("Values", a), cast("Values", b)
            equal = fields_a.keys() == fields_b.keys()
            pairs.extend((fields_a[key], fields_b[key]) for key in fields_a if equal)
        else:
            equal = a == b
        if not equal:
            return False
    return True


def _ordered(condition: Compare, left: object, right: object) -> bool:
    if left is None or right is None:
        return False
    kind = _kind(left)
    if kind != _kind(right) or kind not in ("a number", "a text"):
        raise _mismatch(condition, left, right, "compare numbers with numbers, texts with texts")
    return _ORDERS[condition.op](left, right)


def _contains(condition: Compare, left: object, right: object) -> bool:
    if right is None:
        return False
    if isinstance(right, list | tuple):
        return any(same(left, item) for item in cast("list[object]", right))
    if isinstance(left, str) and isinstance(right, str | Mapping):
        return left in right
    raise _mismatch(
        condition, left, right, "look for anything in a list, and for a text in a text or an object"
    )


def _mismatch(condition: Compare, left: object, right: object, hint: str) -> ExpressionError:
    # Kinds, not values: messages are logged, and values may be confidential.
    return ExpressionError(
        f"'{print_condition(condition)}' cannot be answered for {_kind(left)} and {_kind(right)}",
        hint=hint,
    )


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
