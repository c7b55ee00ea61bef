"""The bytes of a package folder, read with care: nothing outside it, nothing without end."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.findings import Finding, Place
from weft.packages.archive_names import is_passed_over
from weft.packages.documents import MAX_BYTES
from weft.packages.layout import CODE_FOLDERS, FILE_KINDS, ROOT_CODE, SUFFIXES

#: Most code files of one package, and how deep their folders may nest.
MAX_CODE_FILES: Final = 2_000
MAX_DEPTH: Final = 8

_PASSED_OVER: Final = {"__pycache__"}


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


def read_folder(folder: Path) -> Contents:
    """Read a package folder; what cannot be read becomes a finding."""
    root = folder.resolve()
    try:
        present = sorted(entry.name for entry in folder.iterdir())
    except OSError as error:
        return Contents({}, {}, (_unlisted(folder, error),), frozenset(), ())
    names = [stem + suffix for stem in FILE_KINDS for suffix in SUFFIXES]
    declared: dict[str, bytes] = {}
    code: dict[str, bytes] = {}
    findings: list[Finding] = []
    refused: set[str] = set()
    wanted = [(name, declared) for name in names if name in present]
    wanted += [(name, code) for name in _code_names(folder, root, present, findings)]
    for name, target in wanted:
        outcome = read_bytes(folder / name, root)
        if isinstance(outcome, bytes) and target is code:
            outcome = _as_text(folder / name, outcome)
        if isinstance(outcome, bytes):
            target[name] = outcome
        else:
            findings.append(outcome)
            refused.add(name)
    others = tuple(name for name in present if name not in names)
    return Contents(declared, code, tuple(findings), frozenset(refused), others)


def read_bytes(path: Path, root: Path) -> bytes | Finding:
    """Read one file that must be a regular file inside `root` and of bounded size."""
    try:
        # Looked at before it is opened: opening a pipe would wait for ever.
        if not stat.S_ISREG(path.stat().st_mode):
            return unreadable(path, "is not a regular file", "put a plain file there")
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            return unreadable(
                path, "is a link that leads out of the folder", "put the file itself there"
            )
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return unreadable(
            path, f"cannot be read: {reason.lower()}", "check that it exists and its permissions"
        )
    if len(raw) > MAX_BYTES:
        limit = MAX_BYTES // (1024 * 1024)
        return unreadable(
            path, f"is larger than {limit} MiB", "declared files are small; move content out"
        )
    return raw


def _as_text(path: Path, raw: bytes) -> bytes | Finding:
    """Code must be text, or it can be neither checked nor shown."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return unreadable(path, "is not UTF-8 text", "save it as UTF-8")
    return raw


def _unlisted(folder: Path, error: OSError) -> Finding:
    reason = (error.strerror or type(error).__name__).lower()
    return unreadable_folder(folder, f"cannot be listed: {reason}", "check its permissions")


def unreadable(path: Path, fact: str, remedy: str) -> Finding:
    """Say that a file cannot be read."""
    place = Place(str(path), 1, 1)
    return Finding("SCHEMA001", "error", f"{path.name} {fact}", place, hint=(remedy,))


def unreadable_folder(path: Path, fact: str, remedy: str) -> Finding:
    """Say that a folder cannot be read; a folder has no lines."""
    return Finding("SCHEMA001", "error", f"{path.name} {fact}", Place(str(path)), hint=(remedy,))


def _code_names(
    folder: Path, root: Path, present: list[str], findings: list[Finding]
) -> Iterator[str]:
    """List the code files, deterministically, following no folder out of the package."""
    for count, name in enumerate(_candidates(folder, root, present, findings)):
        if count == MAX_CODE_FILES:
            findings.append(
                unreadable_folder(
                    folder,
                    f"holds more than {MAX_CODE_FILES} code files",
                    "keep only the code of this package there",
                )
            )
            return
        yield name


def _candidates(
    folder: Path, root: Path, present: list[str], findings: list[Finding]
) -> Iterator[str]:
    for name in present:
        if name.endswith(ROOT_CODE) and not is_passed_over(name) and not (folder / name).is_dir():
            yield name
    for top, suffixes in CODE_FOLDERS.items():
        for name in _walk(folder, top, root, findings):
            if name.endswith(suffixes):
                yield name


def _walk(folder: Path, top: str, root: Path, findings: list[Finding]) -> Iterator[str]:
    pending = [top]
    while pending:
        name = pending.pop()
        here = folder / name
        if not here.is_dir():
            if name != top or here.exists():
                yield name
            continue
        if here.is_symlink() and not here.resolve().is_relative_to(root):
            findings.append(
                unreadable_folder(
                    here, "is a link that leads out of the folder", "put the folder itself there"
                )
            )
        elif name.count("/") >= MAX_DEPTH:
            findings.append(
                unreadable_folder(
                    here, f"is nested more than {MAX_DEPTH} folders deep", "flatten the folders"
                )
            )
        else:
            try:
                entries = sorted((entry.name for entry in here.iterdir()), reverse=True)
            except OSError as error:
                findings.append(_unlisted(here, error))
                continue
            pending += [f"{name}/{entry}" for entry in entries if entry not in _PASSED_OVER]
