"""One declared file: its text, its data, and the place of each value in the text."""

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final, Literal, TypeAlias, cast

from weft.catalogue import CATALOGUE
from weft.findings import Finding, Json, Path, Place, is_error
from weft.packages.text import json_text
from weft.packages.text.index import Container, Data, Node, Parsed, TextError, line_column

Format: TypeAlias = Literal["json", "yaml"]

#: The longest file that is read. Larger ones are refused by their size, before they are opened.
MAX_BYTES: Final = 2 * 1024 * 1024

_CONTROLS: Final = bytes(code for code in range(32) if code not in b"\t\n\r")
_CONTROL: Final = re.compile(f"[{re.escape(_CONTROLS.decode())}]")
_HEX: Final = "[0-9a-fA-F]"
_PAIR: Final = rf"\\u[dD][89abAB]{_HEX}{{2}}\\u[dD][c-fC-F]{_HEX}{{2}}"

#: How one character of a string is written, by the quote that opens it.
_UNITS: Final = {
    '"': re.compile(rf"{_PAIR}|\\x{_HEX}{{2}}|\\u{_HEX}{{4}}|\\U{_HEX}{{8}}|\\.|."),
    "'": re.compile(r"''|."),
}
_PROPERTIES: Final = re.compile(r"(?:[&!]\S*\s+)*")
_LITERAL: Final = re.compile(r"\|[-+]?[ \t]*(?:#[^\n]*)?\r?\n((?:[ ]*\r?\n)*)( +)")


@dataclass(frozen=True, eq=False)
class Document:
    """One file as read. `data` is None where a finding of severity error says why.

    Places remain available after containers of `data` are moved or changed: `origin` has the first
    path of each container, provided it was read before the first change.
    """

    file: str
    text: str
    format: Format
    data: Json
    findings: tuple[Finding, ...] = ()
    root: Node | None = field(default=None, repr=False)

    @property
    def ok(self) -> bool:
        """Return whether the file could be read; a warning does not count against it."""
        return not any(is_error(finding) for finding in self.findings)

    @cached_property
    def index(self) -> Node:
        """The offsets of all values in the text; built on first use."""
        return self.root or parse_text(self.text, self.format).root or Node(0, 0)

    @cached_property
    def _containers(self) -> list[tuple[Path, Container]]:
        # Kept as long as the document: an id is valid only while its object exists.
        return _containers(cast("Data", self.data))

    @cached_property
    def origin(self) -> dict[int, Path]:
        """The original path of each object and list of `data`, by its `id`.

        Ask before changing `data`: the answer is computed once and then stays.
        """
        return {id(container): path for path, container in self._containers}

    def place(self, path: Path, *, key: bool = False, offset: int | None = None) -> Place:
        """Return the place of a value, of its key, or of the character `offset` of a string.

        A path that does not exist gives the place of its deepest part that does. The mark is as
        long as the value or key is on its first line, or one character at an offset.
        """
        node, found = self._find(path)
        start, end = node.start, node.end
        if found and key and node.key_start >= 0:
            start, end = node.key_start, node.key_end
        elif found and offset is not None:
            start = _inside(self.text, node, offset)
            end = start + 1
        return Place(
            self.file, *line_column(self.text, start), _finding_width(self.text, start, end)
        )

    def _find(self, path: Path) -> tuple[Node, bool]:
        node = self.index
        for part in path:
            child = (node.children or {}).get(part)
            if child is None:
                return node, False
            node = child
        return node, True


def too_large(file: str, size: int) -> Finding | None:
    """Return the finding for a file of `size` bytes that is too long to be read, or None."""
    if size <= MAX_BYTES:
        return None
    message = f"the file is {size:,} bytes long; at most {MAX_BYTES:,} are read"
    hint = ("move large content to a data file of your own",)
    return Finding("SCHEMA001", "error", message, Place(file, 1, 1), hint=hint)


def decode(raw: bytes) -> tuple[str, TextError | None]:
    """Turn the bytes of a file into text; on an error, the text before it and the error."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "", _encoding("the file is saved as UTF-16, not as UTF-8", 0)
    body = raw.removeprefix(codecs.BOM_UTF8)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        before = body[: error.start].decode()
        at = error.start + len(raw) - len(body)
        message = f"byte 0x{raw[at]:02x} at offset {at} is not UTF-8"
        return before, _encoding(message, len(before))
    control = None if len(body.translate(None, _CONTROLS)) == len(body) else _CONTROL.search(text)
    if control is None:
        return text, None
    message = f"the control character {control[0]!a} is not allowed in a file"
    return text, _encoding(message, control.start())


def read(file: str, raw: bytes) -> Document:
    """Read the bytes of one declared file; errors become findings of the document."""
    if refusal := too_large(file, len(raw)):
        return Document(file, "", format_of(file), None, (refusal,), Node(0, 0))
    text, error = decode(raw)
    if error:
        refusal = finding(file, text, error)
        return Document(file, text, format_of(file), None, (refusal,), Node(0, 0))
    return read_text(file, text)


def read_text(file: str, text: str) -> Document:
    """Read the text of one declared file, as JSON or YAML according to its name."""
    form = format_of(file)
    parsed = json_text.load(text) if form == "json" else parse_text(text, form)
    findings = tuple(finding(file, text, error) for error in parsed.errors)
    return Document(file, text, form, parsed.data, findings, parsed.root)


def parse_text(text: str, form: Format) -> Parsed:
    if form == "json":
        return json_text.parse(text)
    # Deferred: most packages are JSON, and the YAML library loads slowly.
    from weft.packages.text import yaml_text  # noqa: PLC0415

    return yaml_text.parse(text)


def format_of(file: str) -> Format:
    return "json" if file.lower().endswith(".json") else "yaml"


def finding(file: str, text: str, error: TextError) -> Finding:
    """Turn an error at an offset into a finding at a line and column."""
    width = _finding_width(text, error.start, error.start + error.length)
    place = Place(file, *line_column(text, error.start), width)
    severity = CATALOGUE[error.code].severity
    return Finding(error.code, severity, error.message, place, error.cause, error.hint)


def _encoding(message: str, start: int) -> TextError:
    return TextError("SCHEMA001", message, start, hint=("save the file as UTF-8 text",))


def _containers(data: Data) -> list[tuple[Path, Container]]:
    found: list[tuple[Path, Container]] = [((), data)] if isinstance(data, dict | list) else []
    for path, container in found:  # grows during iteration, instead of recursion
        entries: Iterable[tuple[str | int, Data]] = (
            container.items() if isinstance(container, dict) else enumerate(container)
        )
        found.extend(
            ((*path, key), value) for key, value in entries if isinstance(value, dict | list)
        )
    return found


def _finding_width(text: str, start: int, end: int) -> int:
    """Return how many characters of its first line a piece of text takes, at least 1."""
    return max(len(text[start:end].split("\n", 1)[0].rstrip()), 1)


def _inside(text: str, node: Node, offset: int) -> int:
    """Return the offset of a character of a string; its start where lines are folded into one."""
    properties = _PROPERTIES.match(text, node.start, node.end)
    begin = properties.end() if properties else node.start
    literal = _LITERAL.match(text, begin, node.end)
    if literal:
        return _inside_literal(text, literal, node.end, offset)
    raw = text[begin : node.end]
    if node.children is not None or "\n" in raw or raw.startswith("*"):
        return begin
    units = _UNITS.get(raw[:1])
    if units is None:
        return min(begin + offset, node.end)
    at = begin + 1
    for unit in islice(units.finditer(text, at, node.end - 1), offset):
        at = unit.end()
    return at


def _inside_literal(text: str, literal: re.Match[str], end: int, offset: int) -> int:
    at, indent = literal.start(1), len(literal[2])
    for line in text[at:end].split("\n"):
        margin = min(len(line.removesuffix("\r")), indent)
        width = len(line.removesuffix("\r")) - margin
        if offset <= width:
            return at + margin + offset
        offset -= width + 1
        at += len(line) + 1
    return end


#: Characters that YAML refuses, or reads as line breaks, unless they are written as escapes.
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
#: Words that some YAML parsers do not read as text.
_TAKEN: Final = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


def dump(data: Json, form: Format) -> str:
    """Return data as the text of a whole file: JSON, or YAML in block style."""
    value = cast("Data", data)
    if form == "json":
        return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    lines = (
        block_lines(value, "")
        if value and isinstance(value, dict | list)
        else inline_lines("", value, "")
    )
    return "\n".join(lines).lstrip(" ") + "\n"


def block_lines(value: Container, pad: str) -> Iterator[str]:
    """Write an object or a list that is not empty, one line after the other."""
    if isinstance(value, dict):
        for key, item in value.items():
            text = scalar(key)
            # A key in front of its colon may have at most 1024 characters.
            head = f"{pad}{text}:" if len(text) < 1000 else f"{pad}? {text}\n{pad}:"
            if item and isinstance(item, dict | list):
                yield head
                yield from block_lines(item, pad + "  ")
            else:
                yield from inline_lines(head, item, pad)
    else:
        for item in value:
            if item and isinstance(item, dict | list):
                first, *others = block_lines(item, pad + "  ")
                yield f"{pad}- {first.lstrip(' ')}"
                yield from others
            else:
                yield from inline_lines(f"{pad}-", item, pad)


def inline_lines(head: str, value: Data, pad: str) -> Iterator[str]:
    """Write a value that follows its key or dash: in the same line, or as a literal block."""
    if not (isinstance(value, str) and _is_literal(value)):
        yield f"{head} {scalar(value)}"
        return
    yield f"{head} |" if value.endswith("\n") else f"{head} |-"
    for line in value.removesuffix("\n").split("\n"):
        yield f"{pad}  {line}" if line else ""


def scalar(value: Data) -> str:
    if isinstance(value, str):
        quoted = json.dumps(value, ensure_ascii=False)
        return value if _is_plain(value) else _UNSAFE.sub(_escape, quoted)
    text = json.dumps(value, allow_nan=False)
    # Some readers take a number for one with an exponent only if it has a point too.
    return text.replace("e", ".0e") if isinstance(value, float) and "." not in text else text


def compact(value: Data, form: Format) -> str:
    """Write a value in one line as JSON does it, which YAML reads inside brackets too."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if form == "json" else _UNSAFE.sub(_escape, text)


def _is_plain(text: str) -> bool:
    """Return whether every YAML reader reads the text unchanged without quotes in a block."""
    return (
        (text[:1].isalpha() or text.startswith("_"))
        and text.isprintable()
        and not text.endswith((" ", ":"))
        and ": " not in text
        and " #" not in text
        and text.lower() not in _TAKEN
    )


def _is_literal(text: str) -> bool:
    """Return whether text of several lines can be written as a literal block."""
    return (
        "\n" in text
        and not text[0].isspace()
        and not text.endswith("\n\n")
        and not _UNSAFE.search(text)
    )


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
