"""Code frames: the line a finding is about, with a mark under the place."""

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from unicodedata import combining, east_asian_width

from weft.cli.streams import Paint, clean
from weft.findings import Finding

#: No more of a file is read to show a line of it; package files are not longer.
_MOST_BYTES: Final = 2 * 1024 * 1024
#: Longer lines are cut: this much before the mark, of the marked text, and after it.
_BEFORE: Final = 60
_MARKED: Final = 60
_AFTER: Final = 40
_CUT: Final = "..."
#: Findings about a secret: what they mark is not shown, since reports end in logs.
_SECRET: Final = frozenset({"VAR005"})
_HIDDEN: Final = 12


@dataclass
class SourceLines:
    """The lines of files, read when first asked for; the last file is kept, as findings are sorted.

    One of these serves one report: files may change between two.
    """

    _file: str = ""
    _lines: list[str] = field(default_factory=list[str])

    def line(self, file: str, number: int) -> str | None:
        """Return a line of a file, counting from 1, or None if there is none to show."""
        if file != self._file:
            self._file, self._lines = file, _read(Path(file))
        return self._lines[number - 1] if number <= len(self._lines) else None


def frame(finding: Finding, lines: SourceLines, paint: Paint) -> list[str]:
    """Return the frame of a finding, or nothing where its line is not known or cannot be read."""
    place = finding.place
    text = lines.line(place.file, place.line) if place.line else None
    if text is None:
        return []
    number = str(place.line)
    bar = paint(" " * len(number) + " |", "blue")
    head = paint(f"{number} |", "blue")
    if place.column is None:
        return [bar, f"{head} {_shown(_shortened(text, _BEFORE + _AFTER))}"]
    start = min(place.column - 1, len(text))
    before = _shown(_tail(text[:start]))
    marked = _shown(_shortened(text[start : start + place.length], _MARKED))
    if finding.code in _SECRET:
        marked = "*" * min(len(marked), _HIDDEN)
    after = _shown(_shortened(text[start + place.length :], _AFTER))
    style = "bold red" if finding.severity == "error" else "bold yellow"
    mark = " " * _width(before) + paint("^" * max(_width(marked), 1), style)
    return [bar, f"{head} {before}{marked}{after}".rstrip(), f"{bar} {mark}"]


def _read(path: Path) -> list[str]:
    """Read the start of a file; one that has gone since it was checked has no lines to show."""
    try:
        # Looked at before it is opened: opening a pipe would wait for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            return []
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES)
    except OSError:
        return []
    return [line.removesuffix("\r") for line in raw.decode("utf-8-sig", "replace").split("\n")]


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + _CUT


def _tail(text: str) -> str:
    return text if len(text) <= _BEFORE else _CUT + text[-_BEFORE:]


def _shown(text: str) -> str:
    """Make a part of a line printable; tabs become spaces, since marks are placed by counting."""
    return clean(text.replace("\t", "    "))


def _width(text: str) -> int:
    """Count the columns a text takes on a terminal."""
    return sum(2 if east_asian_width(char) in "WF" else not combining(char) for char in text)
