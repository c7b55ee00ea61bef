"""Metadata of sources as labels, and filters on them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, cast

from weft.errors import RetrievalError
from weft.findings import Json

#: A number for each filter, and a key and a value that meet it.
FilterRow = tuple[int, str, str]

#: The sources of the tenant $1 and the collection $2 that meet all $3 filters in the row set.
FITTING: Final = """
    SELECT l.source FROM x {join} source_labels l
    ON l.app = $1 AND l.collection = $2 AND l.key = x.key AND l.value = x.value
    GROUP BY l.source HAVING count(DISTINCT x.part) = $3
"""
FITTING_COLUMNS: Final = "part:number key value"

_MOST_VALUES: Final = 500

#: Longer values are compared by their digests: the key of an index is limited.
_MOST_CHARACTERS: Final = 500


def require_filters(filters: Mapping[str, Json], known: Sequence[str], name: str) -> None:
    """Refuse filters with unknown keys or invalid values."""
    for key, value in filters.items():
        if key not in known:
            keys = f"available: {', '.join(known)}" if known else "it is empty"
            raise RetrievalError(f'no passage of {name} has the key "{key}"', hint=keys)
        values = cast("list[Json]", value) if isinstance(value, list) else [value]
        if len(values) > _MOST_VALUES or not all(_is_plain(value) for value in values):
            raise RetrievalError(
                f'invalid value for the filter "{key}"',
                hint=f"use a text, a number, true, false, null, or up to {_MOST_VALUES} of these",
            )


def filter_rows(filters: Mapping[str, Json]) -> list[FilterRow]:
    """Return the labels that meet each filter; sources must meet all filters."""
    found: list[FilterRow] = []
    for part, (key, value) in enumerate(filters.items()):
        values = cast("list[Json]", value) if isinstance(value, list) else [value]
        texts = sorted({text for value in values for text in _stored_forms(value)})
        found += [(part, key, text) for text in texts]
    return found


def labels(metadata: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the labels of metadata; each item of a list is one."""
    for key, value in metadata.items():
        for item in cast("list[Json]", value) if isinstance(value, list) else [value]:
            yield key, value_text(item)


def _stored_forms(value: Json) -> Iterator[str]:
    """Yield the forms in which a value may be stored: "2026" also as a number.

    Metadata from a command line, JSON or Python means the same by "2026" and 2026.
    """
    yield value_text(value)
    if isinstance(value, str):
        try:
            spelt = json.loads(value, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            return
        if isinstance(spelt, int | float):
            yield value_text(spelt)
    elif value is not None:
        yield value_text(value_text(value))


def _refuse_constant(name: str) -> Json:
    raise ValueError(name)


def value_text(value: Json) -> str:
    """Return the text of a value for comparisons."""
    # A whole number is the same number with a point: 1.0 is 1 for JSON and for Python.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(text) > _MOST_CHARACTERS:
        text = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
    return text


def _is_plain(value: Json) -> bool:
    return value is None or isinstance(value, str | int | float | bool)
