"""Conditions read from text: `parse_condition`, and `mentions` for the places of names.

    condition  =  ["when"] either ["."]          the full stop only after an English word
    either     =  both {"or" both}
    both       =  negation {"and" negation}
    negation   =  "not" negation | "(" either ")" | test
    test       =  name | operand comparison
    comparison =  ("==" | "!=" | "<" | "<=" | ">" | ">=") operand
               |  ["not"] "in" (operand | "[" [value {"," value}] "]")
               |  ("is" ["not"] | "equals") (operand | word)
    operand    =  name | value
    name       =  word | "${" word "}"           in flows also of a part: word {"." word}
    value      =  'text' | "text" | number | "true" | "false" | "null" | "none"

Keywords are read in any case. `is`, `equals` and `when` make up the English form, where a bare word
on the right is a text: `When status is accepted`. Groups are kept as they are written: `(a and b)
and c` is another tree than `a and b and c`.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from weft.errors import ExpressionError
from weft.spec.condition_tokens import Token, number_of, string_of, tokens
from weft.spec.conditions import (
    CONSTANTS,
    And,
    Compare,
    Condition,
    ListOf,
    Name,
    Not,
    Operator,
    Or,
    Value,
)

#: Longest text and deepest nesting of parentheses and `not` that are read.
MAX_LENGTH: Final = 4000
MAX_DEPTH: Final = 50

_OPERATORS: Final[dict[str, Operator]] = {
    "==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "in": "in",
}  # fmt: skip
_COMPARING: Final = frozenset({*_OPERATORS, "not", "is", "equals"})

_OPERAND_HINTS: Final = {
    "(": "write names and values without parentheses, and lists in square brackets",
    "[": "a list is allowed only after 'in' and 'not in', and contains plain values",
    "not": "put 'not' before the whole test: not x == 5",
    "in": "write 'in' directly after a name or value: x in [1, 2]",
}
_FOLLOWING_HINTS: Final = {
    "(": "a condition cannot call functions; join tests with 'and' or 'or'",
    "[": "declare a variable for an item of a list; a condition cannot pick it",
    ".": "declare a variable for a part of a value; only the English form ends with a full stop",
    ")": "remove it, or open a parenthesis before it",
}


@dataclass(frozen=True, slots=True)
class _Reading:
    condition: Condition
    mentions: tuple[tuple[str, int], ...]


def parse_condition(text: str, *, paths: bool = False) -> Condition:
    """Read a condition, or raise ExpressionError with the offset of what is wrong.

    With `paths`, names may be those of parts: `document.score`.
    """
    return _read(text, paths=paths).condition


def mentions(text: str, *, paths: bool = False) -> tuple[tuple[str, int], ...]:
    """Return every variable a condition's text mentions, with the 0-based offset of its name."""
    return _read(text, paths=paths).mentions


@lru_cache(maxsize=1024)
def _read(text: str, *, paths: bool) -> _Reading:
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"the condition is longer than {MAX_LENGTH} characters",
            offset=MAX_LENGTH,
            hint="split it into several rules, or move part of it into a computed variable",
        )
    if not text.strip():
        raise ExpressionError("the condition is empty", hint="write a test such as x == 5")
    reader = _Reader(text, paths=paths)
    return _Reading(reader.whole(), tuple(reader.mentions))


class _Reader:
    """Reads one text from left to right, looking at one token at a time."""

    def __init__(self, text: str, *, paths: bool) -> None:
        self._text = text
        self._paths = paths
        self._tokens = tokens(text)
        self._token = next(self._tokens)
        self._depth = 0
        self._english = False
        self.mentions: list[tuple[str, int]] = []

    def whole(self) -> Condition:
        if self._token.key == "when":
            self._english = True
            self._take()
        condition = self._either()
        last = self._token
        if last.key == "." and self._english:
            self._take()
        if self._token.kind != "end":
            raise _unexpected_token(last)
        return condition

    def _take(self) -> Token:
        taken = self._token
        self._token = next(self._tokens)
        return taken

    def _skip(self, key: str) -> bool:
        found = self._token.key == key
        if found:
            self._take()
        return found

    def _either(self) -> Condition:
        operands = [self._both()]
        while self._skip("or"):
            operands.append(self._both())
        return operands[0] if len(operands) == 1 else Or(tuple(operands))

    def _both(self) -> Condition:
        operands = [self._negation()]
        while self._skip("and"):
            operands.append(self._negation())
        return operands[0] if len(operands) == 1 else And(tuple(operands))

    def _negation(self) -> Condition:
        if self._token.key not in ("not", "("):
            return self._test()
        opening = self._take()
        if self._depth == MAX_DEPTH:
            raise ExpressionError(
                f"the condition is nested more than {MAX_DEPTH} levels deep",
                offset=opening.offset,
                hint="remove needless parentheses and 'not'",
            )
        self._depth += 1
        condition = Not(self._negation()) if opening.key == "not" else self._group(opening)
        self._depth -= 1
        return condition

    def _group(self, opening: Token) -> Condition:
        condition = self._either()
        if self._token.kind == "end":
            raise ExpressionError(
                "'(' is never closed", offset=opening.offset, hint="add ')' where the group ends"
            )
        if not self._skip(")"):
            raise _unexpected_token(self._token)
        if self._token.key in _COMPARING:
            raise ExpressionError(
                f"{self._token} follows a group in parentheses, which has nothing to compare",
                offset=self._token.offset,
                hint=_OPERAND_HINTS["("],
            )
        return condition

    def _test(self) -> Condition:
        first = self._token
        left = self._operand()
        if self._token.key in _COMPARING:
            compare = self._comparison(left)
            if self._token.key in _COMPARING:
                raise ExpressionError(
                    f"{self._token} follows a comparison: comparisons cannot be chained",
                    offset=self._token.offset,
                    hint="write two comparisons: a < b and b < c",
                )
            return compare
        if isinstance(left, Value):
            raise ExpressionError(
                f"the value {first} alone is not a test",
                offset=first.offset,
                hint="compare it with a variable, or leave the condition out if it always holds",
            )
        return left

    def _comparison(self, left: Name | Value) -> Compare:
        sign = self._take()
        if sign.key in ("is", "equals"):
            self._english = True
            negated = sign.key == "is" and self._skip("not")
            return Compare("!=" if negated else "==", left, self._plain_operand())
        if sign.key == "not" and not self._skip("in"):
            raise ExpressionError(
                f"{sign} between two operands must be followed by 'in'",
                offset=sign.offset,
                hint="write x not in [...], or put 'not' before the whole test",
            )
        op = "not in" if sign.key == "not" else _OPERATORS[sign.key]
        listed = op in ("in", "not in") and self._token.key == "["
        return Compare(op, left, self._list() if listed else self._operand())

    def _plain_operand(self) -> Name | Value:
        # Only English has bare words as texts: `x is tech` means 'tech', `x == tech` a variable.
        return Value(self._take().text) if self._token.kind == "word" else self._operand()

    def _operand(self) -> Name | Value:
        token = self._token
        if token.kind in ("word", "braced"):
            name = token.text.removeprefix("${").removesuffix("}").strip()
            offset = token.offset + token.text.index(name)
            self._take()
            while self._paths and self._is_part():
                self._take()
                name += f".{self._take().text}"
            self.mentions.append((name, offset))
            return Name(name)
        if token.key in CONSTANTS or token.kind in ("number", "string"):
            value = _value(token)
            self._take()
            return value
        raise _no_operand(token)

    def _is_part(self) -> bool:
        """Return whether a full stop continues a name; otherwise it ends an English sentence."""
        after = self._text[self._token.offset + 1 : self._token.offset + 2]
        return self._token.key == "." and (after.isalpha() or after == "_")

    def _list(self) -> ListOf:
        opening = self._take()
        items: list[Value] = []
        if not self._skip("]"):
            items.append(self._item())
            while self._skip(","):
                items.append(self._item())
            if self._token.kind == "end":
                raise ExpressionError(
                    "'[' is never closed", offset=opening.offset, hint="add ']' after the values"
                )
            if not self._skip("]"):
                raise _unexpected_token(self._token, "separate the values of a list with commas")
        return ListOf(tuple(items))

    def _item(self) -> Value:
        token = self._token
        operand = self._operand()
        if isinstance(operand, Name):
            raise ExpressionError(
                f"the list holds the name {token}, but a list holds only values",
                offset=token.offset,
                hint=f"put it in quotes if it is a text: '{operand.name}'",
            )
        return operand


def _value(token: Token) -> Value:
    if token.kind == "keyword":
        return Value(CONSTANTS[token.key])
    literal = number_of(token) if token.kind == "number" else string_of(token)
    try:
        return Value(literal)
    except ExpressionError as error:
        raise ExpressionError(str(error), offset=token.offset, hint=error.hint) from None


def _no_operand(token: Token) -> ExpressionError:
    hint = "write a name, a number, a text in quotes, true, false or null"
    if token.kind == "keyword":
        hint = f"a variable of this name is written ${{{token.text}}}, a text '{token.text}'"
    return ExpressionError(
        f"a name or a value is expected, but {token} was found",
        offset=token.offset,
        hint=_OPERAND_HINTS.get(token.key, hint),
    )


def _unexpected_token(token: Token, hint: str | None = None) -> ExpressionError:
    general = "join tests with 'and' or 'or', and put a text of several words in quotes"
    if token.kind == "number" and token.text.startswith("-"):
        general = "a condition does not calculate: compare a computed variable instead"
    return ExpressionError(
        f"{token} cannot follow here",
        offset=token.offset,
        hint=hint or _FOLLOWING_HINTS.get(token.key, general),
    )
