"""weft documents: the documents that packages read and write."""

import asyncio
from collections.abc import Awaitable, Callable
from json import dumps
from pathlib import Path
from shlex import quote
from typing import Annotated, Final, TypeAlias, TypeVar

from cyclopts import Parameter

from weft.app.documents import (
    documents_file,
    open_documents,
    parse_object,
    put_document,
    read_records,
)
from weft.app.folders import LOCAL
from weft.cli.failure import CommandFailed, not_found, usage
from weft.cli.results import Message, Result, Table
from weft.cli.streams import Streams, clean, clean_lines, counted, value_text
from weft.environment import read_environment
from weft.ids import nearest
from weft.ports.documents import Collection, Document, Documents

T = TypeVar("T")

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
Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]


def _fields_text(found: Document) -> str:
    return value_text({name: value for name, value in found.items() if name != "_id"})


def list_documents(
    collection: Annotated[
        str | None, Parameter(help="List the documents of this collection, by key.")
    ] = None,
    /,
    *,
    after: Annotated[str | None, Parameter(metavar="KEY", help="Start after this key.")] = None,
    limit: Annotated[int, Parameter(help="Number of documents.")] = 50,
    database: Database = None,
    streams: Output,
) -> Result:
    """List document collections, or the documents of one."""
    if limit < 1:
        raise usage(f'invalid value "{limit}" for --limit', "use a number above 0")
    if collection is None:
        return _list_collections(database, streams)
    place = Collection(collection, database)

    async def read(store: Documents) -> list[Document]:
        found = await store.page(LOCAL, place, after=after, limit=limit)
        if not found and after is None:
            raise await _missing(store, place, "no documents")
        return found

    found = _with_store(read, streams)
    rows = [(str(each["_id"]), _fields_text(each)) for each in found]
    more = f"there may be more: --after {quote(rows[-1][0])}, or --limit N" if found else ""
    notes = [more] if len(found) == limit else []
    return Table({"documents": found}, rows, notes=notes, least=_LEAST)


def get(collection: Name, key: Key, /, *, database: Database = None, streams: Output) -> Result:
    """Print a document by its key."""
    place = Collection(collection, database)
    return _find(place, {"_id": key}, f'no document "{key}"', streams)


def find(
    collection: Name,
    query: Annotated[str, Parameter(help="Query as JSON; default: any document.")] = "{}",
    /,
    *,
    database: Database = None,
    streams: Output,
) -> Result:
    """Print the document that matches a query; of several, the last one written."""
    wanted = parse_object(query, "the query")
    return _find(Collection(collection, database), wanted, "no document that matches", streams)


def put(
    collection: Name,
    fields: Annotated[str, Parameter(name="JSON", help="Fields as JSON, or @FILE.")],
    /,
    *,
    key: Annotated[
        str | None, Parameter(help="Key; default: its _id, or one derived from the content.")
    ] = None,
    database: Database = None,
    streams: Output,
) -> Result:
    """Create a document, or set fields of one."""
    is_file = fields.startswith("@")
    text = _read_text(Path(fields[1:])) if is_file else fields
    new = parse_object(text, fields[1:] if is_file else "the document")
    if key is not None and new.setdefault("_id", key) != key:
        raise usage(f'the _id of the document differs from --key "{key}"', "leave one of them out")
    place = Collection(collection, database)
    made = _with_store(lambda store: put_document(store, LOCAL, place, new), streams, creates=True)
    return Message({"collection": collection, "key": made}, clean(f"put {collection} {made}"))


def import_documents(
    file: Annotated[Path, Parameter(help="A JSON list, or one document per line.")],
    /,
    *,
    collection: Annotated[
        str | None, Parameter(metavar="NAME", help="Collection, if the file does not name it.")
    ] = None,
    database: Database = None,
    streams: Output,
) -> Result:
    """Import documents from a file."""
    if database is not None and collection is None:
        raise usage("--database needs --collection", "add --collection NAME")
    place = None if collection is None else Collection(collection, database)
    records = read_records(_read_text(file), place)

    async def put_all(store: Documents) -> None:
        for where, new in records:
            await put_document(store, LOCAL, where, new)

    _with_store(put_all, streams, creates=True)
    return Message({"documents": len(records)}, f"put {counted(len(records), 'document')}")


def delete(collection: Name, key: Key, /, *, database: Database = None, streams: Output) -> Result:
    """Delete a document."""
    place = Collection(collection, database)

    async def work(store: Documents) -> None:
        if not await store.delete(LOCAL, place, key):
            raise await _missing(store, place, f'no document "{key}"')

    _with_store(work, streams)
    return Message({"collection": collection, "key": key}, clean(f"deleted {collection} {key}"))


def _list_collections(database: str | None, streams: Streams) -> Result:
    async def read(store: Documents) -> list[tuple[Collection, int]]:
        return await store.collections(LOCAL, database=database)

    found = [] if _is_new(streams) else _with_store(read, streams)
    sizes = [{"collection": place.name, "documents": count} for place, count in found]
    rows = [(place.name, counted(count, "document")) for place, count in found]
    return Table({"collections": sizes}, rows, notes=[] if rows else [f"no documents; {_PUT_ONE}"])


def _find(place: Collection, query: Document, message: str, streams: Streams) -> Result:
    async def read(store: Documents) -> Document:
        found = await store.find(LOCAL, place, query)
        if found is None:
            raise await _missing(store, place, message)
        return found

    found = _with_store(read, streams)
    text = clean_lines(dumps(found, indent=2, ensure_ascii=False))
    return Message({"document": found}, text)


async def _missing(store: Documents, place: Collection, message: str) -> CommandFailed:
    """Return that something is not in a collection, or that the collection does not exist."""
    known = [found.name for found, _ in await store.collections(LOCAL, database=place.database)]
    if place.name in known:
        see = f"list them: weft documents list {quote(place.name)}"
        return not_found(f"{place.name} has {message}", see)
    near = nearest(place.name, known)
    hint = f"did you mean {near}?" if near else f"available: {', '.join(known)}"
    message = f'there is no document collection "{place.name}"'
    return not_found(message, hint if known else _PUT_ONE)


def _with_store(
    work: Callable[[Documents], Awaitable[T]], streams: Streams, *, creates: bool = False
) -> T:
    """Do work with the documents of the workspace; reading never creates the store."""
    if not creates and _is_new(streams):
        raise not_found("there are no documents yet", _PUT_ONE)

    async def whole() -> T:
        store = await open_documents(streams.settings.workspace, read_environment())
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(whole())


def _is_new(streams: Streams) -> bool:
    """Tell whether the store does not exist yet."""
    file = documents_file(streams.settings.workspace, read_environment())
    return file is not None and not file.exists()


def _read_text(file: Path) -> str:
    if not file.exists():
        raise not_found(f"the file {file} does not exist", "check the path")
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise usage(f"{file} is not UTF-8 text", "save the file as UTF-8") from error
