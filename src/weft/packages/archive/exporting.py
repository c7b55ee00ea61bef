"""Exporting a package to a reproducible zip file with a manifest."""

import hashlib
import io
import json
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from pydantic import StringConstraints, ValidationError
from pydantic_core import to_json

from weft.catalogue import CATALOGUE
from weft.errors import CheckFailed, PackageError
from weft.findings import Finding, Place, is_error
from weft.ids import name_error, segment_error
from weft.packages.archive.staging import replace_files
from weft.packages.folder import FolderFiles, read_files
from weft.packages.reader import read_package
from weft.packages.review import review_package
from weft.packages.text import documents
from weft.spec.part import Name, Part

#: The name of the manifest in an archive.
MANIFEST: Final = "manifest.json"


def find_clash(names: Iterable[str]) -> tuple[str, str] | None:
    """Return two names that collide on some system, or of which one is a folder of the other.

    Some systems ignore case, or the Unicode form of an accent.
    """
    seen: dict[str, str] = {}
    for name in names:
        folded = _fold_name(name)
        if folded in seen:
            return seen[folded], name
        seen[folded] = name
    for folded, name in seen.items():
        parent = folded.rpartition("/")[0]
        while parent:
            if parent in seen:
                return seen[parent], name
            parent = parent.rpartition("/")[0]
    return None


def _fold_name(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

#: The manifest of the last import, in the package itself. Hidden, so it is never packed.
RECORD: Final = ".weft-import.json"


class Manifest(Part):
    """What an archive holds: the workflow's name and digest, and every file with its sha256."""

    weft: Literal[1] = 1
    name: Name
    digest: Sha256
    files: dict[str, Sha256]


def make_manifest(name: str, digest: str, files: Mapping[str, bytes]) -> Manifest:
    return Manifest(
        name=name, digest=digest, files={path: sha256(files[path]) for path in sorted(files)}
    )


def manifest_bytes(manifest: Manifest) -> bytes:
    return (json.dumps(manifest.model_dump(), indent=2, ensure_ascii=False) + "\n").encode()


def read_manifest(raw: bytes) -> Manifest | str:
    """Read a manifest, or return what is wrong with it."""
    document = documents.read(MANIFEST, raw)
    if not document.ok:
        return document.findings[0].message
    try:
        return Manifest.model_validate_json(to_json(document.data), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        return f"{where}: {first['msg'].lower()}" if where else first["msg"].lower()


def sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def files_lost_by_update(present: FolderFiles, new: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return the files with local changes that an update would change or remove.

    Without a record of an import, all files count as changed.
    """
    known = _last_import(present)
    return tuple(
        name
        for name, raw in sorted(present.files.items())
        if new.get(name) != raw and known.get(name) != sha256(raw)
    )


def free_backup_name(folder: Path) -> Path:
    """Return a free backup name beside a folder; folders with that ending are not read as packages.

    >>> free_backup_name(Path("nowhere/Support")).as_posix()
    'nowhere/Support.bak'
    """
    number = 1
    backup = folder.with_name(f"{folder.name}.bak")
    while backup.exists() or backup.is_symlink():
        number += 1
        backup = folder.with_name(f"{folder.name}.{number}.bak")
    return backup


def _last_import(present: FolderFiles) -> Mapping[str, str]:
    manifest = read_manifest(present.kept.get(RECORD, b""))
    return {} if isinstance(manifest, str) else manifest.files


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

    A package with errors is refused, as import would refuse it.
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
    # Features unsupported here may be supported by the version that imports the archive.
    errors = tuple(
        finding for finding in findings if is_error(finding) and not finding.code.startswith("LINK")
    )
    if errors:
        message = f"{folder} is not exported: the package has errors; nothing was written"
        raise CheckFailed(message, errors)
    manifest = make_manifest(package.name, package.digest, content.files)
    replace_files(target.parent, {target.name: pack_files(manifest, content.files)})
    return Export(manifest, findings)


def _unpackable(folder: Path, name: str, content: FolderFiles) -> list[Finding]:
    """Return findings for what import would refuse."""
    errors = [f"{name!r} {error}" for name in sorted(content.files) if (error := name_error(name))]
    error = segment_error(name)
    if error:
        errors.append(f"the workflow's name {name!r} {error}")
    both = find_clash([*content.files, MANIFEST])
    if both:
        errors.append(f"{both[0]!r} and {both[1]!r} would be the same file, or one in the other")
    severity = CATALOGUE["SCHEMA015"].severity
    place = Place(str(folder))
    return [
        Finding("SCHEMA015", severity, message, place, hint=("rename it",)) for message in errors
    ]


def pack_files(manifest: Manifest, files: Mapping[str, bytes]) -> bytes:
    """Return the zip file of a package; the same files always give the same bytes."""
    return _zip_files({MANIFEST: manifest_bytes(manifest), **files})


def _zip_files(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as zipped:
        for name in sorted(files):
            entry = ZipInfo(name, _LONG_AGO)
            entry.compress_type = ZIP_DEFLATED
            entry.create_system = _UNIX
            entry.external_attr = _PLAIN_FILE
            zipped.writestr(entry, files[name], compresslevel=9)
    return buffer.getvalue()
