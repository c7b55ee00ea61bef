"""What is looked up of boards in a SQLite journal. Every list follows an index."""

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any, Final, NamedTuple, TypeAlias, cast

from pydantic_core import from_json

from weft.adapters.sqlite.board_rows import name_text, to_names
from weft.adapters.sqlite.pieces import Row, marks
from weft.adapters.sqlite.rows import to_data
from weft.adapters.sqlite.schema import snapshot
from weft.engine.board.state import Artifact
from weft.engine.board.visibility import Audience, Identity
from weft.engine.events import KIND_NAMES, ArtifactArrived, ArtifactPublished
from weft.engine.events.codec import decode
from weft.engine.rows import Letter
from weft.errors import StoreError
from weft.ports.board import (
    ArtifactPage,
    ArtifactQuery,
    Consumption,
    StoredArtifact,
    payload_holds,
)

#: A condition, and the values of its question marks.
Term: TypeAlias = tuple[str, Sequence[Any]]

#: More streams than this are not merged: every artifact of the board is looked at instead.
MOST_STREAMS: Final = 16

_PUBLISHED: Final = KIND_NAMES[ArtifactPublished]
_ARRIVED: Final = KIND_NAMES[ArtifactArrived]

#: The event of an artifact, as `_EVENTS` in queries.py has it.
_DATA: Final = """(
    SELECT CASE typeof(data) WHEN 'blob'
           THEN (SELECT content FROM blobs WHERE blobs.app = events.app AND digest = data)
           ELSE data END
    FROM events WHERE events.app = a.app AND events.run = a.run AND events.seq = a.seq
)"""
_TAGGED: Final = (
    "EXISTS (SELECT 1 FROM artifact_tags AS own WHERE own.app = a.app AND own.board = a.board "
    "AND own.tag IN {tags} AND own.type = a.type AND own.created_at = a.created_at "
    "AND own.run = a.run AND own.seq = a.seq)"
)
#: What SQLite calls the index that is the key of a table.
_KEY: Final = "sqlite_autoindex_{}_1"
_NAMED: Final = "EXISTS (SELECT 1 FROM json_each(a.names) WHERE value {is_})"

# Only our own words and question marks are put together below, never a value (S608).


class _Stream(NamedTuple):
    """Artifacts of a board in order of time, as one index has them."""

    source: str
    terms: list[Term]
    #: The table whose order that is.
    leader: str = "a"


def find_artifacts(
    connection: sqlite3.Connection, query: ArtifactQuery, *, count: bool
) -> ArtifactPage:
    """Return artifacts in order, and how many there are in all if that is asked."""
    if query.text is not None:
        connection.create_function("holds_text", 2, _holds_text, deterministic=True)
    streams = _streams(query)
    if not count:
        return ArtifactPage(_listed(connection, query, streams))
    # What is counted must be what is listed.
    with snapshot(connection):
        return ArtifactPage(
            _listed(connection, query, streams), sum(_counted(connection, it) for it in streams)
        )


def _listed(
    connection: sqlite3.Connection, query: ArtifactQuery, streams: list[_Stream]
) -> list[StoredArtifact]:
    """Merge the streams; SQLite does so row by row, and stops when it has enough."""
    if not streams:
        return []
    down = "" if query.order == "created_at" else " DESC"
    sql = " UNION ALL ".join(
        f"SELECT {it.leader}.created_at, {it.leader}.run, {it.leader}.seq, id, correlation, "  # noqa: S608
        f"visible_at, policy, names, {_DATA} FROM {it.source} WHERE {_all_of(it.terms)}"
        for it in streams
    )
    limit = -1 if query.limit is None else max(query.limit, 0)
    rows = connection.execute(
        f"{sql} ORDER BY 1{down}, 2{down}, 3{down} LIMIT ? OFFSET ?",
        [
            *chain.from_iterable(_values(it.terms) for it in streams),
            limit,
            query.offset,
        ],
    )
    return [_to_artifact(row) for row in rows]


def _counted(connection: sqlite3.Connection, stream: _Stream) -> int:
    sql = f"SELECT count(*) FROM {stream.source} WHERE {_all_of(stream.terms)}"  # noqa: S608
    return connection.execute(sql, _values(stream.terms)).fetchone()[0]


def _streams(query: ArtifactQuery) -> list[_Stream]:
    """Return where the artifacts are found: by what narrows most, and none of them twice.

    The index is named, because the planner knows nothing of how many rows a value has.
    """
    if query.ids is not None:
        return [_by_id(query, query.ids)] if query.ids else []
    types = list(dict.fromkeys(query.types)) or [None]
    if query.correlation is not None:
        found = [_by(query._replace(correlation=None), "correlation", query.correlation)]
    elif query.partition:
        found = [_by(query._replace(partition=None), "partition", query.partition)]
    elif query.all_tags:
        rest = query._replace(all_tags=query.all_tags[1:], types=())
        found = [_by_tag(rest, query.all_tags[0], it) for it in types]
    elif query.tags:
        rest = query._replace(tags=(), types=())
        # What has an earlier one of the tags as well comes with that.
        found = [
            _by_tag(rest._replace(without_tags=(*rest.without_tags, *query.tags[:number])), tag, it)
            for (number, tag), it in product(enumerate(query.tags), types)
        ]
    elif query.types:
        rest = query._replace(types=())
        found = [_by(rest, "type", it) for it in types]
    elif query.producers:
        rest = query._replace(producers=())
        found = [_by(rest, "producer", it) for it in dict.fromkeys(query.producers)]
    else:
        found = [_by_time(query)]
    return found if len(found) <= MOST_STREAMS else [_by_time(query)]


def _by(rest: ArtifactQuery, column: str, value: str | None) -> _Stream:
    terms = [_board(rest, "a"), (f"a.{column} = ?", [value]), *_terms(rest, "a")]
    if column == "partition":
        terms.append(("a.partition != ''", []))
    return _Stream(f"artifacts AS a INDEXED BY artifacts_by_{column}", terms)


def _by_id(query: ArtifactQuery, ids: Sequence[str]) -> _Stream:
    terms = [_board(query, "a"), _one_of("a.id", ids), *_terms(query, "a")]
    return _Stream("artifacts AS a INDEXED BY artifacts_by_id", terms)


def _by_tag(rest: ArtifactQuery, tag: str, type_: str | None) -> _Stream:
    terms = [_board(rest, "t"), ("t.tag = ?", [tag]), *_terms(rest, "t")]
    index = "INDEXED BY artifact_tags_by_time"
    if type_ is not None:
        terms.append(("t.type = ?", [type_]))
        index = f"INDEXED BY {_KEY.format('artifact_tags')}"
    source = (
        f"artifact_tags AS t {index} CROSS JOIN artifacts AS a "
        "ON a.app = t.app AND a.run = t.run AND a.seq = t.seq"
    )
    return _Stream(source, terms, "t")


def _by_time(query: ArtifactQuery) -> _Stream:
    terms = [_board(query, "a"), *_terms(query, "a")]
    return _Stream("artifacts AS a INDEXED BY artifacts_by_time", terms)


def _board(query: ArtifactQuery, leader: str) -> Term:
    return f"{leader}.app = ? AND {leader}.board = ?", [query.app, query.board]


def _terms(query: ArtifactQuery, leader: str) -> Iterator[Term]:
    """Yield all that an artifact must fulfil, except for its board and its id."""
    if query.since is not None:
        yield f"{leader}.created_at >= ?", [query.since]
    if query.until is not None:
        yield f"{leader}.created_at < ?", [query.until]
    if query.types:
        yield _one_of("a.type", query.types)
    if query.producers:
        yield _one_of("a.producer", query.producers)
    if query.correlation is not None:
        yield "a.correlation = ?", [query.correlation]
    if query.partition is not None:
        yield "a.partition = ?", [query.partition]
    if query.reader is not None:
        yield _visible(query.reader, query.now)
    if query.tags:
        yield _tagged(query.tags)
    for tag in query.all_tags:
        yield _tagged([tag])
    if query.without_tags:
        sql, values = _tagged(query.without_tags)
        yield f"NOT {sql}", values
    if query.text is not None:
        yield f"holds_text({_DATA}, ?)", [query.text]


def _visible(reader: Identity, now: int) -> Term:
    """Return the rule of `visibility.may_see`; whatever is not one of its policies is hidden."""
    labels = [name_text(it) for it in sorted(reader.labels)]
    is_named = _NAMED.format(is_="= ?")
    lacks = _NAMED.format(is_=f"NOT IN {marks(1, len(labels))}")
    sql = (
        "a.visible_at <= ? AND (a.policy = 'public' "
        f"OR (a.policy = 'private' AND {is_named}) "
        f"OR (a.policy = 'tenant' AND {is_named}) "
        f"OR (a.policy = 'labelled' AND NOT {lacks}))"
    )
    return sql, [now, name_text(reader.agent), name_text(reader.tenant), *labels]


def _tagged(tags: Sequence[str]) -> Term:
    return _TAGGED.format(tags=marks(1, len(tags))), tags


def _one_of(column: str, values: Sequence[str]) -> Term:
    return f"{column} IN {marks(1, len(values))}", values


def _all_of(terms: Sequence[Term]) -> str:
    return " AND ".join(sql for sql, _ in terms)


def _values(terms: Sequence[Term]) -> list[Any]:
    return [it for _, values in terms for it in values]


def _holds_text(raw: str | bytes | None, text: str) -> bool:
    return raw is not None and payload_holds(from_json(raw)["payload"], text)


def _to_artifact(row: Row) -> StoredArtifact:
    created_at, run, seq, id_, correlation, visible_at, policy, names, raw = row
    data = cast("ArtifactPublished", to_data(run, seq, _PUBLISHED, raw))
    artifact = Artifact(
        id=id_,
        type=data.type,
        payload=data.payload,
        by=data.by,
        tags=data.tags,
        partition=data.partition,
        correlation=correlation,
        created_at=created_at,
    )
    return StoredArtifact(
        artifact, Audience(visible_at, policy, to_names(names)), run, seq, data.version
    )


def find_consumed(
    connection: sqlite3.Connection,
    app: str,
    board: str,
    agent: str | None,
    artifact: str | None,
    limit: int,
) -> list[Consumption]:
    """Return who was woken by what, newest first."""
    index, terms = "consumed_by_time", list[Term]()
    if agent is not None:
        index, terms = "consumed_by_agent", [("agent = ?", [agent])]
    if artifact is not None:
        index, terms = "consumed_by_artifact", [*terms, ("artifact = ?", [artifact])]
    terms = [("app = ? AND board = ?", [app, board]), *terms]
    sql = (
        f"SELECT agent, artifact, run, turn, at FROM consumed INDEXED BY {index} "  # noqa: S608
        f"WHERE {_all_of(terms)} "
        "ORDER BY at DESC, run DESC, turn DESC, agent DESC, artifact DESC LIMIT ?"
    )
    return [Consumption(*it) for it in connection.execute(sql, [*_values(terms), max(limit, 0)])]


def find_letters(connection: sqlite3.Connection, app: str, to: str, limit: int) -> list[Letter]:
    """Return the letters to a collection as they were written."""
    sql = (
        "SELECT app, receiver, workflow, digest, user, id, data FROM letters "
        "INDEXED BY letters_by_receiver WHERE app = ? AND receiver = ? ORDER BY number LIMIT ?"
    )
    return [_to_letter(row) for row in connection.execute(sql, (app, to, max(limit, 0)))]


def _to_letter(row: Row) -> Letter:
    *head, id_, raw = row
    try:
        data = decode(_ARRIVED, raw)
    except (TypeError, ValueError) as error:
        raise StoreError(f"letter {id_} cannot be read ({error}); it was damaged") from error
    return Letter(*head, data=cast("ArtifactArrived", data))


def find_unread(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Return where there are letters, with one step for each place, however many there are."""
    sql = (
        "SELECT app, receiver FROM letters INDEXED BY letters_by_receiver "
        "WHERE (app, receiver) > (?, ?) ORDER BY app, receiver LIMIT 1"
    )
    places: list[tuple[str, str]] = []
    while found := connection.execute(sql, places[-1] if places else ("", "")).fetchone():
        places.append(found)
    return places
