"""Files and folders put into a collection; what has not changed since is left alone."""

import asyncio
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final

from weft.adapters.collections.collection import EmbeddedCollection
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

#: Sources are written when they have so many passages in all: a process that is killed loses no
#: more than these, and has them again when it is repeated.
WRITTEN_AT_ONCE: Final = 64

_MOST_BYTES: Final = 200 * 1024 * 1024

#: Changes when the same file would be read or cut in another way.
_VERSION: Final = 1

#: What digests begin with: only what came from a file can be gone from a folder.
_FILE: Final = "file:"
_TEXT: Final = "text:"

#: What Weft says of every source; nobody else may.
_OWN_KEYS: Final = frozenset({"source", "kind", "start", "end", "line", "page"})


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it has come: files, passages, and the share of all bytes."""

    files: int
    of_files: int
    passages: int
    share: float


@dataclass(slots=True)
class Ingested:
    """What was done: how many sources were there already, were read, and were dropped."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    passages: int = 0
    #: Files that could not be read, and why; and endings of files that nobody can read here.
    failed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    ignored: dict[str, int] = field(default_factory=dict[str, int])
    #: Files without any text, and folders without any file.
    empty: list[str] = field(default_factory=list[str])
    #: Passages that had no vector of the current model and have one now.
    embedded: int = 0


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, what it is called in citations, and what kind of text it has."""

    path: Path
    source: str
    kind: str


class Ingestion:
    """Puts sources into one collection."""

    def __init__(
        self,
        collection: EmbeddedCollection,
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
        #: Sources to be written, how many bytes they have, and how many passages are embedded.
        self._waiting: list[Source] = []
        self._waiting_bytes = self._waiting_done = 0
        _require_metadata(self._metadata)

    async def files(self, paths: Sequence[Path], root: Path) -> Ingested:
        """Put files, and all files in folders; what is gone from a folder is removed."""
        known = await self._collection.sources()
        # What is named twice, or in a folder as well, is read once.
        files = list(
            {file.source: file for path in paths for file in self._find_files(path, root)}.values()
        )
        if paths and not files and not known:
            kinds = "text, Markdown, HTML, PDF and DOCX"
            empty = "".join(f": {folder} is empty" for folder in self.done.empty[:1])
            told = f"there is no file that can be read{empty}"
            raise RetrievalError(told, hint=f"name files of {kinds}")
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
        """Put texts, by what each is called."""
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
            # A file that is named is read, whatever its ending is.
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
            # In a thread: whatever else goes on here is not to wait for a large file.
            new = await asyncio.to_thread(self._read, file, known)
        except (OSError, Unreadable) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.done.failed.append((file.source, why or type(error).__name__))
            self._count_file(_size(file))
        else:
            await self._put(new, known, _size(file))

    def _read(self, file: SourceFile, known: str | None) -> Source | None:
        """Return a file as it is to be written; None if it is there already."""
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
        """Let a source be written with the next ones, unless it is there already."""
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
        """Return a text that changes with anything that makes other passages."""
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
    """Yield all files in a folder, and in those inside, that are not hidden."""

    def refuse(error: OSError) -> None:
        # As if it were empty, its sources would be dropped.
        why = error.strerror or type(error).__name__
        raise RetrievalError(
            f"the folder {error.filename} cannot be read: {why}",
            hint="let it be read, or name the files and folders that are to be added",
        ) from error

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found = (Path(place, name) for name in names if not name.startswith("."))
        yield from filter(_is_readable_file, found)


def _is_readable_file(path: Path) -> bool:
    """Tell whether it is a file. Of what cannot be looked at, reading it will tell why."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:  # a link to nothing
        return False
    except OSError:
        return True


def _missing_sources(sources: Sequence[str], paths: Sequence[Path], root: Path) -> list[str]:
    """Return the sources that were in the folders and are not there any more."""
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
    except OSError:  # it may be gone since it was found, which reading it will tell
        return 0


def source_name(path: Path, root: Path) -> str:
    """Return what a file is called in citations: its path in the workspace, if it is in there."""
    whole = path.resolve()
    inside = root.resolve()
    name = str(whole.relative_to(inside)) if whole.is_relative_to(inside) else str(whole)
    # Names of files may be no Unicode on some systems, and are then shown as well as they can be.
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _require_metadata(metadata: Mapping[str, Json]) -> None:
    for key in metadata:
        if key in _OWN_KEYS or not key.isidentifier():
            own = ", ".join(sorted(_OWN_KEYS))
            raise RetrievalError(
                f'"{key}" cannot be a key of metadata',
                hint=f"take a word of letters, digits and _, other than {own}",
            )
