"""The text of statements for PostgreSQL, and their arguments.

The rows of a statement are one array for each column. Writes that follow one another become one
statement, as long as no table occurs twice in it: all parts of a statement see the same moment.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from weft.adapters.sql.statements import Call, Statement, expand

#: The time at which the transaction began, in milliseconds.
NOW: Final = "(extract(epoch FROM now()) * 1000)::bigint"

PARTS: Final = {
    "now": NOW,
    "join": "JOIN",
    # Both tables, since one that is joined and not locked is read as it was before the wait.
    "lock": "ORDER BY w.app, w.run FOR UPDATE OF w, r",
    "skip": "FOR UPDATE SKIP LOCKED",
    "share": "FOR KEY SHARE",
    "alone": "LOCK TABLE {} IN SHARE ROW EXCLUSIVE MODE",
    # Merged by index only if each SELECT has its order and its limit.
    "part": "(",
    "top": " {})",
    "unread": "NULL::bigint",
    "bytes": "bytea",
    "serial": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "growing": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    # Room in each page for the next version of its rows, which then needs no new index entries.
    "ordered": "WITH (fillfactor = 70)",
    "by": "",
    "size": "octet_length({})",
    "of_collection": "w.app = $1 AND w.collection = $2",
    # A query of its own is computed once, and not for each row.
    "matches": "w.words @@ (SELECT websearch_to_tsquery('weft_words', {}))",
    "rank": "ts_rank(w.words, (SELECT websearch_to_tsquery('weft_words', {})))",
    "words_column": ", words tsvector NOT NULL",
    "words_name": ", words",
    "words_value": ", to_tsvector('weft_words', x.plain)",
}

_TYPES: Final = {"text": "text", "number": "bigint", "real": "float8", "bytes": "bytea"}
_TYPE_OF: Final = {str: "text", int: "bigint", float: "float8", bytes: "bytea"}

#: Words of people, which are shown and nothing else. PostgreSQL has no character 0 in texts.
_WORDS: Final = frozenset({"preview", "reason"})
_UNSTORABLE: Final = re.compile("[\x00\x1e\x1f]")

#: Between the elements of an array, and in place of one that is NULL.
_SEPARATOR: Final = "\x1f"
_NOTHING: Final = "\x1e"

_VALUE: Final = re.compile(r"\$(\d+)")
_TABLE: Final = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)")


def table_text(sql: str) -> str:
    """Return the text that creates a table or an index; texts are compared byte by byte.

    >>> table_text("CREATE TABLE t (name text NOT NULL, content {bytes})")
    'CREATE TABLE t (name text COLLATE "C" NOT NULL, content bytea)'
    """
    return re.sub(r"\btext\b", 'text COLLATE "C"', expand(sql, PARTS))


def statement_text(call: Call) -> tuple[str, list[object]]:
    """Return the text of a statement, and its arguments."""
    return _text(call.statement, _types(call), 0), _arguments(call)


def merge_writes(calls: Sequence[Call]) -> Iterator[tuple[str, list[object]]]:
    """Yield the texts and arguments of few statements that do all writes."""
    group: list[Call] = []
    tables: set[str] = set()
    for call in calls:
        table = _table(call.statement)
        if table in tables:
            yield _merge(group)
            group, tables = [], set()
        if call.rows or not call.statement.columns:
            group.append(call)
            tables.add(table)
    if group:
        yield _merge(group)


def _merge(group: Sequence[Call]) -> tuple[str, list[object]]:
    if len(group) == 1:
        return statement_text(group[0])
    text = _merged_text(tuple((call.statement, _types(call)) for call in group))
    return text, [argument for call in group for argument in _arguments(call)]


class _Types(NamedTuple):
    """What the text of a statement depends on besides the statement."""

    values: tuple[type, ...]
    #: Whether it has several rows.
    many: bool


def _types(call: Call) -> _Types:
    return _Types(tuple(map(type, call.values)), len(call.rows) > 1)


@cache
def _merged_text(parts: tuple[tuple[Statement, _Types], ...]) -> str:
    texts: list[str] = []
    start = 0
    for statement, types in parts:
        texts.append(_text(statement, types, start))
        start += len(types.values) + len(statement.columns)
    # The last one is the main statement: a SELECT that nothing refers to would not be run.
    firsts = ", ".join(f"w{number} AS ({text})" for number, text in enumerate(texts[:-1]))
    last = texts[-1]
    if last.startswith("WITH "):
        return f"WITH {firsts}, {last.removeprefix('WITH ')}"
    return f"WITH {firsts} {last}"


@cache
def _text(statement: Statement, types: _Types, start: int) -> str:
    """Return the text of a statement whose arguments are numbered after `start`."""
    columns = [
        _column(number, type_, many=types.many)
        for number, type_ in enumerate(statement.types, start + len(types.values) + 1)
    ]
    names = ", ".join(statement.columns)
    row = ", ".join(columns)
    rows = f"SELECT * FROM unnest({row})" if types.many else f"SELECT {row}"  # noqa: S608 - ours
    parts = {
        **PARTS,
        "rows": rows,
        "x": f"WITH x ({names}) AS ({rows})",
        "keys": f"({names}) IN ({rows})" if types.many else f"({names}) = ({row})",
    }
    # The values are marked before the columns, which have numbers of their own, are put in.
    marked = _VALUE.sub(lambda found: _mark(int(found[1]), types.values, start), statement.sql)
    return expand(marked, parts)


def _column(number: int, type_: str, *, many: bool) -> str:
    """Return how a column of the row set is written.

    The driver takes longer to encode an array than to encode a text with all its elements.
    """
    name = _TYPES[type_]
    if not many or type_ == "bytes":
        return f"${number}::{name}{'[]' if many else ''}"
    array = f"string_to_array(${number}::text, E'\\x1f', E'\\x1e')"
    return array if type_ == "text" else f"{array}::{name}[]"


def _mark(number: int, types: tuple[type, ...], start: int) -> str:
    """Return how a value is written; PostgreSQL would guess its type by where it stands."""
    type_ = _TYPE_OF.get(types[number - 1])
    return f"${start + number}::{type_}" if type_ else f"${start + number}"


def _arguments(call: Call) -> list[object]:
    statement, rows, values = call
    arguments: list[object] = list(values)
    if len(rows) == 1:
        arguments += (
            _storable(value) if name in _WORDS else value
            for name, value in zip(statement.columns, rows[0], strict=True)
        )
    elif rows:
        columns = zip(*rows, strict=True)
        for name, type_, column in zip(statement.columns, statement.types, columns, strict=True):
            found = [_storable(text) for text in column] if name in _WORDS else column
            arguments.append(found if type_ == "bytes" else _array_text(found, type_))
    return arguments


def _array_text(values: Sequence[Any], type_: str) -> str:
    """Return the elements of an array as one text."""
    nothings = values.count(None)
    texts = values if type_ == "text" else map(str, values)
    if nothings:
        texts = [_NOTHING if value is None else str(value) for value in values]
    text = _SEPARATOR.join(texts)
    if text.count(_SEPARATOR) != len(values) - 1 or text.count(_NOTHING) != nothings:
        raise ValueError("a text has a control character that separates rows")
    return text


def _storable(text: str | None) -> str | None:
    return _UNSTORABLE.sub("\ufffd", text) if text else text


@cache
def _table(statement: Statement) -> str:
    found = _TABLE.search(statement.sql)
    return found[1] if found else ""
