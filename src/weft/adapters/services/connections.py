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
#: protocols, relays to other networks, and the metadata services of clouds.
_RESERVED: Final = tuple(
    map(ip_network, ("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "2002::/16"))
)

#: The only range from which public IPv6 addresses are given out.
_PUBLIC_IPV6: Final = ip_network("2000::/3")

#: IPv4 as seen from networks that have only IPv6: the last four bytes are the address.
_TRANSLATED: Final = ip_network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """Return whether a text is a public IP address.

    >>> is_public("8.8.8.8"), is_public("10.0.0.1"), is_public("::ffff:127.0.0.1")
    (True, False, False)
    """
    try:
        address = ip_address(text)
    except ValueError:
        return False
    if isinstance(address, IPv6Address):
        inner = _embedded_ipv4(address)
        if inner is None and address not in _PUBLIC_IPV6:
            return False
        address = inner or address
    # Some groups that one can only broadcast to count as global.
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in network for network in _RESERVED)
    )


def _embedded_ipv4(address: IPv6Address) -> IPv4Address | None:
    if address in _TRANSLATED:
        return IPv4Address(address.packed[-4:])
    return address.ipv4_mapped


_REMEDIES: Final = {
    401: "Check its auth; a login is not sent to another origin after a redirect.",
    403: "Check the rights of the login; it is not sent to another origin.",
    404: "Check the url.",
    429: "Ask less often: give the variable a cache.",
}


class PrivateAddressError(OSError):
    """A private address, to which no connection was made."""


def status_error(status: int, headers: Mapping[str, str]) -> PortError:
    passing = status == 429 or status >= 500
    usual = "Try again later." if passing else "Check the url."
    return PortError(
        f"it answered {status}. {_REMEDIES.get(status, usual)}",
        retryable=passing,
        after_seconds=_retry_after(headers),
    )


def connection_error(error: Exception, url: URL) -> PortError:
    """Return why a connection failed."""
    host = f"{url.host_subcomponent}:{url.port}"
    if isinstance(error, ClientSSLError):
        fact = "its certificate is not trusted, or it does not support https"
        return PortError(f"no secure connection to {host}: {fact}. Check the url.")
    if isinstance(error, ClientConnectorError):
        if isinstance(error.os_error, PrivateAddressError):
            return PortError(
                f"{host} has a private address, so it is not requested. To allow it, the "
                f"operator adds it to WEFT_ALLOW_HOSTS: {host}"
            )
        reason = error.os_error.strerror or "it cannot be reached"
        return PortError(f"no connection to {host}: {reason}. Is it running?", retryable=True)
    if isinstance(error, ValueError):
        return PortError(f"{host} is not a valid host. Check the url.")
    return PortError(f"the connection to {host} broke off. Try again later.", retryable=True)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After; a date counts from the service's own date."""
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
    """Two connection pools: one for public addresses only, one for allowed hosts.

    A host is allowed as it is written in a URL, in lower case, with or without its port,
    whatever address it resolves to.
    """

    def __init__(self, allow_hosts: frozenset[str]) -> None:
        self._allowed = allow_hosts
        self._pools: dict[bool, ClientSession] = {}

    async def send(self, request: ServiceRequest) -> tuple[bytes, Json]:
        """Send one request; return the body and its JSON. Raises PortError."""
        label = f"{request.service}, {request.operation}"
        try:
            url = _parse_url(request.url)
            label += f" ({url.scheme}://{url.host_port_subcomponent}{url.raw_path})"
            async with asyncio.timeout(request.timeout):
                raw = await self._follow(url, request)
            # What changes something may answer with nothing.
            return raw, None if not raw and request.method != "GET" else _parse_json(raw)
        except TimeoutError:
            fact = f"no answer within {request.timeout:g} s. Try again later, or allow more time."
            fault = PortError(fact, retryable=True)
        except PortError as error:
            fault = error
        fault.args = (f"{label}: {fault}",)
        raise fault

    async def post(
        self, address: str, body: bytes, headers: Mapping[str, str], seconds: float
    ) -> None:
        """Send a body; redirects are not followed. Raises PortError unless it is accepted."""
        url = _parse_url(address)
        try:
            async with (
                asyncio.timeout(seconds),
                self._pool(url).post(
                    url, data=body, headers=headers, allow_redirects=False
                ) as response,
            ):
                if not 200 <= response.status < 300:
                    raise status_error(response.status, response.headers)
        except TimeoutError:
            raise PortError(f"no answer within {seconds:g} s", retryable=True) from None
        except (ClientError, OSError, ValueError) as error:
            raise connection_error(error, url) from None

    async def _follow(self, url: URL, request: ServiceRequest) -> bytes:
        headers = _headers(request.login)
        if request.key:
            headers["Idempotency-Key"] = request.key
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        for _ in range(MOST_REDIRECTS + 1):
            # A body that is not read to its end here is dropped with its connection.
            try:
                async with self._pool(url).request(
                    request.method, url, headers=headers, data=request.body, allow_redirects=False
                ) as response:
                    if response.status not in _REDIRECTS or request.method != "GET":
                        return await _read_body(response, request.max_bytes)
                    target = _redirect_target(url, response.headers.get("Location", ""))
            except (ClientError, OSError, ValueError) as error:
                # The library's message may contain the whole address, so it is not quoted.
                raise connection_error(error, url) from None
            if target.origin() != url.origin():
                headers = {}
            url = target
        raise PortError(f"it redirects more than {MOST_REDIRECTS} times. Check the url.")

    def _pool(self, url: URL) -> ClientSession:
        host = url.host_subcomponent
        allowed = not self._allowed.isdisjoint((host, f"{host}:{url.port}"))
        if allowed not in self._pools:
            # Checked at the socket, not at the lookup of the name: neither
            # a literal address nor a name that changes its address can bypass it.
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
    """Open a socket for one address of a host, if it is public."""
    family, kind, protocol, _, address = info
    if not is_public(str(address[0])):
        raise PrivateAddressError
    return socket.socket(family, kind, protocol)


def _parse_url(text: str) -> URL:
    try:
        url = URL(text)
    except ValueError:
        url = URL()
    if url.scheme not in _SCHEMES or not url.raw_host:
        raise PortError("its url is invalid. Write one like https://example.org/path")
    if url.user is not None or url.password is not None:
        raise PortError("its url contains a login. Put that under auth, as a secret.")
    return url


def _redirect_target(url: URL, location: str) -> URL:
    """Return the target of a redirect, without a login."""
    try:
        target = url.join(URL(location))
    except ValueError:
        target = URL()
    if target.scheme not in _SCHEMES or not target.raw_host:
        raise PortError("it redirects to an address that is not http or https. Check the url.")
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
        # A value of the environment may not be valid Unicode.
        pair = b64encode(secret.encode("utf-8", "surrogatepass")).decode()
        return {"Authorization": f"Basic {pair}"}
    if not (secret.isascii() and secret.isprintable() and secret.strip()):
        raise PortError(
            "its secret is empty or has characters that no header may have. Copy it again."
        )
    if login.kind == "bearer":
        return {"Authorization": f"Bearer {secret}"}
    if not _HEADER.fullmatch(login.header):
        raise PortError(
            f"{login.header!r} is not a valid header name. Correct the header of its auth."
        )
    return {login.header: secret}


def _parse_json(raw: bytes) -> Json:
    try:
        return read_json(raw)
    except ValueError as error:
        fact = f"the answer is not JSON: {error}"
        raise PortError(f"{fact}. Check the url and its answer.") from error


async def _read_body(response: ClientResponse, most: int) -> bytes:
    if not 200 <= response.status < 300:
        raise status_error(response.status, response.headers)
    parts: list[bytes] = []
    size = 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > most:
            raise PortError(f"it answers with more than {most} bytes. Ask for less, or allow more.")
        parts.append(part)
    return b"".join(parts)
