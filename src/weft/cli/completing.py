"""Answering a shell that completes a word, without loading what reads whole commands.

The scripts of `weft completion` call `weft __complete WORDS` only where one of the slots below is
being filled; everything else they know by themselves.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from weft.cli.candidates import (
    Question,
    code_lists,
    codes,
    package_names,
    patterns,
    schemas,
)
from weft.cli.verbs import VERB_NAMES

#: By verb and option, where no option means the words after the verb. Tests hold this against what
#: the verbs declare.
SLOTS: Final[dict[tuple[str, str], Callable[[Question], dict[str, str]]]] = {
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
        """Yield the words that are not the name of a workspace, which may be that of a verb."""
        for previous, word in pairwise(("", *self.before)):
            if previous != "--workspace":
                yield word


def answer(words: Sequence[str]) -> str:
    """Return what may stand in place of the last word, in the form the scripts read.

    That form is the library's: a line that opens the list, then a line for each value, which a tab
    and its description may follow.
    """
    line = _read(words)
    verb = next((word for word in line.plain() if word in VERB_NAMES), "")
    last = line.before[-1] if line.before else ""
    source = SLOTS.get((verb, last if last in _OPTIONS else ""))
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
