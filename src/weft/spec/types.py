"""The small type language: what a variable or an output field may hold, as one line of text.

```
str int float bool any                 scalars; `any` is any JSON value
list[T]  dict[T]                       `list` and `dict` alone hold anything; keys are always text
optional[T]  or  T | null              a value or nothing
literal["a", 3, true]                  one of the listed values
A | B                                  either
Invoice                                a model, by its PascalCase name
```

Every type has one normal form, and `print_type` writes it: unions are flat, `optional` is
outside the union and never doubled, and nothing is listed twice.
"""

import json
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.ids import AGENT_NAME

MAX_LENGTH: Final = 10_000
MAX_DEPTH: Final = 32
MAX_DIGITS: Final = 100

ScalarName: TypeAlias = Literal["str", "int", "float", "bool", "any"]
LiteralValue: TypeAlias = str | int | bool


@dataclass(frozen=True, slots=True)
class Scalar:
    """Text, a number, a truth value, or any JSON value."""

    name: ScalarName


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list whose items all have one type."""

    of: "TypeExpr"


@dataclass(frozen=True, slots=True)
class DictOf:
    """An object with any text keys, whose values all have one type."""

    of: "TypeExpr"


@dataclass(frozen=True, slots=True)
class OptionalOf:
    """A value of the inner type, or null."""

    of: "TypeExpr"


@dataclass(frozen=True, slots=True, eq=False)
class LiteralOf:
    """One of the listed values."""

    values: tuple[LiteralValue, ...]

    # Python holds 1 == True; as types, literal[1] and literal[true] are different.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiteralOf) and print_type(self) == print_type(other)

    def __hash__(self) -> int:
        return hash(self.values)


@dataclass(frozen=True, slots=True)
class UnionOf:
    """A value of any one of the members."""

    members: tuple["TypeExpr", ...]


@dataclass(frozen=True, slots=True)
class Ref:
    """An object as the named model describes it."""

    name: str


TypeExpr: TypeAlias = Scalar | ListOf | DictOf | OptionalOf | LiteralOf | UnionOf | Ref

ANY: Final = Scalar("any")

#: Every spelling of a word of the language, older ones included, with the word it is written as.
SPELLINGS: Final = {
    **{word: word for word in ("str", "int", "float", "bool", "any", "null")},
    **{word: word for word in ("list", "dict", "optional", "literal", "union")},
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "document": "dict",
    "none": "null",
}
#: Spellings that, written with a capital, are more likely the name of a model.
_LIKELY_MODELS: Final = frozenset({"number", "object", "document"})


def word_of(name: str) -> str | None:
    """Return the type keyword that a name alone means, or None if it is not a keyword.

    >>> word_of("String"), word_of("object"), word_of("Object")
    ('str', 'dict', None)
    """
    lower = name.lower()
    return None if name != lower and lower in _LIKELY_MODELS else SPELLINGS.get(lower)


def is_model_name(name: str) -> bool:
    """Return whether a type can refer to a model by this name: PascalCase and not a keyword.

    >>> is_model_name("Invoice"), is_model_name("String")
    (True, False)
    """
    return AGENT_NAME.match(name) is not None and word_of(name) is None


def print_type(type_: TypeExpr) -> str:
    """Write a type in its normal form, which `parse_type` reads back to an equal type."""
    match type_:
        case Scalar(name) | Ref(name):
            return name
        case ListOf(of):
            return "list" if of == ANY else f"list[{print_type(of)}]"
        case DictOf(of):
            return "dict" if of == ANY else f"dict[{print_type(of)}]"
        case OptionalOf(of):
            return f"optional[{print_type(of)}]"
        case LiteralOf(values):
            return f"literal[{', '.join(json.dumps(v, ensure_ascii=False) for v in values)}]"
        case _:
            return " | ".join(print_type(member) for member in type_.members)
