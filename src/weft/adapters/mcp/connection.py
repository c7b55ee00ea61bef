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

#: Characters of an image and the like, as it is encoded, that go along with a result.
_MOST_BINARY: Final = 100_000


def read_tools(server: str, tools: Iterable[Tool]) -> list[OfferedTool]:
    """Return the tools of a server that models can call; the others are named in the log."""
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
    """Return what a tool answered. Raises ToolError if that is more than a result may be."""
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
    """Return text, or a list in which text and what is no text stand in their order."""
    if all(isinstance(block, TextContent) for block in content):
        return text_of(content)
    return [block.text if isinstance(block, TextContent) else _other(block) for block in content]


def _other(block: ImageContent | AudioContent | ResourceLink | EmbeddedResource) -> Json:
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
    """Return data as it is encoded, or its size if it is too much for a conversation."""
    if len(data) <= _MOST_BINARY:
        return {"data": data}
    return {"left_out": f"{len(data) * 3 // 4:,} bytes are too many"}


_T = TypeVar("_T")

#: An agent is told this much of what a server says.
_MOST_TOLD: Final = 2_000

#: A list of tools that goes on for more pages has no end.
_MOST_PAGES: Final = 100

#: So many requests in a row that take too long show that a server hangs and needs a new start.
_MOST_LATE: Final = 2

#: HTTP statuses after which a session begins anew: the login or the session is not valid any more.
_OUTDATED: Final = frozenset({401, 403, 404})

#: Seconds in which it becomes known why a connection was lost, and how a program ended.
_REASON: Final = 0.2
_END: Final = 5.0


class Connection:
    """One connection; it is `usable` until it fails, or nobody has needed it for `idle` seconds."""

    def __init__(
        self, server: ToolServer, environment: Mapping[str, str], clock: Clock, *, idle: float
    ) -> None:
        self.usable = True
        self._server = server
        self._clock = clock
        self._idle = round(idle * 1000)
        self._secrets = _secrets(server)
        self._link = Program(server, environment, self._end) if server.command else Address(server)
        self._requests = 0
        self._late = 0
        self._used = clock.now()
        self._over = asyncio.Event()
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        # Nothing of the run that happens to need it first goes along with the connection.
        self.owner = asyncio.create_task(self._own(), context=Context())
        self.owner.add_done_callback(self._settle)

    async def tools(self) -> list[OfferedTool]:
        tools = await self._request("listing its tools", _all_tools)
        return read_tools(self._server.name, tools)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Json],
        on_progress: Callable[[float, str], None] | None,
    ) -> Json:
        given = _as_given(tool, arguments)

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            if on_progress is not None:
                on_progress(_share(progress, total), self._told(message or ""))

        result = await self._request(
            tool,
            lambda client: client.call_tool(
                tool, given, progress_callback=tell if on_progress else None
            ),
        )
        if result.is_error:
            said = self._told(text_of(result.content)) or "it does not say why"
            raise ToolError(f"{tool} of the MCP server {self._server.name} failed: {said}")
        return read_result(tool, result)

    async def _request(self, what: str, ask: Callable[[Client], Awaitable[_T]]) -> _T:
        """Ask the server something. Raises ToolError: it cannot be reached, fails, or is late."""
        self._requests += 1
        try:
            return await self._asked(await self._opened(), what, ask)
        finally:
            self._requests -= 1
            self._used = self._clock.now()
            if not (self.usable or self._requests):
                self._over.set()

    async def _opened(self) -> Client:
        if not self._client.done():
            await asyncio.wait(
                (self._client, self.owner),
                timeout=self._server.timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
        if self._client.done() and not self._client.cancelled():
            return self._client.result()
        self.usable = False
        fault = self._fault()
        late = not (self.owner.done() or self._over.is_set())
        if late or isinstance(fault, TimeoutError):
            raise self._error(f"did not start within {self._span()}") from TimeoutError()
        raise self._error(self._link.unusable, fault, self._link.remedy)

    async def _asked(self, client: Client, what: str, ask: Callable[[Client], Awaitable[_T]]) -> _T:
        try:
            async with asyncio.timeout(self._server.timeout):
                answer = await ask(client)
        except TimeoutError as error:
            self._late += 1
            self.usable = self.usable and self._late < _MOST_LATE
            raise self._error(f"took longer than {self._span()} for {what}") from error
        except (MCPError, RuntimeError, ValueError) as error:
            # Without a cause: what a server says may hold its secrets, and causes are printed.
            raise await self._failure(what, error) from None
        self._late = 0
        return answer

    async def _failure(self, what: str, error: Exception) -> ToolError:
        """Say what went wrong, and give the connection up if it cannot be used any more."""
        self._late = 0
        if not _is_closed(error):
            outdated = isinstance(self._link, Address) and self._link.refused in _OUTDATED
            self.usable = self.usable and not outdated
            return self._error(f"failed in {what}", error)
        self.usable = False
        # How a program ended is known only when it has been cleared away.
        await asyncio.wait((self.owner,), timeout=_END if self._over.is_set() else _REASON)
        return self._error(f"was lost in the middle of {what}", self._fault() or error)

    async def _own(self) -> None:
        """Open the connection, wait until it is not needed any more, and close it."""
        about = Implementation(name="weft", version=weft.__version__)
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._server.timeout):
                client = await stack.enter_async_context(
                    Client(self._link.open(), client_info=about, cache=None)
                )
                # The library checks results by what it has seen listed; if it has not, it would
                # list after the call, and a fault then would hide that the call was made.
                await _all_tools(client)
            self._client.set_result(client)
            stack.callback(asyncio.create_task(self._notice_idleness()).cancel)
            await self._over.wait()

    async def _notice_idleness(self) -> None:
        while True:
            now = self._clock.now()
            at = (now if self._requests else self._used) + self._idle
            if at <= now:
                break
            await self._clock.sleep_until(at)
        self._end()

    def close(self) -> None:
        """Let the owner close the connection; it is broken off if it is still being opened."""
        self._end()
        if not self._client.done():
            self.owner.cancel()

    def _end(self) -> None:
        self.usable = False
        self._over.set()

    def _settle(self, owner: asyncio.Task[None]) -> None:
        self.usable = False
        self._client.cancel()
        if not owner.cancelled():
            owner.exception()  # Seen, so that it is not reported: perhaps nobody asks any more.

    def _fault(self) -> BaseException | None:
        """Return what ended the connection, if it has ended by a fault."""
        over = self.owner.done() and not self.owner.cancelled()
        return _innermost(self.owner.exception()) if over else None

    def _error(self, fact: str, fault: BaseException | None = None, *more: str) -> ToolError:
        reasons = self._link.reasons(self._masked)
        if fault is not None and not (reasons and _is_closed(fault)):
            reasons.insert(0, self._told(_in_words(fault)))
        told = "; ".join((*reasons, *more))
        return ToolError(f"the MCP server {self._server.name} {fact}{': ' if told else ''}{told}")

    def _told(self, text: str) -> str:
        """Return what a server says as it may be told: without its secrets, and not at length."""
        return self._masked(text)[:_MOST_TOLD]

    def _masked(self, text: str) -> str:
        return cast("str", masked(text, self._secrets))

    def _span(self) -> str:
        seconds = self._server.timeout
        return f"{seconds:g} second{'' if seconds == 1 else 's'}"


async def _all_tools(client: Client) -> list[Tool]:
    page = await client.list_tools()
    tools = page.tools
    for _ in range(_MOST_PAGES - 1):
        if not page.next_cursor:
            break
        page = await client.list_tools(cursor=page.next_cursor)
        tools.extend(page.tools)
    return tools


def _as_given(tool: str, arguments: Mapping[str, Json]) -> dict[str, Json]:
    try:
        return cast("dict[str, Json]", plain_json(dict(arguments)))
    except ValueError as error:
        raise ToolError(f"{tool} was given {error}") from error


def _share(done: float, total: float | None) -> float:
    """Return how much is done, from 0 to 1; nothing, where nobody knows how much there is."""
    share = done / total if total else 0.0
    return min(max(share, 0.0), 1.0) if isfinite(share) else 0.0


def _secrets(server: ToolServer) -> dict[str, Json]:
    """Return whatever must not be told, in every form, the longest first: one may hold another."""
    values = set(server.env.values())
    if login := server.login:
        password = login.secret.partition(":")[2] if login.kind == "basic" else ""
        values |= {login.secret, password, b64encode(login.secret.encode()).decode()}
    ordered = sorted(filter(None, values), key=len, reverse=True)
    return {str(number): value for number, value in enumerate(ordered)}


def _is_closed(error: BaseException) -> bool:
    return isinstance(error, MCPError) and error.code == CONNECTION_CLOSED


def _innermost(error: BaseException | None) -> BaseException | None:
    """Return what lies behind a group of errors; that the connection was closed says least."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    faults = [inner for inner in map(_innermost, group.exceptions) if inner is not None]
    return next((inner for inner in faults if not _is_closed(inner)), faults[0])


def _in_words(fault: BaseException) -> str:
    match fault:
        case ToolError() | MCPError() | RuntimeError():
            return str(fault)
        case ValidationError():  # It quotes what it does not like.
            return "its answer is none of MCP"
        case _:
            return f"{type(fault).__name__}: {fault}"
