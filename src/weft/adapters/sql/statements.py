"""SQL that is written once, and how each database gets its own form of it.

A transaction is a generator: it yields statements and receives their rows. SQLite drives it on a
thread, PostgreSQL in a coroutine, so that both decide alike. In the text of a statement

    $1, $2        are values
    {rows}        is the row set of the statement, as the source of an INSERT
    {x}           is `WITH x (columns) AS (row set)`
    {keys}        holds where the columns of the row set have the values of one of its rows
    {now}         is the time of the database
    {by NAME}     names the index to use, since a planner knows nothing of values
    {size COLUMN} is the size of a value in bytes
    {lock} {skip} lock the rows of a SELECT, waiting for others or passing over theirs
    {share}       locks the rows of a SELECT, which must not be deleted
    {alone TABLE} keeps other transactions from writing to a table
    {join}        joins tables in the order they are written
    {part} {top ORDER} begin and end one of several SELECTs that are merged in an order
    {unread}      counts the mail of the run `w`, or is NULL where only a later statement can
    {of_collection} holds for words `w` of the tenant $1 and the collection $2
    {matches QUERY} {rank QUERY} compare the words `w` of a passage with those of a query
    {words_name} {words_value} are the column of words, and the words in the column `plain`
    {bytes} {serial} {growing} {ordered} {words_column} are parts of tables
"""

import re
from collections.abc import Generator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = list[Row]

_PART: Final = re.compile(r"\{(\w+)(?: ([^{}]+))?\}")
_VALUE: Final = re.compile(r"\$(\d+)")


class Statement:
    """The text of a statement and the columns of its row set; those that are not text have a type.

    Where the rows depend on each other, the statement `is_whole`: it gets all of them at once.

    >>> Statement("{x} SELECT r.seq FROM x {join} runs r ON r.run = x.run", "run").columns
    ('run',)
    """

    __slots__ = ("columns", "has_now", "is_whole", "sql", "types", "values")

    def __init__(
        self, sql: str, columns: str | Sequence[str] = (), *, is_whole: bool = False
    ) -> None:
        parts = columns.split() if isinstance(columns, str) else columns
        self.sql = " ".join(sql.split())
        self.is_whole = is_whole
        self.columns = tuple(part.partition(":")[0] for part in parts)
        #: As in tables: text, number, real or bytes.
        self.types = tuple(part.partition(":")[2] or "text" for part in parts)
        self.has_now = "{now}" in self.sql
        #: How many values it has besides the row set.
        self.values = max((int(number) for number in _VALUE.findall(self.sql)), default=0)

    def __call__(self, rows: Sequence[Row] = (), *values: object) -> "Call":
        return Call(self, rows, values)


class Call(NamedTuple):
    """A statement with its row set and its values."""

    statement: Statement
    rows: Sequence[Row] = ()
    values: Sequence[object] = ()


#: Yields one statement and receives its rows, or a list of writes and receives nothing.
Transaction: TypeAlias = Generator[Call | list[Call], Rows, T]


_statement = lru_cache(512)(Statement)


def query(sql: str, values: Sequence[object] = ()) -> Call:
    """Return a statement without a row set."""
    return Call(_statement(sql), (), values)


class Terms:
    """Conditions that must all hold, and the values of their `$`, which get numbers in order.

    >>> str(Terms().add("app = $", "shop").add("(at, run) < ($, $)", 3, "r1"))
    'app = $1 AND (at, run) < ($2, $3)'
    """

    def __init__(self) -> None:
        self._terms: list[str] = []
        self.values: list[object] = []

    def add(self, term: str, *values: object) -> "Terms":
        """Add a condition."""
        self._terms.append(term)
        self.values += values
        return self

    def text(self, before: int = 0) -> str:
        """Return the conditions; `before` values have lower numbers."""
        numbers = count(before + 1)
        return re.sub(r"\$", lambda _: f"${next(numbers)}", " AND ".join(self._terms))

    __str__ = text


def expand(sql: str, parts: Mapping[str, str]) -> str:
    """Return the text of a statement with the parts of one database.

    >>> parts = {"now": "now()", "by": "INDEXED BY {}"}
    >>> expand("SELECT {now} FROM runs {by runs_by_app}", parts)
    'SELECT now() FROM runs INDEXED BY runs_by_app'
    """
    return _PART.sub(lambda part: parts[part[1]].format(part[2]), sql)
