"""Similarity of texts by the vectors of an embedder."""

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from weft.context.user_code import describe_error, user_code
from weft.errors import RetrievalError
from weft.findings import Json
from weft.ports.retrieval import MOST_CHARACTERS, Embedder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]

#: How many vectors are kept in memory, how many texts are embedded in one call, and how long that
#: may take.
KEPT: Final = 10_000
AT_ONCE: Final = 64
SECONDS: Final = 30.0

#: The message and the hint if there is no embedder.
NO_EMBEDDINGS: Final = "there are no embeddings to compare meanings with"
GET_EMBEDDINGS: Final = (
    "install a model on this machine with weft embeddings install, or set WEFT_EMBEDDINGS to one "
    "behind an OpenAI-compatible endpoint: PROVIDER:MODEL or URL#MODEL"
)


class Similarity:
    """Compares texts. Vectors are cached, so that each text is embedded once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        #: By the hash of the text, the most recently used last.
        self._vectors: dict[bytes, Vector] = {}

    @property
    def name(self) -> str:
        """The name of the embedding model. Raises UsageError if there is no embedder."""
        return self._embedder.name

    async def of(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the similarity of each text to a query, from 0 to 1; 0 for an empty text.

        Only the first 100,000 characters of a text count. Raises RetrievalError.
        """
        if not query.strip() or not any(text.strip() for text in texts):
            return [0.0] * len(texts)
        vectors = await self._embedded([query, *texts])
        wanted = vectors[_key(query)]
        return [_nearness(wanted, vectors.get(_key(text))) for text in texts]

    async def _embedded(self, texts: Iterable[str]) -> "dict[bytes, Vector]":
        missing: dict[bytes, str] = {}
        found: dict[bytes, Vector] = {}
        for text in texts:
            key = _key(text)
            if key in self._vectors:
                found[key] = self._vectors[key] = self._vectors.pop(key)
            elif text.strip():
                missing[key] = text[:MOST_CHARACTERS]
        keys = list(missing)
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            rows = await self._rows([missing[key] for key in part])
            # Each part is cached at once: after a timeout the next attempt continues from there.
            self._vectors.update(zip(part, rows, strict=True))
            found.update(zip(part, rows, strict=True))
        for key in list(self._vectors)[: max(0, len(self._vectors) - KEPT)]:
            del self._vectors[key]
        return found

    async def _rows(self, texts: list[str]) -> "list[Vector]":
        try:
            async with asyncio.timeout(SECONDS):
                with user_code:
                    vectors = await self._embedder.embed(texts)
            if len(vectors) != len(texts):
                raise ValueError(f"{len(vectors)} vectors for {len(texts)} texts")  # noqa: TRY301
            return [
                row.copy() for row in vectors
            ]  # A view of one row would keep the whole matrix in memory.
        except RetrievalError:
            raise
        except TimeoutError as error:
            message = f"the embeddings took longer than {SECONDS:g} seconds"
            raise RetrievalError(message, retryable=True) from error
        except Exception as error:  # a custom embedder can raise anything
            message = f"the embeddings failed: {describe_error(error)}"
            raise RetrievalError(message) from error


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def _nearness(query: "Vector", vector: "Vector | None") -> float:
    # In this order NaN becomes 0.
    return 0.0 if vector is None else min(1.0, max(0.0, round(float(query @ vector), 4)))


def text_of(payload: Json) -> str:
    """Return the text of a payload: its texts and numbers at any depth, one per line.

    >>> text_of({"subject": "Refund", "lines": [{"price": 12, "paid": True}]})
    'Refund\\n12'
    """
    return "\n".join(text for text in _said(payload) if text.strip())


def _said(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)
    elif isinstance(value, dict | list):
        inside = cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)
        for part in inside:
            yield from _said(part)
