"""The small type language: what a variable or an output field may hold, as one line of text.

```
str int float bool any                 scalars; `any` is any JSON value
list[T]  dict[T]                       `list` and `dict` alone hold anything; keys are always text
optional[T]  or  T | null              a value or nothing
literal["a", 3, true]                  one of the listed values
A | B                                  either
Invoice                                a model, by its PascalCase name
```

Every type has one normal form, and `print_type` writes it: unions are flat, `optional` stands
outside the union it belongs to and is never doubled, and nothing is listed twice.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, Literal, TypeAlias, TypeVar, cast

from pydantic import GetPydanticSchema, WithJsonSchema
from pydantic_core import PydanticCustomError, core_schema

from weft.errors import ExpressionError
from weft.ids import AGENT_NAME, nearest

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


@dataclass(frozen=True, slots=True)
class _Null:
    """`null` inside a union, before the union becomes optional."""


_Part: TypeAlias = TypeExpr | _Null
_Item = TypeVar("_Item")

#: What the words of the language and of older packages mean when they stand alone.
_ALONE: Final[dict[str, _Part]] = {
    **{word: Scalar("str") for word in ("str", "string")},
    **{word: Scalar("int") for word in ("int", "integer")},
    **{word: Scalar("float") for word in ("float", "number")},
    **{word: Scalar("bool") for word in ("bool", "boolean")},
    **{word: ListOf(ANY) for word in ("list", "array")},
    **{word: DictOf(ANY) for word in ("dict", "object", "document")},
    **{word: _Null() for word in ("null", "none")},
    "any": ANY,
}
#: Words that take brackets, with the word each is written as.
_HOLDERS: Final = {
    **{word: word for word in ("list", "dict", "optional", "literal", "union")},
    "array": "list",
    "object": "dict",
    "document": "dict",
}
#: Words that, written with a capital, are more likely the name of a model.
_LIKELY_MODELS: Final = frozenset({"number", "object", "document"})

#: The keys, one at a time, under which an object form holds its inner types or values.
_OBJECT_KEYS: Final = {
    "list": ("items",),
    "dict": ("values",),
    "optional": ("of", "inner", "item"),
    "literal": ("values", "enum"),
    "union": ("variants", "options"),
}

_ESCAPE: Final = r"""\\(?:["'\\/bfnrt]|u[0-9a-fA-F]{4})"""
#: Matches at every position, so that the tokens of a text are all its matches.
_TOKEN: Final = re.compile(
    r"[ \t\r\n]*(?:(?P<name>[^\W\d]\w*)|(?P<number>-?(?:0|[1-9][0-9]*))(?![\w.])|(?P<mark>[\[\],|])"
    rf"""|(?P<text>"(?:[^"\\]|{_ESCAPE})*"|'(?:[^'\\]|{_ESCAPE})*')|(?P<end>\Z)|(?P<other>[-+.]?\d[\w.]*|.))""",
    re.DOTALL,
)
_TOO_DEEP: Final = f"the type is nested more than {MAX_DEPTH} levels deep"
_TOO_LONG: Final = f"the type is longer than {MAX_LENGTH} characters"
_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


def is_model_name(name: str) -> bool:
    """Tell whether a type can refer to a model by this name: PascalCase, no word of the language.

    >>> is_model_name("Invoice"), is_model_name("String")
    (True, False)
    """
    return AGENT_NAME.match(name) is not None and not _is_word(name)


def parse_type(text: str) -> TypeExpr:
    """Read a type from its text; raise ExpressionError with the exact offset when it is wrong.

    >>> print_type(parse_type("string | null"))
    'optional[str]'
    """
    return _solid(_parse(text), 0)


def read_type(value: object) -> TypeExpr:
    """Read a type from its text or from the object form of older packages.

    >>> print_type(read_type({"type": "list", "items": {"type": "string"}}))
    'list[str]'
    """
    return _sized(_solid(_read(value, 0), 0))


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


def _field_value(value: object) -> TypeExpr:
    """Read a pydantic field; a type built by hand is brought to the normal form."""
    try:
        if isinstance(value, str):
            return parse_type(value)
        if isinstance(value, TypeExpr):
            return parse_type(print_type(value))
    except ExpressionError as error:
        # The message comes last: pydantic fills in one name after the other, and the text of
        # the message must not be taken for such a name.
        details = {"offset": error.offset, "hint": error.hint, "message": str(error)}
        raise PydanticCustomError("type_language", "{message}", details) from None
    details = {"offset": 0, "hint": 'for example "list[str]"'}
    raise PydanticCustomError("type_language", "a type is written as text", details)


_FIELD_SCHEMA: Final = core_schema.no_info_plain_validator_function(
    _field_value,
    serialization=core_schema.plain_serializer_function_ser_schema(
        print_type, return_schema=core_schema.str_schema()
    ),
)

#: A pydantic field that holds a type: text in files, a TypeExpr in Python.
TypeField: TypeAlias = Annotated[
    TypeExpr,
    GetPydanticSchema(lambda _source, _handler: _FIELD_SCHEMA),
    WithJsonSchema(
        {
            "type": "string",
            "description": "str, int, float, bool, any, list[T], dict[T], optional[T], "
            'literal["a", 3, true], A | B, or the name of a model.',
            "examples": ["str", "list[int]", "optional[Invoice]", 'literal["open", "closed"]'],
        }
    ),
]


def _is_word(name: str) -> bool:
    lower = name.lower()
    known = lower in _ALONE or lower in _HOLDERS
    return known and not (name != lower and lower in _LIKELY_MODELS)


def _solid(part: _Part, offset: int) -> TypeExpr:
    if isinstance(part, _Null):
        hint = "write optional[T], or T | null"
        raise ExpressionError("null is not a type by itself", offset=offset, hint=hint)
    return part


def _sized(type_: TypeExpr) -> TypeExpr:
    """Refuse a type whose normal form is too large to be read back."""
    if _depth(type_) > MAX_DEPTH:
        raise _too_large(_TOO_DEEP)
    if len(print_type(type_)) > MAX_LENGTH:
        raise _too_large(_TOO_LONG)
    return type_


def _depth(type_: TypeExpr) -> int:
    match type_:
        case ListOf(of) | DictOf(of) | OptionalOf(of):
            return 1 + _depth(of)
        case UnionOf(members):
            return max(_depth(member) for member in members)
        case _:
            return 0


def _too_large(message: str, offset: int = 0) -> ExpressionError:
    return ExpressionError(message, offset=offset, hint="describe its inner parts as models")


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def _printed(part: _Part) -> str:
    return "null" if isinstance(part, _Null) else print_type(part)


def _twice(text: str, where: str, offset: int) -> ExpressionError:
    message = f"{_short(text)} stands twice in the {where}"
    return ExpressionError(message, offset=offset, hint="take one of them away")


def _join(parts: Iterable[tuple[_Part, int]]) -> _Part:
    """Bring the members of a union to the normal form; a single member is that type itself."""
    members: dict[_Part, None] = {}
    nullable = False
    for part, offset in parts:
        inner = part.of if isinstance(part, OptionalOf) else part
        nullable = nullable or inner is not part
        for member in inner.members if isinstance(inner, UnionOf) else (inner,):
            if member in members:
                raise _twice(_printed(member), "union", offset)
            members[member] = None
    types = tuple(member for member in members if not isinstance(member, _Null))
    if not types:
        return _Null()
    body = types[0] if len(types) == 1 else UnionOf(types)
    return OptionalOf(body) if nullable or len(types) < len(members) else body


def _literal(values: Iterable[tuple[object, int]]) -> LiteralOf:
    """Build a literal from values that may still be of any kind."""
    kept: dict[str, LiteralValue] = {}
    for value, offset in values:
        checked = _literal_value(value, offset)
        key = json.dumps(checked)
        if key in kept:
            raise _twice(key, "literal", offset)
        kept[key] = checked
    return LiteralOf(tuple(kept.values()))


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


def _hold(word: str, args: Sequence[tuple[_Part, int]]) -> _Part:
    """Build what `word[args]` stands for."""
    if word == "union":
        return _join(args)
    if len(args) > 1:
        hint = f"for either of two types write {word}[A | B]"
        raise ExpressionError(f"{word} takes one type", offset=args[1][1], hint=hint)
    inner = _solid(*args[0])
    if word == "list":
        return ListOf(inner)
    if word == "dict":
        return DictOf(inner)
    return inner if isinstance(inner, OptionalOf) else OptionalOf(inner)


@lru_cache(maxsize=2048)
def _parse(text: str) -> _Part:
    if len(text) > MAX_LENGTH:
        raise _too_large(_TOO_LONG)
    part = _Parser(text).whole()
    return part if isinstance(part, _Null) else _sized(part)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    offset: int


class _Parser:
    """Reads the tokens of one text from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens = (
            _Token(kind, found[kind], found.start(kind))
            for found in _TOKEN.finditer(text)
            if (kind := found.lastgroup)
        )
        self.next = next(self.tokens)

    def take(self) -> _Token:
        token = self.next
        self.next = next(self.tokens, token)
        return token

    def accept(self, mark: str) -> bool:
        found = self.next.kind == "mark" and self.next.text == mark
        if found:
            self.take()
        return found

    def whole(self) -> _Part:
        part, _ = self.union(0)
        if self.next.kind != "end":
            raise _unexpected(self.next, "the end, or | and another type")
        return part

    def union(self, level: int) -> tuple[_Part, int]:
        start = self.next.offset
        if level > MAX_DEPTH:
            raise _too_large(_TOO_DEEP, start)
        parts = [self.single(level)]
        while self.accept("|"):
            parts.append(self.single(level))
        return _join(parts), start

    def single(self, level: int) -> tuple[_Part, int]:
        token = self.take()
        if token.kind != "name":
            raise _unexpected(token, "a type")
        opening = self.next.offset
        if not self.accept("["):
            return _named(token), token.offset
        holder = _HOLDERS.get(token.text.lower())
        if holder is None:
            _named(token)
            raise ExpressionError(f"{_short(token.text)} takes no brackets", offset=opening)
        return self.held(holder, level), token.offset

    def held(self, word: str, level: int) -> _Part:
        if word == "literal":
            return _literal(self.listed(self.value))
        args = self.listed(lambda: self.union(level + 1))
        if word == "dict" and len(args) == 2:
            # Python writes the type of the keys too.
            (key, offset), *args = args
            if key != Scalar("str"):
                message = "the keys of a dict are always text"
                raise ExpressionError(message, offset=offset, hint="write dict[T]")
        return _hold(word, args)

    def listed(self, read: Callable[[], _Item]) -> list[_Item]:
        items = [read()]
        while self.accept(","):
            items.append(read())
        if not self.accept("]"):
            raise _unexpected(self.next, "] or a comma")
        return items

    def value(self) -> tuple[object, int]:
        token = self.take()
        if token.kind == "text":
            return _unquoted(token.text), token.offset
        if token.kind == "number":
            # Cut, so that a number of any length converts: what is left is still too long.
            return int(token.text[: MAX_DIGITS + 2]), token.offset
        constants: dict[str, object] = {"true": True, "false": False, "null": None, "none": None}
        if token.text.lower() not in constants:
            raise _unexpected(token, "text in quotes, a whole number, true or false")
        return constants[token.text.lower()], token.offset


def _named(token: _Token) -> _Part:
    """Find the meaning of a name without brackets."""
    name = token.text
    if _is_word(name):
        part = _ALONE.get(name.lower())
        if part is None:
            hint = 'write optional[T], literal["a", "b"] or A | B'
            raise ExpressionError(f"{name} needs brackets", offset=token.offset, hint=hint)
        return part
    if AGENT_NAME.match(name):
        return Ref(name)
    near = nearest(name, _ALONE | _HOLDERS)
    meant = _HOLDERS.get(near) or _printed(_ALONE[near]) if near else None
    hint = f"did you mean {meant}?" if meant else "a model is named like MyModel"
    raise ExpressionError(f'"{_short(name)}" is not a type', offset=token.offset, hint=hint)


def _unquoted(text: str) -> str:
    """Take the quotes off, by way of JSON, which knows one kind of quotes only."""
    swaps = {"\\'": "'", '"': '\\"'}
    body = re.sub(r'\\.|"', lambda found: swaps.get(found[0], found[0]), text[1:-1])
    return cast("str", json.loads(f'"{body}"', strict=False))


def _unexpected(token: _Token, wanted: str) -> ExpressionError:
    found = "the end" if token.kind == "end" else _short(token.text)
    message, hint = f"expected {wanted}, found {found}", None
    if token.kind == "other" and token.text in "\"'":
        message = "this text has no closing quote, or an unknown escape after a backslash"
        hint = "write a backslash itself as \\\\"
    elif wanted == "a type" and token.kind in ("text", "number"):
        hint = f"to allow certain values write literal[{found}]"
    return ExpressionError(message, offset=token.offset, hint=hint)


def _read(value: object, level: int) -> _Part:
    if level > MAX_DEPTH:
        raise _too_large(_TOO_DEEP)
    if value is None:
        return _Null()
    if isinstance(value, str):
        return _parse(value)
    if isinstance(value, Mapping):
        return _read_object(cast("Mapping[object, object]", value), level)
    raise ExpressionError("a type is written as text", hint='for example "list[str]"')


def _read_under(key: str, value: object, level: int) -> tuple[_Part, int]:
    """Read an inner type; what is wrong with it is reported under its key."""
    try:
        return _read(value, level), 0
    except ExpressionError as error:
        message = f"{key}: {error}"
        raise ExpressionError(message, offset=error.offset, hint=error.hint) from None


def _read_object(form: Mapping[object, object], level: int) -> _Part:
    kind = form.get("type")
    if not isinstance(kind, str):
        message = "an object that describes a type names it under the key type"
        raise ExpressionError(message, hint='for example {"type": "str"}')
    keys = [key for key in form if key not in ("type", "description")]
    if not keys:
        return _parse(kind)
    word = _HOLDERS.get(kind.lower(), "")
    if len(keys) > 1 or keys[0] not in _OBJECT_KEYS.get(word, ()):
        message = f"the key {_short(str(keys[-1]))} does not belong to the type {_short(kind)}"
        raise ExpressionError(message, hint='write the type as text, for example "list[str]"')
    key, inner = str(keys[0]), form[keys[0]]
    if word in ("list", "dict", "optional"):
        return _hold(word, [_read_under(key, inner, level + 1)])
    if not isinstance(inner, list) or not inner:
        raise ExpressionError(f"{key} must be a list with at least one item")
    items = enumerate(cast("list[object]", inner))
    if word == "literal":
        return _literal((item, 0) for _, item in items)
    return _join([_read_under(f"{key}[{index}]", item, level + 1) for index, item in items])
