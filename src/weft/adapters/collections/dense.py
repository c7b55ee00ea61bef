"""Search by meaning and by keywords together, over mapped vectors. Needs numpy.

Passages are ranked twice, by how alike their vectors are to that of the query and by the query's
words in them (BM25), and the two ranks are fused. How relevant a passage is says its vector alone:
the cosine, from 0 to 1.
"""

import sqlite3
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft.adapters.collections.keywords import count_of, terms_of
from weft.adapters.collections.rows import filter_conditions, known_keys
from weft.findings import Json

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.adapters.collections.index import VectorIndex
    from weft.adapters.collections.vectors import MappedVectors
    from weft.ports.embeddings import Vectors

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
        among = self._filtered(filters) if filters else None
        alike = self._alike(vector, among, count)
        worded = self._worded(query, among, count)
        kept: list[tuple[int, float]] = []
        for row, cosine in self._fused(alike, worded, vector):
            # A float32 sum may be a little above 1, and what is opposite is not relevant at all.
            relevance = min(1.0, max(0.0, cosine))
            if relevance >= min_relevance:
                kept.append((int(self.vectors.passages[row]), relevance))
                if len(kept) == top_k:
                    break
        return kept

    def _alike(
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

    def _worded(self, query: str, among: "NDArray[np.int64] | None", count: int) -> list[int]:
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

    def _fused(
        self, alike: dict[int, float], worded: list[int], vector: "Vectors"
    ) -> list[tuple[int, float]]:
        """Return the rows of both ranks in their common order, and their cosines."""
        points = {row: 1 / (_FUSION + place) for place, row in enumerate(alike)}
        for place, row in enumerate(worded):
            points[row] = points.get(row, 0.0) + 1 / (_FUSION + place)
        others = [it for it in worded if it not in alike]
        cosines: list[float] = (self.vectors.picked(others) @ vector).tolist()
        known = {**alike, **dict(zip(others, cosines, strict=True))}
        return [(row, known[row]) for row in sorted(points, key=points.__getitem__, reverse=True)]

    def _filtered(self, filters: Mapping[str, Json]) -> "NDArray[np.int64]":
        """Return the rows whose passages fit all filters."""
        key = repr(sorted(filters.items()))
        found = self._filters.pop(key, None)
        if found is None:
            conditions = filter_conditions(filters)
            sources = " AND ".join(f"source IN ({sql})" for sql, _ in conditions)
            found = self._rows(
                self._connection.execute(
                    f"SELECT id FROM passages WHERE {sources}",  # noqa: S608 - question marks
                    [it for _, values in conditions for it in values],
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
            weights = np.array([it for _, it in hits], np.float32)[places]
            found = _Term(rows, weights) if len(rows) else None
        self._terms[term] = found
        self._places += len(found.rows) if found else 0
        while self._places > _MOST_PLACES * max(len(self.vectors), _FEW_PASSAGES):
            old = self._terms.popitem(last=False)[1]
            self._places -= len(old.rows) if old else 0
        return found

    def _rows(self, hits: list[tuple[Any, ...]]) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
        """Return the rows of passages in rising order, and which of the passages each is."""
        ids = np.array([it[0] for it in hits], np.int64)
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
