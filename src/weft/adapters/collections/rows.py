"""Rows of a collection's database, and the search by keywords.

The relevance of a passage in a search by keywords is the share of the query's words in it, where
rare words count more than common ones: 1 means all of them.
"""

import json
import math
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Final, cast

from pydantic_core import from_json

from weft.adapters.collections.texts import Passage
from weft.errors import RetrievalError
from weft.findings import Json
from weft.ports.retrieval import RetrievalResult

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
    _count_change(connection)


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
            [(*label, id_) for label in labels(source.metadata)],
        )
        for passage in source.passages:
            made = connection.execute(
                "INSERT INTO passages (source, place, content) VALUES (?, ?, ?)",
                (id_, json.dumps(passage.place), passage.content),
            ).lastrowid
            if vectors is not None:
                put_vector(connection, cast("int", made), next(left))
    _count_change(connection)


def put_vector(connection: sqlite3.Connection, passage: int, vector: bytes) -> None:
    """Keep the vector of a passage, unless the passage is gone by now."""
    connection.execute(
        "INSERT OR IGNORE INTO vectors (passage, vector) SELECT id, ? FROM passages WHERE id = ?",
        (vector, passage),
    )


def put_vectors(connection: sqlite3.Connection, vectors: Iterable[tuple[int, bytes]]) -> None:
    for passage, vector in vectors:
        put_vector(connection, passage, vector)
    _count_change(connection)


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
    _count_change(connection)


def _delete(connection: sqlite3.Connection, sources: Iterable[str]) -> None:
    for source in sources:
        row = connection.execute("SELECT id FROM sources WHERE source = ?", (source,)).fetchone()
        if row is not None:
            connection.execute("DELETE FROM passages WHERE source = ?", row)
            connection.execute("DELETE FROM labels WHERE source = ?", row)
            connection.execute("DELETE FROM sources WHERE id = ?", row)


def _count_change(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE about SET value = value + 1 WHERE key = 'generation'")


def read_passages(
    connection: sqlite3.Connection, scored: Sequence[tuple[int, float]]
) -> list[RetrievalResult]:
    """Return passages with their scores, in the order given; what is gone by now is left out."""
    marks = ", ".join("?" * len(scored))
    rows = connection.execute(
        "SELECT passages.id, content, place, source.source, metadata FROM passages "  # noqa: S608 - question marks
        f"JOIN sources AS source ON source.id = passages.source WHERE passages.id IN ({marks})",
        [passage for passage, _ in scored],
    )
    found = {id_: rest for id_, *rest in rows}
    return [_result(found[passage], score) for passage, score in scored if passage in found]


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
        if len(values) > _MOST_VALUES or not all(_is_plain(value) for value in values):
            raise RetrievalError(
                f'the filter "{key}" is no value that can be compared',
                hint=f"give a text, a number, true, false, null, or up to {_MOST_VALUES} of these",
            )


def filter_conditions(filters: Mapping[str, Json]) -> list[Condition]:
    """Return one condition on labels for each filter; sources must fit all of them."""
    found: list[Condition] = []
    for key, value in filters.items():
        values = cast("list[Json]", value) if isinstance(value, list) else [value]
        texts = sorted({text for value in values for text in _stored_forms(value)})
        marks = ", ".join("?" * len(texts))
        sql = f"SELECT source FROM labels WHERE key = ? AND value IN ({marks})"  # noqa: S608 - question marks
        found.append((sql, [key, *texts]))
    return found


def labels(metadata: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield what passages can be filtered by; of a list, each of its items counts."""
    for key, value in metadata.items():
        for item in cast("list[Json]", value) if isinstance(value, list) else [value]:
            yield key, value_text(item)


def _stored_forms(value: Json) -> Iterator[str]:
    """Yield how a value may have been stored: a text that spells a number, true or false is it too.

    Who gives metadata on a command line, in JSON or in Python means the same by "2026" and 2026.
    """
    yield value_text(value)
    if isinstance(value, str):
        try:
            spelt = json.loads(value, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            return
        if isinstance(spelt, int | float):
            yield value_text(spelt)
    elif value is not None:
        yield value_text(value_text(value))


def _refuse_constant(name: str) -> Json:
    raise ValueError(name)


def value_text(value: Json) -> str:
    """Return a value as it is compared with another one."""
    # A whole number is the same number with a point: 1.0 is 1 for JSON and for Python.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _is_plain(value: Json) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


#: More words of a query are not looked at.
MOST_TERMS: Final = 32

#: Words that say nothing about what is looked for, unless there are no others.
_STOP_WORDS: Final = (
    "a an and are as at be but by can could did do does for from had has have how i if in into is "
    "it its may me my no not of on or our should so than that the their them then there these they "
    "this to us was we were what when where which who why will with would you your"
)


def terms_of(query: str) -> list[str]:
    """Return the words of a query that are looked for, each as the index is asked for it.

    >>> terms_of("How do bees dance?")
    ['"bees"', '"dance"']
    """
    words = list(dict.fromkeys(re.findall(r"\w+", query.lower())))
    common = _STOP_WORDS.split()
    telling = [word for word in words if word not in common] or words
    return [f'"{word}"' for word in telling[:MOST_TERMS]]


def keyword_search(
    connection: sqlite3.Connection,
    query: str,
    *,
    top_k: int,
    min_relevance: float,
    filters: Mapping[str, Json],
) -> list[tuple[int, float]]:
    """Return passages and how relevant they are, the best first."""
    terms = terms_of(query)
    if not terms:
        return []
    conditions = filter_conditions(filters)
    fitting = "".join(f" AND passages.source IN ({sql})" for sql, _ in conditions)
    rows = connection.execute(
        "SELECT words.rowid FROM words JOIN passages ON passages.id = words.rowid "  # noqa: S608 - question marks
        f"WHERE words MATCH ?{fitting} ORDER BY words.rank LIMIT ?",
        [
            " OR ".join(terms),
            *(value for _, values in conditions for value in values),
            top_k * 4 + 50,
        ],
    )
    found = [id_ for (id_,) in rows]
    shares = _term_shares(connection, terms, found)
    relevant = [(passage, shares[passage]) for passage in found if shares[passage] >= min_relevance]
    return sorted(relevant, key=lambda scored: -scored[1])[:top_k]


def _term_shares(
    connection: sqlite3.Connection, terms: Sequence[str], ids: Sequence[int]
) -> dict[int, float]:
    """Return which share of the terms each passage has, by weight."""
    total = connection.execute("SELECT count(*) FROM passages").fetchone()[0]
    marks = ", ".join("?" * len(ids))
    among = f"SELECT rowid FROM words WHERE words MATCH ? AND rowid IN ({marks})"  # noqa: S608 - question marks
    shares = dict.fromkeys(ids, 0.0)
    whole = 0.0
    for term in terms:
        # A word that is nowhere counts as the rarest that is somewhere, and not more.
        weight = rarity(max(1, count_of(connection, term)), total)
        whole += weight
        for (id_,) in connection.execute(among, (term, *ids)):
            shares[id_] += weight
    return {id_: min(1.0, share / whole) for id_, share in shares.items()}


def count_of(connection: sqlite3.Connection, term: str) -> int:
    """Return how many passages have a term."""
    sql = "SELECT count(*) FROM words WHERE words MATCH ?"
    return connection.execute(sql, (term,)).fetchone()[0]


def rarity(having: int, total: int) -> float:
    """Return the weight of a term, as BM25 has it but never below zero."""
    return math.log(1 + (total - having + 0.5) / (having + 0.5))
