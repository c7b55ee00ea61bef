"""Documents as rows: each function is a transaction, for any SQL database."""

from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any, Final, Literal, NamedTuple, cast
from uuid import uuid4

from pydantic_core import from_json

from weft.adapters.documents.index import Place, entries_of, ranges_of
from weft.adapters.documents.requests import MOST_BYTES, set_values, to_body
from weft.adapters.sql.statements import Statement, Transaction
from weft.engine.timers import NEVER
from weft.errors import StoreError, UsageError
from weft.ports.documents import Change, Document
from weft.spec.queries import AllOf, matches_query, sort_key

#: The most changes of a tenant, and the number of changes between two clean-ups.
MOST_CHANGES: Final = 10_000
PRUNE_EVERY: Final = 1_000

#: The number of changes per read.
_PAGE: Final = 200

#: The numbers of candidates per read: the first one usually matches.
_CANDIDATES: Final = (1, 10)
_MORE_CANDIDATES: Final = 100

_PLACE: Final = "app = $1 AND database = $2 AND collection = $3"
_ALL: Final = Statement(
    f"SELECT id, seq, key, body FROM documents WHERE {_PLACE} AND seq < $4 "  # noqa: S608 - ours
    "ORDER BY seq DESC LIMIT $5"
)
#: Each document is looked up by its id: a planner that does not know yet how many there are would
#: read all documents of the tenant. The numbers of fields are those of one collection. Bodies are
#: read last: they may be large, and candidates may be many.
SEARCH: Final = Statement(
    """
    {x} SELECT c.id, c.seq,
        (SELECT d.key FROM documents d WHERE d.app = $1 AND d.id = c.id),
        (SELECT d.body FROM documents d WHERE d.app = $1 AND d.id = c.id)
    FROM (
        SELECT s.id, s.seq FROM (
            SELECT f.id, (SELECT d.seq FROM documents d WHERE d.app = $1 AND d.id = f.id) AS seq
            FROM (
                SELECT v.id FROM x {join} document_values v
                ON v.app = $1 AND v.field = x.field AND v.value >= x.low AND v.value <= x.high
                GROUP BY v.id HAVING count(DISTINCT x.part) = $2
            ) f
        ) s WHERE s.seq < $3 ORDER BY s.seq DESC LIMIT $4
    ) c ORDER BY c.seq DESC
    """,
    "part:number field:number low high",
    is_whole=True,
)
_BY_KEY: Final = Statement(
    f"SELECT id, seq, key, body FROM documents WHERE {_PLACE} AND key = $4"  # noqa: S608 - ours
)
_AFTER_KEY: Final = Statement(
    f"SELECT key, body FROM documents WHERE {_PLACE} AND key > $4 ORDER BY key LIMIT $5"  # noqa: S608
)
_COUNTS: Final = Statement(
    """
    SELECT collection, count(*) FROM documents WHERE app = $1 AND database = $2
    GROUP BY collection ORDER BY collection
    """
)
_INSERT: Final = Statement(
    """
    INSERT INTO documents (app, database, collection, key, seq, body)
    VALUES ($1, $2, $3, $4, $5, $6) RETURNING id
    """
)
_UPDATE: Final = Statement("UPDATE documents SET seq = $2, body = $3 WHERE id = $1")
_DELETE: Final = Statement("DELETE FROM documents WHERE id = $1")
_ADD_VALUES: Final = Statement(
    "INSERT INTO document_values (app, field, value, id) {rows}", "app field:number value id:number"
)
_DELETE_VALUES: Final = Statement(
    "DELETE FROM document_values WHERE {keys}", "app field:number value id:number"
)
_LOG: Final = Statement(
    """
    INSERT INTO document_changes (app, database, collection, key, kind)
    VALUES ($1, $2, $3, $4, $5) RETURNING seq
    """
)
_OLDEST: Final = Statement(
    "SELECT seq FROM document_changes WHERE app = $1 ORDER BY seq DESC LIMIT 1 OFFSET $2"
)
_FORGET: Final = Statement(
    """
    INSERT INTO forgotten_changes (app, database, collection, seq)
    SELECT app, database, collection, max(seq) FROM document_changes
    WHERE app = $1 AND seq <= $2 GROUP BY app, database, collection
    ON CONFLICT (app, database, collection) DO UPDATE SET seq = excluded.seq
    """
)
_DELETE_CHANGES: Final = Statement("DELETE FROM document_changes WHERE app = $1 AND seq <= $2")
_CHANGES: Final = Statement(
    f"""
    SELECT c.seq, c.kind, c.key, d.body FROM (
        SELECT * FROM document_changes WHERE {_PLACE} AND seq > $4 ORDER BY seq LIMIT $5
    ) c LEFT JOIN documents d ON d.app = c.app AND d.database = c.database
    AND d.collection = c.collection AND d.key = c.key ORDER BY c.seq
    """  # noqa: S608 - ours
)
_POSITIONS: Final = Statement(
    f"""
    SELECT (SELECT max(seq) FROM document_changes WHERE {_PLACE}),
    (SELECT seq FROM forgotten_changes WHERE {_PLACE})
    """  # noqa: S608 - ours
)


class _Row(NamedTuple):
    id: int
    seq: int
    key: str
    document: Document

    @classmethod
    def of(cls, id_: int, seq: int, key: str, body: str) -> "_Row":
        return cls(id_, seq, key, cast("Document", from_json(body)))

    @property
    def with_key(self) -> Document:
        return {"_id": self.key, **self.document}


def find_documents(
    place: Place, query: AllOf, order: str, limit: int
) -> Transaction[list[Document]]:
    """Return the documents that match: the last written first, or sorted by a field."""
    rows = yield from _matching(place, query, order, limit)
    return [row.with_key for row in rows]


def _newest(place: Place, query: AllOf) -> Transaction[_Row | None]:
    rows = yield from _matching(place, query, "", 1)
    return rows[0] if rows else None


def _matching(place: Place, query: AllOf, order: str, most: int) -> Transaction[list[_Row]]:
    found: list[_Row] = []
    ranges = ranges_of(place, query)
    parts = len({part for part, *_ in ranges})
    before = NEVER
    for limit in chain(_CANDIDATES, repeat(_MORE_CANDIDATES)):
        if ranges:
            rows = yield SEARCH(ranges, place[0], parts, before, limit)
        else:
            rows = yield _ALL((), *place, before, limit)
        for row in _candidates(rows):
            before = row.seq
            if matches_query(query, row.with_key):
                found.append(row)
                if not order and len(found) == most:
                    return found
        if order:  # Only the first ones are kept in memory.
            path = order.removeprefix("-").split(".")
            found.sort(key=lambda row: sort_key(row.with_key, path), reverse=order[0] == "-")
            del found[most:]
        if len(rows) < limit:
            break
    return found


def _candidates(rows: list[tuple[Any, ...]]) -> Iterator[_Row]:
    return (_Row.of(*row) for row in rows)


def page_of_documents(place: Place, after: str, limit: int) -> Transaction[list[Document]]:
    """Return documents by key, from after a key on."""
    rows = yield _AFTER_KEY((), *place, after, limit)
    return [{"_id": key, **from_json(body)} for key, body in rows]


def count_documents(app: str, database: str) -> Transaction[list[tuple[str, int]]]:
    """Return the collections of a tenant and how many documents each has."""
    rows = yield _COUNTS((), app, database)
    return [(name, count) for name, count in rows]


def put_document(place: Place, query: AllOf, found: Document, values: Document) -> Transaction[str]:
    """Set fields of the matching document, or create one; return its key."""
    row = yield from _newest(place, query)
    if row is None:
        document = set_values({"_id": uuid4().hex}, found)
        key, before = str(document.pop("_id")), ""
        row = yield from _document_of_key(place, key)
    else:
        # Read again: setting fields must not change what the index has.
        document, key = cast("Document", from_json(before := to_body(row.document))), row.key
    after = to_body(set_values(document, values))
    if after == before:
        return key
    if (size := len(after.encode())) > MOST_BYTES:
        raise UsageError(f"a document of {size:,} bytes is too large: the limit is {MOST_BYTES:,}")
    seq = yield from _log_change(place, key, "put")
    if row is None:
        [(id_,)] = yield _INSERT((), *place, key, seq, after)
        old = set[tuple[int, str]]()
    else:
        id_, old = row.id, entries_of(place, key, row.document)
        yield [_UPDATE((), id_, seq, after)]
    new = entries_of(place, key, document)
    app = place[0]
    if gone := old - new:
        yield [_DELETE_VALUES([(app, *entry, id_) for entry in sorted(gone)])]
    if added := new - old:
        yield [_ADD_VALUES([(app, *entry, id_) for entry in sorted(added)])]
    return key


def delete_document(place: Place, key: str) -> Transaction[bool]:
    """Remove a document; return False if there was none."""
    row = yield from _document_of_key(place, key)
    if row is None:
        return False
    entries = sorted(entries_of(place, key, row.document))
    yield [_DELETE((), row.id), _DELETE_VALUES([(place[0], *entry, row.id) for entry in entries])]
    yield from _log_change(place, key, "deleted")
    return True


def _document_of_key(place: Place, key: str) -> Transaction[_Row | None]:
    rows = yield _BY_KEY((), *place, key)
    return next(_candidates(rows), None)


def _log_change(place: Place, key: str, kind: str) -> Transaction[int]:
    """Log a change for watchers, and delete old ones now and then; return its number."""
    [(seq,)] = yield _LOG((), *place, key, kind)
    if seq % PRUNE_EVERY == 0:
        app = place[0]
        oldest = yield _OLDEST((), app, MOST_CHANGES)
        for (last,) in oldest:
            yield [_FORGET((), app, last)]
            yield [_DELETE_CHANGES((), app, last)]
    return seq


def last_change(place: Place) -> Transaction[int]:
    """Return the position of the last change of a collection."""
    [(stored, forgotten)] = yield _POSITIONS((), *place)
    return max(stored or 0, forgotten or 0)


def changes_after(place: Place, after: int) -> Transaction[list[tuple[int, Change | None]]]:
    """Return changes after a position; a write is skipped if its document was deleted later."""
    rows = yield _CHANGES((), *place, after, _PAGE)
    found = [(seq, _change(seq, *rest)) for seq, *rest in rows]
    # Checked afterwards: changes may have been deleted meanwhile, and must not be skipped.
    [(stored, forgotten)] = yield _POSITIONS((), *place)
    if after > max(stored or 0, forgotten or 0) or (forgotten or 0) > after:
        raise StoreError(
            f"cannot continue from position {after}: of every tenant the last "
            f"{MOST_CHANGES:,} changes are kept; read the collection again and watch from now on"
        )
    return found


def _change(seq: int, kind: Literal["put", "deleted"], key: str, body: str | None) -> Change | None:
    if kind == "deleted":
        return Change("deleted", key, None, str(seq))
    return None if body is None else Change("put", key, {"_id": key, **from_json(body)}, str(seq))
