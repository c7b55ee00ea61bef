"""Changing a file by small edits of its text.

An edit touches only the characters it must, so comments, order and layout stay. Every new text is
read again and compared with the data as it should be. Where the two differ, because the place is
written in a way that cannot be changed piecemeal (an anchor and its aliases, an explicit key, a
kept line break, a comment in the middle of an entry), the whole file is rewritten, which keeps
the comments at the head of a YAML file and no others.
"""

import json
import re
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from weft.errors import PackageError
from weft.findings import AppendItem, Edit, Path, Remove, RenameKey, SetValue
from weft.packages.text.documents import (
    Document,
    Format,
    block_lines,
    compact,
    dump,
    inline_lines,
    parse_text,
    scalar,
)
from weft.packages.text.index import Container, Data, Node, Parsed, show

_HEAD: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*+")
_COMMA: Final = {
    "json": re.compile(r"(?:\s|//[^\n]*|/\*(?s:.*?)\*/)*+,"),
    "yaml": re.compile(r"(?:\s|#[^\n]*)*+,"),
}
_REST: Final = re.compile(r"[ \t]*(?:(?://|#)[^\n]*|/\*[^\n]*\*/[ \t\r]*)?(?:\n|\Z)")
_INDENT: Final = re.compile(r"\n([ \t]+)\S")


@dataclass(frozen=True, slots=True)
class Edited:
    """The text of a file after edits, and whether the whole file had to be rewritten."""

    text: str
    rewritten: bool = False


@dataclass(frozen=True, slots=True)
class Insert:
    """Add an entry or an item at the end of the container at `path`."""

    path: Path
    key: str | int
    value: Data


Step: TypeAlias = SetValue | RenameKey | Remove | Insert


def apply(document: Document, edits: Sequence[Edit]) -> Edited:
    """Return the text of a file after `edits`, one after the other.

    An edit that does not match the content raises PackageError, and nothing is changed.
    """
    if not document.ok:
        message = f"{document.file} cannot be changed before it can be read"
        raise PackageError(message, document.findings)
    edited = Edited(document.text)
    for edit in edits:
        changed = _change(document, edited.text, edit)
        edited = Edited(changed.text, edited.rewritten or changed.rewritten)
    return edited


def _change(document: Document, text: str, edit: Edit) -> Edited:
    parsed = parse_text(text, document.format)
    step = resolve(document.file, parsed.data, edit)
    wanted = apply_step(deepcopy(parsed.data), step)
    changed = _Text(text, document.format, parsed.root or Node(0, 0)).after(step)
    return apply_or_rewrite(text, changed, document.format, wanted)


def apply_or_rewrite(text: str, changed: str | None, form: Format, wanted: Data) -> Edited:
    """Return the changed text if it parses to the wanted data; otherwise rewrite the file."""
    if changed is not None and _same(parse_text(changed, form), wanted):
        return Edited(changed)
    head = _HEAD.match(text) if form == "yaml" else None
    return Edited((head[0] if head else "") + dump(wanted, form), rewritten=True)


def _same(parsed: Parsed, wanted: Data) -> bool:
    # As text, because 1, 1.0 and True are equal to each other, and so are dicts in any order.
    faultless = not any(error.code != "SCHEMA006" for error in parsed.errors)
    return faultless and json.dumps(parsed.data) == json.dumps(wanted)


def _container_of(key: str | int, value: Data) -> Container:
    return {key: value} if isinstance(key, str) else [value]


class _Text:
    """A text with the places of its values, which returns the text after one edit."""

    def __init__(self, text: str, form: Format, root: Node) -> None:
        self.text = text
        self.form: Format = form
        self.root = root
        self.newline = "\r\n" if "\r\n" in text else "\n"

    def after(self, step: Step) -> str | None:
        """Return the changed text; None if the whole file must be rewritten."""
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
        """Return whether values are written in brackets there, as in all of JSON."""
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
            return self.replace(trail, step.path, _container_of(step.key, step.value))
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
        return self.newline.join(block_lines(_container_of(key, value), " " * column)).lstrip(" ")

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
    """Remove a piece of text, with its line if nothing else is on it."""
    left = len(text[:begin].rstrip(" \t"))
    rest = _REST.match(text, end)
    if text[:left].endswith("\n"):
        return text[:left] + text[rest.end() :] if rest else text[:begin] + text[end:].lstrip(" \t")
    follows = text[end:].lstrip(" \t")
    return text[:left] + text[end:] if rest or follows[0] in "]}" else text[:begin] + follows


def resolve(file: str, data: Data, edit: Edit) -> Step:
    """Check an edit against the data, and distinguish adding from replacing."""
    trail = _trail(data, edit.path)
    there, missing = trail[-1], edit.path[len(trail) - 1 :]
    parent = trail[-2] if len(trail) > 1 else None
    match edit:
        case AppendItem() if isinstance(there, list) and not missing:
            return Insert(edit.path, len(there), cast("Data", edit.value))
        case AppendItem() if there is None or missing:
            return resolve(file, data, SetValue(edit.path, [edit.value]))
        case SetValue() if not missing:
            return edit
        case SetValue() if step := _addition(there, edit, len(trail) - 1):
            return step
        case Remove() if parent and not missing:
            return edit
        case RenameKey() if isinstance(parent, dict) and not missing and edit.key not in parent:
            return edit
        case _:
            path = ".".join(str(part) for part in edit.path)
            what = f"{type(edit).__name__} is not possible at {show(path)}"
            raise PackageError(f"{file} cannot be changed: {what}")


def _trail(data: Data, path: Path) -> list[Data]:
    """Return the values along a path, from the root as far as the path exists."""
    trail = [data]
    for part in path:
        here = trail[-1]
        in_list = isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here)
        if not in_list and not (isinstance(here, dict) and part in here):
            break
        trail.append(_entries(here)[part])
    return trail


def _addition(there: Data, edit: SetValue, depth: int) -> Step | None:
    """Return the step that adds a missing entry, with the objects around it, if one can."""
    path, key, inner = edit.path[:depth], edit.path[depth], edit.path[depth + 1 :]
    value: Data = cast("Data", edit.value)
    for part in reversed(inner):
        value = {str(part): value}
    if any(isinstance(part, int) for part in inner):
        return None
    if (isinstance(there, list) and key == len(there)) or (
        isinstance(there, dict) and isinstance(key, str)
    ):
        return Insert(path, key, value)
    return SetValue(path, {key: value}) if there is None and isinstance(key, str) else None


def apply_step(data: Data, step: Step) -> Data:
    if isinstance(step, Insert):
        container = _trail(data, step.path)[-1]
        if isinstance(container, list):
            container.append(step.value)
        else:
            _entries(container)[step.key] = step.value
        return data
    if not step.path:
        return cast("Data", step.value) if isinstance(step, SetValue) else data
    last, entries = step.path[-1], _entries(_trail(data, step.path)[-2])
    match step:
        case SetValue():
            entries[last] = cast("Data", step.value)
        case Remove():
            del entries[last]
        case _:
            renamed = {step.key if key == last else key: item for key, item in entries.items()}
            entries.clear()
            entries.update(renamed)
    return data


def _entries(container: Data) -> dict[str | int, Data]:
    """Treat a list like an object whose keys are its indexes, which reading and writing allow."""
    return cast("dict[str | int, Data]", container)
