"""The vectors of a collection in one file that is mapped into memory. Needs numpy.

It is made of what the database has and can be made anew at any time, so nothing depends on it. New
rows are written behind the old ones, then the header says that they are there: rows that a killed
process has left behind are overwritten. The sum in the header is that of all rows, and a file whose
rows do not have it is made anew. Whoever writes holds the database's right to write.
"""

import os
import sqlite3
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.adapters.collections.rows import About, renew_epoch, vector_size

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.ports.embeddings import Vectors

_MAGIC: Final = b"weftvec1"
_HEADER: Final = struct.Struct("<8s16sQII")
_HEADER_BYTES: Final = 64

#: A row begins with the number of the vector and that of its passage; vectors begin at multiples
#: of 64 bytes, the unit in which a processor reads.
_ALIGNED: Final = 16

#: How many rows are written at once, and which share of rows may be of passages that are gone.
_BLOCK: Final = 1000
_MOST_GONE: Final = 0.25


@dataclass(frozen=True, slots=True)
class MappedVectors:
    """The rows of a file: their numbers, which passage each is of, and their vectors."""

    epoch: str
    numbers: "NDArray[np.int64]"
    passages: "NDArray[np.int64]"
    #: The rows as they are in the file, and the part of each that is its vector.
    whole: "NDArray[np.float32]"
    size: int
    #: True for rows whose passage is gone.
    gone: "NDArray[np.bool_]"
    checksum: int = 0

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def matrix(self) -> "Vectors":
        """All vectors, without a copy of them."""
        return self.whole[:, _ALIGNED : _ALIGNED + self.size]

    def picked(self, rows: "NDArray[np.int64] | list[int]") -> "Vectors":
        """The vectors of some rows; whole rows are copied faster than parts of them."""
        return self.whole.take(np.asarray(rows, np.int64), axis=0)[
            :, _ALIGNED : _ALIGNED + self.size
        ]


def open_vectors(
    connection: sqlite3.Connection, path: Path, about: About, known: MappedVectors | None
) -> MappedVectors:
    """Bring the file up to date and map it; the right to write is held meanwhile.

    `known` is what was mapped before: rows that were checked then are not checked again.
    """
    living = np.array(
        connection.execute("SELECT number FROM vectors ORDER BY number").fetchall(), np.int64
    ).reshape(-1)
    found = _mapped(path, about.epoch, known)
    epoch = about.epoch
    if found is None or _too_many_gone(found, living):
        epoch = about.epoch if found is None else renew_epoch(connection)
        found = _written_anew(connection, path, epoch)
    elif len(living) and (not len(found) or living[-1] > found.numbers[-1]):
        _append(connection, path, found)
        found = _mapped(path, epoch, found) or _written_anew(connection, path, epoch)
    gone = ~np.isin(found.numbers, living, assume_unique=True)
    return replace(found, epoch=epoch, gone=gone)


def _too_many_gone(found: MappedVectors, living: "NDArray[np.int64]") -> bool:
    there = np.count_nonzero(np.isin(found.numbers, living, assume_unique=True))
    return bool(len(found) - there > _MOST_GONE * max(len(found), 1))


def _mapped(path: Path, epoch: str, known: MappedVectors | None) -> MappedVectors | None:
    """Map a file; None if it is not there, not of this epoch, or not as it was written."""
    with suppress(OSError, struct.error), path.open("rb") as file:
        magic, of, rows, size, checksum = _HEADER.unpack(file.read(_HEADER.size))
        whole = path.stat().st_size >= _HEADER_BYTES + rows * _row_bytes(size)
        if magic == _MAGIC and of == epoch.encode() and rows and size and whole:
            return _checked(path, epoch, rows, size, checksum, known)
    return None


def _checked(
    path: Path, epoch: str, rows: int, size: int, checksum: int, known: MappedVectors | None
) -> MappedVectors | None:
    width = _row_bytes(size) // 4
    mapped: Any = np.memmap(path, np.float32, "r", _HEADER_BYTES, (rows, width))
    at, so_far = 0, 0
    if known is not None and known.epoch == epoch and 0 < len(known) <= rows:
        at, so_far = len(known), known.checksum
    for start in range(at, rows, _BLOCK):
        so_far = zlib.crc32(mapped[start : min(start + _BLOCK, rows)], so_far)
    if so_far != checksum:
        return None
    numbers = mapped[:, :4].view(np.int64)
    return MappedVectors(
        epoch,
        np.array(numbers[:, 0]),
        np.array(numbers[:, 1]),
        np.asarray(mapped),
        size,
        np.zeros(rows, np.bool_),
        checksum,
    )


def _written_anew(connection: sqlite3.Connection, path: Path, epoch: str) -> MappedVectors:
    """Write a file beside the old one and put it in its place: others may still have that open."""
    size = vector_size(connection)
    empty = MappedVectors(
        epoch,
        np.zeros(0, np.int64),
        np.zeros(0, np.int64),
        np.zeros((0, _row_bytes(size) // 4), np.float32),
        size,
        np.zeros(0, np.bool_),
    )
    if not size:
        return empty
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    _append(connection, new, empty)
    new.replace(path)
    return _mapped(path, epoch, None) or empty


def _append(connection: sqlite3.Connection, path: Path, found: MappedVectors) -> None:
    """Write the vectors behind those that are there, and then say so in the header."""
    rows, checksum, size = len(found), found.checksum, found.size
    last = int(found.numbers[-1]) if rows else 0
    new = connection.execute(
        "SELECT number, passage, vector FROM vectors WHERE number > ? ORDER BY number", (last,)
    )
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        file.seek(_HEADER_BYTES + rows * _row_bytes(size))
        while block := new.fetchmany(_BLOCK):
            raw = _rows(block, size)
            file.write(raw)
            checksum = zlib.crc32(raw, checksum)
            rows += len(block)
        file.flush()
        file.seek(0)
        header = _HEADER.pack(_MAGIC, found.epoch.encode(), rows, size, checksum)
        file.write(header.ljust(_HEADER_BYTES, b"\0"))


def _rows(block: list[tuple[int, int, bytes]], size: int) -> bytes:
    rows = np.zeros((len(block), _row_bytes(size) // 4), np.float32)
    numbers = rows[:, :4].view(np.int64)
    numbers[:] = [(number, passage) for number, passage, _ in block]
    rows[:, _ALIGNED : _ALIGNED + size] = np.frombuffer(
        b"".join(vector for _, _, vector in block), "<f4"
    ).reshape(len(block), size)
    return rows.tobytes()


def _row_bytes(size: int) -> int:
    return 4 * _ALIGNED * (1 + -(-size // _ALIGNED))
