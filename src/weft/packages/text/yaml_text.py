"""YAML text to data, by the rules of JSON: same values, same limits, same index of places.

Built from PyYAML's events, not from its objects. So scalars follow YAML 1.2 (`yes`, `no`, `on` and
`off` are text), an alias counts with its full size, and nesting does not use recursion.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import yaml

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
    duplicate,
    out_of_range,
    show,
    spot,
    too_deep,
    too_many,
)

_TAG: Final = "tag:yaml.org,2002:"
_TYPES: Final = {
    _TAG + "bool": bool,
    _TAG + "int": int,
    _TAG + "float": float,
    _TAG + "null": type(None),
}
_FORBIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff\ufffe\uffff]"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_UNTAG: Final = "remove the tag"

#: PyYAML's parser in C, about ten times as fast, wherever PyYAML was built with it.
LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader

#: What PyYAML says, as a pattern, then the fact and the remedy in words for people.
_WORDING: Final = (
    (
        "mapping values are not",
        "unexpected ':'",
        "check the indentation, and put text that contains ': ' in quotes",
    ),
    (r"found a tab|token '\\t'", "this line is indented with a tab", "indent with spaces"),
    ("any token", "this character cannot begin a value", "put the text in quotes"),
    ("end of stream", "a quoted text is not closed", "close the quote"),
    ("',' or", "a comma or a closing bracket is missing", "put a comma, or close the bracket"),
    ("node content", "a value is missing", "write the value, or close the bracket"),
    ("expected ':'", "the ':' after a key is missing", "write the entry as key: value"),
    (
        "document start|indicator|expected key|block end|not allowed",
        "this does not continue the lines above it; check the indentation",
        "check the indentation and the quotes of this line and the one before",
    ),
)

#: The line before an error, if it is a text with {name} at its beginning and no quotes around it.
_OBJECT_THEN: Final = re.compile(r"(?:^|[:,-][ \t]+)\{[^{}]*\}[ \t]*$")
_AFTER_OBJECT: Final = frozenset(
    {
        "a comma or a closing bracket is missing",
        "this does not continue the lines above it; check the indentation",
    }
)
_WORDS: Final[dict[str, Data]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]++|0o[0-7]++|0x[0-9a-fA-F]++")
_REAL: Final = re.compile(r"[-+]?(?:\.[0-9]++|[0-9]++(?:\.[0-9]*+)?)(?:[eE][-+]?[0-9]++)?")
_INFINITE: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


def parse(text: str) -> Parsed:
    return _Builder(text).read()


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been seen; `key` waits for its value, None for a key."""

    node: Node
    value: Container
    children: dict[str | int, Node]
    anchor: str | None
    before: int
    flow: bool
    key: str | int | None
    key_start: int = -1
    key_end: int = -1


class _Builder:
    """One pass over the events of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.count = 0
        self.errors: list[TextError] = []
        self.open: list[_Open] = []
        self.anchors: dict[str, tuple[Data, Node, int] | None] = {}
        self.data: Data = None
        self.root = Node(0, 0)

    def read(self) -> Parsed:
        try:
            self.document()
        except UnreadableError as unreadable:
            self.errors.append(unreadable.error)
        except yaml.MarkedYAMLError as error:
            self.errors.append(_explain(self.text, error))
        except (ValueError, OverflowError):
            # PyYAML lets these out where an escape names a character that does not exist.
            message = "an escape in this file does not name a character"
            self.errors.append(TextError("SCHEMA002", message, 0))
        return Parsed(None if self.errors else self.data, self.root, tuple(self.errors))

    def document(self) -> None:
        if bad := _FORBIDDEN.search(self.text):
            self.stop(f"the character {bad[0]!a} is not allowed in YAML", bad.start())
        documents = 0
        reader: Any = LOADER(self.text)
        events: Iterator[Any] = iter(reader.get_event, None)
        for event in events:
            start, end = event.start_mark.index, event.end_mark.index
            if isinstance(event, yaml.ScalarEvent):
                self.scalar(event, start, end)
            elif isinstance(event, yaml.CollectionStartEvent):
                self.opening(event, start)
            elif isinstance(event, yaml.CollectionEndEvent):
                self.closing(end)
            elif isinstance(event, yaml.AliasEvent):
                self.alias(event.anchor or "", start, end)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.stop("a second document begins here", start, code="SCHEMA005")
        if not documents:
            raise UnreadableError(
                TextError("SCHEMA002", "the file is empty", 0, hint=(EMPTY_REMEDY,))
            )

    def scalar(self, event: yaml.ScalarEvent, start: int, end: int) -> None:
        text, style = event.value, event.style
        if event.tag or style == '"':
            value = self.tagged(event, start, end)
        elif event.implicit[0]:
            value = self.plain(text, start)
        else:
            value = text
        if style in {"|", ">"}:
            end = start + len(self.text[start:end].rstrip(" \t\r\n"))
        if event.anchor:
            self.anchors[event.anchor] = value, Node(start, end), 1
        if self.key_is_next():
            self.key(text, value, start, end, plain=event.implicit[0])
        else:
            self.add(value, Node(start, end))

    def key_is_next(self) -> bool:
        return bool(self.open) and self.open[-1].key is None

    def key(self, text: str, value: Data, start: int, end: int, *, plain: bool) -> None:
        top = self.open[-1]
        if plain and text == "<<":
            self.note("merge keys are not supported", start, "write the merged entries out")
        elif not isinstance(value, str):
            self.note(f"the key {show(text)} is not text", start, "write it as " + show(text, '"'))
        elif text in top.children:
            self.keep(duplicate(self.text, text, top.children[text], start, end))
        top.key, top.key_start, top.key_end = text, start, end

    def plain(self, text: str, start: int) -> Data:
        try:
            return plain(text)
        except ValueError:
            self.keep(out_of_range(text, start))
            return None

    def tagged(self, event: yaml.ScalarEvent, start: int, end: int) -> Data:
        """Return the value of a scalar with a tag or in double quotes."""
        if _SURROGATE.search(event.value):
            self.note("an escape here is half of a character", start, "write the character itself")
        if event.tag in {None, "!", _TAG + "str"}:
            return event.value
        value, kind = self.plain(event.value, start), _TYPES.get(event.tag or "")
        if kind is float and type(value) is int:
            return float(value)
        if kind is None or type(value) is not kind:
            tag = self.text[start:end].split()[0]
            self.note(f"the tag {show(tag)} does not fit here", start, _UNTAG)
        return value

    def opening(self, event: yaml.CollectionStartEvent, start: int) -> None:
        if self.key_is_next():
            self.stop("a list or an object cannot be a key", start, code="SCHEMA005")
        if len(self.open) >= MAX_DEPTH:
            raise UnreadableError(too_deep(start))
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in {None, "!", _TAG + ("map" if mapping else "seq")}:
            self.note(f"the tag {show(event.tag or '')} is not supported", start, _UNTAG)
        value: Container = {} if mapping else []
        children: dict[str | int, Node] = {}
        node = Node(start, start, children=children)
        before = self.count
        self.add(value, node)
        if event.anchor:
            self.anchors[event.anchor] = None
        key, flow = None if mapping else 0, bool(event.flow_style)
        self.open.append(_Open(node, value, children, event.anchor, before, flow, key))

    def closing(self, end: int) -> None:
        top = self.open.pop()
        last = next(reversed(top.children.values()), None)
        # The end of a block is noticed only at the next token, after blank lines and comments.
        top.node.end = end if top.flow or last is None else last.end
        if top.anchor:
            self.anchors[top.anchor] = top.value, top.node, self.count - top.before

    def alias(self, name: str, start: int, end: int) -> None:
        if self.key_is_next():
            self.stop("an alias cannot be a key", start, code="SCHEMA005")
        if name not in self.anchors:
            self.stop(f"the alias {show(name)} has no anchor before it", start)
        target = self.anchors[name]
        if target is None:
            self.stop(f"the alias {show(name)} is inside its own value", start, code="SCHEMA005")
        value, node, size = target
        self.count += size - 1
        if self.count < MAX_NODES:
            value = self.copy(value, len(self.open), start)
        self.add(value, Node(start, end, children=node.children))

    def copy(self, value: Data, depth: int, start: int) -> Data:
        """Write an alias out, so that changing one use later leaves the others alone."""
        if not isinstance(value, dict | list):
            return value
        if depth >= MAX_DEPTH:
            raise UnreadableError(too_deep(start))
        if isinstance(value, list):
            return [self.copy(item, depth + 1, start) for item in value]
        return {key: self.copy(item, depth + 1, start) for key, item in value.items()}

    def add(self, value: Data, node: Node) -> None:
        self.count += 1
        if self.count > MAX_NODES:
            raise UnreadableError(too_many(node.start))
        if not self.open:
            self.data, self.root = value, node
            return
        top = self.open[-1]
        key = top.key if top.key is not None else ""
        top.children[key] = node
        if isinstance(top.value, dict):
            node.key_start, node.key_end = top.key_start, top.key_end
            top.value[str(key)] = value
            top.key = None
        else:
            top.value.append(value)
            top.key = len(top.value)

    def keep(self, error: TextError) -> None:
        self.errors.append(error)
        if len(self.errors) == MAX_ERRORS:
            self.stop("the file has more errors than are listed", error.start)

    def note(self, message: str, start: int, hint: str) -> None:
        """Record a use of YAML that JSON cannot express, and continue reading."""
        self.keep(TextError("SCHEMA005", message, start, hint=(hint,)))

    def stop(self, message: str, start: int, *, code: str = "SCHEMA002") -> NoReturn:
        raise UnreadableError(TextError(code, message, start))


def _explain(text: str, error: yaml.MarkedYAMLError) -> TextError:
    mark = error.problem_mark or error.context_mark
    start = mark.index if mark else 0
    said = f"{error.problem} {text[start : start + 1]!r}"
    began = error.context_mark
    cause = (f"it began on {spot(text, began.index)}",) if began and began.index < start else ()
    line = text[text.rfind("\n", 0, start) + 1 : start]
    for pattern, message, hint in _WORDING:
        if re.search(pattern, said):
            if message in _AFTER_OBJECT and _OBJECT_THEN.search(line):
                fact = "text follows an object: a value that begins with { is one, unless in quotes"
                return TextError("SCHEMA002", fact, start, cause, ("put the whole text in quotes",))
            return TextError("SCHEMA002", message, start, cause, (hint,))
    return TextError("SCHEMA002", f"this is not YAML: {show(error.problem or '')}", start, cause)


def plain(text: str) -> Data:
    """Return what an unquoted scalar means; numbers out of range raise ValueError."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "0123456789+-.":
        return text
    value: Data = text
    if _INTEGER.fullmatch(text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        value = int(text, base) if len(text) < 100 else INTEGERS.stop
        if value not in INTEGERS:
            raise ValueError
    elif _REAL.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise ValueError
    elif _INFINITE.fullmatch(text):
        raise ValueError
    return value
