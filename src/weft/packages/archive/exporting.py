"""From a package to a zip file, written the same every time."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from weft.catalogue import CATALOGUE
from weft.errors import CheckFailed, PackageError
from weft.findings import Finding, Place, is_error
from weft.packages.archive.manifest import (
    Manifest,
    make_manifest,
    manifest_bytes,
)
from weft.packages.archive.names import MANIFEST, clash
from weft.packages.archive.staging import replace_files
from weft.packages.folder import FolderFiles, read_files
from weft.packages.reader import read_package
from weft.packages.review import review_package
from weft.spec.file_names import name_error, segment_error

_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)
_PLAIN_FILE: Final = 0o100644 << 16
_UNIX: Final = 3


@dataclass(frozen=True, slots=True)
class Export:
    """What was written to a zip file; `findings` is what the checker says about the package."""

    manifest: Manifest
    findings: tuple[Finding, ...]


def export_package(folder: Path, target: Path) -> Export:
    """Write a package to a zip file; the same package always gives the same bytes.

    One that could not run is refused: no import would take it.
    """
    if not folder.is_dir():
        raise PackageError(f"{folder} is not a package folder")
    if target.parent.resolve().is_relative_to(folder.resolve()):
        raise PackageError(f"{target} lies inside the package; choose a place outside of it")
    package = read_package(folder)
    content = read_files(folder)
    found = [finding for finding in package.findings if is_error(finding)]
    named = {finding.place.file for finding in found}
    found += [finding for finding in content.findings if finding.place.file not in named]
    found += _unpackable(folder, package.name, content)
    if found:
        raise PackageError(f"{folder} cannot be exported; nothing was written", tuple(found))
    findings = review_package(package)
    # What cannot be linked here may be performed by the version that imports the archive.
    errors = tuple(it for it in findings if is_error(it) and not it.code.startswith("LINK"))
    if errors:
        message = f"{folder} is not exported: the package has errors; nothing was written"
        raise CheckFailed(message, errors)
    manifest = make_manifest(package.name, package.digest, content.files)
    raw = _zipped({MANIFEST: manifest_bytes(manifest), **content.files})
    replace_files(target.parent, {target.name: raw})
    return Export(manifest, findings)


def _unpackable(folder: Path, name: str, content: FolderFiles) -> list[Finding]:
    """Find what import would refuse, while the author can still fix it."""
    faults = [f"{it!r} {fault}" for it in sorted(content.files) if (fault := name_error(it))]
    fault = segment_error(name)
    if fault:
        faults.append(f"the workflow's name {name!r} {fault}")
    both = clash([*content.files, MANIFEST])
    if both:
        faults.append(f"{both[0]!r} and {both[1]!r} would be the same file, or one in the other")
    severity = CATALOGUE["SCHEMA015"].severity
    place = Place(str(folder))
    return [Finding("SCHEMA015", severity, it, place, hint=("rename it",)) for it in faults]


def _zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as zipped:
        for name in sorted(files):
            entry = ZipInfo(name, _LONG_AGO)
            entry.compress_type = ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = _PLAIN_FILE
            zipped.writestr(entry, files[name], compresslevel=9)
    return buffer.getvalue()
