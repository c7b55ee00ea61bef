"""Embeddings by a model on this machine: all-MiniLM-L6-v2 on one thread of its processor."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weft.adapters.embeddings.wordpiece import WordPiece
from weft.errors import RetrievalError, SetupError
from weft.ports.embeddings import require_texts

if TYPE_CHECKING:
    from weft.ports.embeddings import Vectors

#: What the model is called. Its vectors are compared with those of no other.
NAME: Final = "all-MiniLM-L6-v2-int8"

#: How many tokens the model was made for. A longer text is the mean of its windows.
WINDOW: Final = 256

GRAPH: Final = "model.onnx"
VOCABULARY: Final = "vocab.txt"

#: What the extra `embeddings` brings.
LIBRARIES: Final = ("numpy", "onnxruntime", "onnx")


def is_installed(folder: Path) -> bool:
    """Tell whether the model is in a folder, and all that runs it on this machine."""
    return (folder / GRAPH).is_file() and all(find_spec(it) for it in LIBRARIES)


class LocalEmbedder:
    """The model of a folder; it is loaded when it is first asked."""

    name = NAME

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: Any = None
        self._words: WordPiece | None = None
        # One thread: what it computes takes all of a processor, and more would disturb the runs.
        self._thread = ThreadPoolExecutor(1, "weft-embeddings")

    async def embed(self, texts: Sequence[str]) -> "Vectors":
        require_texts(texts)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._embed, list(texts))

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _embed(self, texts: list[str]) -> "Vectors":
        import numpy as np  # noqa: PLC0415 - an optional part

        words = self._words or self._load()
        found = np.empty((len(texts), 384), np.float32)
        for row, text in zip(found, texts, strict=True):
            parts = [
                self._session.run(None, {"tokens": np.array([it], np.int32)})[0][0] * len(it)
                for it in words.windows(text, WINDOW)
            ]
            row[:] = np.sum(parts, axis=0)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found

    def _load(self) -> WordPiece:
        require_libraries()
        library: Any = import_module("onnxruntime")
        options = library.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # The graph is as fast as it gets: further changes would make parts of it slower.
        options.graph_optimization_level = library.GraphOptimizationLevel.ORT_ENABLE_BASIC
        try:
            vocabulary = (self._folder / VOCABULARY).read_text(encoding="utf-8").splitlines()
            self._session = library.InferenceSession(
                str(self._folder / GRAPH), options, providers=["CPUExecutionProvider"]
            )
            self._words = WordPiece(vocabulary)
        except Exception as error:  # the library raises classes of its own, without a base
            raise RetrievalError(
                f"the embedding model in {self._folder} cannot be loaded: {error}",
                hint="install it again: weft embeddings install",
            ) from error
        return self._words


def require_libraries() -> None:
    """Raise SetupError that says what to install if something is missing."""
    missing = [it for it in LIBRARIES if find_spec(it) is None]
    if missing:
        raise SetupError(
            f"local embeddings need libraries that are not installed: {', '.join(missing)}",
            hint='install them: pip install "weft-agents[embeddings]"',
        )
