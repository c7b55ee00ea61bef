"""The bytes of a package folder: the declared files, the code, and what could not be read."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from tokenize import detect_encoding

from weft.findings import Finding, Place
from weft.packages.archive_names import is_passed_over
from weft.packages.documents import MAX_BYTES
from weft.packages.folder_walk import FolderWalk, read_start, unlisted, unreadable
from weft.packages.layout import CODE_FOLDERS, FILE_KINDS, ROOT_CODE, SUFFIXES


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
        return Contents({}, {}, (unlisted(folder, error),), frozenset(), (), listed=False)
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
        return unreadable(
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
    return replace(unreadable(path, fact, hint), place=Place(str(path), 1, 1))


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
        is_code = name.endswith(ROOT_CODE) and not is_passed_over(name)
        if is_code and not (walk.folder / name).is_dir():
            yield name
    for top, suffixes in CODE_FOLDERS.items():
        if top in present and (walk.folder / top).is_dir():
            yield from (name for name, _ in walk.files(top) if name.endswith(suffixes))
