"""Every request is counted and logged, with an id that its answer and its log lines have."""

import asyncio
import logging
import re
import secrets
from http import HTTPStatus
from time import perf_counter
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from weft.app.logs import REQUEST
from weft.server.metrics import Metrics

_log: Final = logging.getLogger("weft.http")

#: The header with the id of a request; one that a client or a proxy gives is kept.
_ID_HEADER: Final = b"x-request-id"
_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")

#: What no route has answered.
_NO_ROUTE: Final = "(none)"
_METHODS: Final = frozenset({"GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"})


class Observed:
    """An application whose requests are counted and logged."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        is_socket = scope["type"] == "websocket"
        if scope["type"] != "http" and not is_socket:
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(_ID_HEADER, b"")
        id_ = given if _ID.fullmatch(given) else secrets.token_hex(8).encode()
        token = REQUEST.set(id_.decode())
        begun = perf_counter()
        status = int(HTTPStatus.INTERNAL_SERVER_ERROR)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (_ID_HEADER, id_)]
            await send(message)

        self._metrics.sockets += is_socket
        try:
            await self._app(scope, receive, send if is_socket else answer)
            status = int(HTTPStatus.SWITCHING_PROTOCOLS) if is_socket else status
        except asyncio.CancelledError:
            _log.warning("the request of %s was cut off: the server is stopping", scope["path"])
            raise
        finally:
            self._metrics.sockets -= is_socket
            self._ended(scope, status, perf_counter() - begun)
            REQUEST.reset(token)

    def _ended(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", _NO_ROUTE)
        method = "WEBSOCKET" if scope["type"] == "websocket" else scope["method"]
        method = method if method in _METHODS or method == "WEBSOCKET" else "(other)"
        if method != "WEBSOCKET":
            self._metrics.answered(method, route, status, seconds)
        if _log.isEnabledFor(logging.INFO):
            fields = {"method": method, "route": route, "status": status}
            fields |= {"ms": round(seconds * 1000, 1)}
            _log.info("%s %s %s", method, route, status, extra={"fields": fields})
