"""Documents in a MongoDB database, which other programs may share.

Every document has a field with its tenant. Keys may be of any type and are shown as text. If
several documents match, the one with the greatest `_id` is used: MongoDB does not know which was
written last, and no field is added to find out. A new document without a key gets a key derived
from its query, so that two concurrent writers create one document. The database owns its indexes.

Deletions are reported only in collections with `changeStreamPreAndPostImages`: without the deleted
document, its tenant is unknown.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import blake2b
from typing import Any, Final
from uuid import uuid4

from pydantic_core import to_json

from weft.adapters.documents.requests import (
    TENANT_FIELD,
    Tenant,
    paths_overlap,
    projection_paths,
    require_collection_name,
    require_order,
    require_tenant_field,
    shown_address,
    split_update,
    tenant_query,
)
from weft.errors import SetupError, StoreConflict, StoreError, UsageError
from weft.findings import Json
from weft.ports.documents import Change, Collection, Document
from weft.ports.scope import Scope
from weft.spec.queries import AllOf

try:
    from bson.binary import UuidRepresentation
    from bson.codec_options import CodecOptions, DatetimeConversion
    from bson.errors import BSONError
    from pymongo import AsyncMongoClient, ReturnDocument, errors
    from pymongo.asynchronous.change_stream import AsyncCollectionChangeStream
    from pymongo.asynchronous.collection import AsyncCollection

    from weft.adapters.documents.mongodb_values import (
        after_key,
        as_filter,
        as_json,
        as_key,
        key_forms,
        to_port_error,
    )
except ImportError as error:
    raise SetupError(
        f"MongoDB needs a library that is not installed: {error.name or error}",
        hint='install it: pip install "weft-agents[mongodb]"',
    ) from error

#: The default database.
DATABASE: Final = "weft"

#: Databases of the server itself.
_SERVER_DATABASES: Final = frozenset({"admin", "config", "local"})


class MongoDocuments:
    """The documents port over a database; the connection is made with the first call.

    `connect_seconds` limits the search for a server, `answer_seconds` each of its answers. Raises
    UsageError for an invalid address. Belongs to the event loop it is used in.
    """

    def __init__(
        self,
        url: str,
        *,
        tenant_field: str = TENANT_FIELD,
        connect_seconds: float = 3.0,
        answer_seconds: float = 10.0,
    ) -> None:
        require_tenant_field(tenant_field)
        self._address = shown_address(url)
        self._tenant_field = tenant_field
        self._answer_seconds = answer_seconds
        self._closed = False
        try:
            self._client = AsyncMongoClient[dict[str, Any]](
                url,
                serverSelectionTimeoutMS=round(connect_seconds * 1000),
                connectTimeoutMS=round(connect_seconds * 1000),
            )
        except (errors.PyMongoError, ValueError) as error:
            # The library's message may quote the password.
            quoted = "" if "@" in url else f" ({error})"
            raise UsageError(
                f"{self._address} is not the address of a MongoDB server{quoted}",
                hint="write mongodb://HOST:PORT/DATABASE; in a password, write @ as %40",
            ) from None

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
        tenant, target = self._target(scope, collection)
        require_order(order)
        paths = projection_paths(fields)
        taken = {"_id": False, **dict.fromkeys(paths, True)} if paths else None
        wanted = _tenant_filter(tenant, tenant_query(query, tenant))
        by = [(order.removeprefix("-"), -1 if order[0] == "-" else 1)] if order else []
        async with self._port_errors():
            cursor = target.find(wanted, taken).sort([*by, ("_id", -1)]).limit(limit)
            found = await cursor.to_list()
        return [_to_document(document, tenant, paths) for document in found]

    async def page(
        self, scope: Scope, collection: Collection, *, after: str | None = None, limit: int = 50
    ) -> list[Document]:
        tenant, target = self._target(scope, collection)
        wanted: list[dict[str, Any]] = [{tenant.field: {"$eq": tenant.app}}]
        async with self._port_errors():
            if after is not None:
                known = await target.find_one(
                    {"_id": {"$in": key_forms(after)}, **wanted[0]}, {"_id": 1}
                )
                wanted.append(after_key(after if known is None else known["_id"]))
            found = await target.find({"$and": wanted}).sort("_id", 1).limit(limit).to_list()
        return [_to_document(document, tenant) for document in found]

    async def collections(
        self, scope: Scope, *, database: str | None = None
    ) -> list[tuple[Collection, int]]:
        tenant, target = self._target(scope, Collection("any", database))
        found: list[tuple[Collection, int]] = []
        async with self._port_errors():
            names = await target.database.list_collection_names(filter={"type": "collection"})
        for name in sorted(name for name in names if not name.startswith("system.")):
            async with self._port_errors():
                count = await target.database[name].count_documents({tenant.field: tenant.app})
            if count:
                found.append((Collection(name, database), count))
        return found

    async def put(
        self,
        scope: Scope,
        collection: Collection,
        query: Mapping[str, Json],
        values: Mapping[str, Json],
    ) -> str:
        tenant, target = self._target(scope, collection)
        found, given = split_update(query, values, tenant)
        wanted = _tenant_filter(tenant, tenant_query(query, tenant))
        made = {
            field: found[field]
            for field in found
            if not any(paths_overlap(field, other) for other in given)
        }
        of_query = blake2b(to_json([tenant.app, sorted(found.items())]), digest_size=16).hexdigest()
        # A key that another writer has created meanwhile is found by the next attempt. The key of a
        # query is also in use if its document was changed and does not match the query any more.
        *first, last = [found["_id"]] * 2 if "_id" in found else [of_query, of_query, uuid4().hex]
        put = partial(self._upsert, target, wanted, {**given, tenant.field: tenant.app}, made)
        for key in first:
            with suppress(StoreConflict):
                return await put(key)
        return await put(last)

    async def delete(self, scope: Scope, collection: Collection, key: str) -> bool:
        tenant, target = self._target(scope, collection)
        wanted = {"_id": {"$in": key_forms(key)}, tenant.field: {"$eq": tenant.app}}
        async with self._port_errors(writing=True):
            return bool((await target.delete_one(wanted)).deleted_count)

    async def watch(
        self, scope: Scope, collection: Collection, *, after: str | None = None
    ) -> AsyncGenerator[Change]:
        tenant, target = self._target(scope, collection)
        try:
            async with await _open_stream(target, tenant, after) as stream:
                async for change in stream:
                    yield _change(change, tenant)
        except errors.PyMongoError as error:
            raise to_port_error(error, self._address) from error
        raise StoreError(f"{self._address}: {collection.name} was removed; watch it again")

    async def position(self, scope: Scope, collection: Collection) -> str:
        tenant, target = self._target(scope, collection)
        async with self._port_errors(), await _open_stream(target, tenant, None) as stream:
            token = stream.resume_token
        if token is None:
            raise StoreError(f"{self._address}: the server tells no position; it needs MongoDB 4.2")
        return str(token["_data"])

    async def close(self) -> None:
        self._closed = True
        await self._client.close()

    def _target(
        self, scope: Scope, collection: Collection
    ) -> tuple[Tenant, "AsyncCollection[dict[str, Any]]"]:
        require_collection_name(collection)
        if self._closed:
            raise StoreError(f"documents {self._address}: the store is closed; open it again")
        if collection.database in _SERVER_DATABASES:
            raise UsageError(f"{collection.database} is a database of the server itself")
        try:
            database = (
                self._client.get_default_database(DATABASE)
                if collection.database is None
                else self._client[collection.database]
            )
            options = CodecOptions[dict[str, Any]](
                tz_aware=True,
                uuid_representation=UuidRepresentation.STANDARD,
                datetime_conversion=DatetimeConversion.DATETIME_AUTO,
            )
            target = database.get_collection(collection.name, codec_options=options)
        except errors.InvalidName as error:
            raise UsageError(str(error)) from error
        return Tenant(scope.app, self._tenant_field), target

    async def _upsert(
        self,
        target: AsyncCollection[dict[str, Any]],
        wanted: dict[str, Any],
        values: Document,
        made: Document,
        key: Json,
    ) -> str:
        async with self._port_errors(writing=True):
            done = await target.find_one_and_update(
                wanted,
                {"$set": values, "$setOnInsert": {**made, "_id": key}},
                projection={"_id": True},
                sort=[("_id", -1)],
                upsert=True,
                return_document=ReturnDocument.AFTER,
            )
        return as_key(done["_id"] if done else key)

    @asynccontextmanager
    async def _port_errors(self, *, writing: bool = False) -> AsyncGenerator[None]:
        """Convert errors of the library into errors of the port."""
        try:
            async with asyncio.timeout(self._answer_seconds):
                yield
        except TimeoutError as error:
            raise StoreError(
                f"documents {self._address}: no answer within {self._answer_seconds:g} seconds",
                retryable=True,
                uncertain=writing,
            ) from error
        except errors.PyMongoError as error:
            raise to_port_error(error, self._address, writing=writing) from error
        except (BSONError, OverflowError) as error:
            raise UsageError(f"MongoDB cannot store this: {error}") from error


async def _open_stream(
    target: AsyncCollection[dict[str, Any]], tenant: Tenant, after: str | None
) -> AsyncCollectionChangeStream[dict[str, Any]]:
    """Return the changes of a tenant's documents, from now on or from after a position."""
    now, before = f"fullDocument.{tenant.field}", f"fullDocumentBeforeChange.{tenant.field}"
    deleted = {"operationType": "delete", before: {"$eq": tenant.app}}
    return await target.watch(
        [{"$match": {"$or": [{now: {"$eq": tenant.app}}, deleted]}}],
        full_document="updateLookup",
        full_document_before_change="whenAvailable",
        resume_after=None if after is None else {"_data": after},
    )


def _tenant_filter(tenant: Tenant, query: AllOf) -> dict[str, Any]:
    """Return a filter that matches only documents of the tenant."""
    return {"$and": [{tenant.field: {"$eq": tenant.app}}, as_filter(query)]}


def _to_document(found: dict[str, Any], tenant: Tenant, paths: Sequence[str] = ()) -> Document:
    document = {name: as_json(value) for name, value in found.items()}
    if "_id" in found:
        document["_id"] = as_key(found["_id"])
    if tenant.field not in paths:
        document.pop(tenant.field, None)
    return document


def _change(change: Mapping[str, Any], tenant: Tenant) -> Change:
    key, position = as_key(change["documentKey"]["_id"]), change["_id"]["_data"]
    if change["operationType"] == "delete":
        return Change("deleted", key, None, position)
    return Change("put", key, _to_document(change["fullDocument"], tenant), position)
