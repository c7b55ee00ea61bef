"""The normal form of types: the parts a reader finds in, the one type they stand for out."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.errors import ExpressionError
from weft.spec.types import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_LENGTH,
    DictOf,
    ListOf,
    LiteralOf,
    LiteralValue,
    OptionalOf,
    TypeExpr,
    UnionOf,
    print_type,
)

_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Null:
    """`null` inside a union, before the union becomes optional."""


#: What may stand in a union.
Member: TypeAlias = TypeExpr | Null


def solid(part: Member, offset: int) -> TypeExpr:
    """Refuse `null` where a type must stand."""
    if isinstance(part, Null):
        hint = "write optional[T], or T | null"
        raise ExpressionError("null is not a type by itself", offset=offset, hint=hint)
    return part


def sized(type_: TypeExpr) -> TypeExpr:
    """Refuse a type whose normal form is too large to be read back."""
    if _depth(type_) > MAX_DEPTH:
        raise too_deep()
    if len(print_type(type_)) > MAX_LENGTH:
        raise too_long()
    return type_


def too_deep(offset: int = 0) -> ExpressionError:
    """Return the refusal of a type that is nested too deeply."""
    return _too_large(f"nested more than {MAX_DEPTH} levels deep", offset)


def too_long() -> ExpressionError:
    """Return the refusal of a type that takes too much text."""
    return _too_large(f"longer than {MAX_LENGTH} characters", 0)


def shortened(text: str) -> str:
    """Cut text that is too long to be repeated in a message."""
    return text if len(text) <= 40 else text[:37] + "..."


def join(parts: Iterable[tuple[Member, int]]) -> Member:
    """Bring the members of a union to the normal form; a single member is that type itself."""
    members: dict[Member, None] = {}
    nullable = False
    for part, offset in parts:
        inner = part.of if isinstance(part, OptionalOf) else part
        nullable = nullable or inner is not part
        for member in inner.members if isinstance(inner, UnionOf) else (inner,):
            if member in members:
                raise _twice(_printed(member), "union", offset)
            members[member] = None
    types = tuple(member for member in members if not isinstance(member, Null))
    if not types:
        return Null()
    body = types[0] if len(types) == 1 else UnionOf(types)
    return OptionalOf(body) if nullable or len(types) < len(members) else body


def literal(values: Iterable[tuple[object, int]]) -> LiteralOf:
    """Build a literal from values that may still be of any kind."""
    kept: dict[str, LiteralValue] = {}
    for value, offset in values:
        checked = _literal_value(value, offset)
        key = json.dumps(checked)
        if key in kept:
            raise _twice(key, "literal", offset)
        kept[key] = checked
    return LiteralOf(tuple(kept.values()))


def hold(word: str, args: Sequence[tuple[Member, int]]) -> Member:
    """Build what `word[args]` stands for."""
    if word == "union":
        return join(args)
    if len(args) > 1:
        hint = f"for either of two types write {word}[A | B]"
        raise ExpressionError(f"{word} takes one type", offset=args[1][1], hint=hint)
    inner = solid(*args[0])
    if word == "list":
        return ListOf(inner)
    if word == "dict":
        return DictOf(inner)
    return inner if isinstance(inner, OptionalOf) else OptionalOf(inner)


def _depth(type_: TypeExpr) -> int:
    match type_:
        case ListOf(of) | DictOf(of) | OptionalOf(of):
            return 1 + _depth(of)
        case UnionOf(members):
            return max(_depth(member) for member in members)
        case _:
            return 0


def _too_large(fact: str, offset: int) -> ExpressionError:
    message, hint = f"the type is {fact}", "describe its inner parts as models"
    return ExpressionError(message, offset=offset, hint=hint)


def _printed(part: Member) -> str:
    return "null" if isinstance(part, Null) else print_type(part)


def _twice(text: str, where: str, offset: int) -> ExpressionError:
    message = f"{shortened(text)} stands twice in the {where}"
    return ExpressionError(message, offset=offset, hint="take one of them away")


def _literal_value(value: object, offset: int) -> LiteralValue:
    if not isinstance(value, str | int):
        hint = "write optional[literal[...]] to allow null" if value is None else None
        message = "a literal lists only text, whole numbers, true and false"
        raise ExpressionError(message, offset=offset, hint=hint)
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        message = f"a number in a literal has at most {MAX_DIGITS} digits"
        raise ExpressionError(message, offset=offset, hint="write it as text, in quotes")
    if isinstance(value, str) and _HALF_CHARACTER.search(value):
        message = "the text holds half of a character, which no file can store"
        raise ExpressionError(message, offset=offset, hint="take out \\ud800 to \\udfff")
    return value
