"""Collections as rows: each function is a transaction, for any SQL database.

A change of a collection begins with `begin_change`, which locks it: processes change it in turn,
and ids of passages grow in the order in which they become visible.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import Final, NamedTuple

from pydantic_core import from_json

from weft.adapters.collections.filters import labels, require_filters
from weft.adapters.collections.texts import Passage
from weft.adapters.sql.statements import Statement, Transaction
from weft.errors import RetrievalError
from weft.findings import Json
from weft.ports.retrieval import RetrievalResult

#: The longest name a collection may have.
MOST_NAME: Final = 100

#: PostgreSQL has no character 0 in texts, and the others separate rows; offsets stay the same.
_UNSTORABLE: Final = str.maketrans(dict.fromkeys("\x00\x1e\x1f", "\ufffd"))

_ABOUT: Final = Statement(
    """
    SELECT c.id, c.generation, c.embedder, c.epoch, c.dimensions, c.passages, NOT EXISTS (
        SELECT 1 FROM passages p WHERE p.app = c.app AND p.collection = c.id AND p.vector IS NULL
    ) FROM collections c WHERE c.app = $1 AND c.name = $2
    """
)
_CREATE: Final = Statement(
    """
    INSERT INTO collections (app, name, generation, embedder, epoch, dimensions, passages)
    VALUES ($1, $2, 0, '', '', 0, 0) ON CONFLICT (app, name) DO NOTHING
    """
)
_BEGIN_CHANGE: Final = Statement(
    "UPDATE collections SET generation = generation + 1 WHERE app = $1 AND name = $2"
)
_DESCRIBE: Final = Statement(
    "UPDATE collections SET embedder = $3, epoch = $4, dimensions = $5 WHERE app = $1 AND id = $2"
)
_COUNT_PASSAGES: Final = Statement(
    "UPDATE collections SET passages = passages + $3 WHERE app = $1 AND id = $2"
)
_DROP_VECTORS: Final = Statement(
    "UPDATE passages SET vector = NULL WHERE app = $1 AND collection = $2 AND vector IS NOT NULL"
)
_SOURCES: Final = Statement("SELECT source, digest FROM sources WHERE app = $1 AND collection = $2")
_FIND_SOURCES: Final = Statement(
    "SELECT id FROM sources WHERE {keys}", "app collection:number source"
)
_PUT_SOURCES: Final = Statement(
    "INSERT INTO sources (app, collection, source, digest, metadata) {rows} RETURNING id, source",
    "app collection:number source digest metadata",
)
_PUT_LABELS: Final = Statement(
    "INSERT INTO source_labels (app, collection, key, value, source) {rows}",
    "app collection:number key value source:number",
)
_PUT_PASSAGES: Final = Statement(
    """
    {x} INSERT INTO passages (app, collection, source, place, content, vector{words_name})
    SELECT $1, $2, x.source, x.place, x.content, x.vector{words_value} FROM x
    ORDER BY x.number RETURNING id
    """,
    "number:number source:number place content vector:bytes plain",
)
_DELETE: Final = tuple(
    Statement(f"DELETE FROM {table} WHERE {{keys}}", f"app {key}:number")  # noqa: S608 - ours
    for table, key in (("source_labels", "source"), ("sources", "id"))
)
_DELETE_PASSAGES: Final = Statement(
    "DELETE FROM passages WHERE {keys} RETURNING id", "app source:number"
)
_DELETE_ALL: Final = tuple(
    Statement(f"DELETE FROM {table} WHERE app = $1 AND {key} = $2")  # noqa: S608 - ours
    for table, key in (
        ("source_labels", "collection"),
        ("passages", "collection"),
        ("sources", "collection"),
        ("collections", "id"),
    )
)
_PUT_VECTOR: Final = Statement(
    "UPDATE passages SET vector = $3 WHERE app = $1 AND id = $2 AND vector IS NULL RETURNING source"
)
_WITHOUT_VECTORS: Final = Statement(
    """
    SELECT id, content FROM passages WHERE app = $1 AND collection = $2 AND vector IS NULL
    ORDER BY id LIMIT $3
    """
)
_READ: Final = Statement(
    """
    {x} SELECT p.id, p.content, p.place, s.source, s.metadata FROM x
    {join} passages p ON p.app = $1 AND p.id = x.id
    {join} sources s ON s.app = p.app AND s.id = p.source
    """,
    "id:number",
)
_HAS_KEY: Final = Statement(
    "SELECT 1 FROM source_labels WHERE app = $1 AND collection = $2 AND key = $3 LIMIT 1"
)
_KEYS: Final = Statement(
    "SELECT DISTINCT key FROM source_labels WHERE app = $1 AND collection = $2 ORDER BY key"
)
_COUNTS: Final = Statement(
    """
    SELECT (SELECT count(*) FROM sources WHERE app = $1 AND collection = $2),
    (SELECT count(*) FROM passages WHERE app = $1 AND collection = $2 AND vector IS NULL)
    """
)


@dataclass(frozen=True, slots=True)
class Source:
    """A source to write, with its passages."""

    source: str
    digest: str
    metadata: Mapping[str, Json]
    passages: Sequence[Passage]


@dataclass(frozen=True, slots=True)
class About:
    """The properties of a collection; without an embedder it has no vectors."""

    app: str
    id: int
    generation: int
    embedder: str
    #: Changes when the rows of the mapped file are renumbered.
    epoch: str
    #: The number of dimensions of the vectors; 0 if there are none.
    dimensions: int
    passages: int
    #: Whether no passage is without a vector.
    is_complete: bool

    @property
    def key(self) -> tuple[str, int]:
        """The tenant and the id."""
        return self.app, self.id


class SearchQuery(NamedTuple):
    """What a search is for."""

    query: str
    top_k: int
    min_relevance: float
    filters: Mapping[str, Json]


#: The id of a passage, the id of its source, and its vector.
NewVector = tuple[int, int, bytes]


def require_name(name: str) -> None:
    """Refuse an invalid name of a collection."""
    if not name.strip() or len(name) > MOST_NAME or not name.isprintable():
        raise RetrievalError(
            f"{name[:MOST_NAME]!r} cannot be the name of a collection",
            hint=f"use up to {MOST_NAME} printable characters, such as ResearchLibrary",
        )


class UnknownCollectionError(RetrievalError):
    """A tenant has no collection of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f'there is no collection "{name}"',
            hint=f"create it: weft collection add {name} FILE...",
        )


def require_unicode(text: str, what: str) -> None:
    """Refuse text that cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RetrievalError(f"{what} is not valid Unicode text", hint="use Unicode") from error


def read_about(app: str, name: str) -> Transaction[About]:
    """Return the properties of a collection; raises RetrievalError if there is none."""
    rows = yield _ABOUT((), app, name)
    if not rows:
        raise UnknownCollectionError(name)
    return About(app, *rows[0])


def begin_change(app: str, name: str, *, creates: bool = False) -> Transaction[About]:
    """Lock a collection until the end of the transaction; return its properties."""
    if creates:
        yield [_CREATE((), app, name)]
    yield [_BEGIN_CHANGE((), app, name)]
    return (yield from read_about(app, name))


def describe(about: About) -> Transaction[About]:
    """Store the model, the epoch and the dimensions of the vectors."""
    yield [_DESCRIBE((), *about.key, about.embedder, about.epoch, about.dimensions)]
    return about


def begin_vectors(about: About, embedder: str) -> Transaction[About]:
    """Delete all vectors, and set the model of the next ones."""
    yield [_DROP_VECTORS((), *about.key)]
    return (
        yield from describe(replace(about, embedder=embedder, epoch=token_hex(8), dimensions=0))
    )


def renew_epoch(about: About) -> Transaction[About]:
    """Start a new epoch: the rows of the mapped file will be renumbered."""
    return (yield from describe(replace(about, epoch=token_hex(8))))


def known_sources(about: About) -> Transaction[dict[str, str]]:
    """Return the digest of every source."""
    rows = yield _SOURCES((), *about.key)
    return dict(rows)


def put_sources(
    about: About, sources: Sequence[Source], words: Sequence[str], vectors: Sequence[bytes] | None
) -> Transaction[list[NewVector]]:
    """Write or replace sources; words and vectors are in the order of passages."""
    yield from delete_sources(about, [source.source for source in sources])
    app, collection = about.key
    rows = yield _PUT_SOURCES(
        [(app, collection, each.source, each.digest, json.dumps(each.metadata)) for each in sources]
    )
    ids = {source: id_ for id_, source in rows}
    named = [
        (app, collection, *label, ids[each.source])
        for each in sources
        for label in dict.fromkeys(labels(each.metadata))
    ]
    yield [_PUT_LABELS(named)]
    passages = [(ids[each.source], passage) for each in sources for passage in each.passages]
    given = vectors or [None] * len(passages)
    new = [
        (
            number,
            source,
            json.dumps(passage.place),
            passage.content.translate(_UNSTORABLE),
            vector,
            plain,
        )
        for number, ((source, passage), vector, plain) in enumerate(
            zip(passages, given, words, strict=True)
        )
    ]
    if not new:
        return []
    made = yield _PUT_PASSAGES(new, app, collection)
    yield [_COUNT_PASSAGES((), app, collection, len(new))]
    return [
        (id_, source, vector)
        for (id_,), (source, _), vector in zip(sorted(made), passages, given, strict=True)
        if vector is not None
    ]


def put_vectors(about: About, vectors: Sequence[tuple[int, bytes]]) -> Transaction[list[NewVector]]:
    """Store the vectors of passages, unless a passage was removed meanwhile."""
    new: list[NewVector] = []
    for passage, vector in vectors:
        rows = yield _PUT_VECTOR((), about.app, passage, vector)
        new += [(passage, source, vector) for (source,) in rows]
    return new


def without_vectors(about: About, limit: int) -> Transaction[list[tuple[int, str]]]:
    """Return the ids and texts of passages without a vector."""
    rows = yield _WITHOUT_VECTORS((), *about.key, limit)
    return [(id_, content) for id_, content in rows]


def delete_sources(about: About, sources: Sequence[str]) -> Transaction[None]:
    """Delete sources with their passages."""
    rows = yield _FIND_SOURCES([(*about.key, source) for source in sources])
    keys = [(about.app, id_) for (id_,) in rows]
    if keys:
        gone = yield _DELETE_PASSAGES(keys)
        yield [delete(keys) for delete in _DELETE]
        yield [_COUNT_PASSAGES((), *about.key, -len(gone))]


def delete_collection(about: About) -> Transaction[None]:
    """Delete everything in a collection, and the collection."""
    for delete in _DELETE_ALL:
        yield [delete((), *about.key)]


def read_passages(
    about: About, scored: Sequence[tuple[int, float]]
) -> Transaction[list[RetrievalResult]]:
    """Return passages with their scores, in the given order; removed ones are left out."""
    if not scored:
        return []
    rows = yield _READ([(passage,) for passage, _ in scored], about.app)
    found = {id_: rest for id_, *rest in rows}
    return [_result(found[passage], score) for passage, score in scored if passage in found]


def _result(row: list[str], score: float) -> RetrievalResult:
    content, place, source, metadata = row
    return RetrievalResult(content, score, source, {**from_json(metadata), **from_json(place)})


def check_filters(about: About, filters: Mapping[str, Json], name: str) -> Transaction[None]:
    """Refuse filters with unknown keys or invalid values."""
    known: list[str] = []
    for key in filters:
        rows = yield _HAS_KEY((), *about.key, key)
        known += [key] * len(rows)
    if len(known) < len(filters):
        known = yield from known_keys(about)
    require_filters(filters, known, name)


def known_keys(about: About) -> Transaction[list[str]]:
    """Return the metadata keys for filters."""
    rows = yield _KEYS((), *about.key)
    return [key for (key,) in rows]


def count_rows(about: About) -> Transaction[tuple[int, int]]:
    """Return the numbers of sources and of passages without a vector."""
    [(sources, missing)] = yield _COUNTS((), *about.key)
    return sources, missing
