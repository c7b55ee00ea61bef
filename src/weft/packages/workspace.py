"""A workspace: a folder of packages, and of the packs that join them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.errors import UsageError
from weft.findings import Finding
from weft.packages import documents
from weft.packages.folder import read_bytes
from weft.packages.layout import FILE_KINDS, SUFFIXES
from weft.packages.package import DeclaredFile
from weft.packages.reader import open_document, read_part
from weft.spec.packs import Pack

_PACKAGES: Final = "workflows"
_PACKS: Final = "packs"
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

    A folder one may not look into counts as one, so that the reader says so.
    """
    try:
        return any((folder / name).exists() for name in _TELLING)
    except PermissionError:
        return True


def find_packages(path: Path) -> list[Path]:
    """Find the packages at a path: the folder itself, or those in it or in its `workflows`."""
    if not path.is_dir():
        fact = "is not a folder" if path.exists() else "does not exist"
        raise UsageError(f"{path} {fact}", hint="name a package folder or a workspace")
    if is_package(path):
        return [path]
    inner = path / _PACKAGES
    return sorted(
        folder for folder in (inner if inner.is_dir() else path).iterdir() if is_package(folder)
    )


def find_package(workspace: Path, name: str) -> Path | None:
    """Find a package of a workspace by the name of its folder."""
    return next((folder for folder in find_packages(workspace) if folder.name == name), None)


def read_packs(workspace: Path) -> list[PackFile]:
    """Read the packs of a workspace: the files in its folder `packs`."""
    folder = workspace / _PACKS
    if not folder.is_dir():
        return []
    root = folder.resolve()
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    return [_read_pack(path, root) for path in files]


def _read_pack(path: Path, root: Path) -> PackFile:
    raw = read_bytes(path, root)
    document = documents.read(str(path), raw if isinstance(raw, bytes) else b"{}")
    declared = open_document(path.name, document, "pack")
    if not isinstance(raw, bytes):
        return PackFile(declared, None, (raw,))
    if not document.ok:
        return PackFile(declared, None, document.findings)
    pack, faults = read_part(declared, Pack)
    return PackFile(declared, pack, (*document.findings, *faults))
