"""Conditions as data: the tree of a condition, its text, and the strict profile.

A tree holds no positions, so two texts that say the same compare equal. Every tree that can be
built can be written as text and read back (`weft.spec.condition_parser`), within the reader's
limits on length and depth: `parse_condition(print_condition(c)) == c`. What could not be written is
refused here, when the node is built. A group that the author wrote inside one of its own kind, such
as `(a and b) and c`, keeps its parentheses.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.errors import ExpressionError

Operator: TypeAlias = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
Scalar: TypeAlias = str | int | float | bool | None

#: Words with a value of their own.
CONSTANTS: Final[dict[str, bool | None]] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
}

#: Words with a meaning of their own, in any case. A variable of such a name is written `${name}`.
KEYWORDS: Final = frozenset({"and", "or", "not", "in", "is", "equals", "when", *CONSTANTS})

#: Longest whole number, in digits: far beyond any use, and cheap to read and print.
MAX_DIGITS: Final = 100

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*\Z")
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Name:
    """A variable; on its own it asks whether the variable's value counts as true.

    In flows it may be a part of one: `document.score`.
    """

    name: str

    def __post_init__(self) -> None:
        if _NAME.match(self.name) is None:
            raise ExpressionError(
                f"{self.name!a} cannot name a variable",
                hint="use the letters a to z, digits and underscores, not starting with a digit",
            )


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """A literal: text, number, true, false or null."""

    value: Scalar

    def __post_init__(self) -> None:
        value = self.value
        if isinstance(value, str):
            if _HALF_CHARACTER.search(value):
                raise ExpressionError(
                    "the text holds half of a character (a lone surrogate)",
                    hint="write the character itself",
                )
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise ExpressionError(
                    "the number is not finite", hint="use a number below 1.7e308 in size"
                )
        elif value is not None and abs(value) >= 10**MAX_DIGITS:
            raise ExpressionError(
                f"the number has more than {MAX_DIGITS} digits", hint="write it with an exponent"
            )

    # Python takes True, 1 and 1.0 for equal; in a condition they are different values.
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Value):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of literals, the right side of `in` and `not in`."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Compare:
    """One comparison of a name or value with another."""

    op: Operator
    left: Name | Value
    right: Name | Value | ListOf

    def __post_init__(self) -> None:
        if isinstance(self.right, ListOf) and self.op not in ("in", "not in"):
            raise ExpressionError(
                f"'{self.op}' cannot compare with a list", hint="use 'in' or 'not in'"
            )


@dataclass(frozen=True, slots=True)
class And:
    """True when every operand is."""

    operands: "tuple[Condition, ...]"

    def __post_init__(self) -> None:
        _require_two(self.operands, "and")


@dataclass(frozen=True, slots=True)
class Or:
    """True when at least one operand is."""

    operands: "tuple[Condition, ...]"

    def __post_init__(self) -> None:
        _require_two(self.operands, "or")


@dataclass(frozen=True, slots=True)
class Not:
    """True when the operand is not."""

    operand: "Condition"


Condition: TypeAlias = Name | Compare | And | Or | Not


def _require_two(operands: tuple[Condition, ...], word: str) -> None:
    if len(operands) < 2:
        raise ExpressionError(f"'{word}' needs at least two operands", hint="use the operand alone")


def names(condition: Condition) -> tuple[str, ...]:
    """Return the variables a condition reads, in order of first use, each once."""
    return tuple(dict.fromkeys(_names(condition)))


def _names(node: Condition | Value | ListOf) -> Iterator[str]:
    match node:
        case Name(name):
            yield name
        case Compare(_, left, right):
            yield from _names(left)
            yield from _names(right)
        case And(operands) | Or(operands):
            for operand in operands:
                yield from _names(operand)
        case Not(operand):
            yield from _names(operand)
        case _:
            return


def strict_violations(condition: Condition) -> tuple[str, ...]:
    """Say in words where a condition leaves the strict profile.

    The profile allows positive tests only (`x`, or `x == value` with a value other than false),
    joined by at most one `and`. An empty answer means that the condition fits.
    """
    found = list(_violations(condition))
    joins = _count_and(condition)
    if joins > 1:
        found.append(f"'and' is used {joins} times; the strict profile allows one 'and'")
    return tuple(found)


def _violations(condition: Condition) -> Iterator[str]:
    match condition:
        case Name():
            return
        case Compare():
            yield from _comparison_violations(condition)
        case And(operands):
            for operand in operands:
                yield from _violations(operand)
        case Or(operands):
            yield "'or' is used; write one rule for each alternative"
            for operand in operands:
                yield from _violations(operand)
        case _:
            yield "'not' is used; test for what must be true instead"
            yield from _violations(condition.operand)


def _comparison_violations(compare: Compare) -> Iterator[str]:
    match compare:
        case Compare("==", Name(name), Value(False)):
            yield f"'{name}' is tested for false; test for what must be true instead"
        case Compare("==", Name(), Value()):
            return
        case Compare("=="):
            yield "'==' does not compare a variable on its left with a value on its right"
        case _:
            yield f"'{compare.op}' is used; the strict profile compares with '==' only"


def _count_and(condition: Condition) -> int:
    match condition:
        case And(operands):
            return len(operands) - 1 + sum(map(_count_and, operands))
        case Or(operands):
            return sum(map(_count_and, operands))
        case Not(operand):
            return _count_and(operand)
        case _:
            return 0


def print_condition(condition: Condition) -> str:
    """Write a condition as text with the fewest parentheses that keep its tree."""
    match condition:
        case Name():
            return _print_operand(condition)
        case Compare(op, left, right):
            return f"{_print_operand(left)} {op} {_print_operand(right)}"
        case Not(operand):
            return f"not {_print_group(operand, (And, Or))}"
        case And(operands):
            return " and ".join(_print_group(operand, (And, Or)) for operand in operands)
        case _:
            return " or ".join(_print_group(operand, (Or,)) for operand in condition.operands)


def _print_group(condition: Condition, looser: tuple[type, ...]) -> str:
    text = print_condition(condition)
    return f"({text})" if isinstance(condition, looser) else text


def _print_operand(operand: Name | Value | ListOf) -> str:
    match operand:
        case Name(name):
            return f"${{{name}}}" if name.lower() in KEYWORDS else name
        case ListOf(items):
            return f"[{', '.join(map(_print_operand, items))}]"
        case Value(None):
            return "null"
        case Value(bool() as value):
            return "true" if value else "false"
        case Value(str() as value):
            return _quote(value)
        case _:
            return repr(operand.value)


def _quote(text: str) -> str:
    quote = "'" if '"' in text and "'" not in text else '"'
    escapes = {"\\": "\\\\", quote: f"\\{quote}", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return quote + "".join(escapes.get(char) or _visible(char) for char in text) + quote


def _visible(char: str) -> str:
    # An escape has four hexadecimal digits; the rare invisible characters beyond stay as they are.
    return char if char.isprintable() or char > "\uffff" else f"\\u{ord(char):04x}"
