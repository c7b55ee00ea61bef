"""What the last import of a package wrote, so that the next one can tell work done since then."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from weft.packages.folder_files import FolderFiles
from weft.packages.manifest import read_manifest, sha256

#: The manifest of the last import, in the package itself. Hidden, so it is never packed.
RECORD: Final = ".weft-import.json"


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
