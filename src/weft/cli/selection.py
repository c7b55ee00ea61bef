"""Which findings a person wants to hear of: by code, or by the start of one."""

from collections.abc import Iterable
from dataclasses import dataclass

from weft.cli.codes import CODES, meant_by
from weft.cli.failure import usage
from weft.findings import Finding


@dataclass(frozen=True, slots=True)
class Selection:
    """The beginnings of codes to report (all if none is named) and of those to leave out."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def keeps(self, finding: Finding) -> bool:
        """Tell whether a finding is wanted.

        Asking for some codes does not hide that a file could not be read: what is wrong inside it
        cannot be found, so silence would not mean that all is well.
        """
        unread = finding.code.startswith("SCHEMA") and finding.severity == "error"
        wanted = not self.select or unread or finding.code.startswith(self.select)
        return wanted and not (self.ignore and finding.code.startswith(self.ignore))


def read_selection(select: Iterable[str], ignore: Iterable[str]) -> Selection:
    """Read the options --select and --ignore, each a list of codes or families with commas."""
    return Selection(_codes("--select", select), _codes("--ignore", ignore))


def _codes(option: str, values: Iterable[str]) -> tuple[str, ...]:
    words = (word.strip().upper() for value in values for word in value.split(","))
    return tuple(_known(option, word) for word in words)


def _known(option: str, word: str) -> str:
    if word and any(code.startswith(word) for code in CODES):
        return word
    meant = meant_by(word)
    hints = [f"did you mean {meant}?"] if meant else []
    raise usage(f'{option}: no code begins with "{word}"', *hints, "list all codes: weft explain")
