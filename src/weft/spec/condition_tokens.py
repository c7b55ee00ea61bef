"""The words and signs of a condition's text, each with its place."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from weft.errors import ExpressionError
from weft.spec.conditions import KEYWORDS, MAX_DIGITS

Kind: TypeAlias = Literal["braced", "word", "keyword", "number", "string", "sign", "end"]

_SHAPES: Final = re.compile(
    r"""
      (?P<blank>   \s+ )
    | (?P<braced>  \$\{ \s* [A-Za-z_][A-Za-z0-9_]* \s* \} )
    | (?P<word>    [A-Za-z_][A-Za-z0-9_]* )
    | (?P<number>  -?[0-9] (?: [eE][+-](?=[0-9]) | \.(?=[0-9]) | [A-Za-z0-9_] )* )
    | (?P<string>  ' (?: [^'\\] | \\. )* ' | " (?: [^"\\] | \\. )* " )
    | (?P<foreign> === | !== | => | =< | <> | && | \|\| | \*\* )
    | (?P<sign>    [=!<>]= | [<>()\[\],.] )
    | (?P<other>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_WHOLE: Final = re.compile(r"-?[0-9]+\Z")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_ESCAPED: Final = {
    "\\": "\\", "'": "'", '"': '"', "/": "/",
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
}  # fmt: skip

_NO_ARITHMETIC: Final = "a condition does not calculate: compare a computed variable instead"
_STRAIGHT_QUOTES: Final = "put texts in straight quotes: ' or \""
_NEVER_CLOSED: Final = "close the text with the same quote; write \\ before a quote inside it"
_PLAIN_NAME: Final = "write a variable as name or ${name}; its name has only a-z, A-Z, 0-9 and _"

#: What to write instead of signs that other languages use.
_INSTEAD: Final = {
    "=": "write == to compare",
    "===": "write == to compare",
    "=>": "write >=",
    "=<": "write <=",
    "<>": "write !=",
    "!==": "write !=",
    "!": "write not",
    "&": "write and",
    "&&": "write and",
    "|": "write or",
    "||": "write or",
    ";": "join tests with and, or",
    **dict.fromkeys(("+", "-", "*", "**", "/", "%", "^", "~"), _NO_ARITHMETIC),
    **dict.fromkeys("\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb`", _STRAIGHT_QUOTES),
    **dict.fromkeys("'\"", _NEVER_CLOSED),
    **dict.fromkeys("${}@#", _PLAIN_NAME),
}
_ANYTHING_ELSE: Final = "use names, values, == != < <= > >=, in, and, or, not and parentheses"


@dataclass(frozen=True, slots=True)
class Token:
    """One word or sign: its text as written, and its 0-based offset.

    `key` is what signs and keywords are recognised by (keywords in lower case), else empty.
    """

    kind: Kind
    text: str
    offset: int
    key: str = ""

    def __str__(self) -> str:
        """Return the token for a message."""
        return "the end" if self.kind == "end" else quote_token(self.text)


def quote_token(text: str) -> str:
    """Quote text for a message: short, and with invisible characters spelled out."""
    short = text if len(text) <= 30 else text[:27] + "..."
    plain = "".join(char if char.isprintable() else f"<U+{ord(char):04X}>" for char in short)
    return plain if plain.startswith(("'", '"')) and len(plain) > 1 else f"'{plain}'"


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of `text`, the last one of kind `end`; refuse what no condition holds."""
    for shape in _SHAPES.finditer(text):
        found, start = shape.group(), shape.start()
        match shape.lastgroup:
            case "blank":
                continue
            case "word" if found.lower() in KEYWORDS:
                yield Token("keyword", found, start, found.lower())
            case "sign":
                yield Token("sign", found, start, found)
            case "braced" | "word" | "number" | "string" as kind:
                yield Token(kind, found, start)
            case _:
                raise _refusal(found, start)
    yield Token("end", "", len(text))


def _refusal(found: str, offset: int) -> ExpressionError:
    if found in ("'", '"'):
        message = f"the text that begins with {found} is never closed"
    else:
        message = f"{quote_token(found)} is not part of a condition"
    fallback = _PLAIN_NAME if found.isalnum() else _ANYTHING_ELSE
    return ExpressionError(message, offset=offset, hint=_INSTEAD.get(found, fallback))


def number_of(token: Token) -> int | float:
    """Return the number a token writes."""
    text = token.text
    # Refused before Python converts them: what that costs grows faster than the length.
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise ExpressionError(
            f"the number {token} has more than {MAX_DIGITS} digits",
            offset=token.offset,
            hint="write it with an exponent, such as 1e120",
        )
    if _NUMBER.match(text) is None:
        raise ExpressionError(
            f"{token} is not a number",
            offset=token.offset,
            hint="write a number like 7, -2 or 0.5, and put anything else in quotes",
        )
    return int(text) if _WHOLE.match(text) else float(text)


def string_of(token: Token) -> str:
    """Return the text between a token's quotes, with its escapes replaced."""

    def replaced(match: re.Match[str]) -> str:
        escape = match.group(1)
        if len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape not in _ESCAPED:
            raise ExpressionError(
                f"{quote_token(match.group())} is not an escape",
                offset=token.offset + 1 + match.start(),
                hint="write \\\\ for a backslash; other escapes: \\' \\\" \\n \\t \\r and \\u00e9",
            )
        return _ESCAPED[escape]

    return _ESCAPE.sub(replaced, token.text[1:-1])
