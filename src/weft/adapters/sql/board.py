"""What is read of boards. Every list follows an index."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Final, NamedTuple, cast

from weft.adapters.sql.queries import EVENT_DATA
from weft.adapters.sql.rows import name_text, to_data, to_names
from weft.adapters.sql.statements import Row, Terms, Transaction, query
from weft.engine.board.state import Artifact
from weft.engine.board.visibility import Audience, Identity
from weft.engine.events import KIND_NAMES, ArtifactPublished
from weft.engine.timers import NEVER
from weft.ports.board import (
    ArtifactPage,
    ArtifactQuery,
    Consumption,
    Place,
    StoredArtifact,
    payload_holds,
)

#: More streams than this are not merged: every artifact of the board is looked at instead.
MOST_STREAMS: Final = 16

#: How many artifacts are read at once to find a text in them.
_PAGE: Final = 500

_PUBLISHED: Final = KIND_NAMES[ArtifactPublished]
_DATA: Final = (
    f"(SELECT {EVENT_DATA} FROM events e "  # noqa: S608 - our own words
    "WHERE e.app = a.app AND e.run = a.run AND e.seq = a.seq)"
)
_TAGGED: Final = (
    "EXISTS (SELECT 1 FROM artifact_tags own WHERE own.app = a.app AND own.run = a.run "
    "AND own.seq = a.seq AND own.tag IN ({}))"
)

# Only our own words and marks are put together below, never a value (S608).


class _Stream(NamedTuple):
    """Artifacts of a board in order of time, as one index has them."""

    source: str
    terms: Terms
    #: The table whose order that is, and the column of the time.
    leader: str = "a"
    time: str = "created_at"


def find_artifacts(asked: ArtifactQuery, *, count: bool) -> Transaction[ArtifactPage]:
    """Return artifacts in order, and how many there are in all if that is asked."""
    streams = _streams(asked, asked.after)
    if asked.text is not None:
        return (yield from _find_text(asked, asked.text, count=count))
    if not streams:
        return ArtifactPage([], 0 if count else None)
    most = NEVER if asked.limit is None else max(asked.limit, 0)
    items = yield from _list(asked, streams, most, max(asked.offset, 0))
    if not count:
        return ArtifactPage(items)
    total = 0
    for stream in streams:
        sql = f"SELECT count(*) FROM {stream.source} WHERE {stream.terms}"  # noqa: S608
        total += (yield query(sql, stream.terms.values))[0][0]
    return ArtifactPage(items, total)


def _find_text(asked: ArtifactQuery, text: str, *, count: bool) -> Transaction[ArtifactPage]:
    """Find artifacts with a text in their payload, which no index has: page by page."""
    start = max(asked.offset, 0)
    stop = None if asked.limit is None else start + max(asked.limit, 0)
    found: list[StoredArtifact] = []
    last = asked.after
    while count or stop is None or len(found) < stop:
        streams = _streams(asked, last)
        page = yield from _list(asked, streams, _PAGE, 0) if streams else _nothing()
        found += (item for item in page if payload_holds(item.artifact.payload, text))
        if len(page) < _PAGE:
            break
        end = page[-1]
        at = end.appeared_at if asked.order == "appeared_at" else end.artifact.created_at
        last = at, end.run, end.seq
    return ArtifactPage(found[start:stop], len(found) if count else None)


def _nothing() -> Transaction[list[StoredArtifact]]:
    yield from ()
    return []


def _list(
    asked: ArtifactQuery, streams: list[_Stream], limit: int, offset: int
) -> Transaction[list[StoredArtifact]]:
    """Merge the streams; the database does so row by row, and stops when it has enough."""
    down = " DESC" if asked.order == "-created_at" else ""
    order = f"ORDER BY 1{down}, 2{down}, 3{down} LIMIT"
    parts: list[str] = []
    values: list[object] = [limit, offset]
    for source, terms, leader, time in streams:
        selected = (
            f"SELECT {leader}.{time}, {leader}.run, {leader}.seq, a.created_at, a.id, "  # noqa: S608
            f"a.correlation, a.visible_at, a.visibility, a.visible_to, {_DATA} FROM {source} "
            f"WHERE {terms.text(len(values))}"
        )
        is_merged = len(streams) > 1
        parts.append(f"{{part}}{selected}{{top {order} $1 + $2}}" if is_merged else selected)
        values += terms.values
    rows = yield query(f"{' UNION ALL '.join(parts)} {order} $1 OFFSET $2", values)
    return [_to_artifact(row) for row in rows]


def _streams(asked: ArtifactQuery, last: Place | None) -> list[_Stream]:
    """Return where the artifacts are found: by what narrows most, and none of them twice.

    With `last`, only those that come after this place. The index is named, because a planner knows
    nothing of how many rows a value has.
    """
    if asked.order == "appeared_at":
        return _appearing(asked, last)
    if asked.ids is not None:
        if not asked.ids:
            return []
        terms = _terms(asked, "a", last).add(f"a.id IN ({_marks(asked.ids)})", *asked.ids)
        return [_Stream("artifacts a {by artifacts_by_id}", terms)]
    if asked.correlation is not None:
        return [_by(asked._replace(correlation=None), "correlation", asked.correlation, last)]
    if asked.owners is None:
        return [_Stream("artifacts a {by artifacts_by_board}", _terms(asked, "a", last))]
    own = [asked._replace(owners=(owner,)) for owner in dict.fromkeys(asked.owners)]
    found = [stream for query in own for stream in _streams_of_owner(query, last)]
    return found if len(found) <= MOST_STREAMS else [_by_time(query, last) for query in own]


def _appearing(asked: ArtifactQuery, last: Place | None) -> list[_Stream]:
    """Return where artifacts are found by when they appear: those without a delay, and the others.

    The owners of those with a delay are compared row by row.
    """
    owners = [None] if asked.owners is None else dict.fromkeys(asked.owners)
    found: list[_Stream] = []
    for owner in owners:
        own = asked if owner is None else asked._replace(owners=(owner,))
        index = "artifacts_by_board" if owner is None else "artifacts_by_time"
        terms = _terms(own, "a", last).add("a.visible_at <= a.created_at")
        terms.add("a.created_at <= $", asked.now)
        found.append(_Stream(f"artifacts a {{by {index}}}", terms))
    terms = _terms(asked, "a", last, "visible_at").add("a.visible_at > a.created_at")
    terms.add("a.visible_at <= $", asked.now)
    return [*found, _Stream("artifacts a {by artifacts_by_delay}", terms, time="visible_at")]


def _streams_of_owner(asked: ArtifactQuery, last: Place | None) -> list[_Stream]:
    """Return where the artifacts of one owner are found."""
    types = list(dict.fromkeys(asked.types)) or [None]
    if asked.partition:
        found = [_by(asked._replace(partition=None), "partition", asked.partition, last)]
    elif asked.all_tags:
        rest = asked._replace(all_tags=asked.all_tags[1:], types=())
        found = [_by_tag(rest, asked.all_tags[0], type_, last) for type_ in types]
    elif asked.tags:
        rest = asked._replace(tags=(), types=())
        # What has an earlier one of the tags as well comes with that.
        found = [
            _by_tag(
                rest._replace(without_tags=(*rest.without_tags, *asked.tags[:number])),
                tag,
                type_,
                last,
            )
            for (number, tag), type_ in product(enumerate(asked.tags), types)
        ]
    elif asked.types:
        rest = asked._replace(types=())
        found = [_by(rest, "type", type_, last) for type_ in types]
    elif asked.producers:
        rest = asked._replace(producers=())
        found = [_by(rest, "producer", name, last) for name in dict.fromkeys(asked.producers)]
    else:
        found = [_by_time(asked, last)]
    return found


def _by(rest: ArtifactQuery, column: str, value: str | None, last: Place | None) -> _Stream:
    terms = _terms(rest, "a", last).add(f"a.{column} = $", value)
    if column == "partition":
        terms.add("a.partition <> ''")
    return _Stream(f"artifacts a {{by artifacts_by_{column}}}", terms)


def _by_tag(rest: ArtifactQuery, tag: str, type_: str | None, last: Place | None) -> _Stream:
    terms = _terms(rest, "t", last).add("t.tag = $", tag)
    index = "artifact_tags_by_time"
    if type_ is not None:
        terms.add("t.type = $", type_)
        index = "artifact_tags_by_type"
    source = (
        f"artifact_tags t {{by {index}}} {{join}} artifacts a "
        "ON a.app = t.app AND a.run = t.run AND a.seq = t.seq"
    )
    return _Stream(source, terms, "t")


def _by_time(asked: ArtifactQuery, last: Place | None) -> _Stream:
    return _Stream("artifacts a {by artifacts_by_time}", _terms(asked, "a", last))


def _terms(
    asked: ArtifactQuery, leader: str, last: Place | None, time: str = "created_at"
) -> Terms:
    """Return all that an artifact must fulfil, except for its id."""
    terms = Terms().add(f"{leader}.app = $ AND {leader}.board = $", asked.app, asked.board)
    for term, values in _conditions(asked, leader):
        terms.add(term, *values)
    if last is not None:
        than = "<" if asked.order == "-created_at" else ">"
        terms.add(f"({leader}.{time}, {leader}.run, {leader}.seq) {than} ($, $, $)", *last)
    return terms


def _conditions(asked: ArtifactQuery, leader: str) -> Iterator[tuple[str, Sequence[object]]]:
    if asked.owners is not None:
        yield f"{leader}.{_one_of('owner', asked.owners)}", asked.owners
    if asked.since is not None:
        yield f"{leader}.created_at >= $", [asked.since]
    if asked.until is not None:
        yield f"{leader}.created_at < $", [asked.until]
    if asked.types:
        yield f"a.type IN ({_marks(asked.types)})", asked.types
    if asked.producers:
        yield f"a.producer IN ({_marks(asked.producers)})", asked.producers
    if asked.correlation is not None:
        yield "a.correlation = $", [asked.correlation]
    if asked.partition is not None:
        yield "a.partition = $", [asked.partition]
    if asked.reader is not None:
        yield _visible(asked.reader, asked.now)
    if asked.tags:
        yield _TAGGED.format(_marks(asked.tags)), asked.tags
    for tag in asked.all_tags:
        yield _TAGGED.format("$"), [tag]
    if asked.without_tags:
        yield f"NOT {_TAGGED.format(_marks(asked.without_tags))}", asked.without_tags


def _visible(reader: Identity, now: int) -> tuple[str, Sequence[object]]:
    """Return the rule of `visibility.may_see`; what is not one of its policies is hidden."""
    labels = [name_text(label) for label in sorted(reader.labels)]
    others = "a.visible_to"
    for _ in labels:
        others = f"replace({others}, $, '')"
    sql = (
        "a.visible_at <= $ AND (a.visibility = 'public' "
        "OR (a.visibility = 'private' AND replace(a.visible_to, $, '') <> a.visible_to) "
        "OR (a.visibility = 'tenant' AND replace(a.visible_to, $, '') <> a.visible_to) "
        f"OR (a.visibility = 'labelled' AND {others} = ''))"
    )
    return sql, [now, name_text(reader.agent), name_text(reader.tenant), *labels]


def _one_of(column: str, values: Sequence[str]) -> str:
    """Return the condition that a column has one of the values; `=` follows an index in order."""
    return f"{column} = $" if len(values) == 1 else f"{column} IN ({_marks(values)})"


def _marks(values: Sequence[str]) -> str:
    return ", ".join("$" for _ in values)


def _to_artifact(row: Row) -> StoredArtifact:
    _, run, seq, created_at, id_, correlation, visible_at, policy, names, raw = row
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
    app: str,
    board: str,
    owners: tuple[str, ...] | None,
    agent: str | None,
    artifact: str | None,
    limit: int,
) -> Transaction[list[Consumption]]:
    """Return which agents were woken by which artifacts, newest first."""
    terms = Terms().add("app = $ AND board = $", app, board)
    index = "consumed_artifacts_by_time"
    if owners is not None:
        terms.add(_one_of("owner", owners), *owners)
    if agent is not None:
        index = "consumed_artifacts_by_agent"
        terms.add("agent = $", agent)
    if artifact is not None:
        index = "consumed_artifacts_by_artifact"
        terms.add("artifact = $", artifact)
    values = [*terms.values, max(limit, 0)]
    rows = yield query(
        f"SELECT agent, artifact, run, turn, at FROM consumed_artifacts {{by {index}}} "  # noqa: S608
        f"WHERE {terms} ORDER BY at DESC, run DESC, turn DESC, agent DESC, artifact DESC "
        f"LIMIT ${len(values)}",
        values,
    )
    return [Consumption(*row) for row in rows]
