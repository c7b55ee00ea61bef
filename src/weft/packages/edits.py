"""Changing a file by small edits of its text.

An edit touches only the characters it must, so comments, order and layout stay. Every new text is
read again and compared with the data as it should be. Where the two differ, because the place is
written in a way that cannot be changed piecemeal (an anchor and its aliases, an explicit key, a
kept line break, a comment in the middle of an entry), the whole file is written anew, which keeps
the comments at the head of a YAML file and no others.
"""

import json
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Final, cast

from weft.errors import PackageError
from weft.findings import Edit, Path, RenameKey, SetValue
from weft.packages.documents import Document, Format, parse_text
from weft.packages.dumping import block_lines, compact, dump, inline_lines, scalar
from weft.packages.edit_steps import Insert, Step, carried_out, resolve
from weft.packages.text_index import Container, Data, Node, Parsed

_HEAD: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*+")
_COMMA: Final = {
    "json": re.compile(r"(?:\s|//[^\n]*|/\*(?s:.*?)\*/)*+,"),
    "yaml": re.compile(r"(?:\s|#[^\n]*)*+,"),
}
_REST: Final = re.compile(r"[ \t]*(?:(?://|#)[^\n]*|/\*[^\n]*\*/[ \t\r]*)?(?:\n|\Z)")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")


@dataclass(frozen=True, slots=True)
class Edited:
    """The text of a file after edits, and whether it had to be written anew as a whole."""

    text: str
    anew: bool = False


def apply(document: Document, edits: Sequence[Edit]) -> Edited:
    """Return the text of a file after `edits`, one after the other.

    An edit that does not fit what the file holds raises PackageError, and nothing is changed.
    """
    if not document.ok:
        message = f"{document.file} cannot be changed before it can be read"
        raise PackageError(message, document.findings)
    edited = Edited(document.text)
    for edit in edits:
        changed = _change(document, edited.text, edit)
        edited = Edited(changed.text, edited.anew or changed.anew)
    return edited


def _change(document: Document, text: str, edit: Edit) -> Edited:
    parsed = parse_text(text, document.format)
    step = resolve(document.file, parsed.data, edit)
    wanted = carried_out(deepcopy(parsed.data), step)
    changed = _Text(text, document.format, parsed.root or Node(0, 0)).after(step)
    return settled(text, changed, document.format, wanted)


def settled(text: str, changed: str | None, form: Format, wanted: Data) -> Edited:
    """Return a changed text if it holds what it should, or else write the file anew."""
    if changed is not None and _same(parse_text(changed, form), wanted):
        return Edited(changed)
    head = _HEAD.match(text) if form == "yaml" else None
    return Edited((head[0] if head else "") + dump(wanted, form), anew=True)


def _same(parsed: Parsed, wanted: Data) -> bool:
    # As text, because 1, 1.0 and True are equal to each other, and so are dicts in any order.
    faultless = not any(fault.code != "SCHEMA006" for fault in parsed.faults)
    return faultless and json.dumps(parsed.data) == json.dumps(wanted)


def _wrapped(key: str | int, value: Data) -> Container:
    return {key: value} if isinstance(key, str) else [value]


class _Text:
    """A text and the places in it, able to give the text after one step."""

    def __init__(self, text: str, form: Format, root: Node) -> None:
        self.text = text
        self.form: Format = form
        self.root = root
        self.newline = "\r\n" if "\r\n" in text else "\n"

    def after(self, step: Step) -> str | None:
        """Return the changed text; None where only writing the whole file anew can do."""
        trail = [self.root]
        for part in step.path:
            trail.append((trail[-1].children or {})[part])
        match step:
            case Insert():
                return self.insert(trail, step)
            case SetValue():
                return self.replace(trail, step.path, cast("Data", step.value))
            case RenameKey():
                key = compact(step.key, self.form) if self.in_flow(trail[:-1]) else scalar(step.key)
                return self.splice(trail[-1].key_start, trail[-1].key_end, key)
            case _:
                return self.remove(trail, step.path)

    def splice(self, start: int, end: int, new: str) -> str:
        return self.text[:start] + new + self.text[end:]

    def put(self, node: Node, new: str) -> str:
        """Put a value in the place of another, apart from the colon or dash before it."""
        bare = node.start == node.end and self.text[node.start - 1 : node.start] in {":", "-"}
        return self.splice(node.start, node.end, f" {new}" if bare else new)

    def in_flow(self, trail: list[Node]) -> bool:
        """Tell whether values are written in brackets there, as in all of JSON."""
        return self.form == "json" or any(self.text[node.start] in "{[" for node in trail)

    def replace(self, trail: list[Node], path: Path, value: Data) -> str | None:
        node = trail[-1]
        if not self.in_flow(trail[:-1]):
            return self.replace_block(node, path[-1], value) if path else None
        above = trail[-2].start if path else 0
        spread = "\n" in self.text[above : node.start] or (not path and "\n" in self.text)
        new = self.spread(value, node.start) if spread else compact(value, self.form)
        return self.put(node, new)

    def insert(self, trail: list[Node], step: Insert) -> str | None:
        node = trail[-1]
        children = list((node.children or {}).values())
        if not children:
            return self.replace(trail, step.path, _wrapped(step.key, step.value))
        if not self.in_flow(trail):
            end = self.line_end(node.end)
            column = self.column(node.start)
            new = self.newline + " " * column + self.block(step.key, step.value, column)
            return self.splice(end, end, new)
        first, last = children[0], children[-1]
        pad = self.text[node.start + 1 : self.begin(first, flow=True)]
        multiline = "\n" in pad
        value = (
            self.spread(step.value, first.start) if multiline else compact(step.value, self.form)
        )
        entry = f"{compact(step.key, self.form)}: {value}" if isinstance(step.key, str) else value
        comma = "" if self.comma(last.end) >= 0 else ","
        end = len(self.text[: node.end - 1].rstrip())
        gap = self.newline + self.indent(first.start) if multiline else " "
        return (
            self.text[: last.end]
            + comma
            + self.text[last.end : end]
            + gap
            + entry
            + self.text[end:]
        )

    def remove(self, trail: list[Node], path: Path) -> str | None:
        above, node = trail[-2], trail[-1]
        children = list((above.children or {}).values())
        at = children.index(node)
        if len(children) == 1:
            empty: Container = {} if isinstance(path[-1], str) else []
            return self.replace(trail[:-1], path[:-1], empty)
        flow = self.in_flow(trail[:-1])
        begin, end = self.begin(node, flow=flow), node.end
        if not flow:
            line = begin - self.column(begin)
            if self.text[line:begin].strip():  # the first entry may share the line of a dash
                return self.splice(begin, self.begin(children[1], flow=False), "")
            return self.splice(line, self.line_end(end) + len(self.newline), "")
        after = self.comma(end)
        if after >= 0:
            return _cut(self.text, begin, after + 1)
        before = self.comma(children[at - 1].end)
        return _cut(self.splice(before, before + 1, ""), begin - 1, end - 1)

    def replace_block(self, node: Node, key: str | int, value: Data) -> str:
        """Replace a value in a YAML block: in its line if it fits there, else with its entry."""
        old = self.text[node.start : node.end]
        in_line = "\n" not in old and (node.children is None or old[0] in "{[")
        lines = (
            [] if value and isinstance(value, dict | list) else list(inline_lines("", value, ""))
        )
        if in_line and len(lines) == 1:
            return self.put(node, lines[0].lstrip())
        begin = self.begin(node, flow=False)
        return self.splice(begin, node.end, self.block(key, value, self.column(begin)))

    def block(self, key: str | int, value: Data, column: int) -> str:
        """Return an entry or item in block style, to be put at a column."""
        return self.newline.join(block_lines(_wrapped(key, value), " " * column)).lstrip(" ")

    def spread(self, value: Data, start: int) -> str:
        if self.form == "yaml":
            return compact(value, self.form)
        unit = _INDENT.search(self.text)
        indent = unit[1] if unit else "  "
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
        return text.replace("\n", self.newline + self.indent(start))

    def begin(self, node: Node, *, flow: bool) -> int:
        """Return where an entry or item begins: at its key, its value or its dash."""
        if node.key_start >= 0:
            return node.key_start
        return node.start if flow else self.text.rfind("-", 0, node.start)

    def comma(self, start: int) -> int:
        match = _COMMA[self.form].match(self.text, start)
        return match.end() - 1 if match else -1

    def column(self, start: int) -> int:
        return start - self.text.rfind("\n", 0, start) - 1

    def indent(self, start: int) -> str:
        line = self.text[start - self.column(start) : start]
        return line[: len(line) - len(line.lstrip())]

    def line_end(self, start: int) -> int:
        end = self.text.find(self.newline, start)
        return len(self.text) if end < 0 else end


def _cut(text: str, begin: int, end: int) -> str:
    """Take a piece out, with the line it stood on if nothing else stands there."""
    left = len(text[:begin].rstrip(" \t"))
    rest = _REST.match(text, end)
    if text[:left].endswith("\n"):
        return text[:left] + text[rest.end() :] if rest else text[:begin] + text[end:].lstrip(" \t")
    follows = text[end:].lstrip(" \t")
    return text[:left] + text[end:] if rest or follows[0] in "]}" else text[:begin] + follows
