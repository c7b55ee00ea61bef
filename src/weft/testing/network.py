"""No call leaves the machine while tests run, whichever library would make it.

with no_network():
    ...
"""

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, Final

from weft.errors import UsageError

#: What stands for this machine without being an address.
_HERE: Final = frozenset({"", "localhost", "localhost.localdomain"})


@contextmanager
def no_network() -> Generator[None, None, None]:
    """Refuse every connection but those to this machine, and every look-up of another name.

    It works below all client libraries, on sockets of the standard library; loops that bring their
    own sockets are not covered.
    """
    real = (socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo)
    socket.socket.connect = _guarded(real[0])
    socket.socket.connect_ex = _guarded(real[1])
    socket.getaddrinfo = _guarded_look_up(real[2])
    try:
        yield
    finally:
        socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo = real


def _guarded(connect: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(self: socket.socket, address: Any) -> Any:  # noqa: ANN401
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _refuse_unless_here(address[0])
        return connect(self, address)

    return guarded


def _guarded_look_up(look_up: Callable[..., Any]) -> Callable[..., Any]:
    def guarded(host: str | bytes | None, *rest: Any, **options: Any) -> Any:  # noqa: ANN401
        _refuse_unless_here(host)
        return look_up(host, *rest, **options)

    return guarded


def _refuse_unless_here(host: str | bytes | None) -> None:
    name = host.decode() if isinstance(host, bytes) else host or ""
    if not (name in _HERE or _is_loopback(name)):
        # Not an OSError: that would pass for a server that is down, and be tried again.
        raise UsageError(
            f"a test wants to reach {name}, and no test may leave this machine",
            hint="use weft.testing.models, or a server on 127.0.0.1",
        )


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False
