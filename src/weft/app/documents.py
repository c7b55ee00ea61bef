"""The documents of a workspace: in its own file, or where a setting says."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Final, TypeAlias, cast
from urllib.parse import urlsplit

from weft.adapters.documents.requests import TENANT_FIELD
from weft.adapters.documents.sql import SqlDocuments
from weft.adapters.documents.sqlite import SqliteDocuments
from weft.app.folders import make_folder, refuse_package
from weft.errors import UsageError
from weft.findings import Json
from weft.ports.documents import Collection, Document, Documents
from weft.ports.scope import Scope

#: The documents of a workspace; their folder is not for version control.
DOCUMENTS: Final = Path(".weft") / "documents.db"

#: A collection, and a document for it.
Record: TypeAlias = tuple[Collection, Document]

_MONGODB: Final = ("mongodb://", "mongodb+srv://")
POSTGRES: Final = ("postgresql://", "postgres://")
_OBJECT: Final = 'write fields as JSON: {"name": "Ada"}'
_RECORD: Final = 'write {"collection": "Customers", "document": {...}}, or name --collection'


def documents_address(settings: Mapping[str, str]) -> str:
    """Return the server or the file that the settings name; empty for that of the workspace."""
    store = settings.get("WEFT_STORE", "")
    return settings.get("WEFT_DOCUMENTS") or (store if store.startswith(POSTGRES) else "")


def documents_file(workspace: Path, settings: Mapping[str, str]) -> Path | None:
    """Return the file of the documents; None if they are on a server."""
    place = documents_address(settings)
    if not place:
        return workspace / DOCUMENTS
    if place.startswith((*_MONGODB, *POSTGRES)):
        return None
    if "://" in place:
        kind = place.partition("://")[0]
        raise UsageError(
            f"WEFT_DOCUMENTS must be a file, or an address of MongoDB or PostgreSQL, not {kind}",
            hint="write mongodb://HOST:PORT/DATABASE, postgresql://USER@HOST/DATABASE, or the path"
            " of a file",
        )
    return Path(place)


def documents_of(workspace: Path, settings: Mapping[str, str]) -> Documents:
    """Return the documents of a workspace, connected with the first use. Close them.

    Raises UsageError for settings that can never work, SetupError if a library is missing.
    """
    file = documents_file(workspace, settings)
    tenant_field = settings.get("WEFT_DOCUMENTS_TENANT_FIELD") or TENANT_FIELD
    if file is None:
        address = documents_address(settings)
        # Deferred: optional dependencies.
        if address.startswith(POSTGRES):
            from weft.adapters.documents.postgres import PostgresDocuments  # noqa: PLC0415

            setting = "WEFT_DOCUMENTS" if settings.get("WEFT_DOCUMENTS") else "WEFT_STORE"
            _require_postgres(address, setting)
            return PostgresDocuments(address, tenant_field=tenant_field, setting=setting)
        from weft.adapters.documents.mongodb import MongoDocuments  # noqa: PLC0415

        return MongoDocuments(address, tenant_field=tenant_field)

    def prepare() -> None:
        if file == workspace / DOCUMENTS:
            refuse_package(workspace, "documents")
            make_folder(file.parent, "documents")

    return SqliteDocuments(file, tenant_field=tenant_field, prepare=prepare)


def _require_postgres(address: str, setting: str) -> None:
    """Refuse an address that no server can have."""
    try:
        for host in urlsplit(address).netloc.rpartition("@")[2].split(","):
            _ = urlsplit(f"//{host}").port  # Raises ValueError.
    except ValueError:  # Its message may quote the password.
        raise UsageError(
            f"{setting} is not the address of a PostgreSQL server: its host or port is invalid",
            hint="write postgresql://USER@HOST:PORT/DATABASE; in a password, write @ as %40 and /"
            " as %2F",
        ) from None


async def open_documents(workspace: Path, settings: Mapping[str, str]) -> Documents:
    """Return the documents of a workspace, opened now. Raises as `documents_of`, and StoreError."""
    store = documents_of(workspace, settings)
    if isinstance(store, SqlDocuments):
        await store.opened()
    return store


async def put_document(
    store: Documents, scope: Scope, collection: Collection, new: Document
) -> str:
    """Put a document by its key; without one, the key is derived from the content.

    So putting the same document twice stores it once.
    """
    made = blake2b(json.dumps(new, sort_keys=True).encode(), digest_size=12).hexdigest()
    return await store.put(scope, collection, {"_id": new.get("_id", made)}, new)


def read_records(text: str, collection: Collection | None) -> list[Record]:
    """Read documents from a JSON list or from JSON lines; raises UsageError for an invalid one.

    Without a collection, each is an object with `collection` and `document`.
    """
    if text.lstrip().startswith("["):
        items = enumerate(cast("list[Json]", _parse(text, "the file")), 1)
        found = [(f"item {number}", item) for number, item in items]
    else:
        lines = ((f"line {number}", line) for number, line in enumerate(text.split("\n"), 1))
        found = [(place, _parse(line, place)) for place, line in lines if line.strip()]
    return [_record(place, item, collection) for place, item in found]


def _record(place: str, item: Json, collection: Collection | None) -> Record:
    new = _object(item, place)
    if collection is not None:
        return collection, new
    name, database = new.get("collection"), new.get("database")
    if not isinstance(name, str) or not isinstance(database, str | None):
        raise UsageError(f"{place} names no collection", hint=_RECORD)
    return Collection(name, database), _object(new.get("document"), f"the document in {place}")


def parse_object(text: str, what: str) -> Document:
    """Parse a JSON object; raises UsageError with the place of the error."""
    return _object(_parse(text, what), what)


def _parse(text: str, what: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not valid JSON: {error}", hint=_OBJECT) from error


def _object(value: Json, what: str) -> Document:
    if not isinstance(value, dict):
        raise UsageError(f"{what} is not an object", hint=_OBJECT)
    return cast("Document", value)


def demo_documents() -> str:
    """Return the example documents of a new workspace, one per line."""
    return (Path(__file__).parent / "demo" / "documents.jsonl").read_text(encoding="utf-8")
