"""Who sends a request: by its key, its token or its session."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import cookie_parser

from weft.server.auth.keys import PREFIX, ApiKeys
from weft.server.auth.sessions import COOKIE, Sessions
from weft.server.auth.tokens import TokenVerifier
from weft.server.auth.users import Users
from weft.server.identity import Principal, Unauthenticated


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Finds the caller of a request."""

    keys: ApiKeys
    sessions: Sessions
    users: Users
    tokens: TokenVerifier | None

    async def caller(self, headers: Mapping[str, str]) -> Principal | None:
        """Return the caller; None if the request names no user.

        Raises Unauthenticated if a key, token or session is not valid.
        """
        given = headers.get("authorization")
        if given is not None:
            kind, _, text = given.partition(" ")
            found = await self._bearer(text.strip()) if kind.lower() == "bearer" else None
            if found is None:
                raise Unauthenticated("the key or token is not valid")
            return await self.users.with_user(found)
        cookie = session_cookie(headers)
        if cookie is None:
            return None
        found = await self.sessions.find(cookie)
        if found is None:
            raise Unauthenticated("the session has ended")
        return await self.users.with_user(found)

    async def end_all(self, app: str, user: str | None = None) -> int:
        """Delete the keys and sessions of a tenant, or of a user; return how many there were."""
        keys = [key for key in await self.keys.of_app(app) if user in (None, key.user)]
        for key in keys:
            await self.keys.delete(app, key.id)
        return len(keys) + await self.sessions.end_all(app, user)

    async def _bearer(self, text: str) -> Principal | None:
        if text.startswith(PREFIX):
            return await self.keys.verify(text)
        return None if self.tokens is None else await self.tokens.verify(text)


def session_cookie(headers: Mapping[str, str]) -> str | None:
    """Return the cookie of the session, whatever other cookies look like."""
    return cookie_parser(headers.get("cookie", "")).get(cookie_name(headers))


def cookie_name(headers: Mapping[str, str]) -> str:
    """Return the name of the session's cookie, with the port: all ports of a host share cookies.

    >>> cookie_name({"host": "localhost:8765"}), cookie_name({"host": "weft.example"})
    ('weft_session_8765', 'weft_session')
    """
    port = headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE
