"""Documents and their changes as rows; whatever writes does so inside a transaction."""

import sqlite3
from typing import Final, Literal
from uuid import uuid4

from weft.adapters.documents.sqlite_search import (
    Place,
    Search,
    as_document,
    index_name,
    index_statement,
    newest,
)
from weft.adapters.documents.values import MOST_BYTES, as_body, with_values
from weft.errors import StoreError, UsageError
from weft.ports.documents import Change, Document
from weft.spec.queries import AllOf

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
    document = with_values({"_id": uuid4().hex}, found) if old is None else old
    key = str(document.pop("_id"))
    before = "" if old is None else as_body(document)
    after = as_body(with_values(document, values))
    if after == before:
        return key
    if (size := len(after.encode())) > MOST_BYTES:
        raise UsageError(f"a document of {size:,} bytes is too large: {MOST_BYTES:,} is the most")
    connection.execute(
        "INSERT OR REPLACE INTO documents (app, database, collection, key, body) "
        "VALUES (?, ?, ?, ?, ?)",
        (*place, key, after),
    )
    _note(connection, place, key, "put")
    return key


def delete_document(place: Place, key: str, connection: sqlite3.Connection) -> bool:
    gone = connection.execute(
        "DELETE FROM documents WHERE app = ? AND database = ? AND collection = ? AND key = ?",
        (*place, key),
    )
    if gone.rowcount:
        _note(connection, place, key, "deleted")
    return bool(gone.rowcount)


def _note(connection: sqlite3.Connection, place: Place, key: str, kind: str) -> None:
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
