"""What a server keeps besides runs: values by tenant, kind and key."""

from collections.abc import Mapping
from typing import Final

from pydantic_core import from_json, to_json

from weft.adapters.sql.statements import Statement, Terms, Transaction, query
from weft.findings import Json
from weft.ports.records import Record

_ONE: Final = Statement(
    "SELECT key, value, version, at FROM records WHERE app = $1 AND kind = $2 AND key = $3"
)
_ADD: Final = Statement(
    """
    INSERT INTO records (app, kind, key, value, version, at) VALUES ($1, $2, $3, $4, 1, {now})
    ON CONFLICT DO NOTHING RETURNING version
    """
)
_PUT: Final = Statement(
    """
    INSERT INTO records (app, kind, key, value, version, at) VALUES ($1, $2, $3, $4, 1, {now})
    ON CONFLICT (app, kind, key) DO UPDATE
    SET value = excluded.value, version = records.version + 1, at = excluded.at
    """
)
_CHANGE: Final = Statement(
    """
    UPDATE records SET value = $4, version = version + 1, at = {now}
    WHERE app = $1 AND kind = $2 AND key = $3 AND version = $5 RETURNING version
    """
)
_DELETE: Final = Statement(
    "DELETE FROM records WHERE app = $1 AND kind = $2 AND key = $3 RETURNING version"
)


def find(app: str, kind: str, key: str) -> Transaction[Record | None]:
    """Return a record."""
    rows = yield _ONE((), app, kind, key)
    return _record(*rows[0]) if rows else None


def find_page(
    app: str, kind: str, after: str, limit: int, *, newest: bool
) -> Transaction[list[Record]]:
    """Return records by key, after a key."""
    terms = Terms().add("app = $", app).add("kind = $", kind)
    if after:
        terms.add("key < $" if newest else "key > $", after)
    rows = yield query(
        f"SELECT key, value, version, at FROM records WHERE {terms} "  # noqa: S608 - ours
        f"ORDER BY key {'DESC' if newest else ''} LIMIT ${len(terms.values) + 1}",
        [*terms.values, limit],
    )
    return [_record(*row) for row in rows]


def add(app: str, kind: str, key: str, value: Mapping[str, Json]) -> Transaction[bool]:
    """Write a record, unless there is one."""
    rows = yield _ADD((), app, kind, key, to_json(value).decode())
    return bool(rows)


def put(
    app: str, kind: str, key: str, value: Mapping[str, Json], version: int | None
) -> Transaction[bool]:
    """Write a record, whatever its version or only if it has this one."""
    text = to_json(value).decode()
    if version is None:
        yield _PUT((), app, kind, key, text)
        return True
    rows = yield _CHANGE((), app, kind, key, text, version)
    return bool(rows)


def delete(app: str, kind: str, key: str) -> Transaction[bool]:
    """Delete a record."""
    rows = yield _DELETE((), app, kind, key)
    return bool(rows)


def _record(key: str, value: str, version: int, at: int) -> Record:
    return Record(key, from_json(value), version, at)
