"""A case: the smallest mistake that raises a code, and where the finding must point."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from behaviour.cases_base import PACKAGE, WORKSPACE
from behaviour.cases_board_base import BOARD
from behaviour.cases_flow_base import FLOW

Files: TypeAlias = dict[str, bytes]

#: The mark of a finding that points behind the last character of its file.
END: Final = "(the end of the file)"


@dataclass(frozen=True)
class Swap:
    """Write something else for a text that stands once in a file.

    A surrogate such as \\udce9 in the new text becomes the single byte 0xe9.
    """

    file: str
    old: str
    new: str

    def spoil(self, files: Files) -> None:
        """Change the file."""
        text = files[self.file].decode()
        assert text.count(self.old) == 1, f"{self.old!r} does not stand once in {self.file}"
        files[self.file] = text.replace(self.old, self.new).encode(errors="surrogateescape")


@dataclass(frozen=True)
class Rename:
    """Use another name in every file, and in the names of files."""

    old: str
    new: str

    def spoil(self, files: Files) -> None:
        """Change all files."""
        old, new = self.old.encode(), self.new.encode()
        changed = {name.replace(self.old, self.new): raw for name, raw in files.items()}
        files.clear()
        files.update({name: raw.replace(old, new) for name, raw in changed.items()})


@dataclass(frozen=True)
class Add:
    """Put another file beside the others."""

    file: str
    text: str

    def spoil(self, files: Files) -> None:
        """Add the file."""
        assert self.file not in files, f"{self.file} is there already"
        files[self.file] = self.text.encode()


@dataclass(frozen=True)
class Drop:
    """Take a file away."""

    file: str

    def spoil(self, files: Files) -> None:
        """Remove the file."""
        del files[self.file]


@dataclass(frozen=True)
class Move:
    """Give a file another name."""

    file: str
    name: str

    def spoil(self, files: Files) -> None:
        """Move the file."""
        files[self.name] = files.pop(self.file)


Mistake: TypeAlias = Swap | Rename | Add | Drop | Move


@dataclass(frozen=True)
class Case:
    """One mistake, made in the package, or in the workspace, board or flow of its family.

    `mark` is the text that begins where the finding points. It stands once in the file, so that
    it tells exactly one place; None means that the finding is about the file as a whole. `mends`
    tells whether the finding carries a safe fix. `also` names codes that cannot but come along,
    each with the reason.
    """

    code: str
    file: str
    mark: str | None
    mistakes: tuple[Mistake, ...]
    mends: bool = False
    also: Mapping[str, str] = field(default_factory=dict[str, str])
    #: The files that are spoilt, where they are not those of the family.
    base: Mapping[str, str] | None = None
    #: The severity, where it is not that of the code.
    severity: str | None = None

    def files(self) -> Files:
        """Return the files with the mistake in them."""
        families = {"PACK": WORKSPACE, "BOARD": BOARD, "FLOW": FLOW}
        base = self.base or families.get(self.code[:-3], PACKAGE)
        files = {name: text.encode() for name, text in base.items()}
        for mistake in self.mistakes:
            mistake.spoil(files)
        return files


class Swapped(Protocol):
    """Makes the case of one changed text, which is reported in the file it stands in."""

    def __call__(self, code: str, old: str, new: str, mark: str, *, mends: bool = False) -> Case:
        """Return the case."""
        ...


def swapped_in(file: str) -> Swapped:
    """Return what makes cases of texts changed in one file."""

    def swapped(code: str, old: str, new: str, mark: str, *, mends: bool = False) -> Case:
        return Case(code, file, mark, (Swap(file, old, new),), mends)

    return swapped


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder."""
    for name, raw in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
