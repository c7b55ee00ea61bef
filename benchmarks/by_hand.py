"""Writing the rows of the store by hand: what benchmarks compare it with.

The rows are made beforehand, and inserted with `executemany` into the same tables and indexes.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from weft.adapters.sql import store
from weft.adapters.sql.group import Items
from weft.adapters.sql.rows import INSERT_EVENTS, SIDE_STATEMENTS, Written
from weft.adapters.sql.sqlite import FORMAT
from weft.adapters.sql.statements import Statement, Transaction
from weft.adapters.sql.write import Append, Outcome, write_group
from weft.adapters.sqlite_file import open_file
from weft.ports.store import Durability

#: Rows by table.
Rows = dict[str, list[Any]]


def _insert_text(table: str, statement: Statement) -> str:
    columns = statement.columns
    # Only our own names and question marks are put together, never a value.
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


INSERT_TEXTS: Final = {
    "events": _insert_text("events", INSERT_EVENTS),
    "artifacts": _insert_text("artifacts", SIDE_STATEMENTS["artifacts"]),
    "tags": _insert_text("artifact_tags", SIDE_STATEMENTS["tags"]),
}


def open_connection(path: Path, durability: Durability) -> sqlite3.Connection:
    """Open a file with the tables of the store, or create it."""
    return open_file(str(path), FORMAT, busy_seconds=5, durability=durability)


def rows_of(some: Iterable[Written]) -> Rows:
    """Return the events, artifacts and tags of batches."""
    found: Rows = {table: [] for table in INSERT_TEXTS}
    for written in some:
        found["events"] += written.events
        for table in ("artifacts", "tags"):
            found[table] += written.sides.get(table, ())
    return found


def insert(connection: sqlite3.Connection, rows: Rows) -> None:
    """Write rows in the current transaction."""
    for table, some in rows.items():
        connection.executemany(INSERT_TEXTS[table], some)


@contextmanager
def noted_batches() -> Iterator[list[list[Written]]]:
    """Note the batches that stores write inside the block, by transaction."""
    groups: list[list[Written]] = []

    def noting(items: Items, **options: Any) -> Transaction[list[Outcome]]:  # noqa: ANN401 - as given
        groups.append([item.written for item in items if isinstance(item, Append)])
        return write_group(items, **options)

    with patch.object(store, "write_group", noting):
        yield groups
