"""The index of documents: a text for each of their values, and the ranges that a query looks for.

The index only narrows the candidates and `matches_query` decides, so that all stores agree. A value
that is not less than another never has a lesser text, and equal values have the same text.
"""

import math
import re
from collections.abc import Iterator
from fractions import Fraction
from hashlib import blake2b
from typing import Final, TypeAlias, cast

from weft.findings import Json
from weft.ports.documents import Document
from weft.spec.queries import AllOf, AnyOf, FieldTest, QueryPart, kind_of

#: Tenant, database and collection.
Place: TypeAlias = tuple[str, str, str]

#: The number of a field, and the text of a value.
Entry: TypeAlias = tuple[int, str]

#: The number of a field, and the first and the last text that its value may have.
Range: TypeAlias = tuple[int, str, str]

#: The text of a list, whose items must be examined.
_EXAMINE: Final = "~"

#: A document with more values is a candidate for every query.
MOST_ENTRIES: Final = 300

#: The most ranges of a search; a part of the query with more does not narrow it.
MOST_RANGES: Final = 300

#: Numbers beyond the limit have the text of the limit.
_LIMIT: Final = 10**15
_DECIMALS: Final = 10**6
_DIGITS: Final = len(str(2 * _LIMIT * _DECIMALS))

#: The part of a text that is compared. Control characters sort before all others, so a text can be
#: cut before the first one; not every database can store them.
_COMPARED: Final = re.compile(r"[^\x00-\x1f]{0,100}")


def entries_of(place: Place, key: str, document: Document) -> set[Entry]:
    """Return the entries of a document."""
    values = [("_id", value_text(key)), *_value_texts(document, "")]
    if len(values) > MOST_ENTRIES:
        return {(_number(place, None), _EXAMINE)}
    return {(_number(place, path), text) for path, text in values}


def _value_texts(document: Document, before: str) -> Iterator[tuple[str, str]]:
    for name, value in document.items():
        if isinstance(value, dict):
            yield from _value_texts(cast("Document", value), f"{before}{name}.")
        elif value is not None:
            yield f"{before}{name}", value_text(value)


def value_text(value: Json) -> str:
    """Return the text of a value that is neither null nor an object.

    >>> value_text("Rome"), value_text(True), value_text([1])
    ('sRome', 'bTrue', '~')
    >>> value_text(-2) < value_text(1) == value_text(1.0) < value_text(10)
    True
    """
    match value:
        case bool():
            return f"b{value}"
        case int() | float():
            number = Fraction(min(max(value, -_LIMIT), _LIMIT)) + _LIMIT
            return f"n{math.floor(number * _DECIMALS):0{_DIGITS}}"
        case str():
            found = _COMPARED.match(value)
            return f"s{found[0] if found else ''}"
        case _:
            return _EXAMINE


def _number(place: Place, path: str | None) -> int:
    """Return the number of a field; that of all fields is of a document with many values."""
    name = repr((*place[1:], path))
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)


def ranges_of(place: Place, query: QueryPart) -> list[tuple[int, int, str, str]]:
    """Return the ranges of a query, each with the number of its part.

    A candidate has a value in a range of each part. Without any, all documents are candidates.
    """
    found: list[tuple[int, int, str, str]] = []
    for part, ranges in enumerate(sorted(_parts(place, query), key=len)):
        if len(found) + len(ranges) <= MOST_RANGES:
            found += [(part, *range_) for range_ in ranges]
    return found


def _parts(place: Place, query: QueryPart) -> list[frozenset[Range]]:
    if isinstance(query, AnyOf):
        parts = [_parts(place, part) for part in query.parts]
        if not all(parts):
            return []
        # One part of each alternative: what meets the alternative meets all of them.
        return [frozenset[Range]().union(*(min(part, key=len) for part in parts))]
    if isinstance(query, FieldTest):
        query = AllOf((query,))
    found = [
        ranges
        for part in query.parts
        if isinstance(part, AllOf | AnyOf)
        for ranges in _parts(place, part)
    ]
    bounds: dict[str, tuple[str, str]] = {}
    for test in query.parts:
        if not isinstance(test, FieldTest) or not _is_narrow(test):
            continue
        if test.op in ("$eq", "$in"):
            wanted = cast("list[Json]", test.value) if test.op == "$in" else [test.value]
            texts = map(value_text, wanted)
            found.append(_ranges(place, test.field, [(text, text) for text in texts]))
        else:  # Between two values: all bounds of a field are one range.
            first, last = _bounds(test.op, test.value)
            known = bounds.get(test.field, (first, last))
            bounds[test.field] = max(first, known[0]), min(last, known[1])
    return [*found, *(_ranges(place, field, [bound]) for field, bound in bounds.items())]


def _is_narrow(test: FieldTest) -> bool:
    """Return whether the index has what a test looks for: it has no null and no objects."""
    wanted = cast("list[Json]", test.value) if test.op == "$in" else [test.value]
    kinds = {kind_of(value) for value in wanted}
    return test.op not in ("$ne", "$exists") and kinds.isdisjoint(("null", "object"))


def _ranges(place: Place, field: str, bounds: list[tuple[str, str]]) -> frozenset[Range]:
    """Return the ranges of a field, with those of lists on the way to it."""
    names = field.split(".")
    paths = [".".join(names[:until]) for until in range(1, len(names) + 1)]
    examined = [(_number(place, path), _EXAMINE, _EXAMINE) for path in (None, *paths)]
    number = _number(place, field)
    return frozenset([*examined, *((number, first, last) for first, last in bounds)])


def _bounds(op: str, value: Json) -> tuple[str, str]:
    text = value_text(value)
    kind = text[0]
    return (text, chr(ord(kind) + 1)) if op in ("$gt", "$gte") else (kind, text)
