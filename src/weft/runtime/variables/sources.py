"""Reads and writes variables outside of the run: documents, services, files."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar, cast
from urllib.parse import quote

from pydantic_core import to_json

from weft.context.segment import shown
from weft.errors import PortError, UsageError
from weft.findings import Json
from weft.ids import TENANT_VARIABLES
from weft.packages.text.documents import Format, parse_text
from weft.packages.text.index import spot
from weft.ports.documents import Collection, Document, Documents
from weft.ports.external import ExternalPorts, ServiceLogin, ServiceRequest
from weft.ports.scope import Scope
from weft.spec.templates import Reference, parse_template
from weft.spec.variables import (
    DatabaseSource,
    EntitySource,
    ExternalSource,
    FileSource,
    ServiceAuth,
    Source,
    is_call,
)

T = TypeVar("T")

#: The time limit of a document store in seconds.
PATIENCE: Final = 10.0

#: The field with the key of a document.
KEY: Final = "_id"


@dataclass(frozen=True, slots=True)
class Reading:
    """A value that was read, and a note about how."""

    value: Json
    note: dict[str, Json] = field(default_factory=dict[str, Json])


async def read_source(
    outside: ExternalPorts,
    source: Source,
    *,
    app: str,
    workflow: str,
    values: Mapping[str, Json],
    key: str = "",
) -> Reading:
    """Read the value of a variable; `values` are the other variables, `key` is that of a call.

    Raises PortError or UsageError with the reason.
    """
    match source:
        case DatabaseSource():
            return await _from_database(outside, source, Scope.operator(app), values)
        case EntitySource():
            return await _from_entity(outside, source, Scope.operator(app), values)
        case ExternalSource():
            return await _from_service(outside, source, Scope.operator(app), values, key)
        case FileSource():
            return await _from_file(outside, source, app, workflow)
        case _:
            raise UsageError(f"a {source.type} variable is not read from outside")


async def write_entity(
    outside: ExternalPorts,
    source: EntitySource,
    document: Json,
    *,
    app: str,
    values: Mapping[str, Json],
) -> None:
    """Write the document of an entity variable; raises PortError or UsageError."""
    if not isinstance(document, dict):
        raise UsageError("only an object can be written as a document")
    query = _search(source.search_by, app, values)
    fields = cast("Document", document)
    kept = {name: value for name, value in fields.items() if name not in (KEY, *query)}
    collection, store = Collection(source.collection, source.database), _documents(outside)
    async with asyncio.timeout(PATIENCE):
        if not query:  # The tenant has one document, so no field is needed to find it.
            found = await store.find(Scope.operator(app), collection, {}, fields=(KEY,))
            query = {KEY: found[KEY] if found else app}
        await store.put(Scope.operator(app), collection, query, kept)


async def _from_database(
    outside: ExternalPorts, source: DatabaseSource, scope: Scope, values: Mapping[str, Json]
) -> Reading:
    if source.query_template is not None:
        query = _without_tenant(
            cast("Document", fill_template(source.query_template, values)), scope.app
        )
    elif source.search_by is not None:
        query = _search(source.search_by, scope.app, values)
    else:
        query = {}
    wanted = (source.field,) if source.field else source.fields
    note: dict[str, Json] = {"collection": source.collection, "query": query}
    if source.find == "many":
        where = Collection(source.collection, source.database)
        store, order = _documents(outside), source.order or ""
        asked = store.find_many(scope, where, query, fields=wanted, order=order, limit=source.limit)
        taken = [_taken(document, source) for document in await _in_time(asked)]
        items = [value for value in taken if value is not None]
        if items:
            return Reading(items, {**note, "count": len(items)})
        empty = [] if source.default is None else source.default
        return Reading(empty, {**note, "found": False, "tenant": scope.app})
    found = await _find(outside, source.collection, source.database, scope, query, wanted)
    value = None if found is None else _taken(found, source)
    if value is None:
        return Reading(source.default, {**note, "found": False, "tenant": scope.app})
    return Reading(value, note)


def _taken(document: Document, source: DatabaseSource) -> Json:
    """Return what a variable takes of a document."""
    if source.field:
        return _at(document, source.field.split("."))
    if source.fields:
        return {field: _at(document, field.split(".")) for field in source.fields}
    return {key: value for key, value in document.items() if key != KEY}


async def _from_entity(
    outside: ExternalPorts, source: EntitySource, scope: Scope, values: Mapping[str, Json]
) -> Reading:
    query = _search(source.search_by, scope.app, values)
    found = await _find(outside, source.collection, source.database, scope, query, ())
    note: dict[str, Json] = {"collection": source.collection, "query": query}
    if found is None:
        return Reading(source.default, {**note, "found": False, "tenant": scope.app})
    # The search key is not part of the value unless the schema has it, or there is no schema.
    beside = {KEY, *(set(query) - set(source.document) if source.document else ())}
    return Reading({key: value for key, value in found.items() if key not in beside}, note)


def _at(value: Json, path: Sequence[str]) -> Json:
    """Return the value at a path: a number is an index, a name in a list applies to each item."""
    for number, key in enumerate(path):
        if not isinstance(value, list):
            value = cast("Document", value).get(key) if isinstance(value, dict) else None
            continue
        items = cast("list[Json]", value)
        if not key.isdecimal():
            found = (_at(item, path[number:]) for item in items)
            return [value for value in found if value is not None]
        value = items[int(key)] if int(key) < len(items) else None
    return value


async def _find(
    outside: ExternalPorts,
    collection: str,
    database: str | None,
    scope: Scope,
    query: Document,
    fields: tuple[str, ...],
) -> Document | None:
    where = Collection(collection, database)
    return await _in_time(_documents(outside).find(scope, where, query, fields=fields))


async def _in_time(asked: Awaitable[T]) -> T:
    try:
        async with asyncio.timeout(PATIENCE):
            return await asked
    except TimeoutError:
        raise PortError(f"the document store did not answer within {PATIENCE:g} s") from None


def _documents(outside: ExternalPorts) -> Documents:
    if outside.documents is None:
        raise UsageError("this host has no document store")
    return outside.documents


def _search(name: str, app: str, values: Mapping[str, Json]) -> Document:
    """Return the query for the document whose field equals the run's value of that name."""
    if name in TENANT_VARIABLES:
        return {}  # The store searches the documents of the tenant only.
    value = values.get(name)
    if value is None:
        raise UsageError(f"documents are searched by {name}, which has no value here")
    return _without_tenant({name: _plain(value)}, app)


def _without_tenant(query: Document, app: str) -> Document:
    """Return a query without the tenant, which the store adds itself; refuse another tenant."""
    for name in TENANT_VARIABLES:
        if name in query and query[name] != app:
            raise UsageError(f"a query names {name}, and not that of its own tenant")
    return {name: value for name, value in query.items() if name not in TENANT_VARIABLES}


async def _from_service(
    outside: ExternalPorts,
    source: ExternalSource,
    scope: Scope,
    values: Mapping[str, Json],
    key: str,
) -> Reading:
    if outside.services is None:
        raise UsageError("this host has no services")
    request = service_request(outside, source, values, key)
    answer = await outside.services.ask(scope, request)
    value = _at(answer.value, source.field.split(".")) if source.field else answer.value
    note: dict[str, Json] = {"service": source.service, "operation": source.operation}
    if is_call(source):
        note |= {"method": source.method, "key": key}
    if answer.cached:
        note["cached"] = True
    if answer.attempts > 1:
        note["attempts"] = answer.attempts
    if value is None:
        return Reading(source.default, {**note, "found": False})
    return Reading(value, note)


def service_request(
    outside: ExternalPorts, source: ExternalSource, values: Mapping[str, Json], key: str
) -> ServiceRequest:
    """Return the request for a source; raises UsageError if a value for it is missing."""
    body = None
    if source.body is not None:
        body = to_json(fill_template(source.body, values, is_query=False))
    return ServiceRequest(
        service=source.service,
        operation=source.operation,
        url=_address(source.url, values),
        method=source.method,
        body=body,
        key=key,
        login=None if source.auth is None else login(source.auth, outside.environment),
        timeout=source.timeout_seconds,
        max_bytes=source.max_bytes,
        attempts=source.retry.attempts if source.retry else 1,
        backoff=source.retry.backoff_seconds if source.retry else 1.0,
        cache=source.cache.ttl_seconds if source.cache else 0.0,
    )


def login(auth: ServiceAuth, environment: Mapping[str, str]) -> ServiceLogin:
    """Return the login for a service; raises UsageError if its secret is not set."""
    secret = environment.get(auth.secret_env)
    if not secret:
        raise UsageError(
            f"the environment variable {auth.secret_env} is not set",
            hint=f"set {auth.secret_env} where Weft runs",
        )
    return ServiceLogin(auth.type, secret, auth.header)


async def _from_file(
    outside: ExternalPorts, source: FileSource, app: str, workflow: str
) -> Reading:
    if outside.files is None:
        raise UsageError("this host cannot read files")
    text = await outside.files.read(app, workflow, source.path)
    if source.format == "text":
        return Reading(text, {"path": source.path})
    value = await asyncio.to_thread(_parse_file, source.path, source.format, text)
    return Reading(value, {"path": source.path})


def _parse_file(path: str, form: Format, text: str) -> Json:
    parsed = parse_text(text, form)
    if parsed.errors:  # The text is not quoted: the file may contain a secret.
        raise PortError(f"{path} is not valid {form}; see {spot(text, parsed.errors[0].start)}")
    return cast("Json", parsed.data)


def fill_template(template: Json, values: Mapping[str, Json], *, is_query: bool = True) -> Json:
    """Return a JSON template with its values; `"{name}"` alone keeps the type of the value.

    In a query, a value must be there and cannot be an object.

    >>> filled({"total": {"$gt": "{limit}"}, "note": "for {user}"}, {"limit": 3, "user": "ada"})
    {'total': {'$gt': 3}, 'note': 'for ada'}
    """
    if isinstance(template, dict):
        fields = cast("Document", template)
        return {
            name: fill_template(field, values, is_query=is_query) for name, field in fields.items()
        }
    if isinstance(template, list):
        parts = cast("list[Json]", template)
        return [fill_template(part, values, is_query=is_query) for part in parts]
    if not isinstance(template, str):
        return template
    parts = parse_template(template)
    if len(parts) == 1 and isinstance(parts[0], Reference):
        if not is_query:
            return values.get(parts[0].name)
        return _plain(_needed(parts[0].name, values))
    return "".join(
        part if isinstance(part, str) else shown(_needed(part.name, values)) for part in parts
    )


def _plain(value: Json) -> Json:
    """Return a value for a comparison; an object would be read as operators."""
    if isinstance(value, dict):
        raise UsageError("an object cannot be put into a query")
    return value


def _needed(name: str, values: Mapping[str, Json]) -> Json:
    value = values.get(name)
    if value is None:
        raise UsageError(f"{name} is needed to find it and has no value here")
    return value


def _address(url: str, values: Mapping[str, Json]) -> str:
    """Return a url with encoded values; a value at its beginning is inserted unchanged."""
    parts = [
        part if isinstance(part, str) else quote(shown(_needed(part.name, values)), safe="")
        for part in parse_template(url)
    ]
    first = next(iter(parse_template(url)), "")
    if isinstance(first, Reference):
        parts[0] = shown(_needed(first.name, values))
    return "".join(parts)
