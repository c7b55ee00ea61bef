"""A connection to a tool server, shared by all its callers.

The library requires that one task opens and closes a connection: its owner. The owner opens it,
keeps it while it is needed, and closes it. Requests come from any task, several at a time.
"""

import asyncio
import logging
import re
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from contextvars import Context
from math import isfinite
from typing import Final, TypeVar, cast

from mcp import Client, MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    Implementation,
    ResourceLink,
    TextContent,
    Tool,
)
from pydantic import ValidationError

import weft
from weft.adapters.mcp.transports import Address, Program
from weft.errors import ToolError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.external import OfferedTool, ToolServer
from weft.ports.model import ToolSchema
from weft.runtime.variables.json_values import masked, plain_json

LOG: Final = logging.getLogger("weft.mcp")

#: The names that every model provider accepts.
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")

#: The most encoded characters of an image or other binary content in a result.
_MAX_BINARY: Final = 100_000


def read_tools(server: str, tools: Iterable[Tool]) -> list[OfferedTool]:
    """Return the tools of a server that models can call; the others are logged."""
    offered: list[OfferedTool] = []
    for tool in tools:
        if not _NAME.fullmatch(tool.name):
            LOG.warning(
                "the tool %.80r of the MCP server %s is left out: models accept names of up to 64"
                " letters, digits, - and _",
                tool.name,
                server,
            )
            continue
        schema = ToolSchema(tool.name, tool.description or "", tool.input_schema)
        reads = tool.annotations is not None and tool.annotations.read_only_hint is True
        offered.append(OfferedTool(schema, reads))
    return offered


def read_result(tool: str, result: CallToolResult) -> Json:
    """Return the result of a tool. Raises ToolError if it is too large."""
    answer = result.structured_content
    if answer is None:
        answer = _content(result.content)
    try:
        return plain_json(answer)
    except ValueError as error:
        raise ToolError(f"{tool} returned {error}") from error


def text_of(content: Iterable[ContentBlock]) -> str:
    return "\n".join(block.text for block in content if isinstance(block, TextContent))


def _content(content: list[ContentBlock]) -> Json:
    """Return a text, or a list of texts and other content in order."""
    if all(isinstance(block, TextContent) for block in content):
        return text_of(content)
    return [block.text if isinstance(block, TextContent) else _non_text(block) for block in content]


def _non_text(block: ImageContent | AudioContent | ResourceLink | EmbeddedResource) -> Json:
    match block:
        case ImageContent() | AudioContent():
            return {"type": block.type, "mime_type": block.mime_type, **_binary(block.data)}
        case ResourceLink():
            link = {"uri": block.uri, "name": block.name, "description": block.description or ""}
            return {"type": block.type, "mime_type": block.mime_type, **link}
        case EmbeddedResource(resource=held):
            binary = isinstance(held, BlobResourceContents)
            given = _binary(held.blob) if binary else {"text": held.text}
            return {"type": block.type, "mime_type": held.mime_type, "uri": held.uri, **given}


def _binary(data: str) -> dict[str, Json]:
    """Return encoded data, or only its size if it is too large for a conversation."""
    if len(data) <= _MAX_BINARY:
        return {"data": data}
    return {"left_out": f"{len(data) * 3 // 4:,} bytes are too many"}


_T = TypeVar("_T")

#: How many characters of a server's message an agent gets.
_MAX_TEXT: Final = 2_000

#: A list of tools with more pages is considered endless.
_MAX_PAGES: Final = 100

#: After so many timeouts in a row a server is considered hung and is restarted.
_MAX_TIMEOUTS: Final = 2

#: Statuses after which a new session is opened: the login or the session has expired.
_EXPIRED_STATUS: Final = frozenset({401, 403, 404})

#: Seconds to wait for the reason of a lost connection, and for the end of a program.
_REASON: Final = 0.2
_END: Final = 5.0


class Connection:
    """One connection; it is `usable` until it fails or is unused for `idle` seconds."""

    def __init__(
        self, server: ToolServer, environment: Mapping[str, str], clock: Clock, *, idle: float
    ) -> None:
        self.usable = True
        self._server = server
        self._clock = clock
        self._idle = round(idle * 1000)
        self._secret_values = _secret_values(server)
        self._link = Program(server, environment, self._end) if server.command else Address(server)
        self._requests = 0
        self._timeouts = 0
        self._used = clock.now()
        self._closing = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        # The owner does not inherit the context of the run that opens the connection.
        self.owner = asyncio.create_task(self._own_connection(), context=Context())
        self.owner.add_done_callback(self._on_owner_done)

    async def tools(self) -> list[OfferedTool]:
        tools = await self._request("listing its tools", _all_tools)
        return read_tools(self._server.name, tools)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Json],
        on_progress: Callable[[float, str], None] | None,
    ) -> Json:
        given = _plain_arguments(tool, arguments)

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            if on_progress is not None:
                on_progress(_progress_share(progress, total), self._shorten(message or ""))

        result = await self._request(
            tool,
            lambda client: client.call_tool(
                tool, given, progress_callback=tell if on_progress else None
            ),
        )
        if result.is_error:
            said = self._shorten(text_of(result.content)) or "it does not say why"
            raise ToolError(f"{tool} of the MCP server {self._server.name} failed: {said}")
        return read_result(tool, result)

    async def _request(self, what: str, ask: Callable[[Client], Awaitable[_T]]) -> _T:
        """Send a request. Raises ToolError if the server is unreachable, fails, or is too slow."""
        self._requests += 1
        try:
            return await self._call_client(await self._opened_client(), what, ask)
        finally:
            self._requests -= 1
            self._used = self._clock.now()
            if not (self.usable or self._requests):
                self._closing.set()

    async def _opened_client(self) -> Client:
        if not self._client.done():
            await asyncio.wait(
                (self._client, self.owner),
                timeout=self._server.timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
        if self._client.done() and not self._client.cancelled():
            return self._client.result()
        self.usable = False
        fault = self._owner_error()
        late = not (self.owner.done() or self._closing.is_set())
        if late or isinstance(fault, TimeoutError):
            raise self._error(f"did not start within {self._timeout_text()}") from TimeoutError()
        raise self._error(self._link.unusable, fault, self._link.remedy)

    async def _call_client(
        self, client: Client, what: str, ask: Callable[[Client], Awaitable[_T]]
    ) -> _T:
        try:
            async with asyncio.timeout(self._server.timeout):
                answer = await ask(client)
        except TimeoutError as error:
            self._timeouts += 1
            self.usable = self.usable and self._timeouts < _MAX_TIMEOUTS
            raise self._error(f"took longer than {self._timeout_text()} for {what}") from error
        except (MCPError, RuntimeError, ValueError) as error:
            # Without a cause: a server's message may contain secrets, and causes are printed.
            raise await self._failure(what, error) from None
        self._timeouts = 0
        return answer

    async def _failure(self, what: str, error: Exception) -> ToolError:
        """Return the error of a request, and mark the connection if it is unusable."""
        self._timeouts = 0
        if not _is_closed(error):
            outdated = isinstance(self._link, Address) and self._link.refused in _EXPIRED_STATUS
            self.usable = self.usable and not outdated
            return self._error(f"failed in {what}", error)
        self.usable = False
        # The exit code is known only after the program was cleaned up.
        await asyncio.wait((self.owner,), timeout=_END if self._closing.is_set() else _REASON)
        return self._error(f"was lost during {what}", self._owner_error() or error)

    async def _own_connection(self) -> None:
        """Open the connection, wait until it is no longer needed, and close it."""
        about = Implementation(name="weft", version=weft.__version__)
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._server.timeout):
                client = await stack.enter_async_context(
                    Client(self._link.open(), client_info=about, cache=None)
                )
                # The library validates results against the listed tools; without a list it would
                # list them after the call, and an error then would hide that the call was made.
                await _all_tools(client)
            self._client.set_result(client)
            stack.callback(asyncio.create_task(self._close_when_idle()).cancel)
            await self._closing.wait()

    async def _close_when_idle(self) -> None:
        while True:
            now = self._clock.now()
            at = (now if self._requests else self._used) + self._idle
            if at <= now:
                break
            await self._clock.sleep_until(at)
        self._end()

    def close(self) -> None:
        """Let the owner close the connection; cancel it if it is still being opened."""
        self._end()
        if not self._client.done():
            self.owner.cancel()

    def _end(self) -> None:
        self.usable = False
        self._closing.set()

    def _on_owner_done(self, owner: asyncio.Task[None]) -> None:
        self.usable = False
        self._client.cancel()
        if not owner.cancelled():
            owner.exception()  # Retrieved, so that asyncio does not report it.

    def _owner_error(self) -> BaseException | None:
        """Return the error that ended the connection, if any."""
        over = self.owner.done() and not self.owner.cancelled()
        return _innermost_error(self.owner.exception()) if over else None

    def _error(self, fact: str, fault: BaseException | None = None, *more: str) -> ToolError:
        reasons = self._link.reasons(self._mask)
        if fault is not None and not (reasons and _is_closed(fault)):
            reasons.insert(0, self._shorten(_error_text(fault)))
        details = "; ".join((*reasons, *more))
        return ToolError(
            f"the MCP server {self._server.name} {fact}{': ' if details else ''}{details}"
        )

    def _shorten(self, text: str) -> str:
        """Return a server's message without secrets, shortened."""
        return self._mask(text)[:_MAX_TEXT]

    def _mask(self, text: str) -> str:
        return cast("str", masked(text, self._secret_values))

    def _timeout_text(self) -> str:
        seconds = self._server.timeout
        return f"{seconds:g} second{'' if seconds == 1 else 's'}"


async def _all_tools(client: Client) -> list[Tool]:
    page = await client.list_tools()
    tools = page.tools
    for _ in range(_MAX_PAGES - 1):
        if not page.next_cursor:
            break
        page = await client.list_tools(cursor=page.next_cursor)
        tools.extend(page.tools)
    return tools


def _plain_arguments(tool: str, arguments: Mapping[str, Json]) -> dict[str, Json]:
    try:
        return cast("dict[str, Json]", plain_json(dict(arguments)))
    except ValueError as error:
        raise ToolError(f"{tool} was given {error}") from error


def _progress_share(done: float, total: float | None) -> float:
    """Return the progress from 0 to 1; 0 if the total is unknown."""
    share = done / total if total else 0.0
    return min(max(share, 0.0), 1.0) if isfinite(share) else 0.0


def _secret_values(server: ToolServer) -> dict[str, Json]:
    """Return all secret texts in every form, the longest first: one may contain another."""
    values = set(server.env.values())
    if login := server.login:
        password = login.secret.partition(":")[2] if login.kind == "basic" else ""
        values |= {login.secret, password, b64encode(login.secret.encode()).decode()}
    ordered = sorted(filter(None, values), key=len, reverse=True)
    return {str(number): value for number, value in enumerate(ordered)}


def _is_closed(error: BaseException) -> bool:
    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED


def _innermost_error(error: BaseException | None) -> BaseException | None:
    """Return the cause in a group of errors; a closed connection is the least informative."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    faults = [inner for inner in map(_innermost_error, group.exceptions) if inner is not None]
    return next((inner for inner in faults if not _is_closed(inner)), faults[0])


def _error_text(fault: BaseException) -> str:
    match fault:
        case ToolError() | MCPError() | RuntimeError():
            return str(fault)
        case ValidationError():  # Its message quotes the value.
            return "its answer is not valid MCP"
        case _:
            return f"{type(fault).__name__}: {fault}"
