"""Answering a shell that completes a word, without loading what reads whole commands.

The scripts of `weft completion` call `weft __complete WORDS` only where one of the slots below is
being filled; everything else they know by themselves. A person waits for the answer after pressing
a key: nothing here loads the models of packages.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, Protocol

from weft.cli.codes import CODES, FAMILIES
from weft.cli.commands.table import COMMAND_NAMES
from weft.cli.settings import PACKAGES, nearest_workspace

#: The kinds of files `weft schema` knows, written out because asking for them loads every model.
SCHEMAS: Final = (
    "orchestrator",
    "agents",
    "context_variables",
    "handoffs",
    "tools",
    "hooks",
    "structured_outputs",
    "flow",
    "board",
    "pack",
    "action_plan",
)


class OptionValue(Protocol):
    """The value of an option that stands before the cursor."""

    @property
    def raw(self) -> str | None:
        """The value as typed, or None if there is none."""
        ...


class Cursor(Protocol):
    """What is known when a word is to be completed."""

    @property
    def incomplete(self) -> str:
        """The word so far."""
        ...

    def get(self, name: str) -> OptionValue | None:
        """Return what was given for another option."""
        ...


def package_names(cursor: Cursor) -> dict[str, str]:
    """Offer the packages of the workspace by name; they are not read."""
    given = cursor.get("--workspace")
    workspace = Path(given.raw) if given and given.raw else nearest_workspace(Path.cwd())
    folder = workspace / PACKAGES
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return {it.name: "" for it in found if it.name[0] != "." and it.is_dir()}


def codes(cursor: Cursor) -> dict[str, str]:  # noqa: ARG001 - the signature of all of these
    """Offer every code with its title, and the families."""
    return {**dict.fromkeys(FAMILIES, "family"), **{it.code: it.title for it in CODES.values()}}


def code_lists(cursor: Cursor) -> dict[str, str]:
    """Offer codes to go on with a list that has commas between them."""
    before, comma, _ = cursor.incomplete.rpartition(",")
    return {f"{before}{comma}{code}": title for code, title in codes(cursor).items()}


def patterns(cursor: Cursor) -> dict[str, str]:  # noqa: ARG001
    """Offer the patterns by number and by name."""
    # Deferred: the other candidates do without it.
    from weft.spec.patterns import PATTERNS  # noqa: PLC0415

    numbers = {str(it.id): it.title for it in PATTERNS}
    return {**numbers, **{it.name: it.summary for it in PATTERNS}}


def schemas(cursor: Cursor) -> dict[str, str]:  # noqa: ARG001
    """Offer the kinds of files that have a schema."""
    return dict.fromkeys(SCHEMAS, "")


#: By command and option, where no option means the words after the command. Tests hold this
#: against what the commands declare.
SLOTS: Final[dict[tuple[str, str], Callable[[Cursor], dict[str, str]]]] = {
    ("chat", ""): package_names,
    ("check", ""): package_names,
    ("check", "--select"): code_lists,
    ("check", "--ignore"): code_lists,
    ("diagram", ""): package_names,
    ("explain", ""): codes,
    ("export", ""): package_names,
    ("migrate", ""): package_names,
    ("new", "--pattern"): patterns,
    ("run", ""): package_names,
    ("schema", ""): schemas,
}
_OPTIONS: Final = frozenset(option for _, option in SLOTS)


@dataclass(frozen=True)
class _Given:
    raw: str | None


@dataclass(frozen=True)
class _Line:
    """The words before the cursor, with options and their values apart, and the one at it."""

    before: tuple[str, ...]
    incomplete: str

    def get(self, name: str) -> _Given | None:
        """Return what was given for an option; the last one counts."""
        pairs = dict(zip(self.before, self.before[1:], strict=False))
        return _Given(pairs[name]) if name in pairs else None

    def plain(self) -> Iterator[str]:
        """Yield the words that are not the name of a workspace, which may be that of a command."""
        for previous, word in pairwise(("", *self.before)):
            if previous != "--workspace":
                yield word


def answer(words: Sequence[str]) -> str:
    """Return what may stand in place of the last word, in the form the scripts read.

    That form is the library's: a line that opens the list, then a line for each value, which a tab
    and its description may follow.
    """
    line = _read(words)
    command = next((word for word in line.plain() if word in COMMAND_NAMES), "")
    last = line.before[-1] if line.before else ""
    source = SLOTS.get((command, last if last in _OPTIONS else ""))
    offered = source(line) if source else {}
    records = (
        _flat(value) + (f"\t{_flat(text)}" if text else "") for value, text in offered.items()
    )
    return "\n".join(["", "\x1fbegin", *records])


def _read(words: Sequence[str]) -> _Line:
    """Part `--option=value`, which some shells hand over as one word and others as three."""
    parted: list[str] = []
    for word in words:
        option, equals, value = word.partition("=")
        parted += [option, value] if equals and option.startswith("--") else [word]
    *before, incomplete = parted or [""]
    if incomplete == "=":
        return _Line(tuple(before), "")
    return _Line(tuple(word for word in before if word != "="), incomplete)


def _flat(text: str) -> str:
    """Keep a value from looking like two, or like a line of the form itself."""
    return re.sub("[\t\n\r]", " ", text).lstrip("\x1f")
