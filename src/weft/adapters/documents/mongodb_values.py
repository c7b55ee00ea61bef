"""Converts values of MongoDB to JSON, and its errors to errors of the port without passwords.

Dates become ISO 8601 text, decimals numbers, and identifiers, binary values and everything else
text. A text in a query matches every value that is shown as this text, such as a date.
"""

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, cast
from uuid import UUID

from bson import Decimal128, ObjectId, Timestamp
from pymongo import errors

from weft.errors import StoreConflict, StoreError, UsageError
from weft.findings import Json
from weft.spec.queries import AnyOf, FieldTest, QueryPart

#: The kinds of keys, in the order MongoDB sorts them.
_KINDS: Final[tuple[tuple[str, type | tuple[type, ...]], ...]] = (
    ("bool", bool),  # sorted below, but found first: for Python it is a number
    ("number", (int, float, Decimal128)),
    ("string", str),
    ("object", dict),
    ("binData", (bytes, UUID)),
    ("objectId", ObjectId),
    ("date", datetime),
)
_SORTED: Final = ("number", "string", "object", "binData", "objectId", "bool", "date")

#: Whole numbers up to this limit are written without a point.
_EXACT: Final = 2**53

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")


def as_json(value: Any) -> Json:  # noqa: ANN401 - whatever a database holds
    """Return a value of a database as JSON."""
    if isinstance(value, dict):
        return {str(key): as_json(inside) for key, inside in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [as_json(item) for item in cast("list[Any]", value)]
    if value is None or isinstance(value, bool):
        return value
    return next(
        (convert(value) for kind, convert in _CONVERT if isinstance(value, kind)), str(value)
    )


def as_key(value: Any) -> str:  # noqa: ANN401 - whatever a database holds
    """Return a key as text; keys of other types as JSON."""
    shown = as_json(value)
    return shown if isinstance(shown, str) else json.dumps(shown)


def key_forms(key: str) -> list[Json]:
    """Return the possible keys that are shown as a text."""
    found: list[Json] = [*_forms(key)]
    with suppress(ValueError):
        found.append(UUID(key))
    with suppress(ValueError):
        found.append(b64decode(key, validate=True))
    with suppress(ValueError, RecursionError):
        value: Json = json.loads(key)
        if isinstance(value, dict | float) or (isinstance(value, int) and abs(value) < 2**63):
            found.append(cast("Json", value))
    return found


def after_key(key: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever a database holds
    """Return the filter for keys after one, including keys of later types."""
    kind = next(name for name, types in _KINDS if isinstance(key, types))
    later = _SORTED[_SORTED.index(kind) + 1 :]
    return {"$or": [{"_id": {"$gt": key}}, *({"_id": {"$type": kind}} for kind in later)]}


def as_filter(part: QueryPart) -> dict[str, Any]:
    """Return a query for MongoDB; values are never read as operators."""
    if isinstance(part, FieldTest):
        return _test(part)
    name = "$or" if isinstance(part, AnyOf) else "$and"
    return {name: [as_filter(child) for child in part.parts]} if part.parts else {}


def _test(test: FieldTest) -> dict[str, Any]:
    forms: Callable[[str], list[Json]] = key_forms if test.field == "_id" else _forms
    wanted = cast("list[Json]", test.value) if test.op == "$in" else [test.value]
    found = [
        form for value in wanted for form in (forms(value) if isinstance(value, str) else [value])
    ]
    match test.op:
        case "$eq" | "$in":
            return {test.field: {"$in": found}}
        case "$ne":
            return {test.field: {"$nin": found}}
        case _:
            return {"$or": [{test.field: {test.op: value}} for value in found]}


def _forms(text: str) -> list[Json]:
    found: list[Json] = [text]
    if ObjectId.is_valid(text) and len(text) == 24:
        found.append(ObjectId(text))
    if _DATE.fullmatch(text):
        with suppress(ValueError):  # such as the 31st of February
            found.append(datetime.fromisoformat(text))
    return found


def _number(value: Decimal128) -> Json:
    number = float(value.to_decimal())
    if not math.isfinite(number):
        return str(value)
    return int(number) if number.is_integer() and abs(number) <= _EXACT else number


def _date(value: datetime) -> str:
    return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _float(value: float) -> Json:
    return value if math.isfinite(value) else str(value)


#: Converters by type; other types are shown as Python writes them.
_CONVERT: Final[tuple[tuple[type, Callable[[Any], Json]], ...]] = (
    (int, int),
    (float, _float),
    (Decimal128, _number),
    (datetime, _date),
    (Timestamp, lambda stamp: _date(stamp.as_datetime())),
    (bytes, lambda raw: b64encode(raw).decode()),
)


#: Error codes of invalid documents or paths, and of positions that have expired.
_INVALID: Final = frozenset({2, 9, 28, 40, 52, 54, 55, 57, 66, 260, 10334, 17280, 17419})
_DENIED: Final = frozenset({13, 18, 8000})
_EXPIRED: Final = frozenset({280, 286})

#: Error codes of a server that is stopping, starting or changing its role.
_TRANSIENT: Final = frozenset({6, 7, 50, 89, 91, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436})


def to_port_error(
    error: errors.PyMongoError, address: str, *, writing: bool = False
) -> StoreError | UsageError:
    """Return the error of the port for an error of the library."""
    said = re.split(r", (?:full error|Timeout): | \(configured timeouts", str(error))[0]
    where = f"documents {address}: "
    code = error.code if isinstance(error, errors.OperationFailure) else None
    if isinstance(error, errors.DuplicateKeyError):
        return StoreConflict(f"{where}a document with this key already exists; use another key")
    if code in _EXPIRED:
        return StoreError(
            f"{where}the changes after this position are gone; read the collection again and "
            "watch from now on"
        )
    if code in _DENIED:
        return StoreError(f"{where}the user, password or permissions were refused ({said})")
    if code in _INVALID or isinstance(error, errors.DocumentTooLarge):
        return UsageError(f"MongoDB refuses this: {said}")
    lost = isinstance(error, errors.ConnectionFailure)
    passing = lost or code in _TRANSIENT or error.has_error_label("RetryableWriteError")
    return StoreError(f"{where}{said}", retryable=passing, uncertain=lost and writing)
