"""Queries and values of documents, validated before they reach a store."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from pydantic_core import from_json

from weft.errors import ExpressionError, UsageError
from weft.findings import Json
from weft.ports.documents import Collection, Document
from weft.spec.queries import (
    AllOf,
    FieldTest,
    QueryPart,
    equalities,
    is_field,
    kind_of,
    parse_query,
)

#: The largest document, as in MongoDB.
MOST_BYTES: Final = 16 * 1024 * 1024

_INDEX: Final = re.compile("[0-9]+")

#: The fields to return, as a tree; an empty subtree means the whole value.
_Tree: TypeAlias = dict[str, Any]


def require_field(name: str) -> None:
    """Refuse an invalid path."""
    if not is_field(name):
        raise UsageError(f"{name!r} is not a valid field", hint="write a name or a dotted path")


def require_order(order: str) -> None:
    """Refuse an invalid order."""
    if order:
        require_field(order.removeprefix("-"))


def paths_overlap(one: str, other: str) -> bool:
    """Return whether two paths are equal, or one contains the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def to_body(values: Mapping[str, Json]) -> str:
    """Return values as JSON text; raises UsageError for invalid ones."""
    try:
        text = json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        from_json(text.encode())  # too deeply nested, or invalid Unicode
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"a document cannot contain this: {error}") from error
    return text


def set_values(document: Document, values: Document) -> Document:
    """Set fields of a document, in place, by their paths."""
    for field, value in values.items():
        _set_path(document, field, value)
    return document


def _set_path(document: Document, field: str, value: Json) -> None:
    *way, last = field.split(".")
    place: Any = document
    for part in way:
        place = _step_into(place, part, field, {})
    if isinstance(place, dict):
        place[last] = value
    else:
        _step_into(place, last, field, value)
        place[int(last)] = value


def _step_into(place: Json, part: str, field: str, missing: Json) -> Json:
    """Return the value at a part of a path, created if it is missing."""
    if isinstance(place, dict):
        return cast("Document", place).setdefault(part, missing)
    if isinstance(place, list) and _INDEX.fullmatch(part) and len(part) < 9:
        items = cast("list[Json]", place)
        if int(part) == len(items):
            items.append(missing)
        if int(part) < len(items):
            return items[int(part)]
    there = kind_of(cast("Json", place))
    raise UsageError(f"{field} cannot be set: there is a {there} where {part} would be")


def projection_paths(fields: Sequence[str]) -> list[str]:
    """Return the paths of a projection, none inside another.

    A path ends before a number: fields inside lists are returned for all items or none.
    """
    for field in fields:
        require_field(field)
    paths: list[str] = []
    for field in sorted({_before_number(field) for field in fields}, key=len):
        if not any(paths_overlap(field, path) for path in paths):
            paths.append(field)
    return paths


def _before_number(field: str) -> str:
    first, *parts = field.split(".")
    until = next((at for at, part in enumerate(parts) if _INDEX.fullmatch(part)), len(parts))
    return ".".join((first, *parts[:until]))


def project(document: Document, paths: Sequence[str]) -> Document:
    """Return a document with the fields at these paths only."""
    tree: _Tree = {}
    for path in paths:
        branch = tree
        for part in path.split("."):
            branch = branch.setdefault(part, {})
    return cast("Document", _project_value(document, tree))


def _project_value(value: Json, tree: _Tree) -> Json:
    if not tree:
        return value
    if isinstance(value, list):
        items = cast("list[Json]", value)
        return [_project_value(item, tree) for item in items if _is_container(item)]
    inside = cast("Document", value)
    return {
        name: _project_value(value, tree[name])
        for name, value in inside.items()
        if name in tree and (not tree[name] or _is_container(value))
    }


def _is_container(value: Json) -> bool:
    """Return whether a value can contain others."""
    return isinstance(value, dict | list)


#: The default name of the tenant field.
TENANT_FIELD: Final = "app_id"

_NAME: Final = re.compile(r"(?!system\.)[^$\0]{1,120}")


@dataclass(frozen=True, slots=True)
class Tenant:
    """The tenant of a call, and the field that names it.

    The field belongs to the store: a query or a value may contain it only with the same tenant.
    """

    app: str
    field: str = TENANT_FIELD

    def is_tenant_field(self, field: str, value: Json) -> bool:
        """Return whether a field is the tenant field; refuse another tenant as its value."""
        if field != self.field and not field.startswith(f"{self.field}."):
            return False
        if field != self.field or value != self.app:
            raise UsageError(
                f"{field} is the tenant field, which must be {self.app!r} here",
                hint=f"leave {field} out, or name another in WEFT_DOCUMENTS_TENANT_FIELD",
            )
        return True


def require_tenant_field(name: str) -> None:
    """Refuse an invalid name of the tenant field."""
    if not is_field(name) or "." in name or name == "_id":
        raise UsageError(f"the tenant field cannot be {name!r}", hint="write a plain name")


def require_collection_name(collection: Collection) -> None:
    """Refuse invalid and reserved names of collections and databases."""
    for what, name in (("collection", collection.name), ("database", collection.database)):
        if name is not None and not _NAME.fullmatch(name):
            raise UsageError(
                f"invalid {what} name {name!r}",
                hint="use up to 120 letters, digits and other characters except $",
            )


def tenant_query(query: Mapping[str, Json], tenant: Tenant) -> AllOf:
    """Return a query without the tenant field, which the store always adds."""
    try:
        parsed = parse_query(query)
        to_body(query)
    except ExpressionError as error:
        raise UsageError(str(error), hint=error.hint) from error
    return AllOf(tuple(_without_tenant(part, tenant) for part in parsed.parts))


def _without_tenant(part: QueryPart, tenant: Tenant) -> QueryPart:
    if not isinstance(part, FieldTest):
        return type(part)(tuple(_without_tenant(child, tenant) for child in part.parts))
    meant = tenant.is_tenant_field(part.field, part.value if part.op == "$eq" else None)
    return AllOf(()) if meant else part


def split_update(
    query: Mapping[str, Json], values: Mapping[str, Json], tenant: Tenant
) -> tuple[Document, Document]:
    """Return the values of a new document from its query, and the values to set."""
    try:
        wanted = equalities(query)
    except ExpressionError as error:
        raise UsageError(str(error), hint=error.hint) from error
    found = {
        field: value for field, value in wanted.items() if not tenant.is_tenant_field(field, value)
    }
    given = {
        field: value for field, value in values.items() if not tenant.is_tenant_field(field, value)
    }
    _refuse_other_key(found, given)
    for field in given:
        require_field(field)
        if any(above in given for above in _parent_paths(field)):
            raise UsageError(f"{field} is set twice, as a whole and in part", hint="keep one")
    to_body(given)
    return found, given


def _parent_paths(field: str) -> list[str]:
    """Return the parent paths of a path."""
    parts = field.split(".")
    return [".".join(parts[:until]) for until in range(1, len(parts))]


def _refuse_other_key(found: Document, given: Document) -> None:
    key = found.get("_id")
    if "_id" in found and (not isinstance(key, str) or not key):
        raise UsageError(
            f"the key of a document must be text, not {key!r}", hint='write {"_id": "a"}'
        )
    if given.pop("_id", key) != key or any(field.startswith("_id.") for field in (*found, *given)):
        raise UsageError(
            "the key of a document cannot be set", hint="name it in the query: _id belongs there"
        )


def shown_address(url: str) -> str:
    """Return an address without user, password and options."""
    kind, _, rest = url.partition("://")
    return f"{kind}://{re.split('[/?]', rest.rpartition('@')[2])[0]}"
