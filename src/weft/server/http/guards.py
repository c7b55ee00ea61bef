"""Checks of every request before it is routed: Host, Origin, and size and time of the body."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.server.problems import problem, problem_answer
from weft.server.settings import ServerSettings, is_loopback
from weft.wire.findings import Problem

_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
#: Paths that take files.
_UPLOADS: Final = ("/api/packages", "/api/documents")
#: A body may take this much longer per byte received: a slow line is no attack.
_SECONDS_PER_BYTE: Final = 1 / 50_000
#: How long the rest of a body that is too large is read.
_DISCARD_SECONDS: Final = 1.0

#: Headers of every answer.
_SECURITY: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class Guards:
    """Refuses what no route should see."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on if nothing is wrong with it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, bytes] = dict(scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1").lower()
        if not self._is_own(host):
            hint = "add the name to WEFT_HOSTS"
            found = problem(HTTPStatus.MISDIRECTED_REQUEST, "this server has another name", hint)
            await _refuse(found, scope, receive, send)
        elif not self._may_call(scope, headers, host):
            hint = "add the origin to WEFT_ORIGINS"
            found = problem(HTTPStatus.FORBIDDEN, "pages of this origin may not call", hint)
            await _refuse(found, scope, receive, send)
        elif scope["type"] == "websocket":
            await self._app(scope, receive, send)
        else:
            await self._with_body(scope, headers, receive, send)

    def _is_own(self, host: str) -> bool:
        name = _name(host)
        known = self._settings.hosts
        return name in known or is_loopback(name) or (not known and name == self._settings.host)

    def _may_call(self, scope: Scope, headers: Mapping[bytes, bytes], host: str) -> bool:
        """Tell whether a page of the request's origin may call, and change something."""
        origin = headers.get(b"origin")
        if origin is None or (scope["type"] == "http" and scope["method"] in _SAFE):
            return True
        text = origin.decode("latin-1").lower()
        return text in self._settings.origins or _host_of(text) == host

    async def _with_body(
        self, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive, send: Send
    ) -> None:
        limits = self._settings.limits
        is_upload = scope["path"].startswith(_UPLOADS)
        most = limits.upload_bytes if is_upload else limits.body_bytes
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            await _discard(receive)
            await _refuse(_too_large(most), scope, receive, send)
            return
        begun = asyncio.get_running_loop().time()
        received = 0
        refused: Problem | None = None
        is_answered = False

        async def limited() -> Message:
            """Receive a piece of the body, as long as it is small and quick enough."""
            nonlocal received, refused
            end = begun + limits.body_seconds + received * _SECONDS_PER_BYTE
            try:
                async with asyncio.timeout_at(end):
                    message = await receive()
            except TimeoutError:
                refused = problem(HTTPStatus.REQUEST_TIMEOUT, "the body took too long")
                raise _Refused from None
            received += len(message.get("body", b""))
            if received > most:
                refused = _too_large(most)
                raise _Refused
            return message

        async def answer(message: Message) -> None:
            nonlocal is_answered
            if refused is not None:  # What the route says of a body that it could not read.
                if not is_answered:
                    is_answered = True
                    if received > most:
                        await _discard(receive)
                    await _refuse(refused, scope, receive, send)
                return
            if message["type"] == "http.response.start":
                is_answered = True
                message["headers"] = [*message.get("headers", ()), *_SECURITY]
            await send(message)

        has_body = length != b"0" or b"transfer-encoding" in headers
        await self._app(scope, limited if has_body else receive, answer)


class _Refused(Exception):
    """A body is too large or too slow."""


def _name(host: str) -> str:
    """Return a Host header without its port.

    >>> _name("shop.example:8765"), _name("[::1]:80")
    ('shop.example', '[::1]')
    """
    return host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host


def _host_of(origin: str) -> str | None:
    """Return the host of an origin; None if it is not an address.

    >>> _host_of("http://shop.example:8765"), _host_of("http://[")
    ('shop.example:8765', None)
    """
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _too_large(most: int) -> Problem:
    text = f"the body is larger than {most} bytes"
    return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, text)


async def _discard(receive: Receive) -> None:
    """Read the rest of a body for a moment: a client that still sends would not see the answer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            while (await receive()).get("more_body"):
                pass


async def _refuse(found: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    await problem_answer(found, {"connection": "close"})(scope, receive, send)
