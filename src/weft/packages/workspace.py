"""A workspace: a folder of packages, and of the packs that join them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.errors import UsageError
from weft.findings import Finding
from weft.packages import documents
from weft.packages.archive_names import is_passed_over
from weft.packages.folder import read_bytes
from weft.packages.folder_walk import unlisted
from weft.packages.layout import FILE_KINDS, SUFFIXES, meant_kind
from weft.packages.package import DeclaredFile
from weft.packages.reader import open_document, read_part
from weft.spec.packs import Pack

#: The folders of a workspace in which its packages and its packs are.
PACKAGES: Final = "workflows"
PACKS: Final = "packs"
_TELLING: Final = [
    kind.stem + suffix for kind in FILE_KINDS.values() if kind.required for suffix in SUFFIXES
]


@dataclass(frozen=True)
class PackFile:
    """One pack as read."""

    declared: DeclaredFile
    pack: Pack | None
    findings: tuple[Finding, ...]


def is_package(folder: Path) -> bool:
    """Whether a folder holds a package: one of the files no package is without.

    In `workflows` any file that looks like one of a package is enough, and anywhere a folder one
    may not look into: counting it as a package lets the reader say what is wrong with it.
    """
    try:
        if any((folder / name).exists() for name in _TELLING):
            return True
        belongs = folder.absolute().parent.name == PACKAGES and folder.is_dir()
        return belongs and any(meant_kind(entry.name) for entry in folder.iterdir())
    except PermissionError:
        return True


def find_packages(path: Path) -> list[Path]:
    """Find the packages at a path: the folder itself, or those in it or in its `workflows`."""
    if not path.is_dir():
        fact = "is not a folder" if path.exists() else "does not exist"
        raise UsageError(f"{path} {fact}", hint="name a package folder or a workspace")
    if is_package(path):
        return [path]
    inner = path / PACKAGES
    entries = (inner if inner.is_dir() else path).iterdir()
    # Hidden folders and backups are passed over, as they are when a package is packed.
    return sorted(it for it in entries if not is_passed_over(it.name) and is_package(it))


def read_packs(workspace: Path) -> list[PackFile]:
    """Read the packs of a workspace: the files in its folder `packs`."""
    folder = workspace / PACKS
    if not folder.is_dir():
        return []
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    except PermissionError as error:
        return [_unread(folder, unlisted(folder, error))]
    return [_read_pack(path, folder) for path in files]


def _read_pack(path: Path, folder: Path) -> PackFile:
    raw = read_bytes(path, folder)
    if not isinstance(raw, bytes):
        return _unread(path, raw)
    document = documents.read(str(path), raw)
    declared = open_document(path.name, document, "pack")
    if not document.ok:
        return PackFile(declared, None, document.findings)
    pack, faults = read_part(declared, Pack)
    return PackFile(declared, pack, (*document.findings, *faults))


def _unread(path: Path, finding: Finding) -> PackFile:
    nothing = documents.read(str(path), b"{}")
    return PackFile(open_document(path.name, nothing, "pack"), None, (finding,))
