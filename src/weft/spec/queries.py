"""Queries: conditions that select documents of a collection, as data that every store understands.

A query maps dotted fields to values. A value that is an object whose keys begin with `$` compares:

    {"status": "open", "total": {"$gt": 100, "$lte": 500}, "$or": [{"vip": true}, {"tags": "new"}]}

All entries must hold. There is nothing else: no code, no other operators, no way to other tenants.

Matching works as in MongoDB. Numbers, texts and booleans compare with their own kind only.
null equals a missing field, and `$ne` matches one. Where a field is a list, one of its items may
match as well as the whole; a path leads through a list into each of its objects, and a number in
a path is also the place of an item.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast, get_args

from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import nearest

Operator: TypeAlias = Literal["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$exists"]
OPERATORS: Final[tuple[str, ...]] = get_args(Operator)
_ORDERING: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}

#: The order of values of different kinds.
_KINDS_IN_ORDER: Final = ("null", "number", "text", "object", "list", "boolean")

#: How deep `$and` and `$or` may be nested.
MAX_DEPTH: Final = 8

#: Marks a missing field, which differs from null.
_MISSING: Final = object()

_EQUAL: Final = 'write {"customer_id": "{customer_id}"}'
_PLACE: Final = re.compile("0|[1-9][0-9]{0,8}")
_FIELD: Final = re.compile(r"[^$.\0][^.\0]*(\.[^$.\0][^.\0]*)*")


@dataclass(frozen=True, slots=True)
class FieldTest:
    """One comparison of the value at a dotted path."""

    field: str
    op: Operator
    value: Json


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part must hold; without parts it always does."""

    parts: tuple["QueryPart", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """One of the parts must hold."""

    parts: tuple["QueryPart", ...]


QueryPart: TypeAlias = FieldTest | AllOf | AnyOf


def parse_query(query: Mapping[str, Json], depth: int = 0) -> AllOf:
    """Parse a query; raise ExpressionError with the error and a hint."""
    if depth > MAX_DEPTH:
        raise ExpressionError(f"the query is nested more than {MAX_DEPTH} levels deep")
    parts: list[QueryPart] = []
    for key, value in query.items():
        if key in ("$and", "$or"):
            parts.append(_parse_group(key, value, depth))
        elif key.startswith("$"):
            raise _unknown_operator(key, ("$and", "$or"))
        else:
            parts += _parse_tests(key, value)
    return AllOf(tuple(parts))


def equalities(query: Mapping[str, Json]) -> dict[str, Json]:
    """Return the fields of a new document from a query with only equalities, at least one."""
    found: dict[str, Json] = {}
    if not query:
        raise ExpressionError("the query is empty, and would fit any document", hint=_EQUAL)
    for part in parse_query(query).parts:
        if not isinstance(part, FieldTest) or part.op != "$eq":
            raise ExpressionError(
                "a document is written by fields that equal something", hint=_EQUAL
            )
        found[part.field] = part.value
    return found


def matches_query(part: QueryPart, document: Mapping[str, Json]) -> bool:
    """Return whether a document matches a query."""
    if isinstance(part, AllOf):
        return all(matches_query(inner, document) for inner in part.parts)
    if isinstance(part, AnyOf):
        return any(matches_query(inner, document) for inner in part.parts)
    return _holds(part.op, list(_find_values(document, part.field.split("."))), part.value)


def sort_key(document: Mapping[str, Json], path: list[str]) -> tuple[int, Any]:
    """Return the key by which documents are sorted by a field."""
    value: Json = next(_find_values(cast("Json", document), path), None)
    kind = "null" if value is _MISSING else kind_of(value)
    rank = _KINDS_IN_ORDER.index(kind)
    return rank, value if kind in ("number", "text", "boolean") else 0


def is_field(name: str) -> bool:
    """Return whether a text is a field: a name, or names with points between them."""
    return _FIELD.fullmatch(name) is not None


def kind_of(value: Json) -> str:
    """Return the kind of a value; values compare only with their own kind."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case _:
            return "object"


def _find_values(value: Json, parts: list[str]) -> Iterator[Json]:
    """Yield the values at a path; a path through a list applies to each of its objects."""
    if not parts:
        yield value
    elif isinstance(value, Mapping):
        inside = cast("Mapping[str, Json]", value)
        yield from _find_values(inside[parts[0]], parts[1:]) if parts[0] in inside else (_MISSING,)
    elif isinstance(value, list):
        items = cast("list[Json]", value)
        for item in items:
            if isinstance(item, dict):
                yield from _find_values(cast("Json", item), parts)
        if _PLACE.fullmatch(parts[0]) and int(parts[0]) < len(items):
            yield from _find_values(items[int(parts[0])], parts[1:])
    else:
        yield _MISSING


def _holds(op: Operator, found: list[Json], wanted: Json) -> bool:
    match op:
        case "$exists":
            return any(value is not _MISSING for value in found) == wanted
        case "$ne":
            return not _holds("$eq", found, wanted)
        case "$in":
            return any(_holds("$eq", found, item) for item in cast("list[Json]", wanted))
        case _:
            return any(_compare(op, value, wanted) for value in _with_items(found))


def _with_items(values: list[Json]) -> Iterator[Json]:
    for value in values:
        yield value
        if isinstance(value, list):
            yield from cast("list[Json]", value)


def _compare(op: Operator, found: Json, wanted: Json) -> bool:
    if found is _MISSING:
        return op == "$eq" and wanted is None
    if op == "$eq":
        return _equal(found, wanted)
    if kind_of(found) != kind_of(wanted):
        return False
    return _ORDERING[op](found, wanted)


def _equal(one: Json, other: Json) -> bool:
    """Return whether two values are equal; objects differ if their fields have another order."""
    kind = kind_of(one)
    if kind != kind_of(other):
        return False
    if kind == "list":
        items, more = cast("list[Json]", one), cast("list[Json]", other)
        return len(items) == len(more) and all(map(_equal, items, more))
    if kind == "object":
        fields, others = cast("dict[str, Json]", one), cast("dict[str, Json]", other)
        return list(fields) == list(others) and all(map(_equal, fields.values(), others.values()))
    return one == other


def _parse_group(key: str, value: Json, depth: int) -> QueryPart:
    items = cast("list[Json]", value) if isinstance(value, list) else []
    if not items or not all(isinstance(item, dict) for item in items):
        raise ExpressionError(f"{key} is a list of queries", hint=f'write {{"{key}": [{{...}}]}}')
    parts = tuple(parse_query(cast("dict[str, Json]", item), depth + 1) for item in items)
    return AllOf(parts) if key == "$and" else AnyOf(parts)


def _parse_tests(field: str, value: Json) -> list[FieldTest]:
    if not is_field(field):
        raise ExpressionError(
            f"{field!r} is not a valid field", hint="write a name or a dotted path"
        )
    compared = cast("dict[str, Json]", value) if isinstance(value, dict) else {}
    if not any(key.startswith("$") for key in compared):
        return [FieldTest(field, "$eq", cast("Json", value))]
    tests: list[FieldTest] = []
    for op, wanted in compared.items():
        if op not in OPERATORS:
            raise _unknown_operator(op, OPERATORS)
        if op == "$in" and not isinstance(wanted, list):
            raise ExpressionError("$in compares with a list", hint='write {"$in": ["a", "b"]}')
        if op == "$exists" and not isinstance(wanted, bool):
            raise ExpressionError("$exists is true or false")
        if op in _ORDERING and kind_of(cast("Json", wanted)) not in ("number", "text"):
            raise ExpressionError(f"{op} compares with a number or a text, not {wanted!r}")
        tests.append(FieldTest(field, cast("Operator", op), cast("Json", wanted)))
    return tests


def _unknown_operator(op: str, known: tuple[str, ...]) -> ExpressionError:
    near = nearest(op, known)
    hint = f"did you mean {near}?" if near else f"available: {', '.join(known)}"
    return ExpressionError(f"a query has no {op}", hint=hint)
