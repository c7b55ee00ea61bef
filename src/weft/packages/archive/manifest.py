"""The manifest: what is in an archive, by content, and what the last import of a package wrote."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import StringConstraints, ValidationError
from pydantic_core import to_json

from weft.packages.archive.names import MANIFEST
from weft.packages.folder import FolderFiles
from weft.packages.text import documents
from weft.spec.part import Name, Part

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
    return Manifest(name=name, digest=digest, files={it: sha256(files[it]) for it in sorted(files)})


def manifest_bytes(manifest: Manifest) -> bytes:
    return (json.dumps(manifest.model_dump(), indent=2, ensure_ascii=False) + "\n").encode()


def read_manifest(raw: bytes) -> Manifest | str:
    """Read a manifest, or say what is wrong with it."""
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


def lost_by_update(present: FolderFiles, new: Mapping[str, bytes]) -> tuple[str, ...]:
    """Name the files an update would change or remove that are not as the last import left them.

    Without a record of it nobody knows where the files come from: all of them may be own work.
    """
    known = _last(present)
    return tuple(
        name
        for name, raw in sorted(present.files.items())
        if new.get(name) != raw and known.get(name) != sha256(raw)
    )


def backup_of(folder: Path) -> Path:
    """Return a free name beside a folder for keeping it; folders with that ending are no packages.

    >>> backup_of(Path("nowhere/Support")).as_posix()
    'nowhere/Support.bak'
    """
    number = 1
    backup = folder.with_name(f"{folder.name}.bak")
    while backup.exists() or backup.is_symlink():
        number += 1
        backup = folder.with_name(f"{folder.name}.{number}.bak")
    return backup


def _last(present: FolderFiles) -> Mapping[str, str]:
    manifest = read_manifest(present.kept.get(RECORD, b""))
    return {} if isinstance(manifest, str) else manifest.files
