"""The values of documents, the same in every store: what fits in, what is set, what is taken."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from pydantic_core import from_json

from weft.errors import UsageError
from weft.findings import Json
from weft.ports.documents import Document
from weft.spec.queries import is_field, kind_of

#: How large a document may be, as in MongoDB.
MOST_BYTES: Final = 16 * 1024 * 1024

_PLACE: Final = re.compile("[0-9]+")

#: What is taken of a document: the whole where there is nothing further down.
_Tree: TypeAlias = dict[str, Any]


def refuse_no_field(name: str) -> None:
    """Refuse a text that is no path into a document."""
    if not is_field(name):
        raise UsageError(f"{name!r} is no field", hint="write a name or a dotted path")


def overlap(one: str, other: str) -> bool:
    """Tell whether two paths lead to the same place, or one into the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def as_body(values: Mapping[str, Json]) -> str:
    """Return values as JSON text; refuse what no document can hold."""
    try:
        text = json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        from_json(text.encode())  # what could not be read again is too deep, or half a character
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"a document cannot hold this: {error}") from error
    return text


def with_values(document: Document, values: Document) -> Document:
    """Set fields of a document, in place, by their paths."""
    for field, value in values.items():
        _set(document, field, value)
    return document


def _set(document: Document, field: str, value: Json) -> None:
    *way, last = field.split(".")
    place: Any = document
    for part in way:
        place = _step(place, part, field, {})
    if isinstance(place, dict):
        place[last] = value
    else:
        _step(place, last, field, value)
        place[int(last)] = value


def _step(place: Json, part: str, field: str, missing: Json) -> Json:
    """Return what stands at a part of a path; what is not there yet is made."""
    if isinstance(place, dict):
        return cast("Document", place).setdefault(part, missing)
    if isinstance(place, list) and _PLACE.fullmatch(part) and len(part) < 9:
        items = cast("list[Json]", place)
        if int(part) == len(items):
            items.append(missing)
        if int(part) < len(items):
            return items[int(part)]
    there = kind_of(cast("Json", place))
    raise UsageError(f"{field} cannot be set: there is a {there} where {part} would be")


def kept_paths(fields: Sequence[str]) -> list[str]:
    """Return the paths to take of a document, none inside another.

    A path ends before a number: what is inside lists is taken of every item or of none.
    """
    for field in fields:
        refuse_no_field(field)
    paths: list[str] = []
    for field in sorted({_before_number(it) for it in fields}, key=len):
        if not any(overlap(field, it) for it in paths):
            paths.append(field)
    return paths


def _before_number(field: str) -> str:
    first, *parts = field.split(".")
    until = next((at for at, part in enumerate(parts) if _PLACE.fullmatch(part)), len(parts))
    return ".".join((first, *parts[:until]))


def projected(document: Document, paths: Sequence[str]) -> Document:
    """Return a document with what stands at these paths only."""
    tree: _Tree = {}
    for path in paths:
        branch = tree
        for part in path.split("."):
            branch = branch.setdefault(part, {})
    return cast("Document", _taken(document, tree))


def _taken(value: Json, tree: _Tree) -> Json:
    if not tree:
        return value
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return [_taken(it, tree) for it in items if _is_wide(it)]
    inside = cast("Document", value)
    return {
        name: _taken(it, tree[name])
        for name, it in inside.items()
        if name in tree and (not tree[name] or _is_wide(it))
    }


def _is_wide(value: Json) -> bool:
    """Tell whether a path can lead further."""
    return isinstance(value, dict | list)
