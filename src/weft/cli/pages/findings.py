"""Findings and failures as text for people, with their source lines."""

import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.cli.failure import Failure
from weft.cli.streams import Paint, Streams, clean, shortened, width
from weft.findings import Finding
from weft.packages.text.hidden import COVER, ShownText, shown_text
from weft.packages.workspace import is_package

#: At most so much of a file is read to show a line of it; package files are shorter.
_MOST_BYTES: Final = 2 * 1024 * 1024
#: Longer lines are cut to this many columns before the mark, in it, and after it.
_BEFORE: Final = 63
_MARKED: Final = 63
_AFTER: Final = 43
_CUT: Final = "..."
#: The width of a frame where no terminal limits it, and the least width.
WIDEST: Final = _BEFORE + _MARKED + _AFTER + 10
_NARROWEST: Final = 24
#: Shown in place of a secret, whatever its length: reports end up in logs.
_COVERED: Final = re.compile(f"{COVER}+")
_STARS: Final = "*" * 12
#: Findings about a secret: the marked text is never shown.
_SECRET: Final = frozenset({"VAR005"})


@dataclass
class SourceLines:
    """The lines of files, read on demand. Only the last file is kept: findings are sorted.

    Use a new instance for each report: files may change in between.
    """

    _file: str = ""
    _text: ShownText | None = None

    def line(self, file: str, number: int) -> str | None:
        """Return a line of a file, counting from 1, or None if it cannot be shown.

        Possible secrets in it are covered.
        """
        if file != self._file:
            text = _read(Path(file))
            self._file, self._text = file, None if text is None else shown_text(file, text)
        return self._text.line(number) if self._text else None


def frame(finding: Finding, lines: SourceLines, paint: Paint, columns: int = WIDEST) -> list[str]:
    """Return the source line of a finding with a mark under the place; empty if it is unknown.

    No line is wider than `columns`: a line that the terminal wraps would separate mark and text.
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
    # At least one column for the mark, which may follow the last character.
    left = room - max(width(marked), 1)
    before = _end(text[:start], min(_BEFORE, left * 3 // 5))
    after = _begin(text[start + place.length :], min(_AFTER, left - width(before)))
    style = "bold red" if finding.severity == "error" else "bold yellow"
    mark = " " * width(before) + paint("^" * max(width(marked), 1), style)
    return [bar, f"{head} {before}{marked}{after}".rstrip(), f"{bar} {mark}"]


def _read(path: Path) -> str | None:
    """Return the start of a file; None if it no longer exists.

    None as well for a link that leads out of its package: its target must not be shown.
    """
    try:
        # Checked before it is opened: opening a pipe would block.
        if not stat.S_ISREG(path.stat().st_mode) or _leads_out(path):
            return None
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES)
    except OSError:
        return None
    return raw.decode("utf-8-sig", "replace")


def _leads_out(path: Path) -> bool:
    """Return whether a file, links resolved, is outside its package (or its folder)."""
    around = next((folder for folder in path.parents if is_package(folder)), path.parent)
    return not path.resolve().is_relative_to(around.resolve())


def _begin(text: str, most: int) -> str:
    """Return a printable text, cut at its end if it is too wide."""
    # Cut first: four characters per column are more than any readable text has.
    return shortened(_shown(text[: most * 4]), most)


def _end(text: str, most: int) -> str:
    """Return a printable text, cut at its beginning if it is too wide."""
    shown = _shown(text[-most * 4 :]) if text else ""
    if width(shown) <= most:
        return shown
    while width(shown) > most - len(_CUT):
        shown = shown[1:]
    return _CUT + shown


def _shown(text: str) -> str:
    """Return a part of a line as printable text; tabs become spaces so that marks line up.

    The number of stars does not depend on the length of the covered text.
    """
    return clean(_COVERED.sub(_STARS, text.replace("\t", "    ")))


_SEVERITY_STYLES: Final = {"error": "bold red", "warning": "bold yellow"}
#: At most so many hints are printed.
_MOST_HINTS: Final = 2


def full(findings: Iterable[Finding], paint: Paint, columns: int = WIDEST) -> str:
    """Return findings with source line, causes and hints, separated by blank lines."""
    lines = SourceLines()
    return "\n\n".join(_one_in_full(finding, lines, paint, columns) for finding in findings)


def concise(findings: Iterable[Finding], paint: Paint) -> str:
    """Return one line per finding."""
    return "\n".join(
        f"{paint(str(finding.place), 'bold')}: {_head(finding, paint)}"
        + (" [*]" if finding.fix else "")
        for finding in findings
    )


def failure_text(failure: Failure, paint: Paint, columns: int = WIDEST) -> str:
    """Return a failure: its findings, the message, the causes and the hints."""
    findings = [full(failure.findings, paint, columns) + "\n"] if failure.findings else []
    label = paint(f"error[{failure.code}]", _SEVERITY_STYLES["error"])
    head = f"{label}: {paint(failure.message, 'bold')}"
    more = failure.more or f"weft explain {failure.code}"
    tail = _tail(failure.cause, failure.hint[:_MOST_HINTS], more, paint)
    return "\n".join([*findings, head, *tail])


def _one_in_full(finding: Finding, lines: SourceLines, paint: Paint, columns: int) -> str:
    where = f"  {paint('-->', 'blue')} {paint(str(finding.place), '')}"
    hints = finding.hint
    if finding.fix:
        hints = (f"run `weft check --fix` to {finding.fix.title}      [*] safe fix", *hints)
    more = f"weft explain {finding.code}"
    tail = _tail(finding.cause, hints[:_MOST_HINTS], more, paint)
    shown = frame(finding, lines, paint, columns)
    return "\n".join([_head(finding, paint), where, *shown, *tail])


def _head(finding: Finding, paint: Paint) -> str:
    label = paint(f"{finding.severity}[{finding.code}]", _SEVERITY_STYLES[finding.severity])
    return f"{label}: {paint(finding.message, 'bold')}"


def _tail(cause: Iterable[str], hint: Iterable[str], more: str, paint: Paint) -> list[str]:
    return [
        *(f"  {paint('cause:', 'cyan')} {paint(text, '')}" for text in cause),
        *(f"  {paint('hint:', 'cyan')}  {paint(text, '')}" for text in hint),
        f"  {paint('more:', 'cyan')}  {paint(more, '')}",
    ]


def github(finding: Finding) -> str:
    """Return a finding as a GitHub workflow command, which annotates the line."""
    place = finding.place
    properties: dict[str, object] = {
        "file": place.file,
        "line": place.line,
        "col": place.column,
        "title": finding.code,
    }
    given = [f"{name}={_property(str(value))}" for name, value in properties.items() if value]
    text = "\n".join([finding.message, *finding.cause, *finding.hint])
    return f"::{finding.severity} {','.join(given)}::{_message(text)}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def painted_diff(diff: str, streams: Streams) -> list[str]:
    """Return the lines of a diff with colours."""
    styles = {"+": "green", "-": "red", "@": "cyan"}
    return [streams.paint(line, styles.get(line[:1], "")) for line in diff.splitlines()]
