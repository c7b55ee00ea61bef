"""The connections to all model servers of a process, kept open and shared."""

from typing import Final

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

#: Seconds in which a connection must stand; how long the answer may take is another's matter.
CONNECT_SECONDS: Final = 15.0


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
