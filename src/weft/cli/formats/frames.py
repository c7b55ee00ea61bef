"""Code frames: the line a finding is about, with a mark under the place."""

import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.cli.streams import Paint
from weft.cli.text import clean, shortened, width
from weft.findings import Finding
from weft.packages.text.hidden import COVER, ShownText, shown_text
from weft.packages.workspace import is_package

#: No more of a file is read to show a line of it; package files are not longer.
_MOST_BYTES: Final = 2 * 1024 * 1024
#: Longer lines are cut: this many columns before the mark, of the marked text, and after it.
_BEFORE: Final = 63
_MARKED: Final = 63
_AFTER: Final = 43
_CUT: Final = "..."
#: How wide a frame may be where nobody's terminal sets a limit, and how narrow it can be.
WIDEST: Final = _BEFORE + _MARKED + _AFTER + 10
_NARROWEST: Final = 24
#: What is shown for a secret, however long it is, since reports end in logs.
_COVERED: Final = re.compile(f"{COVER}+")
_STARS: Final = "*" * 12
#: Findings that are about a secret: what they mark is not shown, whatever it looks like.
_SECRET: Final = frozenset({"VAR005"})


@dataclass
class SourceLines:
    """The lines of files, read when first asked for; the last file is kept, as findings are sorted.

    One of these serves one report: files may change between two.
    """

    _file: str = ""
    _text: ShownText | None = None

    def line(self, file: str, number: int) -> str | None:
        """Return a line of a file, counting from 1, or None if there is none to show.

        What may be a secret is covered in it.
        """
        if file != self._file:
            text = _read(Path(file))
            self._file, self._text = file, None if text is None else shown_text(file, text)
        return self._text.line(number) if self._text else None


def frame(finding: Finding, lines: SourceLines, paint: Paint, columns: int = WIDEST) -> list[str]:
    """Return the frame of a finding, or nothing where its line is not known or cannot be read.

    No line of it takes more than `columns`: a line the terminal breaks would part mark and text.
    """
    place = finding.place
    text = lines.line(place.file, place.line) if place.line else None
    if text is None:
        return []
    number = str(place.line)
    bar = paint(" " * len(number) + " |", "blue")
    head = paint(f"{number} |", "blue")
    room = max(columns - len(number) - len(" | "), _NARROWEST)
    if place.column is None:
        return [bar, f"{head} {_begin(text, min(_BEFORE + _AFTER, room))}"]
    start = min(place.column - 1, len(text))
    marked = text[start : start + place.length]
    marked = _begin(COVER if finding.code in _SECRET else marked, min(_MARKED, room // 2))
    # At least one column for the mark, which may stand behind the last character.
    left = room - max(width(marked), 1)
    before = _end(text[:start], min(_BEFORE, left * 3 // 5))
    after = _begin(text[start + place.length :], min(_AFTER, left - width(before)))
    style = "bold red" if finding.severity == "error" else "bold yellow"
    mark = " " * width(before) + paint("^" * max(width(marked), 1), style)
    return [bar, f"{head} {before}{marked}{after}".rstrip(), f"{bar} {mark}"]


def _read(path: Path) -> str | None:
    """Read the start of a file; one that has gone since it was checked has nothing to show.

    Nor has one outside of what was checked: a link in a package must not show what it leads to.
    """
    try:
        # Looked at before it is opened: opening a pipe would wait for ever.
        if not stat.S_ISREG(path.stat().st_mode) or _leads_out(path):
            return None
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES)
    except OSError:
        return None
    return raw.decode("utf-8-sig", "replace")


def _leads_out(path: Path) -> bool:
    """Tell whether a file is not inside the package it is named in, or else in its own folder."""
    around = next((it for it in path.parents if is_package(it)), path.parent)
    return not path.resolve().is_relative_to(around.resolve())


def _begin(text: str, most: int) -> str:
    """Return a text as it can be shown, without its end where it takes too many columns."""
    # No character takes less than a quarter of a column in a text worth showing.
    return shortened(_shown(text[: most * 4]), most)


def _end(text: str, most: int) -> str:
    """Return a text as it can be shown, without its beginning where it takes too many columns."""
    shown = _shown(text[-most * 4 :]) if text else ""
    if width(shown) <= most:
        return shown
    while width(shown) > most - len(_CUT):
        shown = shown[1:]
    return _CUT + shown


def _shown(text: str) -> str:
    """Make a part of a line printable; tabs become spaces, since marks are placed by counting.

    However much is covered, the same number of stars stands for it.
    """
    return clean(_COVERED.sub(_STARS, text.replace("\t", "    ")))
