"""The session of the page, and who calls."""

from importlib.metadata import version
from typing import Annotated, Final, Literal

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, StringConstraints
from typing_extensions import TypedDict

from weft.server.auth.authenticator import cookie_name, session_cookie
from weft.server.auth.sessions import LIFETIME
from weft.server.identity import KNOWN, PUBLIC, Unauthenticated
from weft.server.routing import Caller, Context, Routes, json_answer

routes: Final = Routes("session")

_HINT: Final = "`weft serve` prints a new token, `weft keys create` makes a key"


class Token(BaseModel):
    """The one-time token in the address that `weft serve` prints, or an API key."""

    model_config = ConfigDict(extra="forbid")
    token: Annotated[str, StringConstraints(min_length=1, max_length=200)]


class MeAnswer(TypedDict):
    """Who calls, and how this server works."""

    app: str
    user: str
    roles: list[str]
    groups: list[str]
    labels: list[str]
    version: str
    mode: Literal["gateway", "gateway and worker"]


@routes.add("POST", "/api/session", roles=PUBLIC)
async def begin_session(token: Token, request: Request, context: Context) -> Response:
    """Exchange a one-time token or an API key for the cookie of a session.

    A session that was begun with a key ends when the key is deleted or expires.
    """
    cookie = await context.authenticator.sessions.exchange(token.token)
    if cookie is None:
        raise Unauthenticated("the token or key is not valid", hint=_HINT)
    answer = json_answer({"ok": True})
    answer.set_cookie(
        cookie_name(request.headers),
        cookie,
        max_age=LIFETIME // 1000,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@routes.add("DELETE", "/api/session", roles=PUBLIC)
async def end_session(request: Request, context: Context) -> Response:
    """Log out."""
    cookie = session_cookie(request.headers)
    if cookie is not None:
        await context.authenticator.sessions.end(cookie)
    answer = json_answer({"ok": True})
    answer.delete_cookie(cookie_name(request.headers), httponly=True, samesite="strict")
    return answer


@routes.add("GET", "/api/me", roles=KNOWN, answer=MeAnswer)
async def me(caller: Caller, context: Context) -> object:
    """Tell who calls."""
    return MeAnswer(
        app=caller.app,
        user=caller.user,
        roles=sorted(caller.roles),
        groups=list(caller.groups),
        labels=list(caller.labels),
        version=version("weft-agents"),
        mode="gateway and worker" if context.works else "gateway",
    )
