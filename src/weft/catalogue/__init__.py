"""The one catalogue of diagnostics: every code, what it means, why it matters, how to fix it.

Entries are plain text. The first line of an entry is `CODE severity: Title`; `why`, `fix` and
`example` follow, and lines that are indented further continue the one before.
"""

from collections.abc import Iterator
from typing import Final, cast

from weft.catalogue import boards, conversations, flows, names, packages, variables
from weft.findings import Rule, Severity


def _read(text: str) -> Iterator[Rule]:
    for block in text.strip("\n").split("\n\n"):
        head, *lines = block.split("\n")
        code, severity, title = head.replace(":", "", 1).split(" ", 2)
        parts: dict[str, list[str]] = {"why": [], "fix": [], "example": []}
        key = ""
        for line in lines:
            rest = line.removeprefix("    ")
            if rest == line:
                key, _, rest = line.strip().partition(": ")
            parts[key].append(rest)
        yield Rule(
            code,
            cast("Severity", severity),
            title,
            why=" ".join(parts["why"]),
            fix=" ".join(parts["fix"]),
            example="\n".join(parts["example"]),
        )


_MODULES: Final = (packages, names, conversations, variables, boards, flows)

CATALOGUE: Final[dict[str, Rule]] = {
    entry.code: entry for module in _MODULES for entry in _read(module.ENTRIES)
}

FAMILIES: Final[dict[str, tuple[Rule, ...]]] = {
    family: tuple(entry for entry in CATALOGUE.values() if entry.code[:-3] == family)
    for family in dict.fromkeys(code[:-3] for code in CATALOGUE)
}
