"""What went wrong with a service, as a PortError that says whether trying again may help.

None of them quotes what a library or the service says: that may hold the whole address, with
secrets in its query, or our login.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final

from aiohttp import ClientConnectorError, ClientSSLError
from yarl import URL

from weft.errors import PortError

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
