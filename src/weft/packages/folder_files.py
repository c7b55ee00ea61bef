"""All files of a package folder, declared or not, as they go into an archive and come out of it."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from weft.findings import Finding
from weft.packages.archive_names import MAX_DEPTH, MAX_FILES, MAX_TOTAL, is_passed_over
from weft.packages.folder import unreadable


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """The files of a folder by relative name, and what keeps them from being complete."""

    files: dict[str, bytes]
    #: Files that are never packed: hidden ones and what editors leave behind.
    kept: dict[str, bytes]
    findings: tuple[Finding, ...]


@dataclass(slots=True)
class _Reading:
    """The walk through a folder: what was read, what was refused, how much room is left."""

    folder: Path
    root: Path
    room: int = MAX_TOTAL
    count: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def stopped(self) -> bool:
        return self.room < 0 or self.count > MAX_FILES

    def read(self, name: str) -> bytes | None:
        """Read one file; None if it cannot be read, which a finding then says."""
        path = self.folder / name
        self.count += 1
        if self.count > MAX_FILES:
            self._refuse(self.folder, f"holds more than {MAX_FILES} files", "move some of them out")
            return None
        try:
            # Looked at before it is opened: opening a pipe would wait for ever.
            if not stat.S_ISREG(path.stat().st_mode):
                self._refuse(path, "is not a regular file", "put a plain file there, or remove it")
                return None
            with path.open("rb") as file:
                raw = file.read(self.room + 1)
        except OSError as error:
            self._failed(path, error)
            return None
        self.room -= len(raw)
        if self.room < 0:
            limit = f"holds more than {MAX_TOTAL // 1024**2} MiB"
            self._refuse(self.folder, limit, "move large files out")
            return None
        return raw

    def names(self, *, hidden: bool) -> Iterator[tuple[str, bool]]:
        """List the files and whether each is passed over; passed-over folders only if `hidden`."""
        pending = [("", False)]
        while pending:
            inside, passed_over = pending.pop()
            for name in self._entries(inside):
                within = f"{inside}/{name}" if inside else name
                passed = passed_over or is_passed_over(name)
                if name == "__pycache__" or (passed and not hidden):
                    continue
                if self._leads_out(within):
                    continue
                if (self.folder / within).is_dir():
                    pending.append((within, passed))
                else:
                    yield within, passed

    def _entries(self, inside: str) -> list[str]:
        here = self.folder / inside
        if inside.count("/") >= MAX_DEPTH:
            self._refuse(here, f"is nested more than {MAX_DEPTH} folders deep", "flatten it")
            return []
        try:
            return sorted(entry.name for entry in here.iterdir())
        except OSError as error:
            self._failed(here, error)
            return []

    def _leads_out(self, name: str) -> bool:
        path = self.folder / name
        if not path.is_symlink():
            return False
        try:
            inside = path.resolve(strict=True).is_relative_to(self.root)
        except (OSError, RuntimeError):
            # A link to itself is a RuntimeError up to Python 3.12.
            inside = False
        if not inside:
            remedy = "put what it leads to in its place, or remove it"
            self._refuse(path, "is a link that leads out of the folder or nowhere", remedy)
        return not inside

    def _failed(self, path: Path, error: OSError) -> None:
        reason = (error.strerror or type(error).__name__).lower()
        self._refuse(path, f"cannot be read: {reason}", "check its permissions")

    def _refuse(self, path: Path, fact: str, remedy: str) -> None:
        self.findings.append(unreadable(path, fact, remedy))


def read_files(folder: Path, *, hidden: bool = False) -> FolderFiles:
    """Read every file of a folder; those never packed only if `hidden`, and kept apart."""
    reading = _Reading(folder, folder.resolve())
    files: dict[str, bytes] = {}
    kept: dict[str, bytes] = {}
    for name, passed_over in reading.names(hidden=hidden):
        raw = reading.read(name)
        if raw is not None:
            (kept if passed_over else files)[name] = raw
        if reading.stopped:
            break
    return FolderFiles(files, kept, tuple(reading.findings))
