"""Documents in a SQL database: all methods of the port, each one transaction.

A database adds how transactions are run, and how it hears of other processes. Of every tenant the
last 10,000 changes are kept.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, TypeVar

from weft.adapters.documents.index import Place
from weft.adapters.documents.requests import (
    TENANT_FIELD,
    Tenant,
    project,
    projection_paths,
    require_collection_name,
    require_order,
    require_tenant_field,
    split_update,
    tenant_query,
)
from weft.adapters.documents.rows import (
    changes_after,
    count_documents,
    delete_document,
    find_documents,
    last_change,
    page_of_documents,
    put_document,
)
from weft.adapters.sql.statements import Transaction
from weft.errors import StoreError, UsageError
from weft.findings import Json
from weft.ports.documents import Change, Collection, Document
from weft.ports.scope import Scope

#: Seconds after a lost connection, before changes are read again.
RECONNECT: Final = 0.1

T = TypeVar("T")


class SqlDocuments(ABC):
    """The documents port over one database. Belongs to the event loop that it is used in."""

    def __init__(self, name: str, *, tenant_field: str = TENANT_FIELD) -> None:
        require_tenant_field(tenant_field)
        #: What the database is called in messages.
        self._name = name
        self._tenant_field = tenant_field
        self._watching: set[asyncio.Event] = set()
        self._closed = False

    # -- what a database adds

    @abstractmethod
    async def opened(self) -> object:
        """Open the database now; raises StoreError if it cannot be used."""

    @abstractmethod
    async def _read(self, transaction: Transaction[T], app: str) -> T:
        """Run a transaction that reads documents of a tenant."""

    @abstractmethod
    async def _write(self, transaction: Transaction[T], app: str) -> T:
        """Run a transaction that writes documents of a tenant, one at a time."""

    @abstractmethod
    async def _watch(self) -> None:
        """Begin to look for what other processes write."""

    @abstractmethod
    async def _close(self) -> None:
        """Close the connections."""

    # -- documents

    async def find(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        *,
        fields: Sequence[str] = (),
    ) -> Document | None:
        found = await self.find_many(scope, collection, query, fields=fields, limit=1)
        return found[0] if found else None

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
        tenant, place = self._place(scope, collection)
        wanted, paths = tenant_query(query, tenant), projection_paths(fields)
        require_order(order)
        found = await self._ask(find_documents(place, wanted, order, limit), place)
        if not paths:
            return found
        return [project({**each, tenant.field: tenant.app}, paths) for each in found]

    async def page(
        self, scope: Scope, collection: Collection, *, after: str | None = None, limit: int = 50
    ) -> list[Document]:
        _, place = self._place(scope, collection)
        return await self._ask(page_of_documents(place, after or "", limit), place)

    async def collections(
        self, scope: Scope, *, database: str | None = None
    ) -> list[tuple[Collection, int]]:
        place = (scope.app, database or "", "")
        rows = await self._ask(count_documents(scope.app, database or ""), place)
        return [(Collection(name, database), count) for name, count in rows]

    async def put(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        values: Mapping[str, Json],
    ) -> str:
        tenant, place = self._place(scope, collection)
        wanted, (found, given) = tenant_query(query, tenant), split_update(query, values, tenant)
        return await self._change(put_document(place, wanted, found, given), place)

    async def delete(self, scope: Scope, collection: Collection, key: str) -> bool:
        _, place = self._place(scope, collection)
        return await self._change(delete_document(place, key), place)

    async def watch(
        self, scope: Scope, collection: Collection, *, after: str | None = None
    ) -> AsyncGenerator[Change]:
        _, place = self._place(scope, collection)
        if after is not None and not (after.isascii() and after.isdecimal()):
            raise UsageError(
                f"invalid position {after!r}", hint="use the position of an earlier change"
            )
        news = asyncio.Event()
        self._watching.add(news)
        try:
            position = await self._ask(last_change(place), place) if after is None else int(after)
            await self._watch()
            while True:
                news.clear()
                rows = await self._changes(place, position)
                for seq, change in rows:
                    position = seq
                    if change is not None:
                        yield change
                if not rows:
                    await news.wait()
        finally:
            self._watching.discard(news)

    async def _changes(self, place: Place, position: int) -> list[tuple[int, Change | None]]:
        """Return the changes after a position; asks again once if the connection was lost."""
        try:
            return await self._ask(changes_after(place, position), place)
        except StoreError as error:
            if not error.retryable:
                raise
            await asyncio.sleep(RECONNECT)
            return await self._ask(changes_after(place, position), place)

    async def position(self, scope: Scope, collection: Collection) -> str:
        _, place = self._place(scope, collection)
        return str(await self._ask(last_change(place), place))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._wake_watchers()
            await self._close()

    def _place(self, scope: Scope, collection: Collection) -> tuple[Tenant, Place]:
        require_collection_name(collection)
        place = scope.app, collection.database or "", collection.name
        return Tenant(scope.app, self._tenant_field), place

    async def _ask(self, transaction: Transaction[T], place: Place) -> T:
        self._refuse_if_closed()
        try:
            return await self._read(transaction, place[0])
        except ValueError as error:
            raise self._unfit(error) from error

    async def _change(self, transaction: Transaction[T], place: Place) -> T:
        self._refuse_if_closed()
        try:
            result = await self._write(transaction, place[0])
        except ValueError as error:
            raise self._unfit(error) from error
        self._wake_watchers()
        return result

    def _unfit(self, error: ValueError) -> UsageError:
        return UsageError(f"{self._name} cannot store this: {error}")

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError(f"{self._name}: the store is closed; open it again")

    def _wake_watchers(self) -> None:
        for news in self._watching:
            news.set()
