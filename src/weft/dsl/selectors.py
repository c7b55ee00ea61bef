"""Selectors and conditions in code: called once, with an object that records the fields."""

from collections.abc import Callable
from enum import Enum
from typing import Any, Final, NoReturn, TypeAlias, TypeVar, cast

from weft.dsl.parts import refusal
from weft.errors import CheckFailed, ExpressionError
from weft.spec.conditions import (
    And,
    Compare,
    Condition,
    ListOf,
    Name,
    Not,
    Operator,
    Or,
    Value,
    print_condition,
)

S = TypeVar("S")

#: A field of the state, or a part of one: `lambda s: s.document.summary`, or its dotted name.
Selector: TypeAlias = Callable[[S], object] | str

#: A condition on the state: text, or a function that compares fields.
Test: TypeAlias = Callable[[S], object] | str

_SPELLING: Final = "write & | ~ with parentheses: (s.total > 10) & ~s.paid; and s.kind.in_([...])"
_FIELDS: Final = "ask for a field: lambda s: s.document.summary"
_LARGER: Final = "let a step work it out and set a field of the state"


class _Recorder:
    """Refuses operations that need a value now: truth, text, length and the like."""

    __slots__ = ()

    def __bool__(self) -> bool:
        fact = "and, or, not, in, if and chained comparisons are decided by Python, not by the flow"
        raise refusal("FLOW033", fact, _SPELLING)

    def __str__(self) -> str:
        raise refusal("FLOW033", "a field has no text while the flow is built", _LARGER)

    def __format__(self, _spec: str) -> str:
        return str(self)

    def __len__(self) -> int:
        raise refusal("FLOW033", "a field has no length while the flow is built", _LARGER)

    def __iter__(self) -> NoReturn:
        raise refusal("FLOW033", "a field has no items while the flow is built", _LARGER)

    def __contains__(self, _item: object) -> bool:
        return bool(self)

    def __and__(self, other: object) -> "Recording":
        return Recording(_join(And, self, other))

    def __or__(self, other: object) -> "Recording":
        return Recording(_join(Or, self, other))

    def __rand__(self, other: object) -> "Recording":
        return Recording(_join(And, other, self))

    def __ror__(self, other: object) -> "Recording":
        return Recording(_join(Or, other, self))

    def __invert__(self) -> "Recording":
        return Recording(Not(_as_condition(self)))


class Recording(_Recorder):
    """A recorded condition on fields."""

    __slots__ = ("condition",)

    def __init__(self, condition: Condition) -> None:
        self.condition = condition


class RecordedField(_Recorder):
    """A recorded reference to the state or a field of it; attributes are inner fields."""

    __slots__ = ("_path",)
    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> "RecordedField":
        if name.startswith("_"):
            raise refusal("FLOW033", f"{name} is not a field of the state", _FIELDS)
        return RecordedField(f"{self._path}.{name}" if self._path else name)

    def __getitem__(self, key: object) -> "RecordedField":
        if isinstance(key, str) and key.isidentifier():
            return getattr(self, key)
        raise refusal("FLOW033", f"the item {key!r} has no name to ask for", _LARGER)

    def __call__(self, *_given: object, **_named: object) -> NoReturn:
        """Refuse a call: a method has no result before the flow runs."""
        fact = f"{self._path}() is called, and there is no value yet"
        raise refusal("FLOW033", fact, _LARGER)

    def __eq__(self, other: object) -> "Recording":  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compared("==", other)

    def __ne__(self, other: object) -> "Recording":  # type: ignore[override] # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compared("!=", other)

    def __lt__(self, other: object) -> "Recording":
        return self._compared("<", other)

    def __le__(self, other: object) -> "Recording":
        return self._compared("<=", other)

    def __gt__(self, other: object) -> "Recording":
        return self._compared(">", other)

    def __ge__(self, other: object) -> "Recording":
        return self._compared(">=", other)

    def in_(self, values: object) -> "Recording":
        """Return the condition that the field has one of several values, or is in another field."""
        return Recording(Compare("in", _operand(self), _values(values)))

    def _compared(self, op: Operator, other: object) -> "Recording":
        return Recording(Compare(op, _operand(self), _operand(other)))

    @property
    def _dotted(self) -> str:
        if not self._path:
            raise refusal("FLOW033", "the whole state is not a field", _FIELDS)
        return self._path


def is_in(value: object, values: object) -> bool:
    """Return `field.in_(values)`; unlike the method, type checkers accept it."""
    return cast("bool", Recording(Compare("in", _operand(value), _values(values))))


def not_(test: object) -> bool:
    """Return `~condition`; unlike the operator, type checkers accept it."""
    return cast("bool", Recording(Not(_as_condition(test))))


def _operand(operand: object) -> Name | Value:
    if isinstance(operand, RecordedField):
        return Name(operand._dotted)  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - its own module
    value = operand.value if isinstance(operand, Enum) else operand
    if value is None or isinstance(value, str | int | float):
        return Value(value)
    fact = f"{operand!r} is nothing that a condition can compare with"
    raise refusal("FLOW033", fact, "compare with text, a number, True, False, None or a field")


def _values(values: object) -> Name | Value | ListOf:
    if isinstance(values, set | frozenset):
        values = sorted(cast("set[Any]", values), key=repr)
    if not isinstance(values, list | tuple):
        return _operand(values)
    items = [_operand(value) for value in cast("list[object]", values)]
    if any(isinstance(item, Name) for item in items):
        raise refusal("FLOW033", "a list of fields cannot be searched", "join comparisons with |")
    return ListOf(tuple(item for item in items if isinstance(item, Value)))


def _as_condition(value: object) -> Condition:
    """Return a recorded value as a condition; a field alone tests whether its value is true."""
    if isinstance(value, Recording):
        return value.condition
    if isinstance(value, RecordedField):
        return Name(value._dotted)  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - its own module
    fact = f"{value!r} is an operand of & or |, which joins conditions"
    raise refusal("FLOW033", fact, "put parentheses around each comparison: (s.a > 3) & (s.b < 2)")


def _join(kind: type[And] | type[Or], *sides: object) -> Condition:
    """Join conditions flat, as the parser does: a & b & c is one list of three."""
    operands: list[Condition] = []
    for side in map(_as_condition, sides):
        operands += side.operands if isinstance(side, kind) else (side,)
    return kind(tuple(operands))


def path_of(selector: Selector[Any]) -> str:
    """Return the dotted name of the field that a selector reads."""
    if isinstance(selector, str):
        return selector
    found = _call(selector)
    if not isinstance(found, RecordedField):
        raise refusal("FLOW033", f"the selector gives {_describe(found)}", _FIELDS, of=selector)
    return found._dotted  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - its own module


def condition_of(test: Test[Any]) -> str:
    """Return a condition as text."""
    if isinstance(test, str):
        return test
    found = _call(test)
    if not isinstance(found, _Recorder):
        hint = "compare fields: lambda s: s.total > 10"
        raise refusal("FLOW033", f"the condition gives {_describe(found)}", hint, of=test)
    return print_condition(_as_condition(found))


def _describe(found: object) -> str:
    return "a condition" if isinstance(found, _Recorder) else f"{found!r}, which asks for no field"


def _call(function: object) -> object:
    if not callable(function):
        raise refusal("FLOW034", f"{function!r} is not a selector", _FIELDS)
    try:
        return function(RecordedField(""))
    except CheckFailed as error:
        (found,) = error.findings
        raise refusal(found.code, found.message, *found.hint, of=function) from None
    except (ExpressionError, TypeError) as error:
        raise refusal("FLOW033", f"it cannot be recorded: {error}", _LARGER, of=function) from error
