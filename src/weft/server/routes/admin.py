"""Keys, users and tenants: for administrators."""

from dataclasses import asdict
from http import HTTPStatus
from typing import Annotated, Final, TypeAlias

from fastapi import Depends
from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from weft.app.folders import LOCAL
from weft.errors import AccessDenied
from weft.server.answers import page_of
from weft.server.auth.keys import KeyInfo, NewKey
from weft.server.auth.users import APP_KIND, User
from weft.server.identity import ADMINISTRATOR
from weft.server.parameters import PRINTABLE, Body, Cursor, Limit, cursor_of, key_of, page
from weft.server.records import SERVER
from weft.server.routing import Caller, Context, Routes

routes: Final = Routes("administration")

#: A name of a tenant, a user or a role.
NameText: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=PRINTABLE)
]
_Names: TypeAlias = Annotated[list[NameText], Field(max_length=50)]


class NewKeyBody(Body):
    """Whose a key is, and what it may do."""

    app: NameText
    user: NameText
    roles: Annotated[_Names, Field(min_length=1)]
    groups: _Names = Field(default=[])
    name: str = Field(default="", max_length=200)
    expires_at: int | None = Field(default=None, ge=0, le=2**53)


class UserBody(Body):
    """A user of a tenant."""

    app: NameText
    user: NameText
    roles: _Names = Field(default=[])
    groups: _Names = Field(default=[])
    labels: _Names = Field(default=[])


class AppBody(Body):
    """A tenant."""

    app: NameText


class KeyTextAnswer(TypedDict):
    """A key that was just made; its text is shown only now."""

    id: str
    key: str


class AppAnswer(TypedDict):
    """A tenant."""

    app: str


async def _managed(caller: Caller, app: NameText | None = None) -> str:
    """Return the tenant that is named, by default the caller's; those of `local` manage all.

    Raises AccessDenied.
    """
    if app is not None and caller.app not in (app, LOCAL.app):
        raise AccessDenied(f"tenant {app}")
    return app or caller.app


#: The tenant that a request is about.
ManagedApp: TypeAlias = Annotated[str, Depends(_managed)]


@routes.add("GET", "/api/keys", roles=ADMINISTRATOR, answer=page_of(KeyInfo, "KeysAnswer"))
async def list_keys(app: ManagedApp, context: Context) -> object:
    """List the keys of a tenant, by default the caller's."""
    return await context.authenticator.keys.of_app(app)


@routes.add(
    "POST", "/api/keys", roles=ADMINISTRATOR, answer=KeyTextAnswer, status=HTTPStatus.CREATED
)
async def create_key(body: NewKeyBody, caller: Caller, context: Context) -> object:
    """Make a key; its text is shown only once."""
    await _require_app(context, caller, body.app)
    return _shown(await context.authenticator.keys.create(**body.model_dump()))


@routes.add("POST", "/api/keys/{key}/rotate", roles=ADMINISTRATOR, answer=KeyTextAnswer)
async def rotate_key(key: NameText, app: ManagedApp, context: Context) -> object:
    """Give a key another secret; the old one remains valid for a day."""
    return _shown(await context.authenticator.keys.rotate(app, key))


@routes.add("DELETE", "/api/keys/{key}", roles=ADMINISTRATOR)
async def delete_key(key: NameText, app: ManagedApp, context: Context) -> None:
    """Delete a key."""
    await context.authenticator.keys.delete(app, key)


@routes.add("GET", "/api/users", roles=ADMINISTRATOR, answer=page_of(User, "UsersAnswer"))
async def list_users(
    app: ManagedApp, context: Context, cursor: Cursor = None, limit: Limit = 50
) -> object:
    """List the users of a tenant."""
    users = context.authenticator.users
    found = await users.page(app, after=key_of(cursor), limit=limit + 1)
    return page(found, limit, lambda user: cursor_of(user.user), asdict)


@routes.add("POST", "/api/users", roles=ADMINISTRATOR)
async def put_user(body: UserBody, caller: Caller, context: Context) -> None:
    """Give a user roles, groups and labels, besides those of keys and tokens."""
    await _require_app(context, caller, body.app)
    user = User(body.user, tuple(body.roles), tuple(body.groups), tuple(body.labels))
    await context.authenticator.users.put(body.app, user)


@routes.add("DELETE", "/api/users/{user}", roles=ADMINISTRATOR)
async def delete_user(user: NameText, app: ManagedApp, context: Context) -> None:
    """Delete a user, with the user's keys and sessions."""
    known = context.authenticator
    ended = await known.end_all(app, user)
    if not await known.users.delete(app, user) and not ended:
        raise AccessDenied(f"there is no user {user}")


@routes.add("GET", "/api/apps", roles=ADMINISTRATOR, answer=page_of(AppAnswer))
async def list_apps(
    caller: Caller, context: Context, cursor: Cursor = None, limit: Limit = 50
) -> object:
    """List the tenants that the caller manages."""
    if caller.app != LOCAL.app:
        return [{"app": caller.app}]
    after = key_of(cursor)
    found = await context.records.records(SERVER, APP_KIND, after=after, limit=limit + 1)
    names = [record.key for record in found]
    names += [LOCAL.app] if LOCAL.app > after else []
    return page(sorted(names), limit, cursor_of, lambda app: {"app": app})


@routes.add("POST", "/api/apps", roles=ADMINISTRATOR)
async def create_app(body: AppBody, caller: Caller, context: Context) -> None:
    """Add a tenant."""
    if caller.app != LOCAL.app or body.app == LOCAL.app:
        raise AccessDenied("tenants")
    await context.authenticator.users.add_app(body.app)


@routes.add("DELETE", "/api/apps/{app}", roles=ADMINISTRATOR)
async def delete_app(app: NameText, caller: Caller, context: Context) -> None:
    """Remove a tenant with its keys, users and sessions; its runs stay until they are deleted."""
    known = context.authenticator
    if caller.app != LOCAL.app or not await known.users.delete_app(app):
        raise AccessDenied(f"tenant {app}")
    await known.end_all(app)


async def _require_app(context: Context, caller: Caller, app: str) -> None:
    """Raise AccessDenied or UsageError for a tenant that is not the caller's or was not added."""
    if await _managed(caller, app) != LOCAL.app:
        await context.authenticator.users.require_app(app)


def _shown(made: NewKey) -> dict[str, str]:
    return {"id": made.id, "key": made.text}
