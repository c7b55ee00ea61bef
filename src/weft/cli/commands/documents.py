"""weft documents: the documents that packages read and write."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
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
from weft.cli.failure import CommandFailed, Exit, not_found, usage
from weft.cli.formats.documents import document
from weft.cli.streams import Streams
from weft.cli.text import clean, clean_lines, counted, shortened, value_text
from weft.environment import read_environment
from weft.findings import Json
from weft.ids import nearest
from weft.ports.documents import Collection, Document, Documents

T = TypeVar("T")

_PUT_ONE: Final = """put one: weft documents put Customers '{"name": "Ada"}'"""

#: No document is cut to less than this.
_LEAST: Final = 16

Name: TypeAlias = Annotated[
    str, Parameter(name="COLLECTION", help="The collection, such as Customers.")
]
Key: TypeAlias = Annotated[str, Parameter(help="The key of the document, its _id.")]
Database: TypeAlias = Annotated[
    str | None, Parameter(metavar="NAME", help="Another database than that of the workspace.")
]
Output: TypeAlias = Annotated[Streams, Parameter(parse=False)]


def list_documents(
    collection: Annotated[
        str | None, Parameter(help="List its documents, by key, and not the collections.")
    ] = None,
    /,
    *,
    after: Annotated[str | None, Parameter(metavar="KEY", help="Begin after this key.")] = None,
    limit: Annotated[int, Parameter(help="How many documents.")] = 50,
    database: Database = None,
    streams: Output,
) -> Exit:
    """List collections, or the documents of one."""
    if limit < 1:
        raise usage(f"--limit {limit} would show nothing", "give a number above 0")
    if collection is None:
        return _list_collections(database, streams)
    place = Collection(collection, database)

    async def read(store: Documents) -> list[Document]:
        found = await store.page(LOCAL, place, after=after, limit=limit)
        if not found and after is None:
            raise await _nothing(store, place, "no documents")
        return found

    found = _with(read, streams)
    if streams.settings.json:
        streams.result(document({"documents": found}))
        return Exit.DONE
    room = streams.columns - max((len(_key(it)) for it in found), default=0) - 2
    streams.rows([(_key(it), shortened(clean(_line(it)), max(room, _LEAST))) for it in found])
    if len(found) == limit:
        streams.note(f"there may be more: --after {quote(_key(found[-1]))}, or --limit N")
    return Exit.DONE


def get(collection: Name, key: Key, /, *, database: Database = None, streams: Output) -> Exit:
    """Print the document with a key."""
    return _print(Collection(collection, database), {"_id": key}, f'no document "{key}"', streams)


def find(
    collection: Name,
    query: Annotated[
        str, Parameter(help="What it must have, as JSON; any document if not given.")
    ] = "{}",
    /,
    *,
    database: Database = None,
    streams: Output,
) -> Exit:
    """Print the document that fits a query, the one written last of several."""
    wanted = parse_object(query, "the query")
    return _print(Collection(collection, database), wanted, "no document that fits", streams)


def put(
    collection: Name,
    fields: Annotated[str, Parameter(name="JSON", help="Fields as JSON, or @FILE with them.")],
    /,
    *,
    key: Annotated[str | None, Parameter(help="Its key; else its _id, or one made of it.")] = None,
    database: Database = None,
    streams: Output,
) -> Exit:
    """Set fields of a document, or make it."""
    file = fields.startswith("@")
    text = _text(Path(fields[1:])) if file else fields
    new = parse_object(text, fields[1:] if file else "the document")
    if key is not None and new.setdefault("_id", key) != key:
        raise usage(f'the document has another _id than "{key}"', "leave one of them out")
    place = Collection(collection, database)
    made = _with(lambda store: put_document(store, LOCAL, place, new), streams, makes=True)
    _say({"collection": collection, "key": made}, f"put {collection} {made}", streams)
    return Exit.DONE


def import_documents(
    file: Annotated[Path, Parameter(help="A list in JSON, or a document in each line.")],
    /,
    *,
    collection: Annotated[
        str | None, Parameter(metavar="NAME", help="Where they go, if the file does not say so.")
    ] = None,
    database: Database = None,
    streams: Output,
) -> Exit:
    """Put the documents of a file."""
    if database is not None and collection is None:
        raise usage("--database needs --collection", "write --collection NAME as well")
    place = None if collection is None else Collection(collection, database)
    records = read_records(_text(file), place)

    async def put_all(store: Documents) -> None:
        for where, new in records:
            await put_document(store, LOCAL, where, new)

    _with(put_all, streams, makes=True)
    _say({"documents": len(records)}, f"put {counted(len(records), 'document')}", streams)
    return Exit.DONE


def delete(collection: Name, key: Key, /, *, database: Database = None, streams: Output) -> Exit:
    """Remove a document."""
    place = Collection(collection, database)

    async def remove(store: Documents) -> None:
        if not await store.delete(LOCAL, place, key):
            raise await _nothing(store, place, f'no document "{key}"')

    _with(remove, streams)
    _say({"collection": collection, "key": key}, f"deleted {collection} {key}", streams)
    return Exit.DONE


def _list_collections(database: str | None, streams: Streams) -> Exit:
    async def read(store: Documents) -> list[tuple[Collection, int]]:
        return await store.collections(LOCAL, database=database)

    found = [] if _is_new(streams) else _with(read, streams)
    if streams.settings.json:
        rows = [{"collection": it.name, "documents": count} for it, count in found]
        streams.result(document({"collections": rows}))
    elif found:
        streams.rows([(it.name, counted(count, "document")) for it, count in found])
    else:
        streams.note(f"no documents; {_PUT_ONE}")
    return Exit.DONE


def _print(place: Collection, query: Document, fact: str, streams: Streams) -> Exit:
    async def read(store: Documents) -> Document:
        found = await store.find(LOCAL, place, query)
        if found is None:
            raise await _nothing(store, place, fact)
        return found

    found = _with(read, streams)
    if streams.settings.json:
        streams.result(document({"document": found}))
    else:
        streams.result(clean_lines(dumps(found, indent=2, ensure_ascii=False)))
    return Exit.DONE


async def _nothing(store: Documents, place: Collection, fact: str) -> CommandFailed:
    """Say that something is not in a collection, or that there is no such collection."""
    known = [it.name for it, _ in await store.collections(LOCAL, database=place.database)]
    if place.name in known:
        see = f"list them: weft documents list {quote(place.name)}"
        return not_found(f"{place.name} has {fact}", see)
    near = nearest(place.name, known)
    there = f"did you mean {near}?" if near else f"available: {', '.join(known)}"
    return not_found(f'there is no collection "{place.name}"', there if known else _PUT_ONE)


def _with(work: Callable[[Documents], Awaitable[T]], streams: Streams, *, makes: bool = False) -> T:
    """Do something with the documents of the workspace; nothing is made only to look at it."""
    if not makes and _is_new(streams):
        raise not_found("there are no documents yet", _PUT_ONE)

    async def whole() -> T:
        async with _opened(streams) as store:
            return await work(store)

    return asyncio.run(whole())


@asynccontextmanager
async def _opened(streams: Streams) -> AsyncGenerator[Documents]:
    store = await open_documents(streams.settings.workspace, read_environment())
    try:
        yield store
    finally:
        await store.close()


def _is_new(streams: Streams) -> bool:
    """Tell whether there is no file with documents yet."""
    file = documents_file(streams.settings.workspace, read_environment())
    return file is not None and not file.exists()


def _text(file: Path) -> str:
    if not file.exists():
        raise not_found(f"there is no file {file}", "look at the spelling of the path")
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise usage(f"{file} is not text in UTF-8", "write it as JSON in UTF-8") from error


def _say(data: dict[str, Json], text: str, streams: Streams) -> None:
    streams.result(document(data) if streams.settings.json else clean(text))


def _key(found: Document) -> str:
    return str(found["_id"])


def _line(found: Document) -> str:
    return value_text({name: value for name, value in found.items() if name != "_id"})
