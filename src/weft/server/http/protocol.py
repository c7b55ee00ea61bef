"""The protocols of uvicorn with limits that it lacks: on headers, and on the time they take.

A connection has a deadline from its beginning to the end of its header. Of connections without a
complete header only so many are kept: when one more comes, the oldest is closed. So clients that
say nothing leave room for those that do.
"""

import asyncio
from asyncio import TimerHandle
from http import HTTPStatus
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from weft.server.problems import problem, problem_bytes
from weft.server.settings import Limits

#: The buffer of the system for a socket: a client that does not read holds only this much.
SEND_BUFFER: Final = 128 * 1024


def limited_protocol(limits: Limits) -> type[HttpToolsProtocol]:
    """Return the protocol of a server with these limits."""
    waiting: dict[LimitedProtocol, None] = {}

    class Protocol(LimitedProtocol):
        _limits = limits
        _waiting = waiting

    return Protocol


class LimitedProtocol(HttpToolsProtocol):
    """An HTTP connection whose header has a size and a deadline."""

    _limits: Limits
    #: The connections without a complete header, the oldest first.
    _waiting: "dict[LimitedProtocol, None]"

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - as uvicorn calls it
        super().__init__(*given, **named)
        self._header_bytes = 0
        self._is_in_header = True
        self._deadline: TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._expect_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._header_ended()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_in_header:
            if self._deadline is None:  # The next request of a connection that is kept alive.
                self._expect_header()
            # What comes after the header in the same piece counts as well: a piece is small.
            self._header_bytes += len(data)
            if self._header_bytes > self._limits.header_bytes and b"\r\n\r\n" not in data:
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the header is too large")
                return
        super().data_received(data)

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._limits.url_bytes:
            self._refuse(HTTPStatus.REQUEST_URI_TOO_LONG, "the address is too long")

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        total = sum(len(key) + len(text) + 4 for key, text in self.headers)
        if total > self._limits.header_bytes:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the header is too large")

    def on_headers_complete(self) -> None:
        self._is_in_header = False
        self._header_ended()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def on_message_complete(self) -> None:
        if self.transport.is_closing():
            return
        super().on_message_complete()
        self._is_in_header = True
        self._header_bytes = 0

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - as uvicorn calls it
        self._refuse(HTTPStatus.BAD_REQUEST, "the request is not valid HTTP")

    def _expect_header(self) -> None:
        if len(self._waiting) >= self._limits.half_open:
            oldest = next(iter(self._waiting))
            oldest._header_ended()  # noqa: SLF001 - another of this class
            oldest.transport.abort()
        self._waiting[self] = None
        self._deadline = self.loop.call_later(self._limits.header_seconds, self._too_late)

    def _header_ended(self) -> None:
        self._waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        self._waiting.pop(self, None)
        if self._header_bytes:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the header took too long")
        else:
            self.transport.close()

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer with a problem and close the connection."""
        if self.transport.is_closing():
            return
        self._header_ended()
        content = problem_bytes(problem(status, message))
        head = (
            b"content-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n" % len(content)
        )
        self.transport.write(STATUS_LINE[status] + head + content)
        self.transport.close()
