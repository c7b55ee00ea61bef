"""Vectors of a collection in a memory-mapped file, and the search over them. Needs numpy.

The file is built from the database and can be rebuilt at any time, so nothing depends on it. New
rows are written behind the old ones, then the header is updated: rows that a killed process left
behind are overwritten. The header has the checksum of all rows; a file with another checksum is
rebuilt. A writer holds the write lock of the database.

A search ranks passages twice, by the similarity of their vectors to that of the query and by the
query's words in them (BM25), and fuses the two ranks. The relevance of a passage is the cosine of
its vector alone, from 0 to 1.
"""

import os
import sqlite3
import struct
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.adapters.collections.rows import (
    About,
    count_of,
    filter_conditions,
    known_keys,
    renew_epoch,
    terms_of,
    vector_size,
)
from weft.findings import Json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.adapters.collections.index import VectorIndex
    from weft.ports.retrieval import Vectors


_MAGIC: Final = b"weftvec1"
_HEADER: Final = struct.Struct("<8s16sQII")
_HEADER_BYTES: Final = 64

#: A row begins with the number of the vector and that of its passage; vectors begin at multiples
#: of 64 bytes, the unit in which a processor reads.
_ALIGNED: Final = 16

#: How many rows are written at once, and which share of rows may be of passages that are gone.
_BLOCK: Final = 1000
_MAX_GONE: Final = 0.25


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
    found = _map_file(path, about.epoch, known)
    epoch = about.epoch
    if found is None or _has_many_gone(found, living):
        epoch = about.epoch if found is None else renew_epoch(connection)
        found = _rewrite(connection, path, epoch)
    elif len(living) and (not len(found) or living[-1] > found.numbers[-1]):
        _append(connection, path, found)
        found = _map_file(path, epoch, found) or _rewrite(connection, path, epoch)
    gone = ~np.isin(found.numbers, living, assume_unique=True)
    return replace(found, epoch=epoch, gone=gone)


def _has_many_gone(found: MappedVectors, living: "NDArray[np.int64]") -> bool:
    there = np.count_nonzero(np.isin(found.numbers, living, assume_unique=True))
    return bool(len(found) - there > _MAX_GONE * max(len(found), 1))


def _map_file(path: Path, epoch: str, known: MappedVectors | None) -> MappedVectors | None:
    """Map a file; None if it is not there, not of this epoch, or not as it was written."""
    with suppress(OSError, struct.error), path.open("rb") as file:
        magic, of, rows, size, checksum = _HEADER.unpack(file.read(_HEADER.size))
        whole = path.stat().st_size >= _HEADER_BYTES + rows * _row_bytes(size)
        if magic == _MAGIC and of == epoch.encode() and rows and size and whole:
            return _verify(path, epoch, rows, size, checksum, known)
    return None


def _verify(
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


def _rewrite(connection: sqlite3.Connection, path: Path, epoch: str) -> MappedVectors:
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
    return _map_file(path, epoch, None) or empty


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


#: How many passages of each rank are fused at least, and how much the first places count.
_CANDIDATES: Final = 30
_FUSION: Final = 60

#: Of more rows than this share all are multiplied: picking them out would take longer.
_MOST_PICKED: Final = 0.25

#: A word that more passages have says little, and would be slow.
_MOST_PASSAGES: Final = 0.05
_FEW_PASSAGES: Final = 1000

#: How many places of words are remembered for each vector, and how many filters in all.
_MOST_PLACES: Final = 8
_MOST_FILTERS: Final = 64


class Snapshot:
    """A collection as it was at one generation. What is looked up is kept for the next search."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        generation: int,
        vectors: "MappedVectors",
        index: "VectorIndex | None",
    ) -> None:
        self.generation = generation
        self.vectors = vectors
        self.index = index
        self.keys = known_keys(connection)
        #: Whether every passage has a vector.
        total = connection.execute("SELECT count(*) FROM passages").fetchone()[0]
        self.complete = 0 < total == len(vectors) - np.count_nonzero(vectors.gone)
        self._connection = connection
        order: Any = np.argsort(vectors.passages, kind="stable")
        self._order: NDArray[np.int64] = order
        self._sorted: NDArray[np.int64] = vectors.passages[order]
        self._any_gone = bool(vectors.gone.any())
        self._filters: OrderedDict[str, NDArray[np.int64]] = OrderedDict()
        self._terms: OrderedDict[str, _Term | None] = OrderedDict()
        self._places = 0

    def search(
        self,
        query: str,
        vector: "Vectors",
        *,
        top_k: int,
        min_relevance: float,
        filters: Mapping[str, Json],
    ) -> list[tuple[int, float]]:
        """Return passages and how relevant they are, the best first."""
        count = max(2 * top_k, _CANDIDATES)
        among = self._filter_rows(filters) if filters else None
        alike = self._nearest_vectors(vector, among, count)
        worded = self._matching_words(query, among, count)
        kept: list[tuple[int, float]] = []
        for row, cosine in self._fuse(alike, worded, vector):
            # A float32 sum may be a little above 1, and what is opposite is not relevant at all.
            relevance = min(1.0, max(0.0, cosine))
            if relevance >= min_relevance:
                kept.append((int(self.vectors.passages[row]), relevance))
                if len(kept) == top_k:
                    break
        return kept

    def _nearest_vectors(
        self, vector: "Vectors", among: "NDArray[np.int64] | None", count: int
    ) -> dict[int, float]:
        """Return the rows most alike to a vector and their cosines, the best first."""
        if among is None and self.index is not None:
            among = self.index.nearest(vector, count, self.vectors)
        if among is None or len(among) > _MOST_PICKED * len(self.vectors):
            scores: NDArray[np.float32] = self.vectors.matrix @ vector
            if self._any_gone:
                scores[self.vectors.gone] = -2.0
            if among is not None:
                scores = scores[among]
        else:
            scores = self.vectors.picked(among) @ vector
        best = _top(scores, count)
        rows = best if among is None else among[best]
        return dict(zip(rows.tolist(), scores[best].tolist(), strict=True))

    def _matching_words(
        self, query: str, among: "NDArray[np.int64] | None", count: int
    ) -> list[int]:
        """Return the rows with the most of the query's words, the best first."""
        scores = np.zeros(len(self.vectors) if among is None else len(among), np.float32)
        for term in map(self._term, terms_of(query)):
            if term is None:
                continue
            if among is None:
                scores[term.rows] += term.weights
            else:
                at = term.rows.searchsorted(among)
                at[at == len(term.rows)] = 0
                scores += term.weights[at] * (term.rows[at] == among)
        found = scores.nonzero()[0]
        best = found[_top(scores[found], count)]
        return (best if among is None else among[best]).tolist()

    def _fuse(
        self, alike: dict[int, float], worded: list[int], vector: "Vectors"
    ) -> list[tuple[int, float]]:
        """Return the rows of both ranks in their common order, and their cosines."""
        points = {row: 1 / (_FUSION + place) for place, row in enumerate(alike)}
        for place, row in enumerate(worded):
            points[row] = points.get(row, 0.0) + 1 / (_FUSION + place)
        others = [row for row in worded if row not in alike]
        cosines: list[float] = (self.vectors.picked(others) @ vector).tolist()
        known = {**alike, **dict(zip(others, cosines, strict=True))}
        return [(row, known[row]) for row in sorted(points, key=points.__getitem__, reverse=True)]

    def _filter_rows(self, filters: Mapping[str, Json]) -> "NDArray[np.int64]":
        """Return the rows whose passages fit all filters."""
        key = repr(sorted(filters.items()))
        found = self._filters.pop(key, None)
        if found is None:
            conditions = filter_conditions(filters)
            sources = " AND ".join(f"source IN ({sql})" for sql, _ in conditions)
            found = self._rows(
                self._connection.execute(
                    f"SELECT id FROM passages WHERE {sources}",  # noqa: S608 - question marks
                    [value for _, values in conditions for value in values],
                ).fetchall()
            )[0]
        self._filters[key] = found
        if len(self._filters) > _MOST_FILTERS:
            self._filters.popitem(last=False)
        return found

    def _term(self, term: str) -> "_Term | None":
        """Return where a word stands; None if it stands nowhere or almost everywhere."""
        if term in self._terms:
            self._terms.move_to_end(term)
            return self._terms[term]
        most = max(_FEW_PASSAGES, _MOST_PASSAGES * len(self.vectors))
        found = None
        if 0 < count_of(self._connection, term) <= most:
            hits = self._connection.execute(
                "SELECT rowid, -rank FROM words WHERE words MATCH ?", (term,)
            ).fetchall()
            rows, places = self._rows(hits)
            weights = np.array([weight for _, weight in hits], np.float32)[places]
            found = _Term(rows, weights) if len(rows) else None
        self._terms[term] = found
        self._places += len(found.rows) if found else 0
        while self._places > _MOST_PLACES * max(len(self.vectors), _FEW_PASSAGES):
            old = self._terms.popitem(last=False)[1]
            self._places -= len(old.rows) if old else 0
        return found

    def _rows(self, hits: list[tuple[Any, ...]]) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """Return the rows of passages in rising order, and which of the passages each is."""
        ids = np.array([hit[0] for hit in hits], np.int64)
        at = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        known = np.flatnonzero(self._sorted[at] == ids)
        rows = self._order[at[known]]
        rising = np.argsort(rows)
        return rows[rising], known[rising]


class _Term:
    """The rows that have a word, and how much it counts in each."""

    __slots__ = ("rows", "weights")

    def __init__(self, rows: "NDArray[np.int64]", weights: "NDArray[np.float32]") -> None:
        self.rows = rows
        self.weights = weights


def _top(scores: "NDArray[np.float32]", count: int) -> "NDArray[np.int64]":
    """Return where the highest scores are, the highest first."""
    if len(scores) > count:
        best: Any = np.argpartition(scores, -count)[-count:]
    else:
        best = np.arange(len(scores))
    return best[np.argsort(-scores[best], kind="stable")]
