"""The manifest of an archive: what is in it, by content."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import StringConstraints, ValidationError
from pydantic_core import to_json

from weft.packages import documents
from weft.packages.archive_names import MANIFEST
from weft.spec.part import Name, Part

Sha256: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Manifest(Part):
    """What an archive holds: the workflow's name and digest, and every file with its sha256."""

    weft: Literal[1] = 1
    name: Name
    digest: Sha256
    files: dict[str, Sha256]


def make_manifest(name: str, digest: str, files: Mapping[str, bytes]) -> Manifest:
    """Describe files."""
    return Manifest(name=name, digest=digest, files={it: sha256(files[it]) for it in sorted(files)})


def manifest_bytes(manifest: Manifest) -> bytes:
    """Write a manifest, always in the same way."""
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
    """Return the sha256 of some bytes as hexadecimal digits."""
    return hashlib.sha256(raw).hexdigest()
