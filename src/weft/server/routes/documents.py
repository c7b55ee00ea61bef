"""Documents that packages read and write, and collections of passages that agents look up."""

import asyncio
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from fastapi import Body as FromBody
from fastapi import Depends, Path
from pydantic import Field, JsonValue, StringConstraints
from typing_extensions import TypedDict

from weft.adapters.collections.collection import SqlCollection
from weft.adapters.collections.filters import require_filters
from weft.app.documents import put_document
from weft.errors import NotFoundError, RetrievalError, SetupError, UsageError
from weft.ids import nearest
from weft.ports.documents import Collection, Documents
from weft.ports.retrieval import TOP_K, Retrievers, VectorSearchAdapter
from weft.ports.scope import Scope
from weft.server.answers import page_of
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER, Principal
from weft.server.parameters import PRINTABLE, Body, Cursor, Limit, cursor_of, key_of, page
from weft.server.routing import Caller, Context, Routes

routes: Final = Routes("documents")

#: The most documents in one request.
_MOST: Final = 10_000

CollectionPath = Annotated[str, Path(min_length=1, max_length=120, pattern=PRINTABLE)]
KeyPath = Annotated[str, Path(min_length=1, max_length=500, pattern=PRINTABLE)]
Fields = Annotated[dict[str, JsonValue], FromBody(description="Fields, by name or dotted path.")]
ManyDocuments = Annotated[
    list[dict[str, JsonValue]],
    Field(min_length=1, max_length=_MOST),
    FromBody(description="Documents; one without `_id` gets a key made of its content."),
]


class SizeAnswer(TypedDict):
    """A collection of documents."""

    collection: str
    documents: int


class DocumentsAnswer(TypedDict):
    """A page of documents, by key."""

    items: list[dict[str, JsonValue]]
    next: str | None


class DocumentAnswer(TypedDict):
    """A document; its key is in `_id`."""

    document: dict[str, JsonValue]


class DocumentKeysAnswer(TypedDict):
    """The keys of the documents that were written, in their order."""

    keys: list[str]


class DeletedAnswer(TypedDict):
    """How many documents were deleted."""

    deleted: int


class CollectionAnswer(TypedDict):
    """A collection of passages; the numbers are null where they are not known."""

    collection: str
    sources: int | None
    passages: int | None
    #: The model of the vectors; null: passages are compared by keywords only.
    embedder: str | None
    #: The metadata keys for filters.
    keys: list[str]


class SearchBody(Body):
    """What is searched for."""

    query: Annotated[str, StringConstraints(max_length=10_000, pattern=r"\S")]
    top_k: int = Field(default=TOP_K, ge=1, le=200)
    min_relevance: float = Field(default=0.0, ge=0, le=1)
    #: Metadata keys with the value that a passage must have, or with a list of values.
    filters: Annotated[dict[str, JsonValue], Field(max_length=100)] = Field(default_factory=dict)


class PassageAnswer(TypedDict):
    """A passage that was found; the score is its relevance, from 0 to 1."""

    content: str
    score: float
    source_id: str | None
    metadata: dict[str, Any]


class _Documents(NamedTuple):
    """A collection of documents of a tenant: documents belong to no user."""

    store: Documents
    scope: Scope
    place: Collection

    def missing(self, key: str) -> NotFoundError:
        """Return that there is no document with a key."""
        return NotFoundError(f"{self.place.name} has no document {key!r}")


def _store(context: Context) -> Documents:
    if context.host.documents is None:
        raise SetupError("this server has no documents")
    return context.host.documents


async def _find(collection: CollectionPath, caller: Caller, context: Context) -> _Documents:
    return _Documents(_store(context), Scope.operator(caller.app), Collection(collection))


#: The collection that a path names.
Found: TypeAlias = Annotated[_Documents, Depends(_find)]


@routes.add("GET", "/api/documents", roles=DEVELOPER, answer=page_of(SizeAnswer))
async def list_document_collections(caller: Caller, context: Context) -> object:
    """List the collections of documents."""
    found = await _store(context).collections(Scope.operator(caller.app))
    return [SizeAnswer(collection=place.name, documents=count) for place, count in found]


@routes.add("GET", "/api/documents/{collection}", roles=DEVELOPER, answer=DocumentsAnswer)
async def list_documents(found: Found, cursor: Cursor = None, limit: Limit = 50) -> object:
    """List the documents of a collection, by key."""
    after = key_of(cursor) or None
    read = await found.store.page(found.scope, found.place, after=after, limit=limit + 1)
    return page(read, limit, lambda document: cursor_of(str(document["_id"])), dict)


@routes.add("PUT", "/api/documents/{collection}", roles=DEVELOPER, answer=DocumentKeysAnswer)
async def put_documents(found: Found, body: ManyDocuments) -> object:
    """Create documents, or set fields of those with the same key.

    They are written one after the other. After an error the request can be repeated: writing a
    document again changes nothing.
    """
    keys: list[str] = []
    for number, document in enumerate(body, 1):
        try:
            keys.append(await put_document(*found, {**document}))
        except UsageError as error:
            raise UsageError(f"document {number}: {error}", hint=error.hint) from error
    return {"keys": keys}


@routes.add("DELETE", "/api/documents/{collection}", roles=DEVELOPER, answer=DeletedAnswer)
async def delete_documents(found: Found) -> object:
    """Delete all documents of a collection."""
    store, scope, place = found
    deleted, after = 0, None
    while documents := await store.page(scope, place, after=after, limit=100):
        for document in documents:
            after = str(document["_id"])
            deleted += await store.delete(scope, place, after)
    if not deleted:
        raise NotFoundError(f"there are no documents in {place.name}")
    return {"deleted": deleted}


@routes.add("GET", "/api/documents/{collection}/{key:path}", roles=DEVELOPER, answer=DocumentAnswer)
async def show_document(found: Found, key: KeyPath) -> object:
    """Return a document by its key."""
    document = await found.store.find(found.scope, found.place, {"_id": key})
    if document is None:
        raise found.missing(key)
    return {"document": document}


@routes.add("PUT", "/api/documents/{collection}/{key:path}", roles=DEVELOPER, answer=DocumentAnswer)
async def write_document(found: Found, key: KeyPath, body: Fields) -> object:
    """Create a document, or set fields of one; other fields stay as they are."""
    if body.get("_id", key) != key:
        raise UsageError("the _id of the document is not the key in the path", hint="leave it out")
    await found.store.put(found.scope, found.place, {"_id": key}, body)
    return await show_document(found, key)


@routes.add("DELETE", "/api/documents/{collection}/{key:path}", roles=DEVELOPER)
async def delete_document(found: Found, key: KeyPath) -> None:
    """Delete a document."""
    if not await found.store.delete(found.scope, found.place, key):
        raise found.missing(key)


@routes.add("GET", "/api/collections", roles=DEVELOPER, answer=page_of(CollectionAnswer))
async def list_collections(caller: Caller, context: Context) -> object:
    """List the collections of passages."""
    retrievers = _retrievers(context)
    items: list[CollectionAnswer] = []
    for name in await asyncio.to_thread(retrievers.names, caller.app):
        row = CollectionAnswer(collection=name, sources=None, passages=None, embedder=None, keys=[])
        adapter = retrievers.adapter(caller.app, name)
        if isinstance(adapter, SqlCollection):
            stats = await adapter.stats()
            row["sources"], row["passages"] = stats.sources, stats.passages
            row["embedder"], row["keys"] = stats.embedder, list(stats.keys)
        items.append(row)
    return items


@routes.add(
    "POST", "/api/collections/{name}/search", roles=DEVELOPER, answer=page_of(PassageAnswer)
)
async def search(
    name: CollectionPath, body: SearchBody, caller: Caller, context: Context
) -> object:
    """Search a collection of passages, by meaning and by keywords."""
    adapter = await _adapter(context, caller, name)
    if body.filters and isinstance(adapter, SqlCollection):
        keys = (await adapter.stats()).keys
        try:
            require_filters(body.filters, keys, name)
        except RetrievalError as error:
            raise UsageError(str(error), hint=error.hint) from error
    found = await adapter.search(
        body.query, top_k=body.top_k, min_relevance=body.min_relevance, filters=body.filters or None
    )
    return [
        PassageAnswer(
            content=passage.content,
            score=passage.score,
            source_id=passage.source_id,
            metadata=dict(passage.metadata or {}),
        )
        for passage in found
    ]


def _retrievers(context: ServerContext) -> Retrievers:
    retrievers = context.host.retrievers
    if retrievers is None:
        raise SetupError("this server has no collections")
    return retrievers


async def _adapter(
    context: ServerContext, caller: Principal, name: str
) -> VectorSearchAdapter[Any]:
    """Return what searches a collection of the tenant; raises NotFoundError."""
    retrievers = _retrievers(context)
    known = await asyncio.to_thread(retrievers.names, caller.app)
    adapter = retrievers.adapter(caller.app, name) if name in known else None
    if adapter is None:
        near = nearest(name, known)
        raise NotFoundError(
            f'there is no collection "{name}"', hint=f"did you mean {near}?" if near else None
        )
    return adapter
