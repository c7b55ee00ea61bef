"""Files and folders put into a collection; what has not changed since is left alone."""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final

from weft.adapters.collections.chunks import Chunking, Text, passages
from weft.adapters.collections.collection import EmbeddedCollection
from weft.adapters.collections.readers import Unreadable, kind_of, read_text
from weft.adapters.collections.rows import Source, require_unicode
from weft.errors import RetrievalError
from weft.findings import Json

#: Sources are written when they have so many passages in all: a process that is killed loses no
#: more than these, and has them again when it is repeated.
WRITTEN_AT_ONCE: Final = 64

_MOST_BYTES: Final = 200 * 1024 * 1024

#: Changes when the same file would be read or cut in another way.
_VERSION: Final = 1

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
        self._waiting: list[Source] = []
        self._files = self._all_files = 0
        self._bytes = self._all_bytes = 0
        _require_metadata(self._metadata)

    async def files(self, paths: Sequence[Path], root: Path) -> Ingested:
        """Put files, and all files in folders; what is gone from a folder is removed."""
        known = await self._collection.sources()
        # What is named twice, or in a folder as well, is read once.
        files = list({it.source: it for path in paths for it in self._found(path, root)}.values())
        if paths and not files and not known:
            kinds = "text, Markdown, HTML, PDF and DOCX"
            raise RetrievalError("there is no file that can be read", hint=f"name files of {kinds}")
        self._all_files = len(files)
        self._all_bytes = sum(it.path.stat().st_size for it in files) or 1
        for file in files:
            await self._file(file, known.get(file.source))
        await self._flush()
        folders = [_source_name(it, root) for it in paths if it.is_dir()]
        await self._drop(known, {it.source for it in files}, folders)
        return await self._finished()

    async def texts(self, texts: Mapping[str, str]) -> Ingested:
        """Put texts, by what each is called."""
        known = await self._collection.sources()
        self._all_files = len(texts)
        self._all_bytes = sum(map(len, texts.values())) or 1
        for source, text in texts.items():
            require_unicode(source + text, f"the text {source!r}")
            digest = self._digest(text.encode(), self._metadata)
            if known.get(source) == digest:
                self.done.unchanged += 1
            else:
                self._count(known.get(source))
                await self._add(source, digest, {**self._metadata, "kind": "text"}, Text(text))
            self._moved(len(text))
        await self._flush()
        return await self._finished()

    async def _finished(self) -> Ingested:
        self.done.embedded = await self._collection.embed_missing(self._embedded)
        await self._collection.build_index()
        return self.done

    def _found(self, path: Path, root: Path) -> Iterator[SourceFile]:
        if not path.is_dir():
            # A file that is named is read, whatever its ending is.
            yield SourceFile(path, _source_name(path, root), kind_of(path.suffix) or "text")
            return
        for file in sorted(path.rglob("*")):
            hidden = any(it.startswith(".") for it in file.relative_to(path).parts)
            if hidden or not file.is_file():
                continue
            kind = kind_of(file.suffix)
            if kind is None:
                ending = file.suffix or file.name
                self.done.ignored[ending] = self.done.ignored.get(ending, 0) + 1
            else:
                yield SourceFile(file, _source_name(file, root), kind)

    async def _file(self, file: SourceFile, known: str | None) -> None:
        size = 0
        try:
            # In a thread: whatever else goes on here is not to wait for a large file.
            size, digest, text = await asyncio.to_thread(self._read, file, known)
            if text is None:
                self.done.unchanged += 1
            else:
                self._count(known)
                await self._add(file.source, digest, {**self._metadata, "kind": file.kind}, text)
        except (OSError, Unreadable) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            self.done.failed.append((file.source, why or type(error).__name__))
        self._moved(size)

    def _read(self, file: SourceFile, known: str | None) -> tuple[int, str, Text | None]:
        """Return the size, digest and text of a file; no text if it is known already."""
        if file.path.stat().st_size > _MOST_BYTES:
            raise Unreadable(f"it is larger than {_MOST_BYTES // 1024 // 1024} MiB")
        raw = file.path.read_bytes()
        digest = self._digest(raw, self._metadata)
        return len(raw), digest, None if digest == known else read_text(raw, file.kind)

    def _moved(self, count: int) -> None:
        self._files += 1
        self._bytes += count
        self._report()

    async def _add(
        self, source: str, digest: str, metadata: Mapping[str, Json], text: Text
    ) -> None:
        new = Source(source, digest, {**metadata, "source": source}, passages(text, self._chunking))
        self._waiting.append(new)
        if sum(len(it.passages) for it in self._waiting) >= WRITTEN_AT_ONCE:
            await self._flush()

    async def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            await self._collection.put(waiting, self._embedded)

    async def _drop(
        self, known: Mapping[str, str], found: set[str], folders: Sequence[str]
    ) -> None:
        """Remove what was in the folders and is not there any more."""
        gone = [
            source
            for source in known
            if source not in found and any(_is_in(source, folder) for folder in folders)
        ]
        if gone:
            await self._collection.remove(gone)
            self.done.removed = len(gone)

    def _digest(self, raw: bytes, metadata: Mapping[str, Json]) -> str:
        """Return a text that changes with anything that makes other passages."""
        how = [_VERSION, self._chunking.size, self._chunking.overlap, metadata]
        made = blake2b(json.dumps(how, sort_keys=True).encode(), digest_size=16)
        made.update(raw)
        return made.hexdigest()

    def _count(self, known: str | None) -> None:
        if known is None:
            self.done.added += 1
        else:
            self.done.changed += 1

    def _embedded(self, count: int) -> None:
        self.done.passages += count
        self._report()

    def _report(self) -> None:
        if self._on_progress:
            share = self._bytes / self._all_bytes if self._all_bytes else 0.0
            done = Progress(self._files, self._all_files, self.done.passages, share)
            self._on_progress(done)


def _source_name(path: Path, root: Path) -> str:
    """Return what a file is called in citations: its path in the workspace, if it is in there."""
    whole = path.resolve()
    inside = root.resolve()
    name = str(whole.relative_to(inside)) if whole.is_relative_to(inside) else str(whole)
    # Names of files may be no Unicode on some systems, and are then shown as well as they can be.
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_in(source: str, folder: str) -> bool:
    return folder == "." or Path(source).is_relative_to(folder)


def _require_metadata(metadata: Mapping[str, Json]) -> None:
    for key in metadata:
        if key in _OWN_KEYS or not key.isidentifier():
            own = ", ".join(sorted(_OWN_KEYS))
            raise RetrievalError(
                f'"{key}" cannot be a key of metadata',
                hint=f"take a word of letters, digits and _, other than {own}",
            )
