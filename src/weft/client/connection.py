"""HTTP requests to one server: with its key, and sent again while the server restarts."""

import asyncio
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from aiohttp import ClientConnectorError, ClientError, ClientResponse, ClientSession, ClientTimeout
from pydantic_core import from_json

from weft.errors import (
    AccessDenied,
    CheckFailed,
    ConflictError,
    NotFoundError,
    PortError,
    SetupError,
    UsageError,
    WeftError,
)
from weft.findings import Finding, Place

#: Seconds for which a server that was reached before may be away.
PATIENCE: Final = 30.0

#: Seconds between two attempts: at first, and at most.
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0

#: The most items that the server gives at once.
_MOST: Final = 200

#: A stream is silent for at most 20 seconds.
_TIMEOUT: Final = ClientTimeout(total=60, sock_connect=10)
_STREAM_TIMEOUT: Final = ClientTimeout(total=None, sock_connect=10, sock_read=60)

#: What a proxy answers while the server behind it is away.
_AWAY: Final = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


class Request(NamedTuple):
    """What is sent."""

    method: str
    path: str
    query: Mapping[str, object] = {}
    body: Mapping[str, object] | None = None
    headers: Mapping[str, str] = {}


class _Away(PortError):
    """The server does not answer now; it is asked again for a while."""


class Connection:
    """Sends requests; a request that may have been lost is repeated with the same key."""

    def __init__(
        self,
        url: str,
        key: str | Callable[[], str],
        note: Callable[[str], None] | None = None,
    ) -> None:
        self.url = address_of(url)
        self._find_key = key if callable(key) else lambda: key
        self._key = self._find_key()
        self._session: ClientSession | None = None
        self._was_reached = False
        self._note = note or _say_nothing
        self._is_away = False

    async def get(self, path: str, **query: object) -> Any:  # noqa: ANN401 - JSON
        """Return JSON."""
        return from_json(await self.read(path, **query))

    async def read(self, path: str, **query: object) -> bytes:
        """Return the content of an answer."""
        return await self._send(Request("GET", path, query))

    async def items(
        self,
        path: str,
        query: Mapping[str, object],
        *,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> AsyncGenerator[Any]:
        """Yield the items of a list, page after page."""
        left = sys.maxsize if limit is None else limit
        while left > 0:
            page = await self.get(path, cursor=cursor, limit=min(left, _MOST), **query)
            for item in page["items"]:
                yield item
            left, cursor = left - _MOST, page["next"]
            if cursor is None:
                return

    async def post(
        self, path: str, body: Mapping[str, object] | None = None, *, key: str | None = None
    ) -> Any:  # noqa: ANN401 - JSON
        """Send JSON and return JSON; `key` names the request, if another one may repeat it."""
        headers = {"Idempotency-Key": key or secrets.token_hex(16)}
        return from_json(await self._send(Request("POST", path, {}, body or {}, headers)))

    async def delete(self, path: str) -> None:
        """Delete something."""
        await self._send(Request("DELETE", path))

    async def messages(self, path: str, after: str) -> AsyncGenerator[tuple[str, bytes]]:
        """Yield the messages of a server-sent stream, each with its id (empty if it has none).

        A stream that breaks off is continued after the last message with an id. It ends where the
        server has ended it.
        """
        attempts = self._attempts()
        while True:
            await anext(attempts)
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after else {})
            request = Request("GET", path, {}, None, headers)
            try:
                async with self._open(request, _STREAM_TIMEOUT) as answer:
                    async for id_, data in _messages_of(answer):
                        attempts = self._attempts()
                        await anext(attempts)
                        yield id_, data
                        after = id_ or after
                    return
            except (ClientError, TimeoutError, PortError) as error:
                if isinstance(error, PortError) and not error.retryable:
                    raise
                self._require_reached(error)  # One that stops, or is away: another may come.

    async def _send(self, request: Request) -> bytes:
        async for _ in self._attempts():
            try:
                async with self._open(request, _TIMEOUT) as answer:
                    return await answer.read()
            except (ClientError, TimeoutError, _Away) as error:
                self._require_reached(error)
        raise AssertionError("the last attempt returns or raises")

    @asynccontextmanager
    async def _open(
        self, request: Request, limits: ClientTimeout
    ) -> AsyncGenerator[ClientResponse]:
        """Send a request once; raises what a problem means."""
        if self._session is None:
            self._session = ClientSession()
        key, query = self._key, request.query.items()
        opening = self._session.request(
            request.method,
            f"{self.url}{request.path}",
            params=[(name, str(value)) for name, values in query for value in _several(values)],
            json=request.body,
            headers={**request.headers, **_authorization(key)},
            timeout=limits,
            allow_redirects=False,
        )
        async with opening as answer:
            self._was_reached = True
            if self._is_away and answer.status not in _AWAY:
                self._is_away = False
                self._note("connected again")
            if answer.status == HTTPStatus.UNAUTHORIZED:
                self._require_other_key(key)
            if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
                raise error_of(answer.status, await answer.read())
            yield answer

    def _require_other_key(self, refused: str) -> None:
        """Raise what sends a refused request again if there is another key by now."""
        self._key = self._find_key()
        if self._key != refused:
            raise _Away("the key has changed", retryable=True)
        if not refused:
            raise SetupError(f"no key was found for the server {self.url}", hint=_NO_KEY_HINT)

    async def _attempts(self) -> AsyncIterator[None]:
        """Yield once for each attempt, after pauses; raises PortError if the server stays away."""
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        pause = _FIRST_PAUSE
        while True:
            yield
            if loop.time() + pause > end:
                raise self._unreachable()
            if pause > _FIRST_PAUSE and self._was_reached and not self._is_away:
                self._is_away = True
                self._note(f"the server does not answer; trying again for {PATIENCE:.0f} s")
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _require_reached(self, error: Exception) -> None:
        """Raise PortError if the server was never reached: the address may be wrong."""
        if not self._was_reached and isinstance(error, ClientConnectorError):
            raise self._unreachable() from error

    def _unreachable(self) -> PortError:
        return PortError(f"the server {self.url} does not answer", retryable=True)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def address_of(url: str) -> str:
    """Return the address of a server without a slash at its end. Raises UsageError."""
    hint = "write http://HOST:PORT or https://HOST, without a user name"
    try:
        found = urlsplit(url.strip())
        is_valid = found.scheme in ("http", "https") and found.hostname and not found.username
        is_valid = is_valid and (found.port is None or found.port)
    except ValueError:
        is_valid = False
    if not is_valid:
        raise UsageError("the address of the server is not valid", hint=hint)
    return url.strip().partition("#")[0].rstrip("/")


def _say_nothing(text: str) -> None:
    """Ignore what a person would be told."""


def _authorization(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _several(values: object) -> tuple[object, ...]:
    """Return the values of one parameter of a query; none for None."""
    if isinstance(values, tuple):
        return cast("tuple[object, ...]", values)
    return () if values is None else (values,)


async def _messages_of(answer: ClientResponse) -> AsyncIterator[tuple[str, bytes]]:
    """Yield the ids and contents of server-sent messages."""
    rest = b""
    async for piece in answer.content.iter_any():
        *blocks, rest = (rest + piece).split(b"\n\n")
        for block in blocks:
            fields: dict[bytes, bytes] = {}
            for line in block.split(b"\n"):
                name, _, value = line.partition(b": ")
                fields[name] = value
            if b"data" in fields:
                yield fields.get(b"id", b"").decode(), fields[b"data"]


def error_of(status: int, content: bytes) -> WeftError:
    """Return the exception that a host in this process would raise for a problem."""
    try:
        problem = cast("dict[str, Any]", from_json(content))
        message, hints = "; ".join((problem["message"], *problem["cause"])), problem["hint"]
        findings = tuple(_finding(each) for each in problem["findings"])
    except (ValueError, KeyError, TypeError):
        text = f"the server answered {status} without a problem of Weft"
        return _Away(text, retryable=True) if status in _AWAY else PortError(text)
    hint = "; ".join(hints) or None
    if findings:
        return CheckFailed(message, findings)
    if status == HTTPStatus.NOT_FOUND and message == "not found":
        return AccessDenied("the server has no such thing, or not for this key")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and not hint:
        return PortError(message, retryable=status == HTTPStatus.SERVICE_UNAVAILABLE)
    if status == HTTPStatus.UNAUTHORIZED:
        message, hint = f"the server refuses the key: {message}", hint or _KEY_HINT
    return _KINDS.get(status, UsageError)(message, hint=hint)


_KEY_HINT: Final = "make one where the server's store is: weft keys create --role developer"
_NO_KEY_HINT: Final = f"set WEFT_SERVER_KEY, or use the server's workspace; {_KEY_HINT}"

_KINDS: Final[Mapping[int, type[UsageError]]] = {
    HTTPStatus.UNAUTHORIZED: SetupError,
    HTTPStatus.NOT_FOUND: NotFoundError,
    HTTPStatus.CONFLICT: ConflictError,
    HTTPStatus.SERVICE_UNAVAILABLE: SetupError,
}


def _finding(data: Mapping[str, Any]) -> Finding:
    place = Place(data["file"], data["line"], data["column"], data["length"])
    return Finding(
        data["code"],
        data["severity"],
        data["message"],
        place,
        cause=tuple(data["cause"]),
        hint=tuple(data["hint"]),
    )
