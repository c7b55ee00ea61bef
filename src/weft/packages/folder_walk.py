"""Going through a package folder with care: nothing outside it, nothing without end.

Everything that reads a package folder goes this way, so what is checked, what counts in the digest
and what is packed are the same files.
"""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote
from typing import Final

from weft.findings import Finding, Place
from weft.packages.archive_names import MAX_DEPTH, MAX_FILES, is_passed_over

#: Made anew by Python at every run, so not even kept.
_NEVER: Final = "__pycache__"
_LINK: Final = "is a link that leads out of the folder or nowhere"
_UNLINK: Final = "put what it leads to in its place, or remove it"


@dataclass(slots=True)
class FolderWalk:
    """One way through a folder: what could not be looked at becomes a finding."""

    folder: Path
    #: Whether files are listed too that are never packed: hidden ones and leftovers of editors.
    hidden: bool = False
    findings: list[Finding] = field(default_factory=list[Finding])
    _count: int = 0

    def files(self, top: str = "") -> Iterator[tuple[str, bool]]:
        """List the files below a folder inside, each with whether it is passed over otherwise.

        Folders may be links inside the package; links that are files are left to the reader.
        """
        pending = [(top, False)]
        while pending:
            inside, within_passed = pending.pop()
            folders: list[tuple[str, bool]] = []
            for name in self._entries(inside):
                path = f"{inside}/{name}" if inside else name
                passed = within_passed or is_passed_over(name)
                if name == _NEVER or (passed and not self.hidden):
                    continue
                if _is_folder(self.folder / path):
                    folders.append((path, passed))
                elif self._counted():
                    yield path, passed
                else:
                    return
            pending += reversed(folders)

    def _counted(self) -> bool:
        """Count a file; say once that there are too many."""
        self._count += 1
        if self._count == MAX_FILES + 1:
            fact = f"holds more than {MAX_FILES} files"
            self.findings.append(unreadable(self.folder, fact, "move some of them out"))
        return self._count <= MAX_FILES

    def _entries(self, inside: str) -> list[str]:
        here = self.folder / inside
        if inside and leads_out(here, self.folder):
            self.findings.append(unreadable(here, _LINK, _UNLINK))
            return []
        if inside.count("/") >= MAX_DEPTH:
            fact = f"is nested more than {MAX_DEPTH} folders deep"
            self.findings.append(unreadable(here, fact, "flatten the folders"))
            return []
        try:
            return sorted(entry.name for entry in here.iterdir())
        except OSError as error:
            self.findings.append(unlisted(here, error))
            return []


def read_start(path: Path, folder: Path, most: int) -> bytes | Finding:
    """Read one file, which must be a regular one inside `folder`; one byte more than `most`."""
    try:
        if leads_out(path, folder):
            return unreadable(path, _LINK, _UNLINK)
        # Looked at before it is opened: opening a pipe would wait for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            return unreadable(path, "is not a regular file", "put a plain file there, or remove it")
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        return unreadable(path, f"cannot be read: {_reason(error)}", _access_remedy(path, error))


def leads_out(path: Path, folder: Path) -> bool:
    """Tell whether something in a folder is a link to something that is not inside it."""
    if not path.is_symlink():
        return False
    try:
        return not path.resolve(strict=True).is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        # A link to itself is a RuntimeError up to Python 3.12.
        return True


def unlisted(folder: Path, error: OSError) -> Finding:
    """Say that nobody can tell what is in a folder."""
    fact = f"cannot be looked into: {_reason(error)}"
    return unreadable(folder, fact, _access_remedy(folder, error))


def unreadable(path: Path, fact: str, remedy: str) -> Finding:
    """Say that a file or folder cannot be read; no line of it is named, since none was read."""
    return Finding("SCHEMA001", "error", f"{path.name} {fact}", Place(str(path)), hint=(remedy,))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False  # reading it says why


def _access_remedy(path: Path, error: OSError) -> str:
    """Say what to do about a file or folder that the system does not let one read."""
    if isinstance(error, PermissionError):
        return f"let yourself read it: chmod u+rX {quote(str(path.parent))} {quote(str(path))}"
    return "check that it is still there and can be opened"


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
