"""The ports through which a host reaches documents, services, files and tool servers."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from weft.ports.documents import Documents
from weft.ports.embeddings import Embedder
from weft.ports.files import Files
from weft.ports.retriever import Retrievers
from weft.ports.services import Services
from weft.ports.tool_servers import ToolServers


@dataclass(frozen=True, slots=True)
class Outside:
    """What there is outside for the runs of a host; None where it has no such port."""

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

    async def close(self) -> None:
        """Close what is open."""
        async with AsyncExitStack() as stack:
            ports = (self.servers, self.services, self.documents, self.embedder, self.retrievers)
            for port in ports:
                if port is not None:
                    stack.push_async_callback(port.close)
