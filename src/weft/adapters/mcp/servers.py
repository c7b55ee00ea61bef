"""Tool servers behind `weft.ports.external`: programs and addresses that speak MCP."""

import asyncio
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from weft.errors import SetupError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.external import OfferedTool, ToolServer

if TYPE_CHECKING:
    from weft.adapters.mcp.connection import Connection

#: Seconds after which an unused connection is closed.
IDLE: Final = 300.0

#: Seconds for connections to close before they are cancelled.
_CLOSING: Final = 5.0


class McpToolServers:
    """Connections to tool servers, shared by equal servers of one tenant.

    Programs get a few variables of `environment`. It may be used again after `close`, also on
    another event loop.
    """

    def __init__(self, *, clock: Clock, environment: Mapping[str, str], idle: float = IDLE) -> None:
        self._clock = clock
        self._environment = environment
        self._idle = idle
        self._connect: type[Connection] | None = None
        self._current: dict[Hashable, Connection] = {}
        self._open: set[Connection] = set()

    async def tools(self, server: ToolServer) -> list[OfferedTool]:
        """Return the tools a server offers. Raises ToolError if it cannot be reached."""
        connection = await self._connection(server)
        return await connection.tools()

    async def call(
        self,
        server: ToolServer,
        tool: str,
        arguments: Mapping[str, Json],
        *,
        on_progress: Callable[[float, str], None] | None = None,
    ) -> Json:
        """Call a tool and return its result; raises ToolError."""
        connection = await self._connection(server)
        return await connection.call(tool, arguments, on_progress)

    async def close(self) -> None:
        """End every server that was started, and close every connection."""
        for connection in self._open:
            connection.close()
        if owners := {connection.owner for connection in self._open}:
            _, late = await asyncio.wait(owners, timeout=_CLOSING)
            for owner in late:
                owner.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _connection(self, server: ToolServer) -> "Connection":
        """Return the connection to a server, opened if there is no usable one."""
        if self._connect is None:
            self._connect = await asyncio.to_thread(_load)
        key = _key(server)
        current = self._current.get(key)
        if current is None or not current.usable:
            current = self._connect(server, self._environment, self._clock, idle=self._idle)
            self._current[key] = current
            self._open.add(current)
            current.owner.add_done_callback(partial(self._forget, key, current))
        return current

    def _forget(self, key: Hashable, connection: "Connection", _: asyncio.Task[None]) -> None:
        self._open.discard(connection)
        if self._current.get(key) is connection:
            del self._current[key]


def _key(server: ToolServer) -> Hashable:
    env = tuple(sorted(server.env.items()))
    return (server.app, server.name, server.command, server.url, env, server.login, server.timeout)


def _load() -> "type[Connection]":
    try:
        # Deferred: an extra that loads slowly, and few runs need it.
        from weft.adapters.mcp.connection import Connection  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            f"MCP servers need a library that is not installed: {error.name or error}",
            hint='install it: pip install "weft-agents[mcp]"',
        ) from error
    return Connection
