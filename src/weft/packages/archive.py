"""Packages as zip files: written the same every time, and read as if from a stranger."""

import io
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from weft.catalogue import CATALOGUE
from weft.errors import CheckFailed, PackageError
from weft.findings import Finding, Place, is_error
from weft.packages.archive_names import MANIFEST, clash, name_fault, segment_fault
from weft.packages.comparison import compare
from weft.packages.folder_files import FolderFiles, read_files
from weft.packages.last_import import RECORD, backup_of, lost_by_update
from weft.packages.manifest import Manifest, make_manifest, manifest_bytes
from weft.packages.package import Package
from weft.packages.reader import read_package
from weft.packages.review import review_package
from weft.packages.staging import create_folder, replace_files, replace_folder
from weft.packages.unpacking import Unpacked, refused, unpack

_WORKFLOWS: Final = "workflows"
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)
_PLAIN_FILE: Final = 0o100644 << 16
_UNIX: Final = 3


@dataclass(frozen=True, slots=True)
class Import:
    """What an import did, or would do; `findings` is what the checker says about the package.

    `lost` names local files that are not as the last import left them and would be replaced.
    """

    name: str
    folder: Path
    created: bool
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    diff: str
    old_digest: str | None
    new_digest: str
    findings: tuple[Finding, ...] = ()
    lost: tuple[str, ...] = ()
    #: Where the former folder is kept, if own work was replaced.
    backup: Path | None = None

    @property
    def unchanged(self) -> bool:
        """Whether the folder already held exactly these files, so that nothing was written."""
        return not (self.added or self.changed or self.removed)


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
    """Find what import would refuse, while the author can still mend it."""
    faults = [f"{it!r} {fault}" for it in sorted(content.files) if (fault := name_fault(it))]
    fault = segment_fault(name)
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


def import_package(
    archive: Path, workspace: Path, *, dry_run: bool = False, force: bool = False
) -> Import:
    """Install or update a package from a zip file, whole or not at all; nothing if `dry_run`.

    Nothing either where own work would be lost (`lost` names it), except with `force`: then the
    former folder is kept as a backup.
    """
    unpacked = unpack(archive)
    folder = workspace / _WORKFLOWS / unpacked.manifest.name
    findings = _judged(archive, unpacked, folder)
    installed = _installed(folder)
    present = installed or FolderFiles({}, {}, ())
    comparison = compare(present.files, unpacked.files)
    lost = lost_by_update(present, unpacked.files)
    outcome = Import(
        name=unpacked.manifest.name,
        folder=folder,
        created=installed is None,
        added=comparison.added,
        changed=comparison.changed,
        removed=comparison.removed,
        diff=comparison.diff,
        old_digest=read_package(folder).digest if installed else None,
        new_digest=unpacked.manifest.digest,
        findings=findings,
        lost=lost,
        backup=backup_of(folder) if lost and force else None,
    )
    if dry_run or outcome.unchanged or (lost and not force):
        return outcome
    record = {RECORD: manifest_bytes(unpacked.manifest)}
    if installed is None:
        create_folder(folder, {**unpacked.files, **record})
    else:
        files = {**present.kept, **unpacked.files, **record}
        replace_folder(folder, files, backup=outcome.backup)
    return outcome


def _judged(archive: Path, unpacked: Unpacked, folder: Path) -> tuple[Finding, ...]:
    """Read and check the files as a package, somewhere apart; refuse what cannot run."""
    with tempfile.TemporaryDirectory(prefix="weft-") as name:
        staged = Path(name) / unpacked.manifest.name
        create_folder(staged, unpacked.files)
        package = read_package(staged)
        faults = [_moved(it, staged, archive) for it in package.findings if is_error(it)]
        if not faults:
            faults = [refused(archive, it) for it in _mismatches(unpacked.manifest, package)]
        if faults:
            message = f"{archive} cannot be imported; nothing was changed"
            raise PackageError(message, tuple(faults))
        findings = review_package(package)
        # One that could not run must not take the place of one that can.
        errors = tuple(_moved(it, staged, archive) for it in findings if is_error(it))
        if errors:
            message = f"{archive} cannot be imported: the package has errors; nothing was changed"
            raise PackageError(message, errors)
        return tuple(_moved(it, staged, folder) for it in findings)


def _mismatches(manifest: Manifest, package: Package) -> list[str]:
    if package.name != manifest.name:
        return [f"{MANIFEST} says {manifest.name!r}, but the workflow is {package.name!r}"]
    if package.digest != manifest.digest:
        return [f"{MANIFEST}: the digest is not that of the package"]
    return []


def _moved(finding: Finding, staged: Path, to: Path) -> Finding:
    """Name the place where the reader will look, not where the files stood for a moment."""
    file = finding.place.file.replace(str(staged), str(to), 1)
    return replace(finding, place=replace(finding.place, file=file))


def _installed(folder: Path) -> FolderFiles | None:
    """Read the folder that is to be replaced, with everything in it that is to stay."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise PackageError(f"{folder} is a link or no folder; move it away and import again")
    if not folder.exists():
        return None
    content = read_files(folder, hidden=True)
    if content.findings:
        raise PackageError(f"{folder} cannot be replaced; nothing was changed", content.findings)
    return content
