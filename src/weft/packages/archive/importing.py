"""Importing a package from an untrusted zip file, completely or not at all."""

import difflib
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from weft.catalogue import CATALOGUE
from weft.errors import PackageError
from weft.findings import Finding, Place, is_error
from weft.ids import name_error, segment_error
from weft.packages.archive.exporting import (
    MANIFEST,
    RECORD,
    Manifest,
    files_lost_by_update,
    find_clash,
    free_backup_name,
    manifest_bytes,
    read_manifest,
    sha256,
)
from weft.packages.archive.staging import create_folder, replace_folder, staged_folder
from weft.packages.folder import MAX_FILES, MAX_TOTAL, FolderFiles, read_files
from weft.packages.reader import Package, read_package
from weft.packages.review import review_package

#: The record at the end of a zip file, up to the length of the comment.
_END: Final = struct.Struct("<4s4H2LH")
_END_SIGN: Final = b"PK\x05\x06"
_LARGE_SIGN: Final = b"PK\x06\x07"
_LARGE_SIZE: Final = 20

#: Room for the list of all entries, with names far longer than usual ones.
_MAX_LIST: Final = 2 * 1024 * 1024
_ENCRYPTED: Final = 0x1
_MOST_FINDINGS: Final = 20

_BROKEN: Final = (BadZipFile, NotImplementedError, EOFError, ValueError, zlib.error, struct.error)


@dataclass(frozen=True, slots=True)
class Unpacked:
    """What an archive holds: exactly the files its manifest lists, each with the right sha256."""

    manifest: Manifest
    files: dict[str, bytes]


def unpack(archive: Path, content: bytes | None = None) -> Unpacked:
    """Read an archive into memory, or raise PackageError with all its errors.

    With its content, `archive` is only its name in messages.
    """
    try:
        if content is not None:
            return _read_archive(archive, BytesIO(content), len(content))
        if not archive.is_file():
            raise _refusal(archive, ["there is no such file"])
        with archive.open("rb") as file:
            return _read_archive(archive, file, archive.stat().st_size)
    except _BROKEN as error:
        raise _refusal(archive, ["the zip file is damaged"]) from error
    except OSError as error:
        reason = (error.strerror or "the zip file is damaged").lower()
        raise _refusal(archive, [f"the file cannot be read: {reason}"]) from error


def _read_archive(archive: Path, file: BinaryIO, size: int) -> Unpacked:
    errors = list(_end_errors(file, size))
    if errors:
        raise _refusal(archive, errors)
    with ZipFile(file) as zipped:
        return _read_entries(archive, zipped)


def archive_finding(archive: Path, message: str) -> Finding:
    hint = "get the file again, or create it again: weft export NAME"
    severity = CATALOGUE["SCHEMA015"].severity
    return Finding("SCHEMA015", severity, message, Place(str(archive)), hint=(hint,))


def _refusal(archive: Path, errors: list[str]) -> PackageError:
    shown = errors[:_MOST_FINDINGS]
    if len(errors) > len(shown):
        shown.append(f"and {len(errors) - len(shown)} more like these")
    findings = tuple(archive_finding(archive, error) for error in shown)
    return PackageError(f"{archive} cannot be imported; nothing was changed", findings)


def _end_errors(file: BinaryIO, size: int) -> Iterator[str]:
    """Yield errors in the end record, before the list of entries is read, which may be huge."""
    if size > MAX_TOTAL + _MAX_LIST:
        yield f"the file is larger than {MAX_TOTAL // 1024**2} MiB"
        return
    file.seek(max(0, size - _END.size - _LARGE_SIZE))
    tail = file.read()
    if len(tail) < _END.size or not tail[-_END.size :].startswith(_END_SIGN):
        yield "the file is not a zip file, or was cut off, or has something added at its end"
        return
    _, disk, first, here, entries, listed, offset, _ = _END.unpack(tail[-_END.size :])
    if tail.startswith(_LARGE_SIGN) or disk or first or here != entries:
        yield "the zip file is of a kind that weft export does not write"
    elif offset + listed + _END.size != size:
        yield "the zip file has something added before, between or after its parts"
    elif entries > MAX_FILES + 1 or listed > _MAX_LIST:
        yield f"the zip file lists more than {MAX_FILES} files"


def _read_entries(archive: Path, zipped: ZipFile) -> Unpacked:
    # A zip file that a person packed lists folders, and the record of the last import.
    entries = [
        entry
        for entry in zipped.infolist()
        if entry.orig_filename != RECORD and not (entry.is_dir() and not entry.file_size)
    ]
    if all(entry.filename != MANIFEST for entry in entries):
        raise _refusal(archive, [f"this is not an archive of `weft export`: it has no {MANIFEST}"])
    for look in (_entry_errors, _list_errors):
        errors = list(look(entries))
        if errors:
            raise _refusal(archive, errors)
    files: dict[str, bytes] = {}
    room = MAX_TOTAL
    for entry in entries:
        # The listed sizes may be false, so the extracted size is checked.
        with zipped.open(entry) as content:
            raw = content.read(room + 1)
        room -= len(raw)
        if room < 0:
            raise _refusal(archive, [f"the content is larger than {MAX_TOTAL // 1024**2} MiB"])
        files[entry.filename] = raw
    manifest = read_manifest(files.pop(MANIFEST))
    errors = [manifest] if isinstance(manifest, str) else list(_content_errors(manifest, files))
    if isinstance(manifest, str) or errors:
        raise _refusal(archive, [f"{MANIFEST}: {error}" for error in errors])
    return Unpacked(manifest, files)


def _entry_errors(entries: list[ZipInfo]) -> Iterator[str]:
    for entry in entries:
        # `filename` was cut at a zero byte; the original name is the one to check.
        name = entry.orig_filename
        error = name_error(name)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if error:
            yield f"{name!r} {error}"
        elif kind not in (0, stat.S_IFREG):
            yield f"{name!r} is a link or something else that is not a plain file"
        elif entry.flag_bits & _ENCRYPTED:
            yield f"{name!r} is encrypted"
        elif entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            yield f"{name!r} is compressed in a way that weft export does not use"


def _list_errors(entries: list[ZipInfo]) -> Iterator[str]:
    names = [entry.filename for entry in entries]
    both = find_clash(names)
    if both:
        yield f"{both[0]!r} and {both[1]!r} would be the same file, or one inside the other"
    if len(names) > MAX_FILES + 1:
        yield f"the zip file holds more than {MAX_FILES} files"


def _content_errors(manifest: Manifest, files: dict[str, bytes]) -> Iterator[str]:
    error = segment_error(manifest.name)
    if error:
        yield f"the name {manifest.name!r} {error}"
    for name in sorted(manifest.files.keys() | files.keys()):
        if name not in files:
            yield f"{name!r} is listed, but not in the zip file"
        elif name not in manifest.files:
            yield f"{name!r} is in the zip file, but not listed"
        elif sha256(files[name]) != manifest.files[name]:
            yield f"{name!r} is not what was packed: its sha256 differs"


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
    #: The backup of the former folder, if local changes were replaced.
    backup: Path | None = None

    @property
    def unchanged(self) -> bool:
        """Whether the folder already held exactly these files, so that nothing was written."""
        return not (self.added or self.changed or self.removed)


#: Checks a package; the folder is where it will be.
Reviewer: TypeAlias = Callable[[Package, Path], tuple[Finding, ...]]


def _review(package: Package, home: Path) -> tuple[Finding, ...]:
    return review_package(package, home=home)


def import_package(
    archive: Path,
    workspace: Path,
    *,
    content: bytes | None = None,
    dry_run: bool = False,
    force: bool = False,
    keep_backup: bool = True,
    reviewer: Reviewer = _review,
) -> Import:
    """Install or update a package from a zip file, whole or not at all; nothing if `dry_run`.

    Nothing is written either if local changes would be lost (`lost` names them), except with
    `force`: then the former folder is kept as a backup, unless `keep_backup` is off. With the
    `content` of the file, `archive` is only its name.
    """
    unpacked = unpack(archive, content)
    folder = workspace / _WORKFLOWS / unpacked.manifest.name
    findings = _check_staged(archive, unpacked, folder, reviewer)
    installed = _read_installed(folder)
    present = installed or FolderFiles({}, {}, ())
    comparison = compare(present.files, unpacked.files)
    lost = files_lost_by_update(present, unpacked.files)
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
        backup=free_backup_name(folder) if lost and force and keep_backup else None,
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


def _check_staged(
    archive: Path, unpacked: Unpacked, folder: Path, reviewer: Reviewer
) -> tuple[Finding, ...]:
    """Read and check the files in a temporary folder; refuse a package that cannot run."""
    with staged_folder(unpacked.files, unpacked.manifest.name) as staged:
        package = read_package(staged)
        errors = [
            finding_at(finding, staged, archive)
            for finding in package.findings
            if is_error(finding)
        ]
        if not errors:
            errors = [
                archive_finding(archive, message)
                for message in _mismatches(unpacked.manifest, package)
            ]
        if errors:
            message = f"{archive} cannot be imported; nothing was changed"
            raise PackageError(message, tuple(errors))
        findings = reviewer(package, folder)
        # A package with errors must not replace one that works.
        errors = tuple(
            finding_at(finding, staged, archive) for finding in findings if is_error(finding)
        )
        if errors:
            message = f"{archive} cannot be imported: the package has errors; nothing was changed"
            raise PackageError(message, errors)
        return tuple(finding_at(finding, staged, folder) for finding in findings)


def _mismatches(manifest: Manifest, package: Package) -> list[str]:
    if package.name != manifest.name:
        return [f"{MANIFEST} says {manifest.name!r}, but the workflow is {package.name!r}"]
    if package.digest != manifest.digest:
        return [f"{MANIFEST}: the digest is not that of the package"]
    return []


def finding_at(finding: Finding, staged: Path, to: Path) -> Finding:
    """Replace the folder in the place of a finding by another one, such as the final one."""
    file = finding.place.file.replace(str(staged), str(to), 1)
    return replace(finding, place=replace(finding.place, file=file))


def _read_installed(folder: Path) -> FolderFiles | None:
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
    """Return the lines of a text for display, or None if it is binary or too long."""
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
    """Escape control characters, which could control the terminal."""
    if line.isprintable():
        return line
    return "".join(
        char if char.isprintable() or char == "\t" else char.encode("unicode_escape").decode()
        for char in line
    )
