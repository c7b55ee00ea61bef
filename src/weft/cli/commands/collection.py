"""weft collection: passages of files that agents can look up, by meaning and by keywords."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final, TypeAlias, TypeVar, cast

from cyclopts import Parameter

from weft.adapters.collections.collection import Stats
from weft.adapters.collections.ingest import Ingested, Progress
from weft.adapters.collections.texts import OVERLAP, SIZE, Chunking
from weft.app.collections import Collections, open_collections
from weft.cli.failure import CommandFailed, Exit, not_found, usage
from weft.cli.formats.documents import document
from weft.cli.streams import Streams
from weft.cli.text import clean, counted, shortened
from weft.environment import read_environment
from weft.findings import Json
from weft.ids import nearest
from weft.ports.retrieval import TOP_K, RetrievalResult

T = TypeVar("T")

_ADD_ONE: Final = "make one: weft collection add Handbook docs"
_KEYWORDS: Final = (
    "by keywords alone: the score says how much of the query a passage has. To compare meanings: "
    "weft embeddings install, then weft collection add {name}"
)
_BAR: Final = 20

#: No passage is cut to less than this.
_LEAST: Final = 30

Name: TypeAlias = Annotated[
    str, Parameter(name="NAME", help="The collection, such as ResearchLibrary.")
]
Pairs: TypeAlias = tuple[str, ...]
Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]


def add(
    name: Name,
    paths: Annotated[tuple[Path, ...], Parameter(help="Files, and folders of files.")] = (),
    /,
    *,
    meta: Annotated[
        Pairs,
        Parameter(
            metavar="KEY=VALUE",
            help="What the passages can be filtered by; may be repeated.",
            consume_multiple=False,
            negative="",
        ),
    ] = (),
    size: Annotated[
        int, Parameter(metavar="N", help="How many characters a passage has at most.")
    ] = SIZE,
    overlap: Annotated[
        int, Parameter(metavar="N", help="How many of them are in the next passage as well.")
    ] = OVERLAP,
    streams: Output,
) -> Exit:
    """Put files and folders into a collection; what has not changed is left alone."""
    for path in paths:
        if not path.exists():
            raise not_found(f"there is no file {path}", "look at the spelling of the path")
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
        # Where no file could be read, there may be no collection.
        there = name in collections.names()
        return done, await collections.stats(name) if there else None

    done, stats = _with(work, streams)
    _say_added(name, done, stats, streams)
    return Exit.FAILED if done.failed else Exit.DONE


def search(
    name: Name,
    query: Annotated[str, Parameter(help="What is looked for, in words.")],
    /,
    *,
    top_k: Annotated[int, Parameter(metavar="N", help="How many passages.")] = TOP_K,
    min_relevance: Annotated[
        float, Parameter(metavar="SCORE", help="Only passages with this score or more, 0 to 1.")
    ] = 0.0,
    filter_: Annotated[
        Pairs,
        Parameter(
            name="--filter",
            metavar="KEY=VALUE",
            help="Only passages with this metadata; of one key several times, any of the values.",
            consume_multiple=False,
            negative="",
        ),
    ] = (),
    streams: Output,
) -> Exit:
    """Print the passages that fit a query best."""
    filters = _pairs(filter_, "--filter")

    async def work(collections: Collections) -> tuple[list[RetrievalResult], bool]:
        _require(collections, name)
        found = await collections.search(
            name, query, top_k=top_k, min_relevance=min_relevance, filters=filters
        )
        return found, await collections.compares_meanings(name)

    found, meanings = _with(work, streams)
    if streams.settings.json:
        results = [_result_data(it) for it in found]
        compared = "meanings and keywords" if meanings else "keywords"
        streams.result(document({"compared": compared, "results": results}))
        return Exit.DONE
    if not meanings:
        streams.note(_KEYWORDS.format(name=name))
    if not found:
        streams.note(_nothing_found(filter_, min_relevance))
    rows = [(f"{it.score:.2f}", citation(it), " ".join(it.content.split())) for it in found]
    room = streams.columns - max((len(it[1]) for it in rows), default=0) - 8
    streams.rows([(*it[:2], shortened(it[2], max(room, _LEAST))) for it in rows])
    return Exit.DONE


def _nothing_found(filters: Sequence[str], least: float) -> str:
    """Say what may have excluded everything."""
    ways = [f"leave out --filter {quote(it)}" for it in filters]
    ways += ["use other words"] + ([f"lower --min-relevance {least:g}"] if least else [])
    told = f" with {' and '.join(filters)}" if filters else ""
    return clean(f"nothing found{told}; {', or '.join(ways)}")


def list_collections(*, streams: Output) -> Exit:
    """List collections."""

    async def work(collections: Collections) -> list[Stats]:
        return [await collections.stats(it) for it in collections.names()]

    found = _with(work, streams)
    if streams.settings.json:
        streams.result(document({"collections": [_stats_data(it) for it in found]}))
    elif found:
        streams.rows(
            [
                (
                    it.name,
                    counted(it.sources, "source"),
                    counted(it.passages, "passage"),
                    it.embedder or "keywords alone",
                )
                for it in found
            ]
        )
    else:
        streams.note(f"no collections; {_ADD_ONE}")
    return Exit.DONE


def stats(name: Name, /, *, streams: Output) -> Exit:
    """Print how much there is in a collection, and by what it can be filtered."""

    async def work(collections: Collections) -> tuple[Stats, list[str]]:
        _require(collections, name)
        return await collections.stats(name), await collections.sources(name)

    found, sources = _with(work, streams)
    data = _stats_data(found)
    if streams.settings.json:
        streams.result(document({**data, "names": sources}))
        return Exit.DONE
    data["keys"] = ", ".join(found.keys)
    data["embedder"] = found.embedder or "none: search is by keywords alone"
    streams.rows([(key, str(value)) for key, value in data.items()])
    return Exit.DONE


def remove(
    name: Name,
    sources: Annotated[
        tuple[str, ...],
        Parameter(help="Only these, as they were added or as stats --json lists them."),
    ] = (),
    /,
    *,
    streams: Output,
) -> Exit:
    """Remove a collection, or sources of it."""

    async def work(collections: Collections) -> list[str]:
        _require(collections, name)
        return await collections.remove(name, sources)

    gone = _with(work, streams)
    said = f"removed {counted(len(gone), 'source')} of {name}" if sources else f"removed {name}"
    if streams.settings.json:
        streams.result(document({"collection": name, "sources": cast("list[Json]", gone)}))
    else:
        streams.result(clean(said))
    return Exit.DONE


def citation(result: RetrievalResult) -> str:
    """Return where a passage stands: the source, and the line or page in it."""
    metadata = result.metadata or {}
    if "page" in metadata:
        return f"{result.source_id}, page {metadata['page']}"
    return f"{result.source_id}:{metadata.get('line', 1)}"


def _say_added(name: str, done: Ingested, stats: Stats | None, streams: Streams) -> None:
    passages = stats.passages if stats else 0
    counts = {
        "added": done.added,
        "changed": done.changed,
        "unchanged": done.unchanged,
        "removed": done.removed,
    }
    if streams.settings.json:
        failed = [{"source": source, "reason": why} for source, why in done.failed]
        data: dict[str, Json] = {
            "collection": name,
            **counts,
            "passages": passages,
            "embedder": stats and stats.embedder,
            "failed": failed,
            "ignored": done.ignored,
        }
        streams.result(document(data))
        return
    sources = ", ".join(f"{count} {what}" for what, count in counts.items())
    streams.result(clean(f"{name}: {sources}; {counted(passages, 'passage')} in all"))
    if done.ignored:
        kinds = ", ".join(f"{ending} ({count})" for ending, count in sorted(done.ignored.items()))
        streams.note(clean(f"left out, as they are of other kinds: {kinds}"))
    for empty in done.empty:
        streams.note(clean(f"{empty} is empty"))
    for source, why in done.failed:
        streams.problem(clean(f"not read: {source}: {why}"))
    if stats and stats.vectors < stats.passages:
        streams.note(
            "not all is embedded: search will be by keywords alone. To compare meanings: weft "
            f"embeddings install, then weft collection add {name}"
        )


def _bar(progress: Progress) -> str:
    filled = round(progress.share * _BAR)
    files = f"{progress.files}/{progress.of_files} files"
    bar = "#" * filled + "-" * (_BAR - filled)
    return f"[{bar}] {files}, {counted(progress.passages, 'passage')}"


def _pairs(texts: Sequence[str], option: str) -> dict[str, Json]:
    """Read KEY=VALUE; numbers, true, false, null and lists as JSON, all else as text."""
    found: dict[str, Json] = {}
    for text in texts:
        key, mark, value = text.partition("=")
        if not (key and mark):
            raise usage(f"{option} {text} is no pair", f"write {option} KEY=VALUE")
        new = _value(value)
        if key in found:
            old = found[key]
            new = [*(cast("list[Json]", old) if isinstance(old, list) else [old]), new]
        found[key] = new
    return found


def _value(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _require(collections: Collections, name: str) -> None:
    """Refuse a collection that is not there."""
    known = collections.names()
    if name not in known:
        raise _unknown(name, known)


def _unknown(name: str, known: Sequence[str]) -> CommandFailed:
    near = nearest(name, known)
    there = f"did you mean {near}?" if near else f"available: {', '.join(known)}"
    make = f"make it: weft collection add {name} PATHS"
    hints = (there, f"or {make}") if known else (make,)
    return not_found(f'there is no collection "{name}"', *hints)


def _with(work: Callable[[Collections], Awaitable[T]], streams: Streams) -> T:
    async def whole() -> T:
        folder = streams.settings.workspace
        async with open_collections(folder, environment=read_environment()) as collections:
            return await work(collections)

    return asyncio.run(whole())


def _result_data(result: RetrievalResult) -> dict[str, Json]:
    return {
        "content": result.content,
        "score": round(result.score, 4),
        "source_id": result.source_id,
        "metadata": dict(result.metadata or {}),
    }


def _stats_data(stats: Stats) -> dict[str, Any]:
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
