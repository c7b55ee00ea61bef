"""What is asked of a store of documents, read and refused before it gets there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft.adapters.documents.values import as_body, refuse_no_field
from weft.errors import ExpressionError, UsageError
from weft.findings import Json
from weft.ports.documents import Collection, Document
from weft.spec.queries import AllOf, FieldTest, QueryPart, equalities, is_field, parse_query

#: The field that says whose a document is, where nobody says otherwise.
TENANT_FIELD: Final = "app_id"

_NAME: Final = re.compile(r"(?!system\.)[^$\0]{1,120}")


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose documents a call is about, and the field that says so.

    The field belongs to the store: a query or a value may name it only to say the same.
    """

    app: str
    field: str = TENANT_FIELD

    def is_meant(self, field: str, value: Json) -> bool:
        """Tell whether a field is that of the tenant; refuse a value that is not the tenant."""
        if field != self.field and not field.startswith(f"{self.field}."):
            return False
        if field != self.field or value != self.app:
            raise UsageError(
                f"{field} is the tenant's field, and here it is {self.app!r} and nothing else",
                hint=f"leave {field} out, or name another in WEFT_DOCUMENTS_TENANT_FIELD",
            )
        return True


def refuse_tenant_field(name: str) -> None:
    """Refuse a field for the tenant that no document can have."""
    if not is_field(name) or "." in name or name == "_id":
        raise UsageError(f"the tenant's field cannot be {name!r}", hint="write a plain name")


def refuse_name(collection: Collection) -> None:
    """Refuse names that no store can keep, and those a database has for itself."""
    for what, name in (("collection", collection.name), ("database", collection.database)):
        if name is not None and not _NAME.fullmatch(name):
            raise UsageError(
                f"{name!r} is no name of a {what}",
                hint="write up to 120 letters, digits and other characters, but no $",
            )


def asked(query: Mapping[str, Json], tenant: Tenant) -> AllOf:
    """Return a query without what it says of the tenant, which the store adds in any case."""
    try:
        parsed = parse_query(query)
        as_body(query)
    except ExpressionError as error:
        raise UsageError(str(error), hint=error.hint) from error
    return AllOf(tuple(_within(part, tenant) for part in parsed.parts))


def _within(part: QueryPart, tenant: Tenant) -> QueryPart:
    if not isinstance(part, FieldTest):
        return type(part)(tuple(_within(it, tenant) for it in part.parts))
    meant = tenant.is_meant(part.field, part.value if part.op == "$eq" else None)
    return AllOf(()) if meant else part


def written(
    query: Mapping[str, Json], values: Mapping[str, Json], tenant: Tenant
) -> tuple[Document, Document]:
    """Return what a new document has by its query, and what is set; both without the tenant."""
    try:
        wanted = equalities(query)
    except ExpressionError as error:
        raise UsageError(str(error), hint=error.hint) from error
    found = {it: value for it, value in wanted.items() if not tenant.is_meant(it, value)}
    given = {it: value for it, value in values.items() if not tenant.is_meant(it, value)}
    _refuse_other_key(found, given)
    for field in given:
        refuse_no_field(field)
        if any(it in given for it in _above(field)):
            raise UsageError(f"{field} is set twice: as a whole and in parts", hint="keep one")
    as_body(given)
    return found, given


def _above(field: str) -> list[str]:
    """Return the paths a path leads through."""
    parts = field.split(".")
    return [".".join(parts[:until]) for until in range(1, len(parts))]


def _refuse_other_key(found: Document, given: Document) -> None:
    key = found.get("_id")
    if "_id" in found and (not isinstance(key, str) or not key):
        raise UsageError(f"the key of a document is a text, not {key!r}", hint='write {"_id": "a"}')
    if given.pop("_id", key) != key or any(it.startswith("_id.") for it in (*found, *given)):
        raise UsageError(
            "the key of a document cannot be set", hint="name it in the query: _id belongs there"
        )
