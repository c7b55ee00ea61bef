"""Models behind any endpoint with chat completions: OpenAI and compatible servers.

This is the hot path of every run, hence our own client: constant parts are encoded once,
and one pool of connections serves all models.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any, Final

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    DummyCookieJar,
    InvalidURL,
    TCPConnector,
)
from multidict import CIMultiDict
from pydantic_core import PydanticSerializationError, to_json
from yarl import URL

from weft.adapters.models.completion import StreamReader, read_completion
from weft.adapters.models.provider_errors import provider_error, status_error
from weft.adapters.models.strict_schema import strict_schema
from weft.errors import ModelError, UsageError
from weft.ports.model import ModelReply, ModelRequest, OutputSchema, ToolSchema
from weft.spec.agents import ModelSettings

#: A reply longer than this is not a reply.
MOST_BYTES: Final = 32 * 1024 * 1024

#: aiohttp sends larger bodies in pieces if they are passed as a file.
_SINGLE_PIECE_BYTES: Final = 1024 * 1024

#: How long the end of a stream may take after its last event.
_DRAIN_SECONDS: Final = 1.0

#: Connection errors that a retry does not solve.
_PERMANENT_ERRORS: Final = (InvalidURL, ClientConnectorCertificateError, ClientSSLError)

#: Seconds to connect; the time for the answer is limited elsewhere.
CONNECT_SECONDS: Final = 15.0

#: How many encoded sets of tools and outputs are cached for a model.
MOST_TAILS: Final = 512

#: Tools and output with their encoding; they are referenced so that their ids stay unique.
_EncodedTail = tuple[tuple[ToolSchema, ...], OutputSchema | None, bytes]


class Connections:
    """One pool for every model of a registry, opened when it is first used."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None

    def session(self) -> ClientSession:
        """Return the session; the first call needs a running event loop."""
        if self._session is None:
            # Concurrent calls are limited per model, not per pool. Cookies are refused:
            # no model server needs them, and looking them up costs something in every call.
            self._session = ClientSession(
                connector=TCPConnector(limit=0, keepalive_timeout=60, ttl_dns_cache=300),
                cookie_jar=DummyCookieJar(),
                timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            )
        return self._session

    async def close(self) -> None:
        """Close every connection; the pool may be used again, also on another event loop."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class BodyWriter:
    """Writes the requests to one model."""

    def __init__(self, model: str, limit_key: str) -> None:
        self._head = b'{"model":' + to_json(model) + b',"messages":'
        self._limit_key = limit_key
        self._tails: dict[tuple[int, int, bool], _EncodedTail] = {}

    def body(self, request: ModelRequest, *, stream: bool) -> bytes:
        try:
            messages = to_json(list(request.messages))
            settings = self._settings(request.settings) if request.settings else b""
        except PydanticSerializationError as error:
            raise ModelError(f"a message cannot be written as JSON: {error}") from error
        return b"".join((self._head, messages, settings, self._tail(request, stream=stream)))

    def _settings(self, settings: ModelSettings) -> bytes:
        """Return the settings as JSON. They are not cached: a seed may belong to one run."""
        fields: dict[str, Any] = {name: value for name, value in settings if value is not None}
        if settings.max_tokens is not None:
            fields[self._limit_key] = fields.pop("max_tokens")
        fields.update(fields.pop("extra_body", {}))
        return b"," + to_json(fields)[1:-1] if fields else b""

    def _tail(self, request: ModelRequest, *, stream: bool) -> bytes:
        """Return everything after the messages: the same for every call of an agent.

        Schemas cannot be hashed cheaply, so they are cached by identity: callers that pass the same
        objects each time pay for encoding them once.
        """
        key = (id(request.tools), id(request.output), stream)
        known = self._tails.get(key)
        if known is None:
            if len(self._tails) >= MOST_TAILS:
                self._tails.clear()
            encoded = _encode_tail(request.tools, request.output, stream=stream)
            known = self._tails[key] = (request.tools, request.output, encoded)
        return known[2]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a model server and its key, which is never shown."""

    base_url: str
    key: str | None = field(default=None, repr=False)
    key_header: str = "Authorization"
    #: The provider's name for the token limit of a reply.
    limit_key: str = "max_tokens"

    def url(self, ending: str = "/chat/completions") -> URL:
        """Return the URL of an operation; a query of the base URL is preserved."""
        try:
            base = URL(self.base_url)
        except ValueError:
            base = URL()
        if base.scheme not in ("http", "https") or not base.host:
            raise UsageError(
                f"{self.base_url} is not the URL of a model server",
                hint="write it like http://127.0.0.1:8080/v1",
            )
        path = base.path.rstrip("/") + ending
        return base.with_path(path, keep_query=True).with_user(None)

    def headers(self) -> CIMultiDict[str]:
        headers = CIMultiDict({"Content-Type": "application/json", "User-Agent": "weft"})
        if self.key is not None:
            if not (self.key.isascii() and self.key.isprintable()):
                raise UsageError(
                    f"the key for {self.base_url} has characters that no key may have",
                    hint="copy it again, without spaces and line ends",
                )
            bearer = self.key_header == "Authorization"
            headers[self.key_header] = f"Bearer {self.key}" if bearer else self.key
        return headers


class ChatModel:
    """One model of an endpoint."""

    def __init__(self, endpoint: Endpoint, model: str, connections: Connections) -> None:
        self._url = endpoint.url()
        self._headers = endpoint.headers()
        self._key = endpoint.key
        self._label = f"{model} at {self._url.authority}"
        self._model = model
        self._bodies = BodyWriter(model, endpoint.limit_key)
        self._connections = connections

    async def reply(
        self, request: ModelRequest, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """Call the model; `on_text` receives the text as it arrives."""
        body = self._bodies.body(request, stream=on_text is not None)
        data = body if len(body) < _SINGLE_PIECE_BYTES else BytesIO(body)
        session = self._connections.session()
        try:
            async with session.post(
                self._url, data=data, headers=self._headers, allow_redirects=False
            ) as response:
                reply = await self._read(response, request, on_text)
        except ModelError as error:
            raise self._with_label(error) from error
        except _PERMANENT_ERRORS as error:
            fault = f"no connection: {error}. Check the base URL."
            raise self._with_label(ModelError(fault)) from error
        except ClientConnectorError as error:
            fault = f"no connection: {error.os_error.strerror or error}. Is the server running?"
            raise self._with_label(ModelError(fault, retryable=True)) from error
        except (ClientError, OSError) as error:
            said = str(error) or type(error).__name__
            fault = f"the connection failed: {said}. Try again later, or name a fallback model."
            raise self._with_label(ModelError(fault, retryable=True)) from error
        # Not every server names the model in its reply.
        return reply if reply.model else replace(reply, model=self._model)

    async def _read(
        self,
        response: ClientResponse,
        request: ModelRequest,
        on_text: Callable[[str], None] | None,
    ) -> ModelReply:
        if response.status != 200:
            raw = await _read_all(response)
            raise status_error(response.status, response.headers, raw)
        if on_text is None:
            return _read_whole(await _read_all(response), request)
        if response.content_type == "text/event-stream":
            return await _read_stream(response, StreamReader(request, on_text))
        # Not every server supports streaming; then the text comes in one piece.
        reply = _read_whole(await _read_all(response), request)
        if reply.text:
            on_text(reply.text)
        return reply

    def _with_label(self, error: ModelError) -> ModelError:
        """Add the model to an error, and mask the key if the provider echoes it."""
        text = f"{self._label}: {error}"
        if self._key:
            text = text.replace(self._key, "(key)")
        return ModelError(text, retryable=error.retryable, after_seconds=error.after_seconds)


def _read_whole(raw: bytes, request: ModelRequest) -> ModelReply:
    """Read a completion; some gateways send an error with status 200."""
    if raw.startswith(b'{"error":'):
        raise provider_error(raw)
    return read_completion(raw, request)


async def _read_all(response: ClientResponse) -> bytes:
    """Read a whole body up to the size limit."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise _too_long_error()
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _read_stream(response: ClientResponse, reader: StreamReader) -> ModelReply:
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MOST_BYTES:
            raise _too_long_error()
        reader.feed(part)
        if reader.done:
            await _drain(response)
            break
    return reader.reply()


async def _drain(response: ClientResponse) -> None:
    """Read to the end of the body: only then can the connection be reused.

    The reply is complete: a slow server costs a connection here and nothing else.
    """
    with suppress(TimeoutError, ClientError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            await response.read()


def _too_long_error() -> ModelError:
    return ModelError(f"the reply is longer than {MOST_BYTES // 1024 // 1024} MiB")


def _encode_tail(
    tools: tuple[ToolSchema, ...], output: OutputSchema | None, *, stream: bool
) -> bytes:
    fields: dict[str, Any] = {}
    if tools:
        fields["tools"] = [{"type": "function", "function": tool} for tool in tools]
        fields["tool_choice"] = "auto"
    if output is not None:
        schema, strict = strict_schema(output.schema)
        described = {"name": output.name, "schema": schema, "strict": strict}
        fields["response_format"] = {"type": "json_schema", "json_schema": described}
    if stream:
        fields["stream"] = True
        fields["stream_options"] = {"include_usage": True}
    return b"," + to_json(fields)[1:] if fields else b"}"
