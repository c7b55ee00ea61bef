"""The outermost form of a file: the wrapper around its content, and the pointer to its schema.

Both are put on as text, so that comments and layout stay. As with every edit, the new text is read
again; where it does not hold what it should, the file is written anew.
"""

import re
from typing import Final, cast

from weft.packages.documents import Format, parse_text
from weft.packages.edits import Edited, settled
from weft.packages.text_index import Data, Node

_HEAD: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*+")
_LINE_START: Final = re.compile(r"^(?=[^\r\n])", re.MULTILINE)
_INDENT: Final = re.compile(r"\n([ \t]+)\S")
_NEXT_LINE: Final = re.compile(r"[ \t\r]*\n([ \t]*)(?=\S)")
_POINTER: Final = "# yaml-language-server: $schema="


def put_around(text: str, form: Format, key: str) -> Edited:
    """Put all that a file holds under a key."""
    wanted: Data = {key: parse_text(text, form).data}
    around = _json_around if form == "json" else _yaml_around
    return settled(text, around(text, key, _newline(text)), form, wanted)


def _json_around(text: str, key: str, newline: str) -> str:
    content = text.strip()
    if "\n" not in content:
        return f'{{"{key}": {content}}}{newline}'
    unit = _INDENT.search(content)
    indent = unit[1] if unit else "  "
    moved = _LINE_START.sub(indent, content).removeprefix(indent)
    return f'{{{newline}{indent}"{key}": {moved}{newline}}}{newline}'


def _yaml_around(text: str, key: str, newline: str) -> str:
    head = _HEAD.match(text)
    end = head.end() if head else 0
    return f"{text[:end]}{key}:{newline}{_LINE_START.sub('  ', text[end:])}"


def point_at_schema(text: str, form: Format, pointer: str) -> str:
    """Let editors find the schema of a file, unless it says already where that is."""
    parsed, newline = parse_text(text, form), _newline(text)
    held = cast("dict[str, Data]", parsed.data)
    if "$schema" in held or (form == "yaml" and _POINTER in text):
        return text
    if form == "yaml":
        return f"{_POINTER}{pointer}{newline}{text}"
    at = (parsed.root or Node(0, 0)).start + 1
    below = _NEXT_LINE.match(text, at)
    gap = newline + below[1] if below else ""
    apart = ("," if below else ", ") if held else ""
    return f'{text[:at]}{gap}"$schema": "{pointer}"{apart}{text[at:]}'


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
