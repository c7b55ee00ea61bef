"""Prevents network calls from leaving the machine while tests run.

with no_network():
    ...
"""

import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, Final

from weft.errors import UsageError

#: Names of this machine that are not addresses.
_HERE: Final = frozenset({"", "localhost", "localhost.localdomain"})


@contextmanager
def no_network() -> Generator[None, None, None]:
    """Refuse connections to other machines, and lookups of their names.

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
        # Not an OSError, which would look like a server that is down, and be retried.
        raise UsageError(
            f"a test tried to connect to {name}; tests may only use this machine",
            hint="use weft.testing.models, or a server on 127.0.0.1; a scenario can give the "
            "results of a tool under `tools`",
        )


def _is_loopback(name: str) -> bool:
    try:
        return ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False
