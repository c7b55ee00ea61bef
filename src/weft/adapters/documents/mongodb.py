"""Documents in a MongoDB database, which other programs may share.

Every document has its tenant in a field. Keys may be of any type and are shown as text. Where
several documents fit, the one with the greatest `_id` is taken: MongoDB does not know which was
written last, and no field is added to find out. A new document without a key gets one made of its
query, so that two that write at the same time make one document. Indexes are those of the database.

That a document was deleted is told only in collections that keep what was deleted, with
`changeStreamPreAndPostImages`: otherwise nobody knows whose it was.
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
    require_tenant_field,
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
    from pymongo.asynchronous.collection import AsyncCollection

    from weft.adapters.documents.mongodb_values import (
        after_key,
        as_filter,
        as_json,
        as_key,
        key_forms,
        shown_address,
        to_port_error,
    )
except ImportError as error:
    raise SetupError(
        f"MongoDB needs a library that is not installed: {error.name or error}",
        hint='install it: pip install "weft-agents[mongodb]"',
    ) from error

#: The database where the address names none.
DATABASE: Final = "weft"

#: Databases that are the server's own.
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
        tenant, target = self._target(scope, collection)
        paths = projection_paths(fields)
        taken = {"_id": False, **dict.fromkeys(paths, True)} if paths else None
        async with self._port_errors():
            found = await target.find_one(
                _tenant_filter(tenant, tenant_query(query, tenant)), taken, sort=[("_id", -1)]
            )
        return None if found is None else _to_document(found, tenant, paths)

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
        # A key that another has made in between is found when it is tried again. The key of a query
        # is also taken when its document has been changed so that the query fits it no longer.
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
        now, before = f"fullDocument.{tenant.field}", f"fullDocumentBeforeChange.{tenant.field}"
        deleted = {"operationType": "delete", before: {"$eq": tenant.app}}
        try:
            async with await target.watch(
                [{"$match": {"$or": [{now: {"$eq": tenant.app}}, deleted]}}],
                full_document="updateLookup",
                full_document_before_change="whenAvailable",
                resume_after=None if after is None else {"_data": after},
            ) as stream:
                async for change in stream:
                    yield _change(change, tenant)
        except errors.PyMongoError as error:
            raise to_port_error(error, self._address) from error
        raise StoreError(f"{self._address}: {collection.name} was removed; watch it anew")

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
            raise UsageError(f"{collection.database} is the server's own database")
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
        """Turn whatever goes wrong into what the port raises."""
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
            raise UsageError(f"MongoDB cannot hold this: {error}") from error


def _tenant_filter(tenant: Tenant, query: AllOf) -> dict[str, Any]:
    """Return a filter that nothing outside the tenant fits, whatever the query says."""
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
