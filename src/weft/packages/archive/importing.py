"""From a zip file to a package: read as if from a stranger, installed whole or not at all."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from weft.errors import PackageError
from weft.findings import Finding, is_error
from weft.packages.archive.manifest import (
    RECORD,
    Manifest,
    backup_of,
    lost_by_update,
    manifest_bytes,
    sha256,
)
from weft.packages.archive.names import MANIFEST
from weft.packages.archive.staging import create_folder, replace_folder, staged_folder
from weft.packages.archive.unpacking import Unpacked, refused, unpack
from weft.packages.folder import FolderFiles, read_files
from weft.packages.package import Package
from weft.packages.reader import read_package
from weft.packages.review import review_package

_WORKFLOWS: Final = "workflows"

#: Longer texts are compared by sha256 only, and so is everything once the sum is reached: finding
#: the smallest difference takes time that grows with the square of the length.
_MAX_BYTES: Final = 256 * 1024
_MAX_LINES: Final = 2_000
_MAX_LINES_IN_ALL: Final = 20_000


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
    with staged_folder(unpacked.files, unpacked.manifest.name) as staged:
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


@dataclass(frozen=True, slots=True)
class Comparison:
    """Names of files by what happens to them, and the difference as text."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    diff: str

    @property
    def same(self) -> bool:
        return not (self.added or self.changed or self.removed)


def compare(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Comparison:
    changed = sorted(name for name in old.keys() & new.keys() if old[name] != new[name])
    names = sorted([*(old.keys() ^ new.keys()), *changed])
    return Comparison(
        added=tuple(sorted(new.keys() - old.keys())),
        changed=tuple(changed),
        removed=tuple(sorted(old.keys() - new.keys())),
        diff="".join(f"{line}\n" for line in _differences(names, old, new)),
    )


def _differences(
    names: list[str], old: Mapping[str, bytes], new: Mapping[str, bytes]
) -> Iterator[str]:
    room = _MAX_LINES_IN_ALL
    for name in names:
        before, after = _lines(old.get(name, b"")), _lines(new.get(name, b""))
        if before is None or after is None or len(before) + len(after) > room:
            yield from _by_hash(name, old.get(name), new.get(name))
            continue
        room -= len(before) + len(after)
        source = f"a/{_visible(name)}" if name in old else "(none)"
        target = f"b/{_visible(name)}" if name in new else "(none)"
        marked = list(difflib.unified_diff(before, after, source, target, lineterm=""))
        # An empty file that appears or goes has no lines to show.
        yield from marked or (f"--- {source}", f"+++ {target}")


def _by_hash(name: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    name = _visible(name)
    yield f"--- a/{name} sha256 {sha256(old)}" if old is not None else "--- (none)"
    yield f"+++ b/{name} sha256 {sha256(new)}" if new is not None else "+++ (none)"


def _lines(raw: bytes) -> list[str] | None:
    """Return the lines of a text as they can be shown, or None if it is no text or too long."""
    if len(raw) > _MAX_BYTES or b"\0" in raw or raw.count(b"\n") >= _MAX_LINES:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    if not text:
        return []
    lines = [_visible(line) for line in text.split("\n")]
    if lines[-1]:
        lines[-1] += "    (no line end)"
    else:
        lines.pop()
    return lines


def _visible(line: str) -> str:
    """Write what cannot be seen as an escape: shown as it is, it could take over the terminal."""
    if line.isprintable():
        return line
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in line
    )
