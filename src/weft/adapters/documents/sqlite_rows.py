"""Documents in SQLite: queries as SQL, rows, and the change log.

SQL only narrows the candidates and `fits` decides, so that SQLite and MongoDB never differ. A field
is searched by an indexed expression: the value at its path, or a marker where there is none, or
where the path meets a list whose items must be examined. Writes happen inside a transaction.
"""

import re
import sqlite3
from dataclasses import dataclass
from hashlib import blake2b
from math import inf, nextafter
from typing import Final, Literal, TypeAlias, cast
from uuid import uuid4

from pydantic_core import from_json

from weft.adapters.documents.requests import MOST_BYTES, set_values, to_body
from weft.errors import StoreError, UsageError
from weft.findings import Json
from weft.ports.documents import Change, Document
from weft.spec.queries import AllOf, AnyOf, FieldTest, QueryPart, kind_of, matches_query

#: Tenant, database and collection.
Place: TypeAlias = tuple[str, str, str]

_SELECT_SEQ: Final = (
    "SELECT seq FROM documents WHERE app = ?1 AND database = ?2 AND collection = ?3"
)

#: The marks. They are greater than any number and any text.
_MISSING_MARK: Final = "x''"
_LIST_MARK: Final = "x'00'"

#: More would not narrow much, and make a statement that SQLite may refuse.
MOST_VALUES: Final = 500
MOST_TESTS: Final = 50
_LONGEST_FIELD: Final = 200

#: Fields of other names are not put into SQL; documents are then looked at one by one.
_PLAIN: Final = re.compile(r"[\w @:/+-]+(\.[\w @:/+-]+)*")

#: Fractions, and whole numbers beyond this, may be a little off after SQLite has read them.
_EXACT: Final = 2**53
_STEPS_OFF: Final = 3


@dataclass(frozen=True, slots=True)
class Search:
    """Conditions of which every fitting document meets one, their values and their fields.

    Without a condition any document may fit.
    """

    either: tuple[str, ...] = ()
    values: tuple[Json, ...] = ()
    fields: frozenset[str] = frozenset()
    tests: int = 0


_ALL: Final = Search()


def search_for(query: AllOf) -> Search:
    """Return how to search for a query."""
    found = _search(query)
    return found if len(found.values) <= MOST_VALUES and found.tests <= MOST_TESTS else _ALL


def newest(
    place: Place, query: AllOf, search: Search, connection: sqlite3.Connection
) -> Document | None:
    """Return the document that fits and was written last."""
    for (seq,) in connection.execute(statement(search), (*place, *search.values)):
        row = connection.execute("SELECT key, body FROM documents WHERE seq = ?", (seq,)).fetchone()
        document = as_document(*row)
        if matches_query(query, document):
            return document
    return None


def as_document(key: str, body: str) -> Document:
    return {"_id": key, **cast("Document", from_json(body))}


def statement(search: Search) -> str:
    """Return the SQL that yields the numbers of documents, the last one written first."""
    if not search.either:
        return f"{_SELECT_SEQ} ORDER BY seq DESC"
    # One by one, since SQLite would use one index for all of them, if any; with a plus, since it
    # would walk through all documents only because they are in order.
    each = " UNION ALL ".join(f"{_SELECT_SEQ} AND ({condition})" for condition in search.either)
    return f"SELECT seq FROM ({each}) ORDER BY +seq DESC"  # noqa: S608


def index_name(field: str) -> str:
    """Return the name of the index of a field; SQL does not tell upper case from lower."""
    return f"field_{blake2b(field.encode(), digest_size=8).hexdigest()}"


def index_statement(field: str) -> str:
    return (
        f"CREATE INDEX IF NOT EXISTS {index_name(field)} "
        f"ON documents (app, database, collection, {_expression(field)})"
    )


def _expression(field: str) -> str:
    """Return the value of a field in SQL; only plain names get here."""
    names = [f'."{part}"' for part in field.split(".")]
    paths = ["$" + "".join(names[:until]) for until in range(1, len(names) + 1)]
    lists = " OR ".join(f"json_type(body, '{path}') = 'array'" for path in paths)
    value = f"coalesce(json_extract(body, '{paths[-1]}'), {_MISSING_MARK})"
    return f"CASE WHEN {lists} THEN {_LIST_MARK} ELSE {value} END"


def _search(part: QueryPart) -> Search:
    if isinstance(part, FieldTest):
        return _test(part)
    found = [_search(child) for child in part.parts]
    if isinstance(part, AnyOf):
        if not all(search.either for search in found):
            return _ALL
        either = tuple(condition for search in found for condition in search.either)
    else:
        found = [search for search in found if search.either]
        if len(found) <= 1:
            return found[0] if found else _ALL
        either = (" AND ".join(f"({' OR '.join(search.either)})" for search in found),)
    values = tuple(value for search in found for value in search.values)
    fields = frozenset[str]().union(*(search.fields for search in found))
    return Search(either, values, fields, sum(search.tests for search in found))


def _test(test: FieldTest) -> Search:
    key = test.field == "_id"
    if not key and (len(test.field) > _LONGEST_FIELD or not _PLAIN.fullmatch(test.field)):
        return _ALL
    place = "key" if key else _expression(test.field)
    match test.op:
        case "$eq":
            either, values = _equality(place, [test.value])
        case "$in":
            either, values = _equality(place, cast("list[Json]", test.value))
        case "$gt" | "$gte":
            either, values = (f"{place} >= ?",), _near_values(test.value)[:1]
        case "$lt" | "$lte":
            either, values = (
                (f"{place} <= ?", f"{place} = {_LIST_MARK}"),
                _near_values(test.value)[-1:],
            )
        case _:
            return _ALL
    if any(
        isinstance(value, dict) or (isinstance(value, str) and "\0" in value) for value in values
    ):
        return _ALL  # SQLite may write an object otherwise, and cuts off what follows a NUL
    return Search(either, values, frozenset([] if key else [test.field]), tests=1)


def _equality(place: str, wanted: list[Json]) -> tuple[tuple[str], tuple[Json, ...]]:
    """Return the condition that one of these values stands there, or may be in a list there."""
    values = tuple(
        near
        for value in wanted
        if kind_of(value) not in ("null", "list")
        for near in _near_values(value)
    )
    return (f"{place} IN ({', '.join([_MISSING_MARK, _LIST_MARK, *['?'] * len(values)])})",), values


def _near_values(value: Json) -> tuple[Json, ...]:
    """Return what SQLite may have for a value, in order."""
    if kind_of(value) != "number" or (isinstance(value, int) and abs(value) <= _EXACT):
        return (value,)
    number = cast("float", value)
    found = {float(number), *([value] if isinstance(value, int) and abs(value) < 2**63 else [])}
    low = high = float(number)
    for _ in range(_STEPS_OFF):
        low, high = nextafter(low, -inf), nextafter(high, inf)
        found |= {low, high}
    return tuple(sorted(found))


#: How many fields are indexed; every index makes writing slower.
MOST_INDEXES: Final = 32

#: How many changes of a tenant are kept, and after how many changes it is looked which go.
MOST_CHANGES: Final = 10_000
PRUNE_EVERY: Final = 1_000

#: How many changes are read at once.
_PAGE: Final = 200


def make_index(field: str, connection: sqlite3.Connection) -> None:
    rows = connection.execute("SELECT name FROM sqlite_master WHERE name GLOB 'field_*'").fetchall()
    names = {name for (name,) in rows}
    if index_name(field) not in names and len(names) < MOST_INDEXES:
        connection.execute(index_statement(field))


def put_document(
    place: Place,
    query: AllOf,
    search: Search,
    found: Document,
    values: Document,
    connection: sqlite3.Connection,
) -> str:
    """Set fields of the document that fits, or make one; return its key."""
    old = newest(place, query, search, connection)
    document = set_values({"_id": uuid4().hex}, found) if old is None else old
    key = str(document.pop("_id"))
    before = "" if old is None else to_body(document)
    after = to_body(set_values(document, values))
    if after == before:
        return key
    if (size := len(after.encode())) > MOST_BYTES:
        raise UsageError(f"a document of {size:,} bytes is too large: {MOST_BYTES:,} is the most")
    connection.execute(
        "INSERT OR REPLACE INTO documents (app, database, collection, key, body) "
        "VALUES (?, ?, ?, ?, ?)",
        (*place, key, after),
    )
    _log_change(connection, place, key, "put")
    return key


def delete_document(place: Place, key: str, connection: sqlite3.Connection) -> bool:
    gone = connection.execute(
        "DELETE FROM documents WHERE app = ? AND database = ? AND collection = ? AND key = ?",
        (*place, key),
    )
    if gone.rowcount:
        _log_change(connection, place, key, "deleted")
    return bool(gone.rowcount)


def _log_change(connection: sqlite3.Connection, place: Place, key: str, kind: str) -> None:
    """Keep a change for those who watch, and forget old ones now and then."""
    seq = connection.execute(
        "INSERT INTO changes (app, database, collection, key, kind) VALUES (?, ?, ?, ?, ?)",
        (*place, key, kind),
    ).lastrowid
    if seq is None or seq % PRUNE_EVERY:
        return
    oldest = connection.execute(
        "SELECT seq FROM changes WHERE app = ? ORDER BY seq DESC LIMIT 1 OFFSET ?",
        (place[0], MOST_CHANGES),
    ).fetchone()
    if oldest is not None:
        gone = (place[0], *oldest)
        connection.execute(
            "INSERT OR REPLACE INTO forgotten SELECT app, database, collection, max(seq) "
            "FROM changes WHERE app = ? AND seq <= ? GROUP BY database, collection",
            gone,
        )
        connection.execute("DELETE FROM changes WHERE app = ? AND seq <= ?", gone)


def last_change(connection: sqlite3.Connection) -> int:
    """Return where watching begins that is to begin now."""
    found = connection.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'changes'")
    return found.fetchone()[0] or 0


def changes_after(
    place: Place, after: int, connection: sqlite3.Connection
) -> list[tuple[int, Change | None]]:
    """Return changes; none for a document that was written and is gone, which is told next."""
    rows = connection.execute(
        "SELECT changes.seq, kind, key, body FROM changes "
        "LEFT JOIN documents USING (app, database, collection, key) "
        "WHERE app = ? AND database = ? AND collection = ? AND changes.seq > ? "
        "ORDER BY changes.seq LIMIT ?",
        (*place, after, _PAGE),
    )
    found = [(seq, _change(seq, *rest)) for seq, *rest in rows]
    # Asked afterwards: what was forgotten meanwhile is not there, and must not pass for nothing.
    forgotten = connection.execute(
        "SELECT seq FROM forgotten WHERE app = ? AND database = ? AND collection = ?", place
    ).fetchone()
    if after > last_change(connection) or (forgotten and forgotten[0] > after):
        raise StoreError(
            f"there is nothing to go on from at position {after}: of every tenant the last "
            f"{MOST_CHANGES:,} changes are kept; read the collection anew and watch from now on"
        )
    return found


def _change(seq: int, kind: Literal["put", "deleted"], key: str, body: str | None) -> Change | None:
    if kind == "deleted":
        return Change("deleted", key, None, str(seq))
    return None if body is None else Change("put", key, as_document(key, body), str(seq))
