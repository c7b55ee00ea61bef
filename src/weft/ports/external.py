"""What runs reach outside of Weft: HTTP services, files, tool servers; and all ports in one."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from weft.findings import Json
from weft.ports.documents import Documents
from weft.ports.model import ToolSchema
from weft.ports.retrieval import Embedder, Retrievers
from weft.ports.scope import Scope


@dataclass(frozen=True, slots=True)
class ServiceLogin:
    """How a service knows us; `secret` is the secret itself and is never printed."""

    kind: Literal["bearer", "basic", "header"]
    secret: str
    header: str = "Authorization"

    def __repr__(self) -> str:
        return f"ServiceLogin({self.kind!r})"


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """One request to a service, with its limits."""

    service: str
    operation: str
    url: str
    method: str = "GET"
    #: JSON; None for no body.
    body: bytes | None = None
    #: The key by which the service recognises a repeated request; empty if it changes nothing.
    key: str = ""
    login: ServiceLogin | None = None
    #: Seconds one attempt may take, and how many bytes an answer may have.
    timeout: float = 10.0
    max_bytes: int = 1_000_000
    attempts: int = 1
    #: Seconds before the second attempt; twice as long before each further one.
    backoff: float = 1.0
    #: Seconds an answer is given again to the same question of the same tenant; 0 for never.
    cache: float = 0.0


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """The answer of a service, and whether it comes from the cache."""

    value: Json
    cached: bool = False
    attempts: int = 1


class Services(Protocol):
    """Asks services."""

    async def ask(self, scope: Scope, request: ServiceRequest) -> ServiceAnswer:
        """Return the JSON a service answers with. Raises PortError, which names no secret."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class Files(Protocol):
    """Reads files of a package, of its tenant or of the workspace, and no others."""

    async def read(self, app: str, workflow: str, path: str) -> str:
        """Return the text of a file: of the package, else of the tenant, else of the workspace.

        Raises PortError if it is missing, is not text, lies outside or may hold secrets.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolServer:
    """How a server is reached: a program that is started, or an address. One of the two is there.

    The values of `env` are as the program gets them, secrets among them; they are never printed.
    """

    #: The tenant that uses it: no two tenants share a connection.
    app: str
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
        (the cause is then a TimeoutError). A server that died is restarted by the next call.
        """
        ...

    async def close(self) -> None:
        """End every server that was started, and close every connection."""
        ...


@dataclass(frozen=True, slots=True)
class ExternalPorts:
    """The external systems that the runs of a host can reach; None where there is no such port."""

    documents: Documents | None = None
    services: Services | None = None
    files: Files | None = None
    servers: ToolServers | None = None
    #: What handoffs, subscriptions and providers compare meanings with.
    embedder: Embedder | None = None
    retrievers: Retrievers | None = None
    #: Where programs of tool servers are started; empty: where this process was.
    folder: str = ""
    #: Where secrets are looked up that packages refer to by name.
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    #: The environment of one tenant, by its name, where tenants have secrets of their own.
    environment_of: Callable[[str], Mapping[str, str]] | None = field(default=None, repr=False)

    def for_app(self, app: str) -> "ExternalPorts":
        """Return the ports as the runs of one tenant use them: with its own environment."""
        own = self.environment if self.environment_of is None else self.environment_of(app)
        return self if own is self.environment else replace(self, environment=own)

    async def close(self) -> None:
        """Close what is open."""
        async with AsyncExitStack() as stack:
            ports = (self.servers, self.services, self.documents, self.embedder, self.retrievers)
            for port in ports:
                if port is not None:
                    stack.push_async_callback(port.close)
