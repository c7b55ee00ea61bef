"""Stores of documents that are wrong in one way each, to see that the suite notices."""

import asyncio
from uuid import uuid4

from weft.adapters.documents.sqlite import SqliteDocuments
from weft.ports.scope import Scope


class LosesNulls(SqliteDocuments):
    async def find(self, scope, collection, query, *, fields=()):
        found = await super().find(scope, collection, query, fields=fields)
        return found and {name: item for name, item in found.items() if item is not None}


class ReplacesDocuments(SqliteDocuments):
    async def put(self, scope, collection, query, values):
        found = await self.find(scope, collection, query) if query else None
        if found is not None:
            await self.delete(scope, collection, str(found["_id"]))
            query = {**query, "_id": found["_id"]}
        return await super().put(scope, collection, query, values)


class IgnoresAlternatives(SqliteDocuments):
    async def find(self, scope, collection, query, *, fields=()):
        kept = _without_or(query)
        return await super().find(scope, collection, kept, fields=fields)


def _without_or(query):
    if not isinstance(query, dict):
        return query
    parts = [_without_or(item) for item in query.get("$and", [])]
    rest = {name: item for name, item in query.items() if name not in ("$or", "$and")}
    return {**rest, "$and": parts} if parts else rest


class TakesEverything(SqliteDocuments):
    async def find(self, scope, collection, query, *, fields=()):
        return await super().find(scope, collection, query)


class MisreadsQuotes(SqliteDocuments):
    async def find(self, scope, collection, query, *, fields=()):
        clean = {name.replace('"', ""): item for name, item in query.items()}
        return await super().find(scope, collection, clean, fields=fields)


class PagesFromTheStart(SqliteDocuments):
    async def page(self, scope, collection, *, after=None, limit=50):
        return [] if after and after.startswith("🙂") else await super().page(scope, collection)


class MixesTenants(SqliteDocuments):
    def _place(self, scope, collection):
        return super()._place(Scope.operator("all"), collection)


class MixesTenantsInQueries(SqliteDocuments):
    async def find(self, scope, collection, query, *, fields=()):
        scope = Scope.operator("bank") if query == {"_id": "b"} else scope
        return await super().find(scope, collection, query, fields=fields)


class MakesTwo(SqliteDocuments):
    async def put(self, scope, collection, query, values):
        found = await self.find(scope, collection, query)
        await asyncio.sleep(0.01)
        key = uuid4().hex if found is None else found["_id"]
        return await super().put(scope, collection, {"_id": key, **query}, {**query, **values})


class TellsTwice(SqliteDocuments):
    async def watch(self, scope, collection, *, after=None):
        async for told in super().watch(scope, collection, after=after):
            yield told
            yield told


class ForgetsPositions(SqliteDocuments):
    async def watch(self, scope, collection, *, after=None):
        if after is not None:
            return
        async for told in super().watch(scope, collection):
            yield told


class HidesDeletions(SqliteDocuments):
    async def watch(self, scope, collection, *, after=None):
        async for told in super().watch(scope, collection, after=after):
            if told.kind == "put":
                yield told


class NeverCloses(SqliteDocuments):
    async def close(self):
        pass


class TakesTheFirst(SqliteDocuments):
    async def find(self, scope, collection, query, *, fields=()):
        return next(iter(await self.page(scope, collection)), None)


class IgnoresOrder(SqliteDocuments):
    async def find_many(self, scope, collection, query, *, fields=(), order="", limit=20):
        return await super().find_many(scope, collection, query, fields=fields, limit=limit)
