"""Reading an archive that nobody has vouched for: bounded, and refused as a whole if in doubt."""

import stat
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from weft.catalogue import CATALOGUE
from weft.errors import PackageError
from weft.findings import Finding, Place
from weft.packages.archive.manifest import Manifest, read_manifest, sha256
from weft.packages.archive.names import MANIFEST, MAX_FILES, MAX_TOTAL, clash
from weft.spec.file_names import name_error, segment_error

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


def unpack(archive: Path) -> Unpacked:
    """Read an archive into memory, or raise PackageError that says all that is wrong with it."""
    try:
        if not archive.is_file():
            raise _refusal(archive, ["there is no such file"])
        with archive.open("rb") as file:
            faults = list(_end_faults(file, archive.stat().st_size))
            if faults:
                raise _refusal(archive, faults)
            with ZipFile(file) as zipped:
                return _unpacked(archive, zipped)
    except _BROKEN as error:
        raise _refusal(archive, ["the zip file is damaged"]) from error
    except OSError as error:
        reason = (error.strerror or "the zip file is damaged").lower()
        raise _refusal(archive, [f"the file cannot be read: {reason}"]) from error


def refused(archive: Path, message: str) -> Finding:
    hint = "get the file again, or make it anew: weft export NAME"
    severity = CATALOGUE["SCHEMA015"].severity
    return Finding("SCHEMA015", severity, message, Place(str(archive)), hint=(hint,))


def _refusal(archive: Path, faults: list[str]) -> PackageError:
    shown = faults[:_MOST_FINDINGS]
    if len(faults) > len(shown):
        shown.append(f"and {len(faults) - len(shown)} more like these")
    findings = tuple(refused(archive, fault) for fault in shown)
    return PackageError(f"{archive} cannot be imported; nothing was changed", findings)


def _end_faults(file: BinaryIO, size: int) -> Iterator[str]:
    """Look at the end of the file before the list of entries is read, which could be huge."""
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


def _unpacked(archive: Path, zipped: ZipFile) -> Unpacked:
    entries = zipped.infolist()
    for look in (_entry_faults, _list_faults):
        faults = list(look(entries))
        if faults:
            raise _refusal(archive, faults)
    files: dict[str, bytes] = {}
    room = MAX_TOTAL
    for entry in entries:
        # What the list says about sizes may be a lie: what counts is what comes out.
        with zipped.open(entry) as content:
            raw = content.read(room + 1)
        room -= len(raw)
        if room < 0:
            raise _refusal(archive, [f"the content is larger than {MAX_TOTAL // 1024**2} MiB"])
        files[entry.filename] = raw
    manifest = read_manifest(files.pop(MANIFEST))
    faults = [manifest] if isinstance(manifest, str) else list(_content_faults(manifest, files))
    if isinstance(manifest, str) or faults:
        raise _refusal(archive, [f"{MANIFEST}: {fault}" for fault in faults])
    return Unpacked(manifest, files)


def _entry_faults(entries: list[ZipInfo]) -> Iterator[str]:
    for entry in entries:
        # `filename` was shortened at a zero byte; only the name as it stands can be judged.
        name = entry.orig_filename
        fault = name_error(name)
        kind = stat.S_IFMT(entry.external_attr >> 16)
        if fault:
            yield f"{name!r} {fault}"
        elif kind not in (0, stat.S_IFREG):
            yield f"{name!r} is a link or something else that is not a plain file"
        elif entry.flag_bits & _ENCRYPTED:
            yield f"{name!r} is encrypted"
        elif entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            yield f"{name!r} is compressed in a way that weft export does not use"


def _list_faults(entries: list[ZipInfo]) -> Iterator[str]:
    names = [entry.filename for entry in entries]
    both = clash(names)
    if both:
        yield f"{both[0]!r} and {both[1]!r} would be the same file, or one inside the other"
    if MANIFEST not in names:
        yield f"{MANIFEST} is missing"
    if len(names) > MAX_FILES + 1:
        yield f"the zip file holds more than {MAX_FILES} files"


def _content_faults(manifest: Manifest, files: dict[str, bytes]) -> Iterator[str]:
    fault = segment_error(manifest.name)
    if fault:
        yield f"the name {manifest.name!r} {fault}"
    for name in sorted(manifest.files.keys() | files.keys()):
        if name not in files:
            yield f"{name!r} is listed, but not in the zip file"
        elif name not in manifest.files:
            yield f"{name!r} is in the zip file, but not listed"
        elif sha256(files[name]) != manifest.files[name]:
            yield f"{name!r} is not what was packed: its sha256 differs"
