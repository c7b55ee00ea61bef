"""A finding: one diagnostic with its place and its remedy.

Findings are plain values. Code that detects an error yields one, and it holds everything that is
needed to print or serialise it. `weft.catalogue` explains every code.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning"]

#: The place of a value in a spec or a document: keys and indexes from the root.
Path: TypeAlias = tuple[str | int, ...]

#: What JSON can hold. `object` at the leaves keeps the alias cheap for type checkers.
Json: TypeAlias = object


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of the catalogue: the meaning of a code."""

    code: str
    severity: Severity
    title: str
    why: str
    fix: str
    example: str


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a file; line and column count from 1, and are None where none is known.

    `length` is how many characters from there on are meant, all on the same line.
    """

    file: str
    line: int | None = None
    column: int | None = None
    length: int = 1

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part)


@dataclass(frozen=True, slots=True)
class SetValue:
    """Put `value` at `path`, replacing what is there or adding the key."""

    path: Path
    value: Json


@dataclass(frozen=True, slots=True)
class AppendItem:
    """Add `value` at the end of the list at `path`."""

    path: Path
    value: Json


@dataclass(frozen=True, slots=True)
class RenameKey:
    """Give the entry at `path` another key, in place."""

    path: Path
    key: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Take the entry or item at `path` away."""

    path: Path


Edit: TypeAlias = SetValue | AppendItem | RenameKey | Remove


@dataclass(frozen=True, slots=True)
class Fix:
    """A safe correction as data: what it does in words, and the edits that do it.

    Paths lead into the spec, or into the data of `file` (a name inside the package) if given.
    """

    title: str
    edits: tuple[Edit, ...]
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnostic: code, fact, place, causes, remedies."""

    code: str
    severity: Severity
    message: str
    place: Place
    cause: tuple[str, ...] = ()
    hint: tuple[str, ...] = ()
    fix: Fix | None = None


def is_error(finding: Finding) -> bool:
    """Return whether a finding keeps the workflow from running."""
    return finding.severity == "error"
