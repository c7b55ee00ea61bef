"""Copies all rows of a store into another one, whatever their databases, and compares hashes."""

import re
from collections.abc import AsyncGenerator, Sequence
from functools import cache
from hashlib import sha256
from typing import Final, NamedTuple

from weft.adapters.sql.rows import column_names, insertion
from weft.adapters.sql.statements import Call, Row, Rows, Statement, Transaction, query
from weft.adapters.sql.store import ReadFrozen, SqlStore
from weft.adapters.sql.tables import TABLES
from weft.errors import StoreError

_TABLE: Final = re.compile(r"CREATE TABLE (\w+) \((.*)\)")
_COLUMN: Final = re.compile(r"(\w+) (text|bigint|double precision|\{bytes\}|\{serial\})")
_KEY: Final = re.compile(r"PRIMARY KEY \(([\w, ]+)\)|(\w+) (?:text PRIMARY KEY|\{serial\})")
_TYPES: Final = {"text": "text", "bigint": "number", "double precision": "real", "{bytes}": "bytes"}

#: How many rows are read at once, and of tables whose rows may be large.
_PAGE: Final = 500
_SMALL_PAGE: Final = 16
_LARGE: Final = frozenset({"blobs", "mail", "packages", "secret_answers", "snapshots"})

#: Written last: until then no run of an unfinished copy is listed, and none is claimed.
_LAST: Final = ("runs", "work")

#: Hashes of rows are added up, because databases sort texts in different orders.
_MODULUS: Final = 1 << 256

#: PostgreSQL replaces these characters in the first words of a run and in the reason of its end.
_REPLACED: Final = re.compile(r"\\x(?:00|1e|1f)|\ufffd")


class Table(NamedTuple):
    """A table, its columns with their types, and its key."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    #: Writes rows.
    insert: Statement

    def page(self, after: Row | None) -> Call:
        """Return the statement that reads rows after a key, each followed by its key."""
        names = ", ".join((*column_names(self.columns), *self.key))
        key = ", ".join(self.key)
        places = ", ".join(f"${number}" for number in range(2, len(self.key) + 2))
        where = "" if after is None else f"WHERE ({key}) > ({places})"
        size = _SMALL_PAGE if self.name in _LARGE else _PAGE
        return query(
            f"SELECT {names} FROM {self.name} {where} ORDER BY {key} LIMIT $1",  # noqa: S608 - ours
            (size, *(after or ())),
        )


class TableSum(NamedTuple):
    """How many rows a table has, and a hash of them in any order."""

    rows: int = 0
    hash: int = 0

    def add(self, rows: Sequence[Row]) -> "TableSum":
        """Return the sum with more rows."""
        texts = (_REPLACED.sub("", repr(row)).encode() for row in rows)
        total = sum((int.from_bytes(sha256(text).digest()) for text in texts), self.hash)
        return TableSum(self.rows + len(rows), total % _MODULUS)


@cache
def read_tables() -> list[Table]:
    """Return all tables, in the order they are copied.

    The number of mail is not a column: the database gives mail new numbers, in the same order.
    """
    found: dict[str, Table] = {}
    for sql in TABLES:
        table = _TABLE.match(" ".join(sql.split()))
        if table is None:
            continue
        name, body = table.groups()
        kinds = _COLUMN.findall(body)
        columns = tuple(f"{column}:{_TYPES[kind]}" for column, kind in kinds if kind in _TYPES)
        keys = _KEY.search(body)
        key = (keys[1] or keys[2]).split(", ") if keys else ()
        found[name] = Table(name, columns, tuple(key), insertion(name, columns))
    return sorted(found.values(), key=lambda table: table.name in _LAST)


async def copy_store(source: SqlStore, target: SqlStore) -> dict[str, int]:
    """Copy all rows at one moment; return the number of rows of each table.

    Raises StoreError if the target has rows, or has others than the source afterwards.
    """
    tables = read_tables()
    async with source.frozen() as read:
        sums = {table.name: await _copy_table(table, read, target) for table in tables}
    async with target.frozen() as read:
        for table in tables:
            found = TableSum()
            async for rows in _read_rows(table, read):
                found = found.add(rows)
            if found != sums[table.name]:
                raise StoreError(
                    f"{target.name} is not a copy: table {table.name} has {found.rows} rows "
                    f"instead of {sums[table.name].rows}, or different ones; remove it, and copy "
                    "again while no process uses it"
                )
    return {name: found.rows for name, found in sums.items()}


async def find_rows(store: SqlStore) -> str:
    """Return the name of a table that has rows; empty if none has."""
    async with store.frozen() as read:
        for table in read_tables():
            if await read(_fetch(table.page(None))):
                return table.name
    return ""


async def _copy_table(table: Table, read: ReadFrozen, target: SqlStore) -> TableSum:
    total = TableSum()
    async for rows in _read_rows(table, read):
        try:
            await target.load(_write(table.insert(rows)))
        except ValueError as error:
            raise StoreError(
                f"{target.name} cannot hold a row of table {table.name}: {error}"
            ) from error
        total = total.add(rows)
    return total


async def _read_rows(table: Table, read: ReadFrozen) -> AsyncGenerator[Rows]:
    """Yield the rows of a table, some at a time, in the order of its key."""
    after: Row | None = None
    width = len(table.columns)
    while rows := await read(_fetch(table.page(after))):
        yield [row[:width] for row in rows]
        after = rows[-1][width:]


def _fetch(call: Call) -> Transaction[Rows]:
    rows = yield call
    return rows


def _write(call: Call) -> Transaction[None]:
    yield [call]
