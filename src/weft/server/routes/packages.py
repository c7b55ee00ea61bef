"""Packages: installed, updated and rolled back from zip files, and exported."""

import asyncio
from http import HTTPStatus
from typing import Annotated, Final, TypeAlias
from urllib.parse import quote

from fastapi import Body as FromBody
from fastapi import Depends, Query
from fastapi.responses import Response
from pydantic import StringConstraints
from typing_extensions import TypedDict

from weft.app.folders import LOCAL
from weft.errors import AccessDenied
from weft.ports.records import Record
from weft.server.answers import page_of
from weft.server.context import ServerContext
from weft.server.identity import DEVELOPER, OPERATOR, STAFF, Principal
from weft.server.package_changes import PackagePlace
from weft.server.parameters import Body, Cursor, Limit, cursor_of, key_of, page
from weft.server.records import SERVER
from weft.server.routes.workflows import (
    DryRun,
    Force,
    FoundPlace,
    NamePath,
    PackageChangeAnswer,
    shown_change,
)
from weft.server.routing import Caller, Context, Routes, json_answer

routes: Final = Routes("packages")

Upload = Annotated[
    bytes,
    FromBody(media_type="application/zip", description="A zip file that `weft export` writes."),
]
Shared = Annotated[
    bool, Query(description="For all tenants; administrators of the tenant `local` only.")
]


class RollbackBody(Body):
    """The version to go back to; by default the newest one that differs."""

    version: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = None


class VersionAnswer(TypedDict):
    """A change of a package: who made it, and the resulting version."""

    #: The hash of all files.
    version: str
    digest: str
    at: int
    #: found: the version was there before, and was not installed by this API.
    action: str
    user: str
    is_present: bool
    #: Whether it can be brought back.
    is_kept: bool


@routes.add(
    "POST",
    "/api/packages",
    roles=OPERATOR,
    answer=PackageChangeAnswer,
    also={HTTPStatus.CREATED: "The package is new."},
)
async def install(
    content: Upload,
    caller: Caller,
    context: Context,
    *,
    shared: Shared = False,
    dry_run: DryRun = False,
    force: Force = False,
) -> Response:
    """Install or update a package of the caller's tenant, or of all tenants.

    One with errors is refused with its findings, and never replaces another one. Runs go on with
    the version they were started with.
    """
    owner = await owner_of(context, caller, shared=shared)
    change = await context.packages.install(
        owner, content, caller.user, dry_run=dry_run, force=force
    )
    is_new = change.done.created and change.written
    return json_answer(shown_change(change), HTTPStatus.CREATED if is_new else HTTPStatus.OK)


@routes.add(
    "GET",
    "/api/packages/{name}/zip",
    roles=DEVELOPER,
    answer=bytes,
    media="application/zip",
)
async def export(place: FoundPlace, context: Context) -> Response:
    """Download a package, as `POST /api/packages` accepts it; 422 if it has errors."""
    return zip_answer(place.name, await asyncio.to_thread(context.packages.zipped, place))


async def _find_owned(
    name: NamePath, caller: Caller, context: Context, *, shared: Shared = False
) -> PackagePlace:
    """Return a package that belongs to the caller; raises NotFoundError."""
    owner = await owner_of(context, caller, shared=shared)
    return await asyncio.to_thread(context.packages.place, caller.app, name, owner=owner)


#: The package of the caller, or of all tenants, that a path names.
OwnedPlace: TypeAlias = Annotated[PackagePlace, Depends(_find_owned)]


@routes.add("POST", "/api/packages/{name}/rollback", roles=OPERATOR, answer=PackageChangeAnswer)
async def roll_back(
    place: OwnedPlace,
    caller: Caller,
    context: Context,
    body: RollbackBody | None = None,
    *,
    dry_run: DryRun = False,
) -> object:
    """Bring back a former version of a package."""
    version = None if body is None else body.version
    return shown_change(
        await context.packages.roll_back(place, version, caller.user, dry_run=dry_run)
    )


@routes.add("GET", "/api/packages/{name}/versions", roles=STAFF, answer=page_of(VersionAnswer))
async def list_versions(
    place: OwnedPlace, context: Context, cursor: Cursor = None, limit: Limit = 50
) -> object:
    """List what changed a package, newest first."""
    found, kept, present = await context.packages.versions(
        place, cursor=key_of(cursor), limit=limit + 1
    )

    def show(record: Record) -> dict[str, object]:
        version = record.value["version"]
        return {**record.value, "is_present": version == present, "is_kept": version in kept}

    return page(found, limit, lambda record: cursor_of(record.key), show)


def zip_answer(name: str, content: bytes) -> Response:
    """Return the zip file of a package as a download."""
    # The name of a package may hold letters that a header cannot.
    disposition = f"attachment; filename*=UTF-8''{quote(name)}.zip"
    return Response(
        content, headers={"content-disposition": disposition}, media_type="application/zip"
    )


async def owner_of(context: ServerContext, caller: Principal, *, shared: bool) -> str:
    """Return whose package the caller changes: the only tenant of a server has no other ones."""
    if shared and not await context.may_change_shared_packages(caller):
        raise AccessDenied("packages of all tenants")
    is_local = caller.app == LOCAL.app
    return SERVER if shared or (is_local and await context.has_one_tenant()) else caller.app
