"""Adds files and folders to a collection; unchanged files are skipped."""

import asyncio
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final

from weft.adapters.collections.collection import SqlCollection
from weft.adapters.collections.rows import Source, require_unicode
from weft.adapters.collections.texts import (
    Chunking,
    Passage,
    Text,
    Unreadable,
    kind_of,
    passages,
    read_text,
)
from weft.errors import RetrievalError
from weft.findings import Json

#: Sources are written in batches of this many passages: a killed process loses at most one
#: batch, which is added again by the next attempt.
WRITTEN_AT_ONCE: Final = 64

_MOST_BYTES: Final = 200 * 1024 * 1024

#: The version of reading and splitting; part of every digest.
_VERSION: Final = 1

#: The prefixes of digests: only sources from files can disappear from a folder.
_FILE: Final = "file:"
_TEXT: Final = "text:"

#: Metadata keys that are reserved for Weft.
_OWN_KEYS: Final = frozenset({"source", "kind", "start", "end", "line", "page"})


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress: files, passages, and the share of all bytes."""

    files: int
    of_files: int
    passages: int
    share: float


@dataclass(slots=True)
class Ingested:
    """The result: numbers of unchanged, read and removed sources."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages: int = 0
    #: Unreadable files with the reason, and suffixes of unsupported files.
    failed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    ignored: dict[str, int] = field(default_factory=dict[str, int])
    #: Files without any text, and folders without any file.
    empty: list[str] = field(default_factory=list[str])
    #: The number of passages that got a vector of the current model.
    embedded: int = 0


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, its name in citations, and its kind of text."""

    path: Path
    source: str
    kind: str


class Ingestion:
    """Adds sources to one collection."""

    def __init__(
        self,
        collection: SqlCollection,
        *,
        metadata: Mapping[str, Json] | None = None,
        chunking: Chunking | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.done = Ingested()
        self._collection = collection
        self._metadata = dict(metadata or {})
        self._chunking = chunking or Chunking()
        self._on_progress = on_progress
        self._files = self._all_files = 0
        self._bytes = self._all_bytes = 0
        #: Sources to write, their bytes, and the number of embedded passages.
        self._waiting: list[Source] = []
        self._waiting_bytes = self._waiting_done = 0
        _require_metadata(self._metadata)

    async def files(self, paths: Sequence[Path], root: Path) -> Ingested:
        """Add files and folders; sources that no longer exist in a folder are removed."""
        known = await self._collection.sources()
        # A file that is named twice, or also in a folder, is read once.
        files = list(
            {file.source: file for path in paths for file in self._find_files(path, root)}.values()
        )
        if paths and not files and not known:
            kinds = "text, Markdown, HTML, PDF and DOCX"
            empty = "".join(f": {folder} is empty" for folder in self.done.empty[:1])
            message = f"no readable file found{empty}"
            raise RetrievalError(message, hint=f"supported files: {kinds}")
        self._all_files = len(files)
        self._all_bytes = sum(map(_size, files))
        for file in files:
            await self._file(file, known.get(file.source))
        await self._flush()
        found = {file.source for file in files}
        missing = [
            source for source in known if source not in found and known[source].startswith(_FILE)
        ]
        gone = _missing_sources(missing, paths, root)
        if gone:
            await self._collection.remove(gone)
            self.done.removed = len(gone)
        return await self._finish()

    async def texts(self, texts: Mapping[str, str]) -> Ingested:
        """Add texts by name."""
        known = await self._collection.sources()
        self._all_files = len(texts)
        self._all_bytes = sum(map(len, texts.values()))
        for source, text in texts.items():
            require_unicode(source + text, f"the text {source!r}")
            digest = _TEXT + self._digest(text.encode())
            found = passages(Text(text), self._chunking)
            same = known.get(source) == digest
            new = None if same else self._source(source, digest, "text", found)
            await self._put(new, known.get(source), len(text))
        await self._flush()
        return await self._finish()

    async def _finish(self) -> Ingested:
        self.done.embedded = await self._collection.embed_missing(self._count_embedded)
        await self._collection.build_index()
        return self.done

    def _find_files(self, path: Path, root: Path) -> Iterator[SourceFile]:
        if not path.is_dir():
            # A named file is read whatever its suffix is.
            yield SourceFile(path, source_name(path, root), kind_of(path.suffix) or "text")
            return
        inside = sorted(_files(path))
        if not inside:
            self.done.empty.append(source_name(path, root))
        for file in inside:
            kind = kind_of(file.suffix)
            if kind is None:
                ending = file.suffix or file.name
                self.done.ignored[ending] = self.done.ignored.get(ending, 0) + 1
            else:
                yield SourceFile(file, source_name(file, root), kind)

    async def _file(self, file: SourceFile, known: str | None) -> None:
        try:
            # In a thread, so that a large file does not block the event loop.
            new = await asyncio.to_thread(self._read, file, known)
        except (OSError, Unreadable) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.done.failed.append((file.source, why or type(error).__name__))
            self._count_file(_size(file))
        else:
            await self._put(new, known, _size(file))

    def _read(self, file: SourceFile, known: str | None) -> Source | None:
        """Return a file as a source; None if it is unchanged."""
        if _size(file) > _MOST_BYTES:
            raise Unreadable(f"it is larger than {_MOST_BYTES // 1024 // 1024} MiB")
        raw = file.path.read_bytes()
        digest = _FILE + self._digest(raw)
        if digest == known:
            return None
        found = passages(read_text(raw, file.kind), self._chunking)
        return self._source(file.source, digest, file.kind, found)

    def _source(self, source: str, digest: str, kind: str, found: list[Passage]) -> Source:
        return Source(source, digest, {**self._metadata, "kind": kind, "source": source}, found)

    async def _put(self, new: Source | None, known: str | None, size: int) -> None:
        """Add a source to the next batch, unless it is unchanged."""
        if new is None:
            self.done.unchanged += 1
            self._count_file(size)
            return
        if known is None:
            self.done.added += 1
        else:
            self.done.changed += 1
        if not new.passages:
            self.done.empty.append(new.source)
        self._waiting.append(new)
        self._waiting_bytes += size
        self._count_file(0)
        if sum(len(source.passages) for source in self._waiting) >= WRITTEN_AT_ONCE:
            await self._flush()

    async def _flush(self) -> None:
        if self._waiting:
            await self._collection.put(self._waiting, self._count_embedded)
        self._bytes += self._waiting_bytes
        self._waiting, self._waiting_bytes, self._waiting_done = [], 0, 0
        self._report()

    def _digest(self, raw: bytes) -> str:
        """Return a digest of everything that determines the passages."""
        how = [_VERSION, self._chunking.size, self._chunking.overlap, self._metadata]
        made = blake2b(json.dumps(how, sort_keys=True).encode(), digest_size=16)
        made.update(raw)
        return made.hexdigest()

    def _count_embedded(self, count: int) -> None:
        self.done.passages += count
        self._waiting_done += count
        self._report()

    def _count_file(self, size: int) -> None:
        self._files += 1
        self._bytes += size
        self._report()

    def _report(self) -> None:
        if self._on_progress is None:
            return
        passages = sum(len(source.passages) for source in self._waiting)
        waiting = self._waiting_bytes * self._waiting_done / passages if passages else 0
        share = (self._bytes + waiting) / self._all_bytes if self._all_bytes else 1.0
        self._on_progress(
            Progress(self._files, self._all_files, self.done.passages, min(share, 1.0))
        )


def _files(folder: Path) -> Iterator[Path]:
    """Yield all files in a folder and its subfolders that are not hidden."""

    def refuse(error: OSError) -> None:
        # Otherwise it would count as empty, and its sources would be removed.
        why = error.strerror or type(error).__name__
        raise RetrievalError(
            f"the folder {error.filename} cannot be read: {why}",
            hint="change its permissions, or name the files and folders to add",
        ) from error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found = (Path(place, name) for name in names if not name.startswith("."))
        yield from filter(_is_readable_file, found)


def _is_readable_file(path: Path) -> bool:
    """Return whether a path is a file, or cannot be examined: then reading it reports why."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:  # a link to nothing
        return False
    except OSError:
        return True


def _missing_sources(sources: Sequence[str], paths: Sequence[Path], root: Path) -> list[str]:
    """Return the sources that have disappeared from the folders."""
    folders = [path.resolve() for path in paths if path.is_dir()]
    files = {source: root.resolve() / source for source in sources}
    return [
        source
        for source, file in files.items()
        if any(file.is_relative_to(folder) for folder in folders) and not file.exists()
    ]


def _size(file: SourceFile) -> int:
    try:
        return file.path.stat().st_size
    except OSError:  # it may be gone by now, which reading it reports
        return 0


def source_name(path: Path, root: Path) -> str:
    """Return the name of a file in citations: its path in the workspace, if it is inside."""
    whole = path.resolve()
    inside = root.resolve()
    name = str(whole.relative_to(inside)) if whole.is_relative_to(inside) else str(whole)
    # File names may be invalid Unicode on some systems; invalid characters are replaced.
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _require_metadata(metadata: Mapping[str, Json]) -> None:
    for key in metadata:
        if key in _OWN_KEYS or not key.isidentifier():
            own = ", ".join(sorted(_OWN_KEYS))
            raise RetrievalError(
                f'invalid metadata key "{key}"',
                hint=f"use a word of letters, digits and _, other than {own}",
            )
