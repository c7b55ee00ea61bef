"""Retrieval for tests: an adapter with given passages, an embedder without a model.

library = InMemoryVectorAdapter[ResearchLibrary]()
library.seed(("Bees dance to tell the way.", 0.9), ("Ants follow scents.", 0.75))
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from zlib import crc32

from weft.adapters.collections.filters import labels, require_filters
from weft.findings import Json
from weft.ports.retrieval import MIN_RELEVANCE, TOP_K, Collection, RetrievalResult, require_texts

if TYPE_CHECKING:
    from weft.ports.retrieval import Vectors

C = TypeVar("C", bound=Collection)

_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Search:
    """A recorded search."""

    query: str
    top_k: int
    min_relevance: float
    filters: Mapping[str, Json] | None


class InMemoryVectorAdapter(Generic[C]):
    """Returns its seeded passages by their given scores, for any query.

    `searches` are the recorded searches. Filters work as in collections of a workspace: of metadata
    that is a list each item counts, and a key that no passage has is an error.
    """

    def __init__(self) -> None:
        self.searches: list[Search] = []
        self._passages: list[RetrievalResult] = []

    def seed(self, *passages: tuple[str, float] | RetrievalResult) -> None:
        """Add passages: their text and score, or whole results."""
        self._passages += [
            passage if isinstance(passage, RetrievalResult) else RetrievalResult(*passage)
            for passage in passages
        ]

    async def search(
        self,
        query: str,
        *,
        top_k: int = TOP_K,
        min_relevance: float = MIN_RELEVANCE,
        filters: Mapping[str, Json] | None = None,
    ) -> list[RetrievalResult]:
        """Return the seeded passages with enough relevance, the best first."""
        self.searches.append(Search(query, top_k, min_relevance, filters))
        keys = {key for passage in self._passages for key in passage.metadata or {}}
        require_filters(filters or {}, sorted(keys), "the adapter")
        fitting = [
            passage
            for passage in self._passages
            if passage.score >= min_relevance and _fits(passage.metadata or {}, filters or {})
        ]
        return sorted(fitting, key=lambda passage: -passage.score)[:top_k]


def _fits(metadata: Mapping[str, Json], filters: Mapping[str, Json]) -> bool:
    known = set(labels(metadata))
    return all(not known.isdisjoint(labels({key: value})) for key, value in filters.items())


class WordEmbedder:
    """Makes vectors from the words of a text: texts with the same words are alike. Needs numpy."""

    def __init__(self, *, name: str = "words", dimensions: int = 256) -> None:
        self.name = name
        self._dimensions = dimensions
        #: All embedded texts, in order.
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return one unit vector for each text."""
        import numpy as np  # noqa: PLC0415 - an optional part

        require_texts(texts)
        vectors = np.zeros((len(texts), self._dimensions), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            self.texts.append(text)
            for word in _WORD.findall(text.lower()) or [text]:
                row[crc32(word.encode()) % self._dimensions] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    async def close(self) -> None:
        """Nothing is open."""
