"""Reading a type from its text, with the exact place of whatever is wrong."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeVar, cast

from weft.errors import ExpressionError
from weft.ids import AGENT_NAME, nearest
from weft.spec.type_normal import (
    Member,
    Null,
    hold,
    join,
    literal,
    shortened,
    sized,
    solid,
    too_deep,
    too_long,
)
from weft.spec.types import (
    ANY,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_LENGTH,
    SPELLINGS,
    DictOf,
    ListOf,
    Ref,
    Scalar,
    TypeExpr,
    word_of,
)

_Item = TypeVar("_Item")

#: What the words of the language mean when they stand alone; the others need brackets.
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
    return solid(parse_member(text), 0)


@lru_cache(maxsize=2048)
def parse_member(text: str) -> Member:
    """Read a type that may stand in a union, where `null` by itself is allowed too."""
    if len(text) > MAX_LENGTH:
        raise too_long()
    part = _Parser(text).whole()
    return part if isinstance(part, Null) else sized(part)


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
            raise _unexpected(self.next, "the end, or | and another type")
        return part

    def union(self, level: int) -> tuple[Member, int]:
        start = self.next.offset
        if level > MAX_DEPTH:
            raise too_deep(start)
        parts = [self.single(level)]
        while self.accept("|"):
            parts.append(self.single(level))
        return join(parts), start

    def single(self, level: int) -> tuple[Member, int]:
        token = self.take()
        if token.kind != "name":
            raise _unexpected(token, "a type")
        opening = self.next.offset
        if not self.accept("["):
            return _named(token), token.offset
        word = SPELLINGS.get(token.text.lower())
        if word not in _HOLDERS:
            _named(token)
            hint = _LISTED if token.text.lower() in _CHOICES else None
            message = f"{shortened(token.text)} takes no brackets"
            raise ExpressionError(message, offset=opening, hint=hint)
        return self.held(word, level), token.offset

    def held(self, word: str, level: int) -> Member:
        if word == "literal":
            return literal(self.listed(self.value))
        args = self.listed(lambda: self.union(level + 1))
        if word == "dict" and len(args) == 2:
            # Python writes the type of the keys too.
            (key, offset), *args = args
            if key != Scalar("str"):
                message = "the keys of a dict are always text"
                raise ExpressionError(message, offset=offset, hint="write dict[T]")
        return hold(word, args)

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


def _named(token: _Token) -> Member:
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
    raise ExpressionError(f'"{shortened(name)}" is not a type', offset=token.offset, hint=hint)


def _unquoted(text: str) -> str:
    """Take the quotes off, by way of JSON, which knows one kind of quotes only."""
    swaps = {"\\'": "'", '"': '\\"'}
    body = re.sub(r'\\.|"', lambda found: swaps.get(found[0], found[0]), text[1:-1])
    return cast("str", json.loads(f'"{body}"', strict=False))


def _unexpected(token: _Token, wanted: str) -> ExpressionError:
    found = "the end" if token.kind == "end" else shortened(token.text)
    message, hint = f"expected {wanted}, found {found}", None
    if token.kind == "other" and token.text in "\"'":
        message = "this text has no closing quote, or an unknown escape after a backslash"
        hint = "write a backslash itself as \\\\"
    elif wanted.startswith("text in quotes") and token.kind == "name":
        hint = f'put a text in quotes: "{found}"'
    elif wanted == "a type" and token.kind in ("text", "number"):
        hint = f"to allow certain values write literal[{found}]"
    return ExpressionError(message, offset=token.offset, hint=hint)
