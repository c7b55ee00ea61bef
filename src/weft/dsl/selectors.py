"""Selectors and conditions in code: called once, with an object that notes what they ask for."""

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

#: A question to the state: text of the condition language, or comparisons of fields.
Test: TypeAlias = Callable[[S], object] | str

_SPELLING: Final = "write & | ~ with parentheses: (s.total > 10) & ~s.paid; and s.kind.in_([...])"
_FIELDS: Final = "ask for a field: lambda s: s.document.summary"
_LARGER: Final = "let a step work it out and set a field of the state"


class _Recorder:
    """What every recorded thing refuses: to be decided, written or counted now."""

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
        return Recording(_joined(And, self, other))

    def __or__(self, other: object) -> "Recording":
        return Recording(_joined(Or, self, other))

    def __rand__(self, other: object) -> "Recording":
        return Recording(_joined(And, other, self))

    def __ror__(self, other: object) -> "Recording":
        return Recording(_joined(Or, other, self))

    def __invert__(self) -> "Recording":
        return Recording(Not(_asked(self)))


class Recording(_Recorder):
    """A condition over fields, as it was written."""

    __slots__ = ("condition",)

    def __init__(self, condition: Condition) -> None:
        self.condition = condition


class RecordedField(_Recorder):
    """Stands for the state, or a part of it: every attribute is a field deeper inside."""

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
        """Refuse: what a method returns is not known before the flow runs."""
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
        """Ask whether the field has one of several values, or one that another field holds."""
        return Recording(Compare("in", _operand(self), _values(values)))

    def _compared(self, op: Operator, other: object) -> "Recording":
        return Recording(Compare(op, _operand(self), _operand(other)))

    @property
    def _dotted(self) -> str:
        if not self._path:
            raise refusal("FLOW033", "the whole state is not a field", _FIELDS)
        return self._path


def is_in(value: object, values: object) -> bool:
    """Ask in a condition whether a field has one of several values: `.in_()` for type checkers."""
    return cast("bool", Recording(Compare("in", _operand(value), _values(values))))


def not_(test: object) -> bool:
    """Ask in a condition for the opposite: `~` for type checkers."""
    return cast("bool", Recording(Not(_asked(test))))


def _operand(it: object) -> Name | Value:
    if isinstance(it, RecordedField):
        return Name(it._dotted)  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - its own module
    value = it.value if isinstance(it, Enum) else it
    if value is None or isinstance(value, str | int | float):
        return Value(value)
    fact = f"{it!r} is nothing that a condition can compare with"
    raise refusal("FLOW033", fact, "compare with text, a number, True, False, None or a field")


def _values(values: object) -> Name | Value | ListOf:
    if isinstance(values, set | frozenset):
        values = sorted(cast("set[Any]", values), key=repr)
    if not isinstance(values, list | tuple):
        return _operand(values)
    items = [_operand(it) for it in cast("list[object]", values)]
    if any(isinstance(it, Name) for it in items):
        raise refusal("FLOW033", "a list of fields cannot be searched", "join comparisons with |")
    return ListOf(tuple(it for it in items if isinstance(it, Value)))


def _asked(it: object) -> Condition:
    """Return something as a condition; a field alone asks whether its value counts as true."""
    if isinstance(it, Recording):
        return it.condition
    if isinstance(it, RecordedField):
        return Name(it._dotted)  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - its own module
    fact = f"{it!r} stands beside & or |, which joins conditions"
    raise refusal("FLOW033", fact, "put parentheses around each comparison: (s.a > 3) & (s.b < 2)")


def _joined(kind: type[And] | type[Or], *sides: object) -> Condition:
    """Join conditions as text does: a & b & c is one list of three."""
    operands: list[Condition] = []
    for side in map(_asked, sides):
        operands += side.operands if isinstance(side, kind) else (side,)
    return kind(tuple(operands))


def path_of(selector: Selector[Any]) -> str:
    """Return the dotted name of the field that a selector asks for."""
    if isinstance(selector, str):
        return selector
    found = _called(selector)
    if not isinstance(found, RecordedField):
        raise refusal("FLOW033", f"the selector gives {_shown(found)}", _FIELDS, of=selector)
    return found._dotted  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - its own module


def condition_of(test: Test[Any]) -> str:
    """Return a condition as text."""
    if isinstance(test, str):
        return test
    found = _called(test)
    if not isinstance(found, _Recorder):
        hint = "compare fields: lambda s: s.total > 10"
        raise refusal("FLOW033", f"the condition gives {_shown(found)}", hint, of=test)
    return print_condition(_asked(found))


def _shown(found: object) -> str:
    return "a condition" if isinstance(found, _Recorder) else f"{found!r}, which asks for no field"


def _called(function: object) -> object:
    if not callable(function):
        raise refusal("FLOW034", f"{function!r} is not a selector", _FIELDS)
    try:
        return function(RecordedField(""))
    except CheckFailed as error:
        (found,) = error.findings
        raise refusal(found.code, found.message, *found.hint, of=function) from None
    except (ExpressionError, TypeError) as error:
        raise refusal("FLOW033", f"it cannot be recorded: {error}", _LARGER, of=function) from error
