"""Documents: records of a tenant's own, found by their contents.

The tenant is part of every call: a store adds it to what is looked for and to what is written, and
no query can take it out or look past it. A store may keep it in a field of the documents; it is
shown only if it is asked for by name, and a query that names it can only name the same tenant.

Stores that other programs write to as well, such as MongoDB, cannot promise everything. They may
not know which document was written last, and take the one with the greatest key. A key may be taken
by a document that cannot be seen, which is a StoreConflict. A deletion is reported only if the
owner of the document is known.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from weft.findings import Json
from weft.ports.scope import Scope

Document: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Collection:
    """Where documents are; no database means that of the workspace."""

    name: str
    database: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A document that was written, as it is when the change is reported; None if it was deleted.

    Later changes may be in it already. `position` is where to go on watching after it.
    """

    kind: Literal["put", "deleted"]
    key: str
    document: Document | None
    position: str


class Documents(Protocol):
    """A store of documents. Each has a key of its own within its collection, kept in `_id`.

    All methods raise StoreError, which says whether trying again may help; a query that cannot be
    asked is a UsageError.
    """

    async def find(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),
    ) -> Document | None:
        """Return the document a query fits, the one that was written last of several.

        A query is what `weft.spec.queries` reads. `fields` are dotted paths: the document then has
        these only. A path that goes on into a list takes the same of each of its items; where it
        goes on with a number, all that is there.
        """
        ...

    async def find_many(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),
        order: str = "",
        limit: int = 20,
    ) -> list[Document]:
        """Return the documents a query fits: the last written first, or sorted by a field.

        `order` is a dotted path, with `-` before it for the greatest first. Missing values come
        before numbers, then texts, then other kinds.
        """
        ...

    async def page(
        self, scope: Scope, collection: Collection, *, after: str | None = None, limit: int = 50
    ) -> list[Document]:
        """Return documents by key, from after a key on."""
        ...

    async def collections(
        self, scope: Scope, *, database: str | None = None
    ) -> list[tuple[Collection, int]]:
        """Return the collections a tenant has in a database, and how many documents are in each."""
        ...

    async def put(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        values: Mapping[str, Json],
    ) -> str:
        """Set fields of the document a query fits, or make one of both; return its key.

        The query is of equalities only, so that it says what a new document has; values are set by
        dotted paths. Doing it twice is the same as doing it once, also at the same time.
        """
        ...

    async def delete(self, scope: Scope, collection: Collection, key: str) -> bool:
        """Remove a document; False if there was none."""
        ...

    def watch(
        self, scope: Scope, collection: Collection, *, after: str | None = None
    ) -> AsyncGenerator[Change]:
        """Yield what changes in a collection from now on, or from after a position.

        Changes are kept for a while; an older position is a StoreError.
        """
        ...

    async def position(self, scope: Scope, collection: Collection) -> str:
        """Return the position from which `watch` yields what is written from now on."""
        ...

    async def close(self) -> None:
        """Let go of everything."""
        ...
