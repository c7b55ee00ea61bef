"""Connections to services: one request, its redirects, and its errors.

No error quotes the library or the service: the quote could contain the whole address, with secrets
in its query, or our login.
"""

import asyncio
import re
import socket
from base64 import b64encode
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from math import isfinite
from typing import Any, Final

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientSSLError,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from yarl import URL

from weft.engine.events.codec import read_json
from weft.errors import PortError
from weft.findings import Json
from weft.ports.external import ServiceLogin, ServiceRequest

#: Ranges that are not public whatever the standard library of this Python says: set aside for
#: protocols, relays to other networks, and what a cloud tells its machines.
_SET_ASIDE: Final = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2002::/16"))
)

#: The only range from which public IPv6 addresses are given out.
_GIVEN_OUT: Final = ip_network("2000::/3")

#: IPv4 as seen from networks that have only IPv6: the last four bytes are the address.
_TRANSLATED: Final = ip_network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Tell whether an address is one that anybody on the net may ask; what is no address is not.

    >>> is_public("8.8.8.8"), is_public("10.0.0.1"), is_public("::ffff:127.0.0.1")
    (True, False, False)
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        inner = _ipv4_inside(address)
        if inner is None and address not in _GIVEN_OUT:
            return False
        address = inner or address
    # Some groups that one can only broadcast to count as global.
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in network for network in _SET_ASIDE)
    )


def _ipv4_inside(address: IPv6Address) -> IPv4Address | None:
    if address in _TRANSLATED:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped


_REMEDIES: Final = {
    401: "Check its auth; a login is not sent on when a service redirects to another origin.",
    403: "Check what the login may do; it is not sent on to another origin.",
    404: "Check the url.",
    429: "Ask less often: give the variable a cache.",
}


class PrivateAddress(OSError):
    """An address that is not public and was not connected to."""


def status_fault(status: int, headers: Mapping[str, str]) -> PortError:
    passing = status == 429 or status >= 500
    usual = "Try again later." if passing else "Check the url and what is asked for."
    return PortError(
        f"it answered {status}. {_REMEDIES.get(status, usual)}",
        retryable=passing,
        after_seconds=_retry_after(headers),
    )


def connection_fault(error: Exception, url: URL) -> PortError:
    """Say why nothing came from a host."""
    host = f"{url.host_subcomponent}:{url.port}"
    if isinstance(error, ClientSSLError):
        fact = "its certificate is not trusted here, or it speaks no https"
        return PortError(f"no secure connection to {host}: {fact}. Check the url.")
    if isinstance(error, ClientConnectorError):
        if isinstance(error.os_error, PrivateAddress):
            return PortError(
                f"{host} has no public address, so it is not asked. If it is meant, let the "
                f"operator add it to WEFT_ALLOW_HOSTS: {host}"
            )
        reason = error.os_error.strerror or "it cannot be reached"
        return PortError(f"no connection to {host}: {reason}. Is it running?", retryable=True)
    if isinstance(error, ValueError):
        return PortError(f"{host} is no host that can be asked. Check the url.")
    return PortError(f"the connection to {host} broke off. Try again later.", retryable=True)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds a service asks to wait; a date counts from the service's own."""
    asked = headers.get("Retry-After", "")
    try:
        seconds = float(asked)
    except ValueError:
        try:
            date = parsedate_to_datetime(headers.get("Date", ""))
            seconds = (parsedate_to_datetime(asked) - date).total_seconds()
        except (ValueError, TypeError):  # no dates, or one with and one without its zone
            return None
    return max(0.0, seconds) if isfinite(seconds) else None


MOST_REDIRECTS: Final = 5
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_SCHEMES: Final = ("http", "https")
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class Connections:
    """Two pools: one that connects to public addresses only, one for the hosts that are allowed.

    A host is allowed as it stands in a URL, in small letters, with or without its port; to what
    it leads is then no matter.
    """

    def __init__(self, allow_hosts: frozenset[str]) -> None:
        self._allowed = allow_hosts
        self._pools: dict[bool, ClientSession] = {}

    async def get(self, request: ServiceRequest) -> tuple[bytes, Json]:
        """Ask once; return what is answered, and what it says. Raises PortError."""
        label = f"{request.service}, {request.operation}"
        try:
            url = _address(request.url)
            label += f" ({url.scheme}://{url.host_port_subcomponent}{url.raw_path})"
            async with asyncio.timeout(request.timeout):
                raw = await self._follow(url, _headers(request.login), request.max_bytes)
            return raw, _value(raw)
        except TimeoutError:
            fact = f"no answer within {request.timeout:g} s. Try again later, or allow more time."
            fault = PortError(fact, retryable=True)
        except PortError as error:
            fault = error
        fault.args = (f"{label}: {fault}",)
        raise fault

    async def _follow(self, url: URL, headers: dict[str, str], most: int) -> bytes:
        for _ in range(MOST_REDIRECTS + 1):
            # What is not read to its end here is not read at all: leaving drops the connection.
            try:
                async with self._pool(url).get(
                    url, headers=headers, allow_redirects=False
                ) as response:
                    if response.status not in _REDIRECTS:
                        return await _body(response, most)
                    target = _target(url, response.headers.get("Location", ""))
            except (ClientError, OSError, ValueError) as error:
                # What a library says may hold the whole address, so it is not passed on.
                raise connection_fault(error, url) from None
            if target.origin() != url.origin():
                headers = {}
            url = target
        raise PortError(f"it redirects more than {MOST_REDIRECTS} times. Check the url.")

    def _pool(self, url: URL) -> ClientSession:
        host = url.host_subcomponent
        allowed = not self._allowed.isdisjoint((host, f"{host}:{url.port}"))
        if allowed not in self._pools:
            # Here, and not where names are looked up, since this is what is connected to: neither
            # a literal address nor a name that changes its address goes past it.
            connector = TCPConnector(socket_factory=None if allowed else _public_socket)
            self._pools[allowed] = ClientSession(
                connector=connector,
                cookie_jar=DummyCookieJar(),
                headers={"Accept": "application/json", "User-Agent": "weft"},
                timeout=ClientTimeout(total=None),
            )
        return self._pools[allowed]

    async def close(self) -> None:
        pools, self._pools = self._pools, {}
        for pool in pools.values():
            await pool.close()


def _public_socket(info: tuple[int, int, int, str, tuple[Any, ...]]) -> socket.socket:
    """Open a socket for one of the addresses a host has, if it is public."""
    family, kind, protocol, _, address = info
    if not is_public(str(address[0])):
        raise PrivateAddress
    return socket.socket(family, kind, protocol)


def _address(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in _SCHEMES or not url.raw_host:
        raise PortError("its url is none. Write one like https://example.org/path")
    if url.user is not None or url.password is not None:
        raise PortError("its url holds a login. Put that under auth, as a secret.")
    return url


def _target(url: URL, location: str) -> URL:
    """Return where a redirect leads; what stands in it beside the host is not told to anybody."""
    try:
        target = url.join(URL(location))
    except ValueError:
        target = URL()
    if target.scheme not in _SCHEMES or not target.raw_host:
        raise PortError("it redirects to what is no http or https address. Check the url.")
    if (url.scheme, target.scheme) == ("https", "http"):
        raise PortError(f"it redirects from https to http: {target.origin()}. Check the url.")
    return target.with_user(None)


def _headers(login: ServiceLogin | None) -> dict[str, str]:
    if login is None:
        return {}
    secret = login.secret
    if login.kind == "basic":
        if ":" not in secret:
            raise PortError("its secret has no colon. Set it as USER:PASSWORD.")
        # What an environment holds need not be text.
        pair = b64encode(secret.encode("utf-8", "surrogatepass")).decode()
        return {"Authorization": f"Basic {pair}"}
    if not (secret.isascii() and secret.isprintable() and secret.strip()):
        raise PortError("its secret is empty or has characters no header has. Copy it again.")
    if login.kind == "bearer":
        return {"Authorization": f"Bearer {secret}"}
    if not _HEADER.fullmatch(login.header):
        raise PortError(f"{login.header!r} is no name of a header. Correct the header of its auth.")
    return {login.header: secret}


def _value(raw: bytes) -> Json:
    try:
        return read_json(raw)
    except ValueError as error:
        fact = f"the answer is no JSON: {error}"
        raise PortError(f"{fact}. Check the url, and what it gives.") from error


async def _body(response: ClientResponse, most: int) -> bytes:
    if not 200 <= response.status < 300:
        raise status_fault(response.status, response.headers)
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most:
            raise PortError(f"it answers with more than {most} bytes. Ask for less, or allow more.")
        parts.append(part)
    return b"".join(parts)
