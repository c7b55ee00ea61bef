"""The result of a command, and the two ways to print it: as JSON, or as text for people."""

import json
import logging
import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast

from pydantic_core import to_jsonable_python

from weft.cli.failure import Exit, Failure
from weft.cli.streams import Streams, clean, clean_lines, finish, folded
from weft.findings import Finding, Json
from weft.wire.findings import Problem, finding_data, problem_data

#: The version of every JSON document; it changes when a key changes its meaning.
SCHEMA_VERSION: Final = 1

T = TypeVar("T")

#: The type of a field that only the text for people uses; it is not part of the JSON document.
Hidden: TypeAlias = Annotated[T, "hidden"]


@dataclass(frozen=True)
class Result:
    """What a command returns: data for programs; a text, notes and problems for people."""

    data: Mapping[str, object] = field(default_factory=dict[str, object])
    text: str = ""
    notes: Sequence[str] = ()
    problems: Sequence[str] = ()
    #: Why the command failed although it has a result; it has the exit code.
    failure: Failure | None = None
    outcome: Exit = Exit.DONE
    #: Whether events were printed before, one per line, so that the result is one line as well.
    is_last_line: bool = False

    @property
    def exit(self) -> Exit:
        """The exit code of the command."""
        return self.outcome if self.failure is None else self.failure.exit

    def content(self) -> dict[str, Json]:
        """Return the data as JSON."""
        return {name: to_json(value) for name, value in self.data.items()}

    def show(self, streams: Streams) -> None:
        """Print the text, then the notes, the problems and what failed."""
        if self.text:
            streams.result(self.text)
        finish()
        for note in self.notes:
            streams.note(note)
        for problem in self.problems:
            streams.problem(problem)
        if self.failure is not None:
            print_failure(self.failure, streams)


def to_json(value: object) -> Json:
    """Return a value as JSON; findings and failures have a shape of their own."""
    if isinstance(value, Finding):
        return finding_data(value)
    if isinstance(value, Failure):
        return failure_data(value)
    if hasattr(value, "_asdict"):
        return to_json(cast("Any", value)._asdict())
    if isinstance(value, tuple | list):
        return [to_json(item) for item in cast("Iterable[object]", value)]
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {name: to_json(item) for name, item in items}
    return to_jsonable_python(value)


def failure_data(failure: Failure) -> dict[str, Json]:
    """Return a failure as JSON."""
    return problem_data(
        Problem(
            failure.code,
            failure.message,
            cause=failure.cause,
            hint=failure.hint,
            findings=failure.findings,
            run=failure.run,
        )
    )


def document(content: Mapping[str, Json], *, line: bool = False) -> str:
    """Return a JSON document, either indented or in one line."""
    return json.dumps({"schema_version": SCHEMA_VERSION, **content}, indent=None if line else 2)


def print_result(result: Result, streams: Streams) -> Exit:
    """Print the result of a command, and return its exit code."""
    if not streams.settings.json:
        result.show(streams)
    elif content := result.content():
        streams.result(document(content, line=result.is_last_line))
    return result.exit


def print_failure(failure: Failure, streams: Streams) -> Exit:
    """Print why a command failed, and return its exit code."""
    if streams.settings.json:
        error = {"error": failure_data(failure)}
        streams.result(document(error, line=failure.after_events))
    else:
        # Deferred: most commands succeed.
        from weft.cli.pages.findings import failure_text  # noqa: PLC0415

        streams.problem(failure_text(failure, streams.paint_error, streams.error_columns))
    return failure.exit


class Page:
    """Lines of text with a margin, folded to the width of a terminal and whole when piped."""

    def __init__(self, streams: Streams) -> None:
        self._paint = streams.paint
        self._columns = streams.settings.columns if streams.settings.terminal else None
        self._lines: list[str] = []

    def title(self, text: str) -> None:
        """Begin a section."""
        if self._lines:
            self._lines.append("")
        self._lines.append(self._paint(text, "bold"))

    def line(self, text: str, margin: int = 2, style: str = "") -> None:
        """Add a line; on a terminal it is folded, and cut after three lines."""
        cleaned = " " * margin + clean(text)
        lines = [cleaned] if self._columns is None else folded(cleaned, self._columns)
        self._lines += [self._paint(line, style) if style else line for line in lines]

    def lines(self, texts: Iterable[str], margin: int = 2) -> None:
        """Add several lines."""
        for text in texts:
            self.line(text, margin)

    def text(self, text: str, margin: int = 4) -> None:
        """Add text of several lines, unchanged."""
        self._lines += [f"{' ' * margin}{line}".rstrip() for line in clean_lines(text).split("\n")]

    def __str__(self) -> str:
        return "\n".join(self._lines)


#: The file of package code in a traceback begins with the name of its package: the code is
#: imported from the journal or from memory. The source line follows.
_PACKAGE_FILE: Final = re.compile(r'File "(\w+)/([^"]+)", line (\d+)(.*\n\s*)(.*)')


@contextmanager
def logged(streams: Streams) -> Generator[None]:
    """Print the log with --verbose and drop it otherwise: commands report failures themselves."""
    logger, tools = logging.getLogger("weft"), logging.getLogger("weft.tools")
    verbose, level, tools_level = streams.settings.verbose, logger.level, tools.level
    handler = DetailLog(streams) if verbose else logging.NullHandler()
    logger.addHandler(handler)
    if verbose:
        logger.setLevel(logging.INFO)
        tools.setLevel(logging.DEBUG)  # Includes the tracebacks of package code.
    try:
        yield
    finally:
        logger.setLevel(level)
        tools.setLevel(tools_level)
        logger.removeHandler(handler)


class DetailLog(logging.Handler):
    """Prints log records as details."""

    def __init__(self, streams: Streams) -> None:
        super().__init__()
        self._streams = streams

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message, with paths of package files that can be opened."""
        text = self.format(record)
        if _PACKAGE_FILE.search(text):
            text = _PACKAGE_FILE.sub(partial(_with_path, self._packages()), text)
        self._streams.detail(clean_lines(text))

    def _packages(self) -> dict[str, Path]:
        # Deferred: most commands log nothing, and reading packages takes a while to load.
        from weft.packages.workspace import find_packages  # noqa: PLC0415

        folders = find_packages(self._streams.settings.workspace)
        return {folder.resolve().name: folder for folder in folders}


def _with_path(folders: Mapping[str, Path], found: re.Match[str]) -> str:
    """Name a file by its path, unless it has changed since the run started."""
    name, inside, number, between, source = found.groups()
    file = folders.get(name, Path()) / inside
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    if lines[int(number) - 1 : int(number)] and lines[int(number) - 1].strip() == source.strip():
        return f'File "{file}", line {number}{between}{source}'
    return found[0]
