"""A tool server that is an address: streamable HTTP, with a login."""

import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from httpx2 import AsyncClient, Response, Timeout
from mcp.client.streamable_http import streamable_http_client

from weft.adapters.mcp.program import MOST_BYTES
from weft.errors import ToolError
from weft.ports.services import ServiceLogin
from weft.ports.tool_servers import ToolServer

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

#: Seconds of silence after which an answer is given up even if nobody waits for it any more.
_SILENCE: Final = 300.0

#: What stands in front of a host, and a query: either may be secret.
_PRIVATE: Final = re.compile(r"(?<=//)[^/]*@|\?.*")


class Address:
    """One connection to an address; `refused` is the status of its last answer if that says no."""

    unusable = "cannot be reached as an MCP server"
    remedy = "check its url and its login"

    def __init__(self, server: ToolServer) -> None:
        self.refused: int | None = None
        self._server = server

    @asynccontextmanager
    async def open(self) -> AsyncGenerator["TransportStreams", None]:
        timeout = Timeout(self._server.timeout, read=max(_SILENCE, 2 * self._server.timeout))
        async with (
            # Proxies and passwords that stand in the environment or in files are not for it.
            AsyncClient(
                headers=_headers(self._server.login),
                timeout=timeout,
                trust_env=False,
                event_hooks={"response": [self._note]},
            ) as client,
            streamable_http_client(
                self._server.url, http_client=client, max_sse_event_size=MOST_BYTES
            ) as streams,
        ):
            yield streams

    def reasons(self, mask: Callable[[str], str]) -> list[str]:
        """Say where the server is, and what its last answer was if it was a refusal."""
        facts = [f"its address is {mask(_PRIVATE.sub('', self._server.url))}"]
        if self.refused is not None:
            facts.append(f"it answered with HTTP {self.refused}")
        return facts

    async def _note(self, response: Response) -> None:
        self.refused = response.status_code if response.is_error else None


def _headers(login: ServiceLogin | None) -> dict[str, str]:
    if login is None:
        return {}
    if not (login.secret.isascii() and login.secret.isprintable()):
        raise ToolError("the secret of its login has characters that no header may have")
    match login.kind:
        case "bearer":
            return {login.header: f"Bearer {login.secret}"}
        case "basic":
            return {login.header: f"Basic {b64encode(login.secret.encode()).decode()}"}
        case "header":
            return {login.header: login.secret}
