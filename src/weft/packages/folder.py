"""The files of a package folder, read with care: nothing outside it, nothing without end.

Everything that reads a package folder goes this way, so what is checked, what counts in the digest
and what is packed are the same files.
"""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import Path
from shlex import quote
from tokenize import detect_encoding
from typing import Final

from weft.findings import Finding, Place
from weft.ids import MAX_FOLDERS, is_ignored_file
from weft.packages.layout import CODE_FOLDERS, FILE_KINDS, ROOT_CODE, SUFFIXES
from weft.packages.text.documents import MAX_BYTES

#: Most files of a package, and their size in all.
MAX_FILES: Final = 2_000
MAX_TOTAL: Final = 64 * 1024 * 1024

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
                passed = within_passed or is_ignored_file(name)
                if name == _NEVER or (passed and not self.hidden):
                    continue
                if _is_folder(self.folder / path):
                    folders.append((path, passed))
                elif self._may_read_more():
                    yield path, passed
                else:
                    return
            pending += reversed(folders)

    def _may_read_more(self) -> bool:
        """Count a file; say once that there are too many."""
        self._count += 1
        if self._count == MAX_FILES + 1:
            fact = f"holds more than {MAX_FILES} files"
            self.findings.append(unreadable_finding(self.folder, fact, "move some of them out"))
        return self._count <= MAX_FILES

    def _entries(self, inside: str) -> list[str]:
        here = self.folder / inside
        if inside and leads_out(here, self.folder):
            self.findings.append(unreadable_finding(here, _LINK, _UNLINK))
            return []
        if inside.count("/") >= MAX_FOLDERS:
            fact = f"is nested more than {MAX_FOLDERS} folders deep"
            self.findings.append(unreadable_finding(here, fact, "flatten the folders"))
            return []
        try:
            return sorted(entry.name for entry in here.iterdir())
        except OSError as error:
            self.findings.append(listing_finding(here, error))
            return []


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """The files of a folder by relative name, and what keeps them from being complete."""

    files: dict[str, bytes]
    #: Files that are never packed: hidden ones and what editors leave behind.
    kept: dict[str, bytes]
    findings: tuple[Finding, ...]


def read_files(folder: Path, *, hidden: bool = False) -> FolderFiles:
    """Read every file of a folder; those never packed only if `hidden`, and kept apart."""
    walk = FolderWalk(folder, hidden=hidden)
    files: dict[str, bytes] = {}
    kept: dict[str, bytes] = {}
    room = MAX_TOTAL
    for name, passed_over in walk.files():
        raw = read_start(folder / name, folder, room)
        if not isinstance(raw, bytes):
            walk.findings.append(raw)
            continue
        room -= len(raw)
        if room < 0:
            fact = f"holds more than {MAX_TOTAL // 1024**2} MiB"
            walk.findings.append(unreadable_finding(folder, fact, "move large files out"))
            break
        (kept if passed_over else files)[name] = raw
    return FolderFiles(files, kept, tuple(walk.findings))


@dataclass(frozen=True, slots=True)
class Contents:
    """What a folder holds: declared files and code files by relative name, and what went wrong."""

    declared: dict[str, bytes]
    code: dict[str, bytes]
    findings: tuple[Finding, ...]
    #: Declared and code files that are there but could not be read.
    unreadable: frozenset[str]
    #: Names in the folder itself that are of no declared file.
    others: tuple[str, ...]
    #: Whether it is known at all what is in the folder.
    listed: bool = True


def read_folder(folder: Path) -> Contents:
    """Read a package folder; what cannot be read becomes a finding."""
    try:
        present = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        return Contents({}, {}, (listing_finding(folder, error),), frozenset(), (), listed=False)
    names = [stem + suffix for stem in FILE_KINDS for suffix in SUFFIXES]
    declared: dict[str, bytes] = {}
    code: dict[str, bytes] = {}
    walk = FolderWalk(folder)
    findings: list[Finding] = []
    refused: set[str] = set()
    wanted = [(name, declared) for name in names if name in present]
    wanted += [(name, code) for name in _code_names(walk, present)]
    for name, target in wanted:
        outcome = read_bytes(folder / name, folder)
        if isinstance(outcome, bytes) and target is code:
            outcome = _as_text(folder / name, outcome)
        if isinstance(outcome, bytes):
            target[name] = outcome
        else:
            findings.append(outcome)
            refused.add(name)
    others = tuple(name for name in present if name not in names)
    found = (*walk.findings, *findings)
    return Contents(declared, code, found, frozenset(refused), others)


def read_bytes(path: Path, folder: Path) -> bytes | Finding:
    """Read one file that must be a regular file inside `folder` and of bounded size."""
    raw = read_start(path, folder, MAX_BYTES)
    if isinstance(raw, bytes) and len(raw) > MAX_BYTES:
        limit = MAX_BYTES // (1024 * 1024)
        return unreadable_finding(
            path, f"is larger than {limit} MiB", "declared files are small; move content out"
        )
    return raw


def _as_text(path: Path, raw: bytes) -> bytes | Finding:
    """Code must be text, or it can be neither checked nor shown."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return _not_text(path, "is not UTF-8 text", "save it as UTF-8")
    if path.suffix == ".py" and not _is_read_as_utf8(raw):
        fact = "is UTF-8 text, but begins with a line by which Python reads it otherwise"
        return _not_text(path, fact, "remove the line with the word coding")
    return raw


def _not_text(path: Path, fact: str, hint: str) -> Finding:
    return replace(unreadable_finding(path, fact, hint), place=Place(str(path), 1, 1))


def _is_read_as_utf8(raw: bytes) -> bool:
    """Tell whether Python runs what was checked: a file of Python may name its own encoding."""
    try:
        encoding, _ = detect_encoding(BytesIO(raw).readline)
        return encoding == "utf-8-sig" or raw.decode(encoding) == raw.decode()
    except (SyntaxError, LookupError, UnicodeDecodeError):
        return False


def _code_names(walk: FolderWalk, present: list[str]) -> Iterator[str]:
    """List the code files, always in the same order."""
    for name in present:
        is_code = name.endswith(ROOT_CODE) and not is_ignored_file(name)
        if is_code and not (walk.folder / name).is_dir():
            yield name
    for top, suffixes in CODE_FOLDERS.items():
        if top in present and (walk.folder / top).is_dir():
            yield from (name for name, _ in walk.files(top) if name.endswith(suffixes))


def read_start(path: Path, folder: Path, most: int) -> bytes | Finding:
    """Read one file, which must be a regular one inside `folder`; one byte more than `most`."""
    try:
        if leads_out(path, folder):
            return unreadable_finding(path, _LINK, _UNLINK)
        # Looked at before it is opened: opening a pipe would wait for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            return unreadable_finding(
                path, "is not a regular file", "put a plain file there, or remove it"
            )
        with path.open("rb") as file:
            return file.read(most + 1)
    except OSError as error:
        return unreadable_finding(
            path, f"cannot be read: {_reason(error)}", _access_remedy(path, error)
        )


def leads_out(path: Path, folder: Path) -> bool:
    """Tell whether something in a folder is a link to something that is not inside it."""
    if not path.is_symlink():
        return False
    try:
        return not path.resolve(strict=True).is_relative_to(folder.resolve())
    except (OSError, RuntimeError):
        # A link to itself is a RuntimeError up to Python 3.12.
        return True


def listing_finding(folder: Path, error: OSError) -> Finding:
    fact = f"cannot be looked into: {_reason(error)}"
    return unreadable_finding(folder, fact, _access_remedy(folder, error))


def unreadable_finding(path: Path, fact: str, remedy: str) -> Finding:
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
