"""Reading and writing the variables that live outside: documents, services, files."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import quote

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
)

#: How long a store of documents may take for an answer, in seconds.
PATIENCE: Final = 10.0

#: The key under which stores keep the identity of a document.
KEY: Final = "_id"


@dataclass(frozen=True, slots=True)
class Reading:
    """A value that was read, and what is told about how."""

    value: Json
    note: dict[str, Json] = field(default_factory=dict[str, Json])


async def read_source(
    outside: ExternalPorts, source: Source, *, app: str, workflow: str, values: Mapping[str, Json]
) -> Reading:
    """Read the value of a variable; `values` are those of all others.

    Raises PortError or UsageError, which says why it cannot be read.
    """
    match source:
        case DatabaseSource():
            return await _from_database(outside, source, Scope(app), values)
        case EntitySource():
            return await _from_entity(outside, source, Scope(app), values)
        case ExternalSource():
            return await _from_service(outside, source, Scope(app), values)
        case FileSource():
            return await _from_file(outside, source, workflow)
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
        if not query:  # That of the tenant: there is one, and no field says which.
            found = await store.find(Scope(app), collection, {}, fields=(KEY,))
            query = {KEY: found[KEY] if found else app}
        await store.put(Scope(app), collection, query, kept)


async def _from_database(
    outside: ExternalPorts, source: DatabaseSource, scope: Scope, values: Mapping[str, Json]
) -> Reading:
    if source.query_template is not None:
        query = _without_tenant(cast("Document", filled(source.query_template, values)), scope.app)
    elif source.search_by is not None:
        query = _search(source.search_by, scope.app, values)
    else:
        query = {}
    wanted = (source.field,) if source.field else source.fields
    found = await _find(outside, source.collection, source.database, scope, query, wanted)
    note: dict[str, Json] = {"collection": source.collection, "query": query}
    if found is None:
        return Reading(source.default, {**note, "found": False, "tenant": scope.app})
    if source.field:
        return _or_default(_at(found, source.field.split(".")), source.default, note)
    if source.fields:
        return Reading({it: _at(found, it.split(".")) for it in source.fields}, note)
    return Reading({key: it for key, it in found.items() if key != KEY}, note)


async def _from_entity(
    outside: ExternalPorts, source: EntitySource, scope: Scope, values: Mapping[str, Json]
) -> Reading:
    query = _search(source.search_by, scope.app, values)
    found = await _find(outside, source.collection, source.database, scope, query, ())
    note: dict[str, Json] = {"collection": source.collection, "query": query}
    if found is None:
        return Reading(source.default, {**note, "found": False, "tenant": scope.app})
    # What it is found by is no field of it, unless its schema says so or says nothing.
    beside = {KEY, *(set(query) - set(source.document) if source.document else ())}
    return Reading({key: it for key, it in found.items() if key not in beside}, note)


def _or_default(value: Json, default: Json, note: dict[str, Json]) -> Reading:
    return Reading(default, {**note, "found": False}) if value is None else Reading(value, note)


def _at(value: Json, path: Sequence[str]) -> Json:
    """Return what stands at a path: a number is a place in a list, a name is that of each item."""
    for number, key in enumerate(path):
        if not isinstance(value, list):
            value = cast("Document", value).get(key) if isinstance(value, dict) else None
            continue
        items = cast("list[Json]", value)
        if not key.isdecimal():
            found = (_at(it, path[number:]) for it in items)
            return [it for it in found if it is not None]
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
    try:
        async with asyncio.timeout(PATIENCE):
            return await _documents(outside).find(scope, where, query, fields=fields)
    except TimeoutError:
        raise PortError(f"the store of documents gave no answer within {PATIENCE:g} s") from None


def _documents(outside: ExternalPorts) -> Documents:
    if outside.documents is None:
        raise UsageError("no store of documents is set up here")
    return outside.documents


def _search(name: str, app: str, values: Mapping[str, Json]) -> Document:
    """Return the query for the document whose field equals the run's own value of that name."""
    if name in TENANT_VARIABLES:
        return {}  # The store looks among those of the tenant alone.
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
    outside: ExternalPorts, source: ExternalSource, scope: Scope, values: Mapping[str, Json]
) -> Reading:
    if outside.services is None:
        raise UsageError("no services can be asked here")
    request = ServiceRequest(
        service=source.service,
        operation=source.operation,
        url=_address(source.url, values),
        login=None if source.auth is None else login(source.auth, outside.environment),
        timeout=source.timeout_seconds,
        max_bytes=source.max_bytes,
        attempts=source.retry.attempts if source.retry else 1,
        backoff=source.retry.backoff_seconds if source.retry else 1.0,
        cache=source.cache.ttl_seconds if source.cache else 0.0,
    )
    answer = await outside.services.get(scope, request)
    value = _at(answer.value, source.field.split(".")) if source.field else answer.value
    note: dict[str, Json] = {"service": source.service, "operation": source.operation}
    if answer.cached:
        note["cached"] = True
    if answer.attempts > 1:
        note["attempts"] = answer.attempts
    return _or_default(value, source.default, note)


def login(auth: ServiceAuth, environment: Mapping[str, str]) -> ServiceLogin:
    """Return how a service knows us; raises UsageError if the secret is not there."""
    secret = environment.get(auth.secret_env)
    if not secret:
        raise UsageError(
            f"the environment variable {auth.secret_env} is not set",
            hint=f"set {auth.secret_env} where Weft runs",
        )
    return ServiceLogin(auth.type, secret, auth.header)


async def _from_file(outside: ExternalPorts, source: FileSource, workflow: str) -> Reading:
    if outside.files is None:
        raise UsageError("no files can be read here")
    text = await outside.files.read(workflow, source.path)
    if source.format == "text":
        return Reading(text, {"path": source.path})
    value = await asyncio.to_thread(_parsed, source.path, source.format, text)
    return Reading(value, {"path": source.path})


def _parsed(path: str, form: Format, text: str) -> Json:
    parsed = parse_text(text, form)
    if parsed.errors:  # What is wrong is not quoted: the file may hold a secret.
        raise PortError(f"{path} is no {form}; look at {spot(text, parsed.errors[0].start)}")
    return cast("Json", parsed.data)


def filled(template: Json, values: Mapping[str, Json]) -> Json:
    """Return a template of JSON with values put in; `"{name}"` alone keeps the type of its value.

    >>> filled({"total": {"$gt": "{limit}"}, "note": "for {user}"}, {"limit": 3, "user": "ada"})
    {'total': {'$gt': 3}, 'note': 'for ada'}
    """
    if isinstance(template, dict):
        fields = cast("Document", template)
        return {name: filled(it, values) for name, it in fields.items()}
    if isinstance(template, list):
        return [filled(it, values) for it in cast("list[Json]", template)]
    if not isinstance(template, str):
        return template
    parts = parse_template(template)
    if len(parts) == 1 and isinstance(parts[0], Reference):
        return _plain(_needed(parts[0].name, values))
    return "".join(
        part if isinstance(part, str) else shown(_needed(part.name, values)) for part in parts
    )


def _plain(value: Json) -> Json:
    """Return a value as something to compare with: an object would be taken for operators."""
    if isinstance(value, dict):
        raise UsageError("an object cannot be put into a query")
    return value


def _needed(name: str, values: Mapping[str, Json]) -> Json:
    value = values.get(name)
    if value is None:
        raise UsageError(f"{name} is needed to find it and has no value here")
    return value


def _address(url: str, values: Mapping[str, Json]) -> str:
    """Return a url with values in it, encoded; one at its beginning is the first part of it."""
    parts = [
        it if isinstance(it, str) else quote(shown(_needed(it.name, values)), safe="")
        for it in parse_template(url)
    ]
    first = next(iter(parse_template(url)), "")
    if isinstance(first, Reference):
        parts[0] = shown(_needed(first.name, values))
    return "".join(parts)
