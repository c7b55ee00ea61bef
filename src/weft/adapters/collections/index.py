"""An index for large collections. Needs usearch.

It has the first rows of the mapped file, each by its place, in 8 bits a number; what it finds is
compared again by the vectors themselves, and rows that came later are searched one by one. It is
written as a whole beside the mapped file; one that is damaged or of another epoch is not used.
"""

import os
import zlib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

# usearch exposes the symbols of its libraries to modules loaded later, and onnxruntime, which
# embeds queries, crashes if it finds them. So onnxruntime is loaded first, if installed.
if find_spec("onnxruntime"):
    import_module("onnxruntime")

from usearch.index import Index

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from weft.adapters.collections.vectors import MappedVectors
    from weft.ports.retrieval import Vectors

#: Connections per row, and the breadth of the search when adding and finding rows.
_CONNECTIVITY: Final = 16
_ADD_EFFORT: Final = 128
_SEARCH_EFFORT: Final = 256

#: How many candidates are compared exactly per wanted row.
_AGAIN: Final = 4

#: The share of rows outside of the index from which it is extended.
_MOST_MISSING: Final = 0.1

_MAGIC: Final = b"weftidx1"
_BLOCK: Final = 10_000
_HEADER_BYTES: Final = 64


class VectorIndex:
    """Finds the approximately nearest rows."""

    def __init__(self, index: Any) -> None:  # noqa: ANN401 - the library has few types
        self.index = index
        self.rows = len(index)

    def nearest(
        self, vector: "Vectors", count: int, vectors: "MappedVectors"
    ) -> "NDArray[np.int64]":
        """Return at least `count` candidates for the nearest rows, if there are so many.

        Rows of removed passages are skipped, so the search widens until there are enough.
        """
        wanted = count * _AGAIN
        later = np.arange(self.rows, len(vectors))
        while True:
            found: NDArray[np.int64] = self.index.search(vector, wanted).keys.astype(np.int64)
            there = np.concatenate([found, later])
            there = there[~vectors.gone[there]]
            if len(there) >= count or wanted >= self.rows:
                return np.sort(there)
            wanted = min(wanted * 4, self.rows)


def open_index(path: Path, vectors: "MappedVectors") -> VectorIndex | None:
    """Read the index of these vectors; None if it is missing or unusable."""
    try:
        raw = path.read_bytes()
    except OSError:
        return None
    head, body = raw[:_HEADER_BYTES], memoryview(raw)[_HEADER_BYTES:]
    if head != _header(vectors.epoch, body):
        return None
    index = _empty(vectors)
    index.load(body)
    return VectorIndex(index)


def build_index(path: Path, vectors: "MappedVectors") -> bool:
    """Build or extend the index; False if that is not needed."""
    old = open_index(path, vectors)
    if old is not None and len(vectors) - old.rows <= _MOST_MISSING * len(vectors):
        return False
    index = old.index if old else _empty(vectors)
    for start in range(len(index), len(vectors), _BLOCK):
        block = vectors.matrix[start : start + _BLOCK]
        index.add(np.arange(start, start + len(block)), np.ascontiguousarray(block))
    body = bytes(index.save())
    new = path.with_suffix(".new-index")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(_header(vectors.epoch, body))
        file.write(body)
    new.replace(path)
    return True


def _empty(vectors: "MappedVectors") -> Any:  # noqa: ANN401 - the library has few types
    return Index(
        ndim=vectors.size,
        metric="cos",
        dtype="i8",
        connectivity=_CONNECTIVITY,
        expansion_add=_ADD_EFFORT,
        expansion_search=_SEARCH_EFFORT,
    )


def _header(epoch: str, body: "bytes | memoryview") -> bytes:
    made = _MAGIC + epoch.encode() + zlib.crc32(body).to_bytes(4, "little")
    return made.ljust(_HEADER_BYTES, b"\0")
