"""Where output goes: results to stdout, everything else to stderr, colour only for a person."""

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from textwrap import fill
from typing import Any, Final, TextIO, TypeAlias, cast

from weft.cli.failure import CommandFailed, Exit, Failure, not_found, usage
from weft.cli.settings import Settings
from weft.cli.text import clean, padded, shortened, width

#: Gives a text a style of rich, or leaves it as it is where colour is not wanted.
Paint: TypeAlias = Callable[[str, str], str]


#: The width of a file or pipe: it has none.
_ENDLESS: Final = 1000


class OutputLost(CommandFailed):
    """Results could not be written out, as on a full disk: they cannot tell so themselves."""

    def __init__(self, error: OSError) -> None:
        reason = (error.strerror or type(error).__name__).lower()
        super().__init__(Failure(Exit.SETUP, f"the output cannot be written: {reason}"))


def plain(text: str, style: str) -> str:  # noqa: ARG001 - the signature of every Paint
    """Paint nothing."""
    return clean(text)


def colored(text: str, style: str) -> str:
    """Paint for a terminal."""
    # Deferred: piped output, which is most of it, never needs it.
    from rich.color import ColorSystem  # noqa: PLC0415
    from rich.style import Style  # noqa: PLC0415

    return Style.parse(style).render(clean(text), color_system=ColorSystem.STANDARD)


@dataclass(frozen=True)
class Streams:
    """The two streams of a command and how it may use them."""

    settings: Settings = Settings()  # noqa: RUF009 - frozen, so it can be shared

    @property
    def paint(self) -> Paint:
        """How results are painted."""
        return colored if self.settings.color else plain

    @property
    def paint_error(self) -> Paint:
        """How errors are painted."""
        return colored if self.settings.error_color else plain

    @property
    def columns(self) -> int:
        """How wide a line of results may be before it is broken."""
        return self.settings.columns if self.settings.terminal else _ENDLESS

    @property
    def error_columns(self) -> int:
        """How wide a line of errors may be before it is broken."""
        return self.settings.columns if sys.stderr.isatty() else _ENDLESS

    def result(self, text: str) -> None:
        """Print a part of what was asked for."""
        _write(results(), text)

    def part(self, text: str) -> None:
        """Print a piece of a line at once, as it is spoken."""
        _write(results(), text, end="")
        finish()

    def note(self, text: str) -> None:
        """Print what was done or may be done next; programs and the quiet see nothing."""
        if not (self.settings.quiet or self.settings.json):
            _write(sys.stderr, text)

    def status(self, text: str) -> None:
        """Show on a terminal how far something has come, in place of what was shown before.

        Nothing takes the line away again; whoever prints something else does that first.
        """
        if sys.stderr.isatty() and not (self.settings.quiet or self.settings.json):
            room = self.settings.columns - 1
            line = padded(shortened(clean(text), room), room)
            _write(
                sys.stderr, f"\r{self.paint_error(line, 'dim')}{'' if text else chr(13)}", end=""
            )
            sys.stderr.flush()

    def detail(self, text: str) -> None:
        """Print what is wanted only with --verbose."""
        if self.settings.verbose:
            _write(sys.stderr, text)

    def problem(self, text: str) -> None:
        """Print an error, which even the quiet want to see."""
        _write(sys.stderr, text)

    def prose(self, text: str) -> str:
        """Return a paragraph, broken into lines for a person, whole for a program."""
        return fill(text, self.settings.columns) if self.settings.terminal else text

    def rows(self, rows: Sequence[tuple[str, ...]]) -> None:
        """Print rows in columns for a person, with tabs between them for a program."""
        cleaned = [tuple(clean(cell) for cell in row) for row in rows]
        if not self.settings.terminal:
            for row in cleaned:
                self.result("\t".join(row))
            return
        widths = [max(width(cell) for cell in column) for column in zip(*cleaned, strict=True)]
        for row in cleaned:
            cells = [padded(cell, columns) for cell, columns in zip(row, widths, strict=True)]
            self.result("  ".join(cells).rstrip())


def prepare() -> None:
    """Make sure that there are streams and that any text can be printed, escaped if need be."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] - closed by the caller
        sys.stdout = _nowhere()
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stderr = _nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")


def finish() -> None:
    """Push out what is still held back, so that a full disk is noticed here and not at exit."""
    for stream in (results(), sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            _lose(stream, error)


def silence(stream: TextIO) -> None:
    """Send the rest of a stream nowhere, so that closing it at exit cannot fail as well."""
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
    """Give a stream up; only results that are lost without anybody having asked for it are told.

    A reader that has had enough is no error: the exit code still tells all. And where not even
    errors can be printed, there is nobody left to tell.
    """
    silence(stream)
    if stream is results() and not isinstance(error, BrokenPipeError):
        raise OutputLost(error) from error


#: The stream that results go to while a host is open; nothing where `sys.stdout` is still it.
_KEPT: Final[list[TextIO]] = []


def results() -> TextIO:
    """Return the stream that results of a command are written to."""
    return _KEPT[0] if _KEPT else sys.stdout


@contextmanager
def output_kept() -> Generator[None]:
    """Keep the output stream to ourselves: meanwhile `sys.stdout` writes to the error stream."""
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
    """Looks like the output stream, so that `input` edits lines, and writes to the error stream."""

    def __init__(self, real: TextIO) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a stream has
        return getattr(self._real if name in _LOOK else sys.stderr, name)


#: What tells where a stream leads, and how text is written there.
_LOOK: Final = frozenset({"fileno", "isatty", "encoding", "errors"})


def write_file(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    # Deferred: most commands write no file.
    from weft.packages.archive.staging import replace_files  # noqa: PLC0415

    require_file_path(path, example="out.txt")
    replace_files(path.parent, {path.name: text.encode()})


def require_file_path(path: Path, *, example: str) -> None:
    """Refuse the name of a folder where that of a file is wanted, and one in no folder."""
    if path.is_dir():
        raise usage(f"{path} is a folder", f"name a file in it, such as {path / example}")
    if path.parent.exists() and not path.parent.is_dir():
        raise usage(f"{path.parent} is a file, so nothing can be in it", "name another place")
    if not path.parent.exists():
        # Not made unasked: it is more often misspelt than missing.
        hint = f"make it: mkdir -p {quote(str(path.parent))}"
        raise not_found(f"there is no folder {path.parent}", hint)
