"""Text for terminals, and the streams it is printed to: results to stdout, the rest to stderr."""

import json
import os
import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from shlex import quote
from textwrap import fill
from typing import Any, Final, TextIO, TypeAlias, cast
from unicodedata import combining, east_asian_width

from weft.cli.failure import CommandFailed, Exit, Failure, not_found, usage
from weft.cli.settings import Settings
from weft.findings import Json

#: Characters that move the cursor, change colours or the direction of writing.
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")

_CUT: Final = "..."

#: The least width to which text is wrapped or cut.
_LEAST: Final = 16


def width(text: str) -> int:
    """Count the columns a text takes on a terminal."""
    return sum(2 if east_asian_width(char) in "WF" else not combining(char) for char in text)


def padded(text: str, columns: int) -> str:
    """Fill a text up with spaces."""
    return text + " " * (columns - width(text))


def shortened(text: str, columns: int) -> str:
    """Cut a text to a number of columns; it ends with three dots if it was cut."""
    if width(text) <= columns:
        return text
    room = max(columns - len(_CUT), 1)
    ends = accumulate(width(char) for char in text)
    return text[: sum(end <= room for end in ends)] + _CUT


def folded(text: str, columns: int, *, most: int = 3) -> list[str]:
    """Wrap a line between words, and cut it after `most` lines.

    The lines after the first have a deeper margin.
    """
    margin = len(text) - len(text.lstrip(" "))
    indent = " " * (margin + 2)
    lines: list[str] = []
    current = " " * margin
    words = text.split()
    for number, word in enumerate(words):
        longer = current + word if current.isspace() or not current else f"{current} {word}"
        if width(longer) <= max(columns, _LEAST) or current.isspace() or not current:
            current = longer
            continue
        if len(lines) == most - 1:
            return [*lines, shortened(" ".join((current, *words[number:])), max(columns, _LEAST))]
        lines.append(current)
        current = indent + word
    return [shortened(line, max(columns, _LEAST)) for line in (*lines, current)]


def clean(text: str) -> str:
    """Escape control characters, so that the text of a file cannot control the terminal."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def clean_lines(text: str) -> str:
    """Escape control characters in text of several lines, and keep the lines."""
    return "\n".join(clean(line.expandtabs(4)) for line in text.replace("\r\n", "\n").split("\n"))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: 1 file, 2 files."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def at_time(milliseconds: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return a time in the local time zone."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone().strftime(form)


def value_text(value: Json) -> str:
    """Return a value as JSON in one line."""
    return json.dumps(value, ensure_ascii=False)


def json_or_text(text: str) -> Json:
    """Return the value of a text that may be JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


#: Applies a style of rich to a text, or returns it unchanged where colour is off.
Paint: TypeAlias = Callable[[str, str], str]


#: The width of a file or pipe, which has no limit.
_ENDLESS: Final = 1000


class OutputLost(CommandFailed):
    """Results could not be written, for example because the disk is full."""

    def __init__(self, error: OSError) -> None:
        reason = (error.strerror or type(error).__name__).lower()
        super().__init__(Failure(Exit.SETUP, f"cannot write the output: {reason}"))


def plain(text: str, style: str) -> str:  # noqa: ARG001 - the signature of every Paint
    """Return a text without colour."""
    return clean(text)


def colored(text: str, style: str) -> str:
    """Return a text with colour for a terminal."""
    # Deferred: piped output does not need it.
    from rich.color import ColorSystem  # noqa: PLC0415
    from rich.style import Style  # noqa: PLC0415

    return Style.parse(style).render(clean(text), color_system=ColorSystem.STANDARD)


@dataclass(frozen=True)
class Streams:
    """The two streams of a command, and how text is printed to them."""

    settings: Settings = Settings()  # noqa: RUF009 - frozen, so it can be shared

    @property
    def paint(self) -> Paint:
        """The function that colours results."""
        return colored if self.settings.color else plain

    @property
    def paint_error(self) -> Paint:
        """The function that colours errors."""
        return colored if self.settings.error_color else plain

    @property
    def columns(self) -> int:
        """The greatest width of a line of results."""
        return self.settings.columns if self.settings.terminal else _ENDLESS

    @property
    def error_columns(self) -> int:
        """The greatest width of a line of errors."""
        return self.settings.columns if sys.stderr.isatty() else _ENDLESS

    def result(self, text: str) -> None:
        """Print a part of the result."""
        _write(results(), text)

    def part(self, text: str) -> None:
        """Print a piece of a line immediately, as a model streams it."""
        _write(results(), text, end="")
        finish()

    def note(self, text: str) -> None:
        """Print what was done or what to do next; nothing with --json or --quiet."""
        if not (self.settings.quiet or self.settings.json):
            _write(sys.stderr, text)

    def aside(self, *texts: str) -> None:
        """Print notes in grey; empty ones are left out."""
        for text in filter(None, texts):
            self.note(self.paint_error(clean(text), "dim"))

    def status(self, text: str) -> None:
        """Show progress on a terminal, in place of the progress shown before.

        The line stays: clear it with an empty text before printing anything else.
        """
        if sys.stderr.isatty() and not (self.settings.quiet or self.settings.json):
            room = self.settings.columns - 1
            line = padded(shortened(clean(text), room), room)
            _write(
                sys.stderr, f"\r{self.paint_error(line, 'dim')}{'' if text else chr(13)}", end=""
            )
            sys.stderr.flush()

    def detail(self, text: str) -> None:
        """Print a detail, only with --verbose."""
        if self.settings.verbose:
            _write(sys.stderr, text)

    def problem(self, text: str) -> None:
        """Print an error, even with --quiet."""
        _write(sys.stderr, text)

    def prose(self, text: str) -> str:
        """Return a paragraph, wrapped for a person, in one line for a program."""
        return fill(text, self.settings.columns) if self.settings.terminal else text

    def table(
        self,
        rows: Sequence[tuple[str, ...]],
        *,
        head: tuple[str, ...] = (),
        styles: Mapping[str, str] | None = None,
        least: int = 0,
    ) -> str:
        """Return rows in columns for a person, with tabs between cells for a program.

        Only a person needs a `head`. `styles` colours cells by their text. With `least`, the last
        cell of a row is cut to the width of the terminal, but not below `least`.
        """
        cleaned = [tuple(clean(cell) for cell in row) for row in rows]
        if not self.settings.terminal:
            return "\n".join("\t".join(row) for row in cleaned)
        if head and cleaned:
            cleaned.insert(0, head)
        widths = [max(width(cell) for cell in column) for column in zip(*cleaned, strict=True)]
        room = max(self.columns - sum(widths[:-1]) - 2 * len(widths) + 2, least)
        lines: list[str] = []
        for row in cleaned:
            last = shortened(row[-1], room) if least else row[-1]
            padding = [" " * (most - width(cell)) for cell, most in zip(row, widths, strict=True)]
            cells = [
                (self.paint(cell, styles[cell]) if styles and cell in styles else cell) + space
                for cell, space in zip((*row[:-1], last), padding, strict=True)
            ]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


def prepare() -> None:
    """Ensure that both streams exist and can print any text, escaped if necessary."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        sys.stdout = _nowhere()
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = _nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")


def finish() -> None:
    """Flush both streams, so that a full disk is noticed here and not at exit."""
    for stream in (results(), sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            _lose(stream, error)


def silence(stream: TextIO) -> None:
    """Discard further output of a stream, so that closing it at exit cannot fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open to the end


def _write(stream: TextIO, text: str, end: str = "\n") -> None:
    try:
        stream.write(text + end)
    except OSError as error:
        _lose(stream, error)


def _lose(stream: TextIO, error: OSError) -> None:
    """Discard a stream after an error, and report lost results.

    A closed pipe is not an error: the reader has read enough. An error stream that fails cannot
    be reported.
    """
    silence(stream)
    if stream is results() and not isinstance(error, BrokenPipeError):
        raise OutputLost(error) from error


#: The stream of results while a host is open; empty while that is `sys.stdout`.
_KEPT: Final[list[TextIO]] = []


def results() -> TextIO:
    """Return the stream for results."""
    return _KEPT[0] if _KEPT else sys.stdout


@contextmanager
def output_kept() -> Generator[None]:
    """Reserve stdout for results: `sys.stdout` writes to stderr meanwhile."""
    if _KEPT:
        yield
        return
    real = sys.stdout
    _KEPT.append(real)
    sys.stdout = cast("TextIO", _Aside(real))
    try:
        yield
    finally:
        sys.stdout = real
        _KEPT.clear()


class _Aside:
    """Looks like stdout, so that `input` edits lines, but writes to stderr."""

    def __init__(self, real: TextIO) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a stream has
        return getattr(self._real if name in _LOOK else sys.stderr, name)


#: The attributes that describe a stream.
_LOOK: Final = frozenset({"fileno", "isatty", "encoding", "errors"})


def write_file(path: Path, text: str) -> None:
    """Write a text file atomically."""
    # Deferred: most commands write no file.
    from weft.packages.archive.staging import replace_files  # noqa: PLC0415

    require_file_path(path, example="out.txt")
    replace_files(path.parent, {path.name: text.encode()})


def require_file_path(path: Path, *, example: str) -> None:
    """Refuse the path of a folder, and a path whose folder does not exist."""
    if path.is_dir():
        raise usage(f"{path} is a folder", f"name a file in it, such as {path / example}")
    if path.parent.exists() and not path.parent.is_dir():
        raise usage(f"{path.parent} is a file, not a folder", "name another path")
    if not path.parent.exists():
        # Not created: it is more often misspelt than missing.
        hint = f"create it: mkdir -p {quote(str(path.parent))}"
        raise not_found(f"the folder {path.parent} does not exist", hint)
