"""Embeddings: texts as vectors whose directions are alike when the texts mean something alike."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from weft.errors import RetrievalError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    #: One row for each text, each of length 1: the similarity of two is their dot product.
    Vectors: TypeAlias = NDArray[np.float32]

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
