"""Text of package files for display, with possible secrets masked.

Reports end in logs, so a line that is shown to explain an error must not reveal a key in it. In a
document that parses, the places of values are known. In any other text whole lines are masked,
because it is unknown where a value ends.
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

#: Replaces one masked character; a private-use character, so that it differs from all text.
COVER: Final = "\ue000"

#: Keys of a variable's value, in current and older spellings.
_VALUE_KEYS: Final = frozenset({"value", "default", "initial", "default_value"})
_WORDS: Final = frozenset({"true", "false", "null", "~", ""})
_KEY: Final = re.compile(r"([A-Za-z_][\w-]*)[\"']?\s*[:=]")
_VALUE: Final = re.compile(r"[\"']([^\"'\n]+)|:[ \t]+([^\s\"'{\[#,][^\n#,}\]]*)")
_PARAMETER: Final = re.compile(r"[?&]([^=&#]+)=([^&#\"']*)")
#: How many lines above a value may name its variable.
_ABOVE: Final = 12

_Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ShownText:
    """The lines of a file, with possible secrets masked."""

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
    # Values before the error have places.
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
    """Return whether a scalar looks like a secret; for a variable's value names count as well."""
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
    """Return whether a line without known places may contain a secret."""
    if secret_in("", line):
        return True
    keys = set(_KEY.findall(line))
    if keys & _VALUE_KEYS:
        keys.update(key for line_above in above[-_ABOVE:] for key in _KEY.findall(line_above))
    values = [(quoted or plain).strip() for quoted, plain in _VALUE.findall(line)]
    return any(secret_in(key, value) for key in keys for value in values if value not in _WORDS)
