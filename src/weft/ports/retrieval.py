"""Retrieval: passages that fit a query, from collections of a tenant.

A collection is named by the class that stands for it, so that a flow names a type and not a text:

    class ResearchLibrary(Collection): ...

Which adapter searches it is registered elsewhere and can be swapped without touching the flow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from weft.errors import RetrievalError
from weft.findings import Json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: One row for each text, each of length 1: the similarity of two is their dot product.
    Vectors: TypeAlias = NDArray[np.float32]


#: How many passages are returned, and how relevant they must be, by default.
TOP_K: Final = 5
MIN_RELEVANCE: Final = 0.7


class Collection:
    """Base of the classes that stand for collections; they are never instantiated."""

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} stands for a collection; use the class itself")

    @classmethod
    def collection_name(cls) -> str:
        """Return what the collection is called in stores and on the command line."""
        return cls.__name__


C_co = TypeVar("C_co", bound=Collection, covariant=True)


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """A passage that was found; the score is its relevance, from 0 to 1."""

    content: str
    score: float
    #: Where it comes from, such as a file; None where that is not known.
    source_id: str | None = None
    #: What the passage was stored with, and where it stands in its source.
    metadata: Mapping[str, Json] | None = None


@runtime_checkable
class VectorSearchAdapter(Protocol[C_co]):
    """Searches one collection."""

    async def search(
        self,
        query: str,
        *,
        top_k: int = TOP_K,
        min_relevance: float = MIN_RELEVANCE,
        filters: Mapping[str, Json] | None = None,
    ) -> list[RetrievalResult]:
        """Return at most `top_k` passages of at least `min_relevance`, the best first.

        A filter is a key of the metadata and the value it must have, or a list of values of which
        it must have one; only passages that fit all filters are looked at. Raises RetrievalError,
        which says whether trying again may help.
        """
        ...


class Retrievers(Protocol):
    """The adapters of every tenant's collections."""

    def adapter(self, app: str, collection: str) -> VectorSearchAdapter[Any] | None:
        """Return what searches a collection of a tenant; None if there is no such collection."""
        ...

    def names(self, app: str) -> Sequence[str]:
        """Return the collections of a tenant."""
        ...

    async def close(self) -> None:
        """Close what was opened for it; adapters are for those to close who have made them."""
        ...


#: A text with more characters is refused: no model takes that much in, and nothing is cut silently.
MOST_CHARACTERS: Final = 100_000


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """Which model it is; vectors of different models cannot be compared."""
        ...

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        """Return a float32 array with one unit vector for each text, in their order.

        Raises RetrievalError for a text that is empty or longer than MOST_CHARACTERS, and when the
        model cannot be reached; it says whether trying again may help.
        """
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...


def require_texts(texts: Sequence[str]) -> None:
    """Refuse texts that no embedder takes; raise RetrievalError that says which one it is."""
    for number, text in enumerate(texts, 1):
        which = f"text {number} of {len(texts)}" if len(texts) > 1 else "the text"
        if not text.strip():
            raise RetrievalError(f"{which} to embed is empty", hint="leave empty texts out")
        if len(text) > MOST_CHARACTERS:
            raise RetrievalError(
                f"{which} to embed has {len(text):,} characters; at most {MOST_CHARACTERS:,} fit",
                hint="split it, or put it into a collection, which does that",
            )
