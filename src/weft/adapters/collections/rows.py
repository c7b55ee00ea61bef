"""What is written to the file of a collection and read from it."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Final, cast

from pydantic_core import from_json

from weft.adapters.collections.chunks import Passage
from weft.errors import RetrievalError
from weft.findings import Json
from weft.ports.retriever import RetrievalResult

#: A part of a query that picks sources, and its values.
Condition = tuple[str, list[str]]

_MOST_VALUES: Final = 500


@dataclass(frozen=True, slots=True)
class Source:
    """A source as it is written: its passages, and the vector of each unless there are none."""

    source: str
    digest: str
    metadata: Mapping[str, Json]
    passages: Sequence[Passage]


@dataclass(frozen=True, slots=True)
class About:
    """What a collection says of itself; without an embedder it has no vectors."""

    generation: int
    embedder: str | None
    #: Changes whenever the numbers of rows in the mapped file mean something else.
    epoch: str


def read_about(connection: sqlite3.Connection) -> About:
    kept = dict(connection.execute("SELECT key, value FROM about"))
    return About(kept["generation"], kept.get("embedder"), kept.get("epoch", ""))


def begin_vectors(connection: sqlite3.Connection, embedder: str) -> None:
    """Drop all vectors and expect those of another model."""
    connection.execute("DELETE FROM vectors")
    kept = [("embedder", embedder), ("epoch", token_hex(8))]
    connection.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", kept)
    _changed(connection)


def renew_epoch(connection: sqlite3.Connection) -> str:
    """Say that the rows of the mapped file are about to be others."""
    epoch = token_hex(8)
    connection.execute("INSERT OR REPLACE INTO about VALUES ('epoch', ?)", (epoch,))
    return epoch


def known_sources(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the digest of every source."""
    return dict(connection.execute("SELECT source, digest FROM sources"))


def put_sources(
    connection: sqlite3.Connection, sources: Sequence[Source], vectors: Sequence[bytes] | None
) -> None:
    """Write sources in place of what they were before; vectors are in the order of passages."""
    left = iter(vectors or ())
    for source in sources:
        _delete(connection, [source.source])
        metadata = json.dumps(source.metadata, ensure_ascii=False)
        id_ = connection.execute(
            "INSERT INTO sources (source, digest, metadata) VALUES (?, ?, ?)",
            (source.source, source.digest, metadata),
        ).lastrowid
        connection.executemany(
            "INSERT OR IGNORE INTO labels VALUES (?, ?, ?)",
            [(*it, id_) for it in labels(source.metadata)],
        )
        for passage in source.passages:
            made = connection.execute(
                "INSERT INTO passages (source, place, content) VALUES (?, ?, ?)",
                (id_, json.dumps(passage.place), passage.content),
            ).lastrowid
            if vectors is not None:
                put_vector(connection, cast("int", made), next(left))
    _changed(connection)


def put_vector(connection: sqlite3.Connection, passage: int, vector: bytes) -> None:
    """Keep the vector of a passage, unless the passage is gone by now."""
    connection.execute(
        "INSERT OR IGNORE INTO vectors (passage, vector) SELECT id, ? FROM passages WHERE id = ?",
        (vector, passage),
    )


def put_vectors(connection: sqlite3.Connection, vectors: Iterable[tuple[int, bytes]]) -> None:
    for passage, vector in vectors:
        put_vector(connection, passage, vector)
    _changed(connection)


def vector_size(connection: sqlite3.Connection) -> int:
    """Return how many numbers a vector has; 0 if there is none."""
    found = connection.execute("SELECT length(vector) / 4 FROM vectors LIMIT 1").fetchone()
    return found[0] if found else 0


def without_vectors(connection: sqlite3.Connection, limit: int) -> list[tuple[int, str]]:
    """Return passages that have no vector, and their texts."""
    return connection.execute(
        "SELECT id, content FROM passages WHERE id NOT IN (SELECT passage FROM vectors) LIMIT ?",
        (limit,),
    ).fetchall()


def delete_sources(connection: sqlite3.Connection, sources: Sequence[str]) -> None:
    _delete(connection, sources)
    _changed(connection)


def _delete(connection: sqlite3.Connection, sources: Iterable[str]) -> None:
    for source in sources:
        row = connection.execute("SELECT id FROM sources WHERE source = ?", (source,)).fetchone()
        if row is not None:
            connection.execute("DELETE FROM passages WHERE source = ?", row)
            connection.execute("DELETE FROM labels WHERE source = ?", row)
            connection.execute("DELETE FROM sources WHERE id = ?", row)


def _changed(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE about SET value = value + 1 WHERE key = 'generation'")


def read_passages(
    connection: sqlite3.Connection, scored: Sequence[tuple[int, float]]
) -> list[RetrievalResult]:
    """Return passages with their scores, in the order given; what is gone by now is left out."""
    marks = ", ".join("?" * len(scored))
    rows = connection.execute(
        "SELECT passages.id, content, place, source.source, metadata FROM passages "  # noqa: S608 - question marks
        f"JOIN sources AS source ON source.id = passages.source WHERE passages.id IN ({marks})",
        [it for it, _ in scored],
    )
    found = {id_: rest for id_, *rest in rows}
    return [_result(found[it], score) for it, score in scored if it in found]


def _result(row: list[str], score: float) -> RetrievalResult:
    content, place, source, metadata = row
    return RetrievalResult(content, score, source, {**from_json(metadata), **from_json(place)})


def known_keys(connection: sqlite3.Connection) -> list[str]:
    """Return by which keys passages can be filtered."""
    return [key for (key,) in connection.execute("SELECT DISTINCT key FROM labels ORDER BY key")]


def require_unicode(text: str, what: str) -> None:
    """Refuse text with halves of characters: no file can have it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RetrievalError(f"{what} has characters that are none", hint="use Unicode") from error


def require_filters(filters: Mapping[str, Json], known: Sequence[str], name: str) -> None:
    """Refuse filters by keys that no passage has, and by values that cannot be compared."""
    for key, value in filters.items():
        if key not in known:
            keys = f"available: {', '.join(known)}" if known else "it is empty"
            raise RetrievalError(f'no passage of {name} has the key "{key}"', hint=keys)
        values = cast("list[Json]", value) if isinstance(value, list) else [value]
        if len(values) > _MOST_VALUES or not all(_is_plain(it) for it in values):
            raise RetrievalError(
                f'the filter "{key}" is no value that can be compared',
                hint=f"give a text, a number, true, false, null, or up to {_MOST_VALUES} of these",
            )


def filter_conditions(filters: Mapping[str, Json]) -> list[Condition]:
    """Return one condition on labels for each filter; sources must fit all of them."""
    found: list[Condition] = []
    for key, value in filters.items():
        values = cast("list[Json]", value) if isinstance(value, list) else [value]
        texts = sorted({text for it in values for text in _spellings(it)})
        marks = ", ".join("?" * len(texts))
        sql = f"SELECT source FROM labels WHERE key = ? AND value IN ({marks})"  # noqa: S608 - question marks
        found.append((sql, [key, *texts]))
    return found


def labels(metadata: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield what passages can be filtered by; of a list, each of its items counts."""
    for key, value in metadata.items():
        for item in cast("list[Json]", value) if isinstance(value, list) else [value]:
            yield key, value_text(item)


def _spellings(value: Json) -> Iterator[str]:
    """Yield how a value may have been stored: a text that spells a number, true or false is it too.

    Who gives metadata on a command line, in JSON or in Python means the same by "2026" and 2026.
    """
    yield value_text(value)
    if isinstance(value, str):
        try:
            spelt = json.loads(value, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            return
        if isinstance(spelt, int | float):
            yield value_text(spelt)
    elif value is not None:
        yield value_text(value_text(value))


def _no_constant(name: str) -> Json:
    raise ValueError(name)


def value_text(value: Json) -> str:
    """Return a value as it is compared with another one."""
    # A whole number is the same number with a point: 1.0 is 1 for JSON and for Python.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _is_plain(value: Json) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
