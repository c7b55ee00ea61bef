"""weft documents: the documents that packages read and write."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from json import dumps
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, TypeAlias

from cyclopts import Parameter

from weft.app.documents import (
    documents_file,
    open_documents,
    parse_object,
    put_document,
    read_records,
)
from weft.cli.failure import CommandFailed, not_found, usage
from weft.cli.options import Output, command, require_positive
from weft.cli.results import Result
from weft.cli.scope import command_scope
from weft.cli.starting import read_text_file
from weft.cli.streams import Streams, clean, clean_lines, counted, value_text
from weft.environment import read_environment
from weft.ids import suggestion
from weft.ports.documents import Collection, Document, Documents

_PUT_ONE: Final = """create one: weft documents put Customers '{"name": "Ada"}'"""

#: The least width of a document in a table.
_LEAST: Final = 16

Name: TypeAlias = Annotated[
    str, Parameter(name="COLLECTION", help="A document collection, such as Customers.")
]
Key: TypeAlias = Annotated[str, Parameter(help="The key of the document: its _id.")]
Database: TypeAlias = Annotated[
    str | None, Parameter(metavar="NAME", help="Database; default: the one of the workspace.")
]


@command
async def list_documents(
    collection: str | None = None,
    /,
    *,
    after: str | None = None,
    limit: int = 50,
    database: Database = None,
    streams: Output,
) -> Result:
    """List document collections, or the documents of one.

    Options:
      COLLECTION   List the documents of this collection, by key.
      --after KEY  Start after this key.
      --limit N    Number of documents.

    Examples:
      weft documents list
      weft documents list Customers
    """
    require_positive(limit)
    if collection is None:
        return await _list_collections(database, streams)
    place = Collection(collection, database)
    async with _open_store(streams) as store:
        found = await store.page(command_scope(), place, after=after, limit=limit)
        if not found and after is None:
            raise await _missing(store, place, "no documents")
    rows = [
        (str(each["_id"]), value_text({name: each[name] for name in each if name != "_id"}))
        for each in found
    ]
    more = f"there may be more: --after {quote(rows[-1][0])}, or --limit N" if found else ""
    notes = [more] if len(found) == limit else []
    return Result({"documents": found}, streams.table(rows, least=_LEAST), notes)


async def _list_collections(database: str | None, streams: Streams) -> Result:
    found: list[tuple[Collection, int]] = []
    if not _is_new(streams):
        async with _open_store(streams) as store:
            found = await store.collections(command_scope(), database=database)
    sizes = [{"collection": place.name, "documents": count} for place, count in found]
    rows = [(place.name, counted(count, "document")) for place, count in found]
    notes = [] if rows else [f"no documents; {_PUT_ONE}"]
    return Result({"collections": sizes}, streams.table(rows), notes)


@command
async def get(
    collection: Name, key: Key, /, *, database: Database = None, streams: Output
) -> Result:
    """Print a document by its key.

    Examples:
      weft documents get Customers ada
    """
    place = Collection(collection, database)
    return await _find(place, {"_id": key}, f'no document "{key}"', streams)


@command
async def find(
    collection: Name, query: str = "{}", /, *, database: Database = None, streams: Output
) -> Result:
    """Print the document that matches a query; of several, the last one written.

    A query has fields, and operators $eq $ne $gt $gte $lt $lte $in $exists $and $or.

    Options:
      QUERY  Query as JSON; default: any document.

    Examples:
      weft documents find Orders '{"status": "open", "total": {"$lt": 50}}'
    """
    place, wanted = Collection(collection, database), parse_object(query, "the query")
    return await _find(place, wanted, "no document that matches", streams)


async def _find(place: Collection, query: Document, message: str, streams: Streams) -> Result:
    async with _open_store(streams) as store:
        found = await store.find(command_scope(), place, query)
        if found is None:
            raise await _missing(store, place, message)
    return Result({"document": found}, clean_lines(dumps(found, indent=2, ensure_ascii=False)))


@command
async def put(
    collection: Name,
    fields: str,
    /,
    *,
    key: str | None = None,
    database: Database = None,
    streams: Output,
) -> Result:
    """Create a document, or set fields of one.

    Options:
      JSON       Fields as JSON, or @FILE.
      --key KEY  Key; default: its _id, or one derived from the content.

    Examples:
      weft documents put Customers '{"tier": "gold"}' --key sam
    """
    is_file = fields.startswith("@")
    text = read_text_file(Path(fields[1:]), "check the path") if is_file else fields
    new = parse_object(text, fields[1:] if is_file else "the document")
    if key is not None and new.setdefault("_id", key) != key:
        raise usage(f'the _id of the document differs from --key "{key}"', "leave one of them out")
    async with _open_store(streams, creates=True) as store:
        made = await put_document(store, command_scope(), Collection(collection, database), new)
    return Result({"collection": collection, "key": made}, clean(f"put {collection} {made}"))


@command
async def import_documents(
    file: Path,
    /,
    *,
    collection: str | None = None,
    database: Database = None,
    streams: Output,
) -> Result:
    """Import documents from a file.

    The file is a JSON list, or has one document per line. Without --collection each is an object
    with `collection` and `document`. A document without _id gets one derived from its content, so
    that importing a file twice changes nothing.

    Options:
      FILE               A JSON list, or one document per line.
      --collection NAME  Collection, if the file does not name it.

    Examples:
      weft documents import documents/demo.jsonl
      weft documents import customers.json --collection Customers
    """
    if database is not None and collection is None:
        raise usage("--database needs --collection", "add --collection NAME")
    place = None if collection is None else Collection(collection, database)
    records = read_records(read_text_file(file, "check the path"), place)
    async with _open_store(streams, creates=True) as store:
        for where, new in records:
            await put_document(store, command_scope(), where, new)
    return Result({"documents": len(records)}, f"put {counted(len(records), 'document')}")


@command
async def delete(
    collection: Name, key: Key, /, *, database: Database = None, streams: Output
) -> Result:
    """Delete a document.

    Examples:
      weft documents delete Customers sam
    """
    place = Collection(collection, database)
    async with _open_store(streams) as store:
        if not await store.delete(command_scope(), place, key):
            raise await _missing(store, place, f'no document "{key}"')
    return Result({"collection": collection, "key": key}, clean(f"deleted {collection} {key}"))


async def _missing(store: Documents, place: Collection, message: str) -> CommandFailed:
    """Return that something is not in a collection, or that the collection does not exist."""
    known = [
        found.name for found, _ in await store.collections(command_scope(), database=place.database)
    ]
    if place.name in known:
        see = f"list them: weft documents list {quote(place.name)}"
        return not_found(f"{place.name} has {message}", see)
    hint = suggestion(place.name, known)
    message = f'there is no document collection "{place.name}"'
    return not_found(message, hint if known else _PUT_ONE)


@asynccontextmanager
async def _open_store(streams: Streams, *, creates: bool = False) -> AsyncGenerator[Documents]:
    """Open the documents of the workspace; reading never creates the store."""
    if not creates and _is_new(streams):
        raise not_found("there are no documents yet", _PUT_ONE)
    store = await open_documents(streams.settings.workspace, read_environment())
    try:
        yield store
    finally:
        await store.close()


def _is_new(streams: Streams) -> bool:
    """Tell whether the store does not exist yet."""
    file = documents_file(streams.settings.workspace, read_environment())
    return file is not None and not file.exists()
