"""Reading a type from its text: the place of an error, and the normal form of a type."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, TypeVar, cast

from weft.errors import ExpressionError
from weft.ids import AGENT_NAME, nearest
from weft.spec.types import (
    ANY,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_LENGTH,
    SPELLINGS,
    DictOf,
    ListOf,
    LiteralOf,
    LiteralValue,
    OptionalOf,
    Ref,
    Scalar,
    TypeExpr,
    UnionOf,
    print_type,
    word_of,
)

_HALF_CHARACTER: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Null:
    """`null` inside a union, before the union becomes optional."""


#: A member of a union.
Member: TypeAlias = TypeExpr | Null


def require_type(part: Member, offset: int) -> TypeExpr:
    """Refuse `null` where a type is required."""
    if isinstance(part, Null):
        hint = "write optional[T], or T | null"
        raise ExpressionError("null is not a type on its own", offset=offset, hint=hint)
    return part


def check_size(type_: TypeExpr) -> TypeExpr:
    """Refuse a type whose normal form is too large to be parsed again."""
    if _depth(type_) > MAX_DEPTH:
        raise too_deep()
    if len(print_type(type_)) > MAX_LENGTH:
        raise too_long()
    return type_


def too_deep(offset: int = 0) -> ExpressionError:
    """Return the error for a type that is nested too deeply."""
    return _too_large(f"nested more than {MAX_DEPTH} levels deep", offset)


def too_long() -> ExpressionError:
    """Return the error for a type whose text is too long."""
    return _too_large(f"longer than {MAX_LENGTH} characters", 0)


def shorten(text: str) -> str:
    """Shorten text for a message."""
    return text if len(text) <= 40 else text[:37] + "..."


def build_union(parts: Iterable[tuple[Member, int]]) -> Member:
    """Bring the members of a union to the normal form; a single member is that type itself."""
    members: dict[Member, None] = {}
    nullable = False
    for part, offset in parts:
        inner = part.of if isinstance(part, OptionalOf) else part
        nullable = nullable or inner is not part
        for member in inner.members if isinstance(inner, UnionOf) else (inner,):
            if member in members:
                raise _duplicate(_print_member(member), "union", offset)
            members[member] = None
    types = tuple(member for member in members if not isinstance(member, Null))
    if not types:
        return Null()
    body = types[0] if len(types) == 1 else UnionOf(types)
    return OptionalOf(body) if nullable or len(types) < len(members) else body


def build_literal(values: Iterable[tuple[object, int]]) -> LiteralOf:
    """Build a literal from values that may still be of any kind."""
    kept: dict[str, LiteralValue] = {}
    for value, offset in values:
        checked = _literal_value(value, offset)
        key = json.dumps(checked)
        if key in kept:
            raise _duplicate(key, "literal", offset)
        kept[key] = checked
    return LiteralOf(tuple(kept.values()))


def build_container(word: str, args: Sequence[tuple[Member, int]]) -> Member:
    """Build the type `word[args]`."""
    if word == "union":
        return build_union(args)
    if len(args) > 1:
        hint = f"for either of two types write {word}[A | B]"
        raise ExpressionError(f"{word} takes one type", offset=args[1][1], hint=hint)
    inner = require_type(*args[0])
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


def _print_member(part: Member) -> str:
    return "null" if isinstance(part, Null) else print_type(part)


def _duplicate(text: str, where: str, offset: int) -> ExpressionError:
    message = f"duplicate {shorten(text)} in the {where}"
    return ExpressionError(message, offset=offset, hint="remove one of them")


def _literal_value(value: object, offset: int) -> LiteralValue:
    if not isinstance(value, str | int):
        hint = "write optional[literal[...]] to allow null" if value is None else None
        message = "a literal lists only text, whole numbers, true and false"
        raise ExpressionError(message, offset=offset, hint=hint)
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:
        message = f"a number in a literal has at most {MAX_DIGITS} digits"
        raise ExpressionError(message, offset=offset, hint="write it as text, in quotes")
    if isinstance(value, str) and _HALF_CHARACTER.search(value):
        message = "the text contains half of a character, which no file can store"
        raise ExpressionError(message, offset=offset, hint="remove \\ud800 to \\udfff")
    return value


_Item = TypeVar("_Item")

#: The types of keywords without brackets; the other keywords need brackets.
_ALONE: Final[dict[str, Member]] = {
    "str": Scalar("str"),
    "int": Scalar("int"),
    "float": Scalar("float"),
    "bool": Scalar("bool"),
    "any": ANY,
    "list": ListOf(ANY),
    "dict": DictOf(ANY),
    "null": Null(),
}
#: Words that take brackets.
_HOLDERS: Final = frozenset({"list", "dict", "optional", "literal", "union"})
#: What other languages call a list of allowed values.
_CHOICES: Final = frozenset({"enum", "choice", "choices", "oneof", "one_of", "select", "options"})
_LISTED: Final = 'write the allowed values as literal["a", "b"]'

_ESCAPE: Final = r"""\\(?:["'\\/bfnrt]|u[0-9a-fA-F]{4})"""
#: Matches at every position, so that the tokens of a text are all its matches.
_TOKEN: Final = re.compile(
    r"[ \t\r\n]*(?:(?P<name>[^\W\d]\w*)|(?P<number>-?(?:0|[1-9][0-9]*))(?![\w.])|(?P<mark>[\[\],|])"
    rf"""|(?P<text>"(?:[^"\\]|{_ESCAPE})*"|'(?:[^'\\]|{_ESCAPE})*')|(?P<end>\Z)|(?P<other>[-+.]?\d[\w.]*|.))""",
    re.DOTALL,
)


def parse_type(text: str) -> TypeExpr:
    """Read a type from its text; raise ExpressionError with the exact offset when it is wrong.

    >>> parse_type("string | null")
    OptionalOf(of=Scalar(name='str'))
    """
    return require_type(parse_member(text), 0)


@lru_cache(maxsize=2048)
def parse_member(text: str) -> Member:
    """Read a member of a union, which may also be `null`."""
    if len(text) > MAX_LENGTH:
        raise too_long()
    part = _Parser(text).whole()
    return part if isinstance(part, Null) else check_size(part)


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

    def whole(self) -> Member:
        part, _ = self.union(0)
        if self.next.kind != "end":
            raise _unexpected_token(self.next, "the end, or | and another type")
        return part

    def union(self, level: int) -> tuple[Member, int]:
        start = self.next.offset
        if level > MAX_DEPTH:
            raise too_deep(start)
        parts = [self.single(level)]
        while self.accept("|"):
            parts.append(self.single(level))
        return build_union(parts), start

    def single(self, level: int) -> tuple[Member, int]:
        token = self.take()
        if token.kind != "name":
            raise _unexpected_token(token, "a type")
        opening = self.next.offset
        if not self.accept("["):
            return _read_name(token), token.offset
        word = SPELLINGS.get(token.text.lower())
        if word not in _HOLDERS:
            _read_name(token)
            hint = _LISTED if token.text.lower() in _CHOICES else None
            message = f"{shorten(token.text)} takes no brackets"
            raise ExpressionError(message, offset=opening, hint=hint)
        return self.held(word, level), token.offset

    def held(self, word: str, level: int) -> Member:
        if word == "literal":
            return build_literal(self.listed(self.value))
        args = self.listed(lambda: self.union(level + 1))
        if word == "dict" and len(args) == 2:
            # Python writes the type of the keys too.
            (key, offset), *args = args
            if key != Scalar("str"):
                message = "the keys of a dict are always text"
                raise ExpressionError(message, offset=offset, hint="write dict[T]")
        return build_container(word, args)

    def listed(self, read: Callable[[], _Item]) -> list[_Item]:
        items = [read()]
        while self.accept(","):
            items.append(read())
        if not self.accept("]"):
            raise _unexpected_token(self.next, "] or a comma")
        return items

    def value(self) -> tuple[object, int]:
        token = self.take()
        if token.kind == "text":
            return _unquote(token.text), token.offset
        if token.kind == "number":
            # Cut, so that a number of any length converts: what is left is still too long.
            return int(token.text[: MAX_DIGITS + 2]), token.offset
        constants: dict[str, object] = {"true": True, "false": False, "null": None, "none": None}
        if token.text.lower() not in constants:
            raise _unexpected_token(token, "text in quotes, a whole number, true or false")
        return constants[token.text.lower()], token.offset


def _read_name(token: _Token) -> Member:
    """Find the meaning of a name without brackets."""
    name = token.text
    word = word_of(name)
    if word in _ALONE:
        return _ALONE[word]
    if word:
        hint = 'write optional[T], literal["a", "b"] or A | B'
        raise ExpressionError(f"{name} needs brackets", offset=token.offset, hint=hint)
    if AGENT_NAME.match(name):
        return Ref(name)
    near = nearest(name, SPELLINGS)
    hint = f"did you mean {SPELLINGS[near]}?" if near else "a model is named like MyModel"
    hint = _LISTED if name.lower() in _CHOICES else hint
    raise ExpressionError(f'"{shorten(name)}" is not a type', offset=token.offset, hint=hint)


def _unquote(text: str) -> str:
    """Take the quotes off, by way of JSON, which knows one kind of quotes only."""
    swaps = {"\\'": "'", '"': '\\"'}
    body = re.sub(r'\\.|"', lambda found: swaps.get(found[0], found[0]), text[1:-1])
    return cast("str", json.loads(f'"{body}"', strict=False))


def _unexpected_token(token: _Token, wanted: str) -> ExpressionError:
    found = "the end" if token.kind == "end" else shorten(token.text)
    message, hint = f"expected {wanted}, found {found}", None
    if token.kind == "other" and token.text in "\"'":
        message = "this text has no closing quote, or an unknown escape after a backslash"
        hint = "write a backslash itself as \\\\"
    elif wanted.startswith("text in quotes") and token.kind == "name":
        hint = f'put a text in quotes: "{found}"'
    elif wanted == "a type" and token.kind in ("text", "number"):
        hint = f"to allow certain values write literal[{found}]"
    return ExpressionError(message, offset=token.offset, hint=hint)
