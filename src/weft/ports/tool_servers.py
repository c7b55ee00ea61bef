"""Tool servers: programs that offer tools over the Model Context Protocol."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from weft.findings import Json
from weft.ports.model import ToolSchema
from weft.ports.services import ServiceLogin


@dataclass(frozen=True, slots=True)
class ToolServer:
    """How a server is reached: a program that is started, or an address. One of the two is there.

    The values of `env` are as the program gets them, secrets among them; they are never printed.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    login: ServiceLogin | None = None
    #: Where the program is started; empty: where this process was.
    folder: str = ""
    #: Seconds a call may take, and starting the server.
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of a server; `reads` says that it changes nothing."""

    schema: ToolSchema
    reads: bool = False


class ToolServers(Protocol):
    """Connections to servers, each opened when it is first needed and kept for the next call."""

    async def tools(self, server: ToolServer) -> list[OfferedTool]:
        """Return the tools a server offers. Raises ToolError if it cannot be reached."""
        ...

    async def call(
        self,
        server: ToolServer,
        tool: str,
        arguments: Mapping[str, Json],
        *,
        on_progress: Callable[[float, str], None] | None = None,
    ) -> Json:
        """Call a tool and return its result.

        Raises ToolError: what the server says went wrong, that it died, or that it took too long
        (the cause is then a TimeoutError). A server that died is started anew by the next call.
        """
        ...

    async def close(self) -> None:
        """End every server that was started, and close every connection."""
        ...
