"""Text of package files as it may be shown: what is or may be a secret is covered.

Reports end in logs, so a line that is shown to explain one error must not give away a key that
stands in it. A document that can be read says where its values are. Of any other text whole lines
are covered, since nobody knows where in them a value ends.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, TypeAlias

from weft.check.secrets import secret_in
from weft.packages.layout import SUFFIXES
from weft.packages.text.documents import format_of, parse_text
from weft.packages.text.index import Node

#: Stands for one character that is covered; a private one, so that it is not taken for text.
COVER: Final = "\ue000"

#: Keys under which a variable has its value, in the present spelling and in older ones.
_VALUE_KEYS: Final = frozenset({"value", "default", "initial", "default_value"})
_WORDS: Final = frozenset({"true", "false", "null", "~", ""})
_KEY: Final = re.compile(r"([A-Za-z_][\w-]*)[\"']?\s*[:=]")
_VALUE: Final = re.compile(r"[\"']([^\"'\n]+)|:[ \t]+([^\s\"'{\[#,][^\n#,}\]]*)")
_PARAMETER: Final = re.compile(r"[?&]([^=&#]+)=([^&#\"']*)")
#: So many lines above a value may name the variable it is of.
_ABOVE: Final = 12

_Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ShownText:
    """The lines of a file; in each that is asked for, what may be a secret is covered."""

    lines: tuple[str, ...]
    #: Where each line begins.
    starts: tuple[int, ...]
    #: The values that may be secret, as far as places are known.
    spans: tuple[_Span, ...]
    #: Whether the places of all values are known.
    indexed: bool

    def line(self, number: int) -> str | None:
        """Return a line, counting from 1, with columns where they were; None if there is none."""
        if number > len(self.lines):
            return None
        text, begin = self.lines[number - 1], self.starts[number - 1]
        if not self.indexed and _may_hold_secret(text, self.lines[: number - 1]):
            return re.sub(r"(?<=\S).|\S", COVER, text)
        for start, end in self.spans:
            left, right = max(start - begin, 0), min(end - begin, len(text))
            if left < right:
                text = text[:left] + COVER * (right - left) + text[right:]
        return text.removesuffix("\r")


def shown_text(file: str, text: str) -> ShownText:
    lines = tuple(text.split("\n"))
    starts = tuple(accumulate((len(line) + 1 for line in lines[:-1]), initial=0))
    if not file.endswith(SUFFIXES):
        return ShownText(lines, starts, (), indexed=False)
    parsed = parse_text(text, format_of(file))
    # Whatever was read before an error has its places.
    spans = tuple(_secret_spans(text, parsed.root or Node(0, 0)))
    indexed = all(error.code == "SCHEMA006" for error in parsed.errors)
    return ShownText(lines, starts, spans, indexed)


def _secret_spans(text: str, root: Node) -> Iterator[_Span]:
    pending: list[tuple[Node, tuple[str, ...], bool, bool]] = [(root, (), False, False)]
    while pending:
        node, labels, kept, valued = pending.pop()
        if node.children is None:
            if _is_secret(_raw(text, node), labels, kept=kept, valued=valued):
                yield node.start, node.end
            continue
        kept = kept or _raw(text, node.children.get("secret")) == "true"
        name = _raw(text, node.children.get("name"))
        inner = (*labels, name) if name else labels
        for key, child in node.children.items():
            below = (*inner, key) if isinstance(key, str) else inner
            pending.append((child, below, kept, valued or key in _VALUE_KEYS))


def _is_secret(raw: str, labels: tuple[str, ...], *, kept: bool, valued: bool) -> bool:
    """Judge a scalar by how it looks, and one that is a variable's value by its names as well."""
    if raw in _WORDS:
        return False
    parameters = _PARAMETER.finditer(raw)
    pairs = [("", raw), *((parameter[1], parameter[2]) for parameter in parameters)]
    if valued:
        pairs += [(label, raw) for label in labels]
    return (kept and valued) or any(secret_in(label, value) for label, value in pairs)


def _raw(text: str, node: Node | None) -> str:
    return text[node.start : node.end].strip("\"'") if node and node.children is None else ""


def _may_hold_secret(line: str, above: tuple[str, ...]) -> bool:
    """Judge a line of a text of which no places are known."""
    if secret_in("", line):
        return True
    keys = set(_KEY.findall(line))
    if keys & _VALUE_KEYS:
        keys.update(key for line_above in above[-_ABOVE:] for key in _KEY.findall(line_above))
    values = [(quoted or plain).strip() for quoted, plain in _VALUE.findall(line)]
    return any(secret_in(key, value) for key in keys for value in values if value not in _WORDS)
