"""All files of a package folder, declared or not, as they go into an archive and come out of it."""

from dataclasses import dataclass
from pathlib import Path

from weft.findings import Finding
from weft.packages.archive_names import MAX_TOTAL
from weft.packages.folder_walk import FolderWalk, read_start, unreadable


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
            walk.findings.append(unreadable(folder, fact, "move large files out"))
            break
        (kept if passed_over else files)[name] = raw
    return FolderFiles(files, kept, tuple(walk.findings))
