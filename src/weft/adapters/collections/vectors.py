"""Vectors of a collection in a mapped file, and the search over them. Needs numpy.

The file is built from the database and can be rebuilt at any time, so nothing depends on it. New
rows are written behind the old ones, then the header is updated: rows that a killed process left
behind are overwritten. The header has the checksum of all rows; a file with another checksum is
rebuilt. A writer holds the write lock of the database.

Vectors are read only while every passage has one: then new ones have higher ids than those read.

A search ranks passages twice, by the similarity of their vectors to that of the query and by the
query's words in them (BM25), and fuses the two ranks. The relevance of a passage is the cosine of
its vector alone, from 0 to 1.
"""

import os
import struct
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.adapters.collections.filters import FITTING, FITTING_COLUMNS, filter_rows
from weft.adapters.collections.keywords import count_of, terms_of
from weft.adapters.collections.rows import About, SearchQuery, renew_epoch
from weft.adapters.sql.statements import Rows, Statement, Transaction
from weft.findings import Json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.adapters.collections.index import VectorIndex
    from weft.ports.retrieval import Vectors


_MAGIC: Final = b"weftvec2"
_HEADER: Final = struct.Struct("<8s16sQII")
_HEADER_BYTES: Final = 64

#: A row begins with the id of its passage; vectors begin at multiples of 64 bytes, the unit in
#: which a processor reads.
_ALIGNED: Final = 16

#: The number of rows per write, and the greatest share of rows of removed passages.
_BLOCK: Final = 1000
_MAX_GONE: Final = 0.25

_IDS: Final = Statement(
    """
    SELECT id FROM passages {by passages_by_collection} WHERE app = $1 AND collection = $2
    ORDER BY id
    """
)
_VECTORS: Final = Statement(
    """
    SELECT id, vector FROM passages {by passages_by_collection}
    WHERE app = $1 AND collection = $2 AND id > $3 ORDER BY id LIMIT $4
    """
)
_FITTING_IDS: Final = Statement(
    f"{{x}} SELECT p.id FROM passages p WHERE p.app = $1 AND p.source IN ({FITTING})",  # noqa: S608
    FITTING_COLUMNS,
    is_whole=True,
)
_HITS: Final = Statement(
    """
    SELECT w.rowid, {rank $3} FROM words w WHERE {of_collection} AND {matches $3}
    """
)


@dataclass(frozen=True, slots=True)
class MappedVectors:
    """The rows of a mapped file, in the order of the ids of passages."""

    epoch: str
    passages: "NDArray[np.int64]"
    #: The rows of the file, and the vector part of each.
    whole: "NDArray[np.float32]"
    size: int
    #: True for rows of removed passages.
    gone: "NDArray[np.bool_]"
    checksum: int = 0

    def __len__(self) -> int:
        return len(self.passages)

    @property
    def last(self) -> int:
        """The id of the last passage."""
        return int(self.passages[-1]) if len(self) else 0

    @property
    def matrix(self) -> "Vectors":
        """All vectors, without copying them."""
        return self.whole[:, _ALIGNED : _ALIGNED + self.size]

    def picked(self, rows: "NDArray[np.int64] | list[int]") -> "Vectors":
        """Return the vectors of some rows; copying whole rows is faster than copying parts."""
        return self.whole.take(np.asarray(rows, np.int64), axis=0)[
            :, _ALIGNED : _ALIGNED + self.size
        ]

    def without(self, living: "NDArray[np.int64]") -> "MappedVectors":
        """Return the vectors without the rows of other passages than these."""
        return replace(self, gone=~np.isin(self.passages, living, assume_unique=True))

    @property
    def has_many_gone(self) -> bool:
        """Whether the rows should be renumbered."""
        return bool(np.count_nonzero(self.gone) > _MAX_GONE * max(len(self), 1))


def open_vectors(
    about: About, path: Path, known: MappedVectors | None
) -> Transaction[MappedVectors]:
    """Update the file and map it; the caller holds the write lock.

    `known` is the previous mapping, whose rows are not verified again.
    """
    rows = yield _IDS((), *about.key)
    living = np.array(rows, np.int64).reshape(-1)
    found = _map_file(path, about.epoch, known)
    if found is None or found.without(living).has_many_gone:
        if found is not None:
            about = yield from renew_epoch(about)
        found = yield from _rewrite(about, path)
    elif len(living) and living[-1] > found.last:
        yield from _append(about, path, found)
        found = _map_file(path, about.epoch, found) or (yield from _rewrite(about, path))
    return found.without(living)


def _map_file(path: Path, epoch: str, known: MappedVectors | None) -> MappedVectors | None:
    """Map a file; None if it is missing, of another epoch, or damaged."""
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
    gone = np.zeros(rows, np.bool_)
    return MappedVectors(epoch, _ids(mapped), np.asarray(mapped), size, gone, checksum)


def _rewrite(about: About, path: Path) -> Transaction[MappedVectors]:
    """Write a new file and replace the old one, which other processes may have open."""
    size = about.dimensions
    whole = np.zeros((0, _row_bytes(size) // 4), np.float32)
    empty = MappedVectors(about.epoch, _ids(whole), whole, size, np.zeros(0, np.bool_))
    if not size:
        return empty
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    yield from _append(about, new, empty)
    new.replace(path)
    return _map_file(path, about.epoch, None) or empty


def _append(about: About, path: Path, found: MappedVectors) -> Transaction[None]:
    """Append vectors, then update the header."""
    rows, checksum, last = len(found), found.checksum, found.last
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        file.seek(_HEADER_BYTES + rows * _row_bytes(found.size))
        while block := (yield _VECTORS((), *about.key, last, _BLOCK)):
            raw = _rows(block, found.size).tobytes()
            file.write(raw)
            checksum = zlib.crc32(raw, checksum)
            rows += len(block)
            last = block[-1][0]
        file.flush()
        file.seek(0)
        header = _HEADER.pack(_MAGIC, found.epoch.encode(), rows, found.size, checksum)
        file.write(header.ljust(_HEADER_BYTES, b"\0"))


def _rows(block: Rows, size: int) -> "NDArray[np.float32]":
    rows = np.zeros((len(block), _row_bytes(size) // 4), np.float32)
    rows[:, :2].view(np.int64)[:, 0] = [passage for passage, _ in block]
    rows[:, _ALIGNED : _ALIGNED + size] = as_matrix([vector for _, vector in block])
    return rows


def as_matrix(vectors: Sequence[bytes]) -> "Vectors":
    """Return vectors as they are stored as the rows of an array."""
    return np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)


def cosines(rows: Rows, vector: "Vectors") -> dict[int, float]:
    """Return how alike the vectors of passages are to another one; those without are left out."""
    found = [(id_, stored) for id_, stored in rows if stored and len(stored) == 4 * len(vector)]
    scores: list[float] = (
        (as_matrix([stored for _, stored in found]) @ vector).tolist() if found else []
    )
    return dict(zip((id_ for id_, _ in found), scores, strict=True))


def _ids(rows: "NDArray[np.float32]") -> "NDArray[np.int64]":
    return np.array(rows[:, :2]).view(np.int64)[:, 0]


def _row_bytes(size: int) -> int:
    return 4 * _ALIGNED * (1 + -(-size // _ALIGNED))


#: The least number of passages per ranking, and the constant of rank fusion.
_CANDIDATES: Final = 30
_FUSION: Final = 60

#: Above this share of rows, all rows are multiplied, which is faster than selecting some.
_MOST_PICKED: Final = 0.25

#: Words in more passages than this share are ignored: they say little and are slow.
_MOST_PASSAGES: Final = 0.05
_FEW_PASSAGES: Final = 1000

#: The cache limits: word positions per vector, and filters.
_MOST_PLACES: Final = 8
_MOST_FILTERS: Final = 64


class Snapshot:
    """A collection at one generation. Lookups are cached for the next search."""

    def __init__(self, about: About, vectors: MappedVectors, index: "VectorIndex | None") -> None:
        self.generation = about.generation
        self.vectors = vectors
        self.index = index
        self._about = about
        self._any_gone = bool(vectors.gone.any())
        self._filters: OrderedDict[str, NDArray[np.int64]] = OrderedDict()
        self._terms: OrderedDict[str, _Term | None] = OrderedDict()
        self._places = 0

    def search(
        self, wanted: SearchQuery, vector: "Vectors"
    ) -> Transaction[list[tuple[int, float]]]:
        """Return passages and how relevant they are, the best first."""
        count = candidates(wanted)
        among = None
        if wanted.filters:
            among = yield from self._filter_rows(wanted.filters)
        alike = self._nearest_vectors(vector, among, count)
        worded = yield from self._matching_words(wanted.query, among, count)
        others = [row for row in worded if row not in alike]
        cosines: list[float] = (self.vectors.picked(others) @ vector).tolist()
        found = fuse({**alike, **dict(zip(others, cosines, strict=True))}, [*alike], worded, wanted)
        return [(int(self.vectors.passages[row]), relevance) for row, relevance in found]

    def _nearest_vectors(
        self, vector: "Vectors", among: "NDArray[np.int64] | None", count: int
    ) -> dict[int, float]:
        """Return the rows most similar to a vector and their cosines, the best first."""
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
    ) -> Transaction[list[int]]:
        """Return the rows with the most of the query's words, the best first."""
        scores = np.zeros(len(self.vectors) if among is None else len(among), np.float32)
        for word in terms_of(query):
            term = yield from self._term(word)
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

    def _filter_rows(self, filters: Mapping[str, Json]) -> "Transaction[NDArray[np.int64]]":
        """Return the rows whose passages meet all filters."""
        key = repr(sorted(filters.items()))
        found = self._filters.pop(key, None)
        if found is None:
            fitting = filter_rows(filters)
            hits = yield _FITTING_IDS(fitting, *self._about.key, len(filters))
            found = self._rows(hits)[0]
        self._filters[key] = found
        if len(self._filters) > _MOST_FILTERS:
            self._filters.popitem(last=False)
        return found

    def _term(self, term: str) -> "Transaction[_Term | None]":
        """Return the rows of a word; None if it is in no passage or in almost all."""
        if term in self._terms:
            self._terms.move_to_end(term)
            return self._terms[term]
        found = None
        most = most_passages(len(self.vectors))
        count = yield from count_of(self._about, term, most)
        if 0 < count <= most:
            hits = yield _HITS((), *self._about.key, term)
            rows, places = self._rows(hits)
            weights = np.array([weight for _, weight in hits], np.float32)[places]
            found = _Term(rows, weights) if len(rows) else None
        self._terms[term] = found
        self._places += len(found.rows) if found else 0
        while self._places > _MOST_PLACES * max(len(self.vectors), _FEW_PASSAGES):
            old = self._terms.popitem(last=False)[1]
            self._places -= len(old.rows) if old else 0
        return found

    def _rows(self, hits: Rows) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """Return the rows of passages in ascending order, and the index of the hit of each."""
        ids = np.array([hit[0] for hit in hits], np.int64)
        passages = self.vectors.passages
        rows = np.minimum(np.searchsorted(passages, ids), len(passages) - 1)
        known = np.flatnonzero(passages[rows] == ids)
        rising = known[np.argsort(rows[known])]
        return rows[rising], rising


class _Term:
    """The rows with a word, and its weight in each."""

    __slots__ = ("rows", "weights")

    def __init__(self, rows: "NDArray[np.int64]", weights: "NDArray[np.float32]") -> None:
        self.rows = rows
        self.weights = weights


def _top(scores: "NDArray[np.float32]", count: int) -> "NDArray[np.int64]":
    """Return the indexes of the highest scores, the highest first."""
    if len(scores) > count:
        best: Any = np.argpartition(scores, -count)[-count:]
    else:
        best = np.arange(len(scores))
    return best[np.argsort(-scores[best], kind="stable")]


def most_passages(total: int) -> int:
    """Return in how many passages a word may be that is compared beside vectors."""
    return max(_FEW_PASSAGES, int(_MOST_PASSAGES * total))


def candidates(wanted: SearchQuery) -> int:
    """Return how many passages each ranking has."""
    return max(2 * wanted.top_k, _CANDIDATES)


def fuse(
    cosines: Mapping[int, float], alike: Sequence[int], worded: Sequence[int], wanted: SearchQuery
) -> list[tuple[int, float]]:
    """Return the best of two rankings, and how relevant each is.

    The sum of the reciprocal ranks decides about the order.
    """
    points = {row: 1 / (_FUSION + place) for place, row in enumerate(alike)}
    for place, row in enumerate(worded):
        points[row] = points.get(row, 0.0) + 1 / (_FUSION + place)
    kept: list[tuple[int, float]] = []
    for row in sorted(points, key=points.__getitem__, reverse=True):
        # A float32 sum may exceed 1 a little; negative cosines are not relevant.
        relevance = min(1.0, max(0.0, cosines[row]))
        if relevance >= wanted.min_relevance:
            kept.append((row, relevance))
            if len(kept) == wanted.top_k:
                break
    return kept
