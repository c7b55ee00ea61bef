"""Models behind any endpoint that speaks chat completions: OpenAI's own and all its likenesses.

This is the hot path of every run, hence a client of our own: what stays the same is encoded once,
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
from weft.adapters.models.faults import provider_fault, status_fault
from weft.adapters.models.strict_schema import strict_schema
from weft.errors import ModelError, UsageError
from weft.ports.model import ModelReply, ModelRequest, OutputSchema, ToolSchema
from weft.spec.agents import ModelSettings

#: A reply longer than this is not a reply.
MOST_BYTES: Final = 32 * 1024 * 1024

#: aiohttp sends larger bodies piece by piece if they come as a file.
_WHOLE_BYTES: Final = 1024 * 1024

#: How long the end of a stream may take after its last event.
_LINGER_SECONDS: Final = 1.0

#: Faults of the connection that will be the same next time.
_LASTING: Final = (InvalidURL, ClientConnectorCertificateError, ClientSSLError)

#: Seconds in which a connection must stand; how long the answer may take is another's matter.
CONNECT_SECONDS: Final = 15.0

#: How many sets of tools and outputs one model is asked with before the encoded ones are dropped.
MOST_TAILS: Final = 512

#: What is encoded once: the tools and the output, kept so that their identities stay theirs.
_Tail = tuple[tuple[ToolSchema, ...], OutputSchema | None, bytes]


class Connections:
    """One pool for every model of a registry, opened when it is first used."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None

    def session(self) -> ClientSession:
        """Return the pool; needs a running event loop the first time."""
        if self._session is None:
            # How many calls run at once is limited per model, not per pool. Cookies are refused:
            # no model server needs them, and looking them up costs something in every call.
            self._session = ClientSession(
                connector=TCPConnector(limit=0, keepalive_timeout=60, ttl_dns_cache=300),
                cookie_jar=DummyCookieJar(),
                timeout=ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            )
        return self._session

    async def close(self) -> None:
        """Let go of every connection; the pool may be used again, on another event loop too."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()


class BodyWriter:
    """Writes the requests to one model."""

    def __init__(self, model: str, limit_key: str) -> None:
        self._head = b'{"model":' + to_json(model) + b',"messages":'
        self._limit_key = limit_key
        self._tails: dict[tuple[int, int, bool], _Tail] = {}

    def body(self, request: ModelRequest, *, stream: bool) -> bytes:
        try:
            messages = to_json(list(request.messages))
            settings = self._settings(request.settings) if request.settings else b""
        except PydanticSerializationError as error:
            raise ModelError(f"a message cannot be written as JSON: {error}") from error
        return b"".join((self._head, messages, settings, self._tail(request, stream=stream)))

    def _settings(self, settings: ModelSettings) -> bytes:
        """Return what stands between messages and tail. It is not kept: a seed may be a run's."""
        fields: dict[str, Any] = {name: value for name, value in settings if value is not None}
        if settings.max_tokens is not None:
            fields[self._limit_key] = fields.pop("max_tokens")
        fields.update(fields.pop("extra_body", {}))
        return b"," + to_json(fields)[1:-1] if fields else b""

    def _tail(self, request: ModelRequest, *, stream: bool) -> bytes:
        """Return all that follows the messages: the same for every call of an agent.

        Schemas cannot be hashed cheaply, so they are known by identity: whoever asks with the same
        objects each time pays for encoding them once.
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
    """Where models are asked, and with which key; the key is never shown."""

    base_url: str
    key: str | None = field(default=None, repr=False)
    key_header: str = "Authorization"
    #: What it calls the most tokens that a reply may have.
    limit_key: str = "max_tokens"

    def url(self, ending: str = "/chat/completions") -> URL:
        """Return where completions, or others, are asked for; a query of the base URL stays."""
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
                    f"the key for {self.base_url} has characters no key has",
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
        """Ask the model; with `on_text`, its words are passed on as they come."""
        body = self._bodies.body(request, stream=on_text is not None)
        data = body if len(body) < _WHOLE_BYTES else BytesIO(body)
        session = self._connections.session()
        try:
            async with session.post(
                self._url, data=data, headers=self._headers, allow_redirects=False
            ) as response:
                reply = await self._read(response, request, on_text)
        except ModelError as error:
            raise self._named(error) from error
        except _LASTING as error:
            fault = f"no connection: {error}. Check the base URL."
            raise self._named(ModelError(fault)) from error
        except ClientConnectorError as error:
            fault = f"no connection: {error.os_error.strerror or error}. Is the server running?"
            raise self._named(ModelError(fault, retryable=True)) from error
        except (ClientError, OSError) as error:
            said = str(error) or type(error).__name__
            fault = f"the connection failed: {said}. Try again later, or name a fallback model."
            raise self._named(ModelError(fault, retryable=True)) from error
        # Not every server says which model has answered; it is then the one that was asked.
        return reply if reply.model else replace(reply, model=self._model)

    async def _read(
        self,
        response: ClientResponse,
        request: ModelRequest,
        on_text: Callable[[str], None] | None,
    ) -> ModelReply:
        if response.status != 200:
            raw = await _whole(response)
            raise status_fault(response.status, response.headers, raw)
        if on_text is None:
            return _completion(await _whole(response), request)
        if response.content_type == "text/event-stream":
            return await _streamed(response, StreamReader(request, on_text))
        # Not every server streams when asked to; then the text comes in one piece.
        reply = _completion(await _whole(response), request)
        if reply.text:
            on_text(reply.text)
        return reply

    def _named(self, error: ModelError) -> ModelError:
        """Say which model it was, and keep the key out of what a provider echoes."""
        text = f"{self._label}: {error}"
        if self._key:
            text = text.replace(self._key, "(key)")
        return ModelError(text, retryable=error.retryable, after_seconds=error.after_seconds)


def _completion(raw: bytes, request: ModelRequest) -> ModelReply:
    """Read a completion; some gateways answer 200 and put an error in its place."""
    if raw.startswith(b'{"error":'):
        raise provider_fault(raw)
    return read_completion(raw, request)


async def _whole(response: ClientResponse) -> bytes:
    """Read an answer to its end, but not one without end."""
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise _endless()
    return parts[0] if len(parts) == 1 else b"".join(parts)


async def _streamed(response: ClientResponse, reader: StreamReader) -> ModelReply:
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > MOST_BYTES:
            raise _endless()
        reader.feed(part)
        if reader.done:
            await _let_end(response)
            break
    return reader.reply()


async def _let_end(response: ClientResponse) -> None:
    """Read what follows the last event: only then can the connection be used again.

    The reply is whole: a server that is slow or clumsy here costs a connection and nothing else.
    """
    with suppress(TimeoutError, ClientError):
        async with asyncio.timeout(_LINGER_SECONDS):
            await response.read()


def _endless() -> ModelError:
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
