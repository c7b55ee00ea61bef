"""JSON text to data: every error with its place, and an index of the places of all values.

Valid text is parsed by the standard library. Invalid text, and every request for places, goes
through a second parser which keeps offsets, uses an explicit stack instead of recursion, and
continues after small errors so that one pass finds several.
"""

import json
import math
import re
from typing import Final, NoReturn

from weft.packages.text.index import (
    EMPTY_REMEDY,
    INTEGERS,
    MAX_DEPTH,
    MAX_ERRORS,
    MAX_NODES,
    Container,
    Data,
    Node,
    Parsed,
    TextError,
    UnreadableError,
    children_of,
    duplicate,
    out_of_range,
    show,
    spot,
    too_deep,
    too_many,
)

_BLANK: Final = re.compile(r"(?:[ \t\n\r]++|//[^\n]*+|/\*(?s:.*?)\*/)*+")
_HEX: Final = "[0-9a-fA-F]"
_PAIR: Final = rf"\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"
_ESCAPE: Final = rf'(?:\\["\\/bfnrt]|\\u(?![dD][89a-fA-F]){_HEX}{{4}}|{_PAIR})'
_INSIDE: Final = re.compile(rf'[^"\\\x00-\x1f]*+(?:{_ESCAPE}[^"\\\x00-\x1f]*+)*+')
_LOOSE: Final = re.compile(r"""(["'])(?:\\[^\n]|(?!\1)[^\\\n])*+\1""")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_HALF: Final = re.compile(rf"\\u[dD][89a-fA-F]{_HEX}{{2}}")
_BEGIN: Final = re.compile(r"[\w\"'{\[-]")
_WORD: Final = re.compile(r"[\w.+$@-]++")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)((?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)")
_CLOSE: Final = {"{": "}", "[": "]"}
_WORDS: Final[dict[str, Data]] = {"true": True, "false": False, "null": None}
_MEANT: Final = {"True": "true", "False": "false", "None": "null"}


def load(text: str) -> Parsed:
    """Parse JSON text; there is no index if the text is valid."""
    try:
        return Parsed(_quick(text), None)
    except (ValueError, RecursionError):
        return parse(text)  # finds the same error again, and its place


def parse(text: str) -> Parsed:
    return _Reader(text).read()


def _quick(text: str) -> Data:
    # Counting brackets and commas bounds depth and size before anything is built.
    opened = text.count("{") + text.count("[")
    if opened + text.count(",") >= MAX_NODES or ("\\u" in text and _SURROGATE.search(text)):
        raise ValueError
    data: Data = json.loads(
        text,
        object_pairs_hook=_unique,
        parse_int=_integer,
        parse_float=_real,
        parse_constant=_refuse,
    )
    if opened > MAX_DEPTH and _too_deep(data):
        raise ValueError
    return data


def _too_deep(data: Data) -> bool:
    level = [data]
    for _ in range(MAX_DEPTH):
        level = [child for value in level for child in children_of(value)]
    return any(isinstance(value, dict | list) for value in level)


def _unique(pairs: list[tuple[str, Data]]) -> dict[str, Data]:
    entries = dict(pairs)
    if len(entries) != len(pairs):
        raise ValueError
    return entries


def _integer(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else INTEGERS.stop
    if value not in INTEGERS:
        raise ValueError
    return value


def _real(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError
    return value


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


class _Reader:
    """One pass over one text; `at` is the offset of the next character to look at."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.count = 0
        self.relaxed = -1
        self.errors: list[TextError] = []
        self.open: list[tuple[Node, Container]] = []
        self.data: Data = None
        self.root = Node(0, 0)

    def read(self) -> Parsed:
        try:
            self.document()
        except UnreadableError as unreadable:
            self.errors.append(unreadable.error)
        data = None if self.errors else self.data
        if self.relaxed >= 0:
            message = "the file has comments or trailing commas, which JSON does not know"
            hint = ("remove them, or save the file as YAML",)
            self.errors.append(TextError("SCHEMA006", message, self.relaxed, hint=hint))
        return Parsed(data, self.root, tuple(self.errors))

    def document(self) -> None:
        if not self.peek():
            self.stop("the file is empty", hint=EMPTY_REMEDY)
        self.value(0, -1, -1)
        while self.open:
            self.member(*self.open[-1])
        if self.peek():
            self.stop(f"found {self.seen()} after the end of the data", hint="remove what follows")

    def peek(self) -> str:
        """Skip white space and comments; return the next character, or "" at the end."""
        start, self.at = self.at, _end(_BLANK, self.text, self.at)
        comment = self.text.find("/", start, self.at)
        if comment >= 0 > self.relaxed:
            self.relaxed = comment
        if self.text.startswith("/*", self.at):
            self.stop("this comment is not closed", hint="end it with */")
        return self.text[self.at : self.at + 1]

    def member(self, node: Node, container: Container) -> None:
        """Read one entry or item of the innermost container, or its closing bracket."""
        before, comma, char = self.at, -1, self.peek()
        if container and char == ",":
            comma = self.at
            self.at += 1
            char = self.peek()
        if char == _CLOSE[self.text[node.start]]:
            if comma >= 0 > self.relaxed:
                self.relaxed = comma
            self.at += 1
            node.end = self.at
            self.open.pop()
            return
        if container and comma < 0:
            self.no_comma(char, before)
        if isinstance(container, dict):
            self.entry(node)
        else:
            self.value(len(container), -1, -1)

    def no_comma(self, char: str, before: int) -> None:
        if not _BEGIN.match(char):
            close = _CLOSE[self.text[self.open[-1][0].start]]
            self.stop(f"expected ',' or '{close}', found {self.seen()}")
        self.note("a comma is missing here", before, hint="put a comma after this value")

    def entry(self, node: Node) -> None:
        start, word = self.at, _WORD.match(self.text, self.at)
        if self.text[start : start + 1] in {'"', "'"}:
            key = self.string()
        elif word:
            key, self.at = word[0], word.end()
            self.note(
                f"the key {show(key)} is not in quotes", start, hint="write " + show(key, '"')
            )
        else:
            self.stop(f"expected a key in double quotes, found {self.seen()}")
        end, children = self.at, node.children or {}
        if key in children:
            self.keep(duplicate(self.text, key, children[key], start, end))
        if self.peek() != ":":
            self.stop(f"expected ':' after the key {show(key)}, found {self.seen()}")
        self.at += 1
        self.value(key, start, end)

    def value(self, key: str | int, key_start: int, key_end: int) -> None:
        """Read a scalar or open a container, and put it where it belongs."""
        char, node = self.peek(), Node(self.at, self.at, key_start, key_end)
        self.count += 1
        if self.count > MAX_NODES:
            raise UnreadableError(too_many(self.at))
        value = self.opening(char, node) if char in _CLOSE else self.scalar()
        node.end = self.at
        parent, container = self.open[-1] if self.open else (self.root, self.data)
        if isinstance(container, dict):
            container[str(key)] = value
        elif isinstance(container, list):
            container.append(value)
        else:
            self.data, self.root = value, node
        if parent.children is not None:
            parent.children[key] = node
        if isinstance(value, dict | list):
            self.open.append((node, value))

    def opening(self, char: str, node: Node) -> Container:
        if len(self.open) >= MAX_DEPTH:
            raise UnreadableError(too_deep(self.at))
        self.at += 1
        node.children = {}
        return {} if char == "{" else []

    def scalar(self) -> Data:
        start, word = self.at, _WORD.match(self.text, self.at)
        if self.text[start : start + 1] in {'"', "'"}:
            return self.string()
        if word is None:
            self.stop(f"expected a value, found {self.seen()}")
        self.at = word.end()
        if word[0] in _WORDS:
            return _WORDS[word[0]]
        number = _NUMBER.fullmatch(word[0])
        if number is None:
            hint = _MEANT.get(word[0], 'a number, true, false or null, or text in "quotes"')
            self.note(f"{show(word[0])} is not a JSON value", start, hint=f"write {hint}")
            return None
        try:
            return _real(word[0]) if number[1] else _integer(word[0])
        except ValueError:
            self.keep(out_of_range(word[0], start))
            return None

    def string(self) -> str:
        start = self.at
        end = _end(_INSIDE, self.text, start + 1)
        if self.text.startswith('"', start) and self.text.startswith('"', end):
            self.at = end + 1
            raw = self.text[start : self.at]
            return json.loads(raw) if "\\" in raw else raw[1:-1]
        loose = _LOOSE.match(self.text, start)
        if loose is None:
            self.stop(
                "this text is not closed", hint="end it with a quote on the same line", at=start
            )
        self.at = loose.end()
        if loose[1] == "'":
            self.note("text in single quotes", start, hint="JSON wants double quotes")
        elif half := _HALF.match(self.text, end):
            hint = "write the character itself, or both halves"
            self.note(f"{show(half[0])} is half of a character", end, hint=hint)
        elif self.text[end] == "\\":
            escape = show(self.text[end : end + 2])
            self.note(f"{escape} is not a JSON escape", end, hint=r"write \\ for a backslash")
        else:
            self.note("a control character inside text", end, hint=r"write a tab as \t")
        return loose[0][1:-1]

    def seen(self) -> str:
        word = _WORD.match(self.text, self.at)
        rest = word[0] if word else self.text[self.at : self.at + 1]
        return show(rest) if rest else "the end of the file"

    def keep(self, error: TextError) -> None:
        self.errors.append(error)
        if len(self.errors) == MAX_ERRORS:
            self.stop("the file has more errors than are listed", hint="correct these first")

    def note(self, message: str, start: int, *, hint: str) -> None:
        """Record an error and continue reading."""
        length = max(self.at - start, 1)
        self.keep(TextError("SCHEMA002", message, start, hint=(hint,), length=length))

    def stop(self, message: str, *, hint: str = "", at: int = -1) -> NoReturn:
        """Give up at an error, naming the bracket that is still open."""
        cause: tuple[str, ...] = ()
        if self.open:
            start = self.open[-1][0].start
            cause = (f"'{self.text[start]}' was opened on {spot(self.text, start)}",)
        hints = (hint,) if hint else ()
        start = self.at if at < 0 else at
        raise UnreadableError(TextError("SCHEMA002", message, start, cause, hints))
