"""Messages between the processes of one machine over sockets beside a file, for the live stream.

A listener is a datagram socket in the folder `FILE-live`, which only its owner can enter. A sender
sends to the sockets of a topic that are in the folder, and removes those of processes that died.
"""

import asyncio
import errno
import logging
import os
import secrets
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

_log: Final = logging.getLogger(__name__)

#: The size of a message in bytes: systems send datagrams of 200 kB at most.
LIMIT: Final = 60_000
#: Bytes that wait for one other process; later messages are dropped.
MOST_WAITING: Final = 4_000_000
#: Seconds until it is tried again to send to a process that is busy.
RETRY_SECONDS: Final = 0.01
#: Seconds without progress after which what waits is dropped: the process is stopped.
GIVE_UP_SECONDS: Final = 2.0

_BUSY: Final = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS})
#: Paths of sockets are at most 107 bytes long, on some systems 103.
_LONGEST_PATH: Final = 103
#: Another process may remove the folder when it is the last one there.
_ATTEMPTS: Final = 10


class SocketBus:
    """Sends to and receives from the other processes that use a file."""

    limit = LIMIT

    def __init__(self, file: Path) -> None:
        file = file.resolve()
        self._folder = file.with_name(f"{file.name}-live")
        self._id = secrets.token_hex(8)
        self._loop = asyncio.get_running_loop()
        self._listeners: dict[Path, socket.socket] = {}
        self._peers: dict[str, _Peer] = {}
        self._descriptor: int | None = None

    def send(self, topic: str, content: bytes) -> None:
        """Send a message to the listeners of a topic in other processes."""
        if not self._listeners:
            return
        try:
            names = {path.name for path in self._folder.iterdir()}
        except OSError as error:
            _log.info("a live message was dropped: %s", error)
            return
        for name, peer in list(self._peers.items()):
            if peer.is_lost or name not in names:
                self._peers.pop(name).close()
        for name in names:
            if name.startswith(f"{topic}.") and not name.endswith(self._id):
                peer = self._peers.get(name) or self._connect(name)
                if peer is not None:
                    peer.send(content)

    def listen(self, topic: str, receive: Callable[[bytes], None]) -> None:
        """Call `receive` for every message of a topic from now on.

        Where there can be no socket, such as on a read-only disk, there are no messages.
        """
        path = self._folder / f"{topic}.{self._id}"
        listener = _new_socket()
        try:
            self._bind(listener, path)
        except OSError as error:
            listener.close()
            _log.info("streamed text does not cross processes: %s: %s", path, error)
            return
        self._listeners[path] = listener
        self._loop.add_reader(listener, _receive, listener, receive)

    async def close(self) -> None:
        """Remove the sockets, and the folder after the last process."""
        for path, listener in self._listeners.items():
            self._loop.remove_reader(listener)
            listener.close()
            path.unlink(missing_ok=True)
        self._listeners.clear()
        for peer in self._peers.values():
            peer.close()
        self._peers.clear()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        with suppress(OSError):  # Others are there, or were the last.
            self._folder.rmdir()

    def _bind(self, listener: socket.socket, path: Path) -> None:
        for attempt in range(_ATTEMPTS):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            try:
                listener.bind(self._address(path.name))
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def _address(self, name: str) -> str:
        """Return the path of a socket; a long one begins with an open descriptor of the folder."""
        path = str(self._folder / name)
        if len(os.fsencode(path)) <= _LONGEST_PATH:
            return path
        if not self._listeners:  # Until there is one, the folder may be removed and made again.
            if self._descriptor is not None:
                os.close(self._descriptor)
            self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._descriptor}/{name}"

    def _connect(self, name: str) -> "_Peer | None":
        connection = _new_socket()
        try:
            connection.connect(self._address(name))
        except OSError as error:
            connection.close()
            if isinstance(error, ConnectionRefusedError):  # Its process was killed.
                (self._folder / name).unlink(missing_ok=True)
            return None
        peer = self._peers[name] = _Peer(connection, self._loop)
        return peer


class _Peer:
    """A socket of another process, and what waits for it while that process is busy.

    It has a socket of its own to send with: what a stopped process does not read fills only this.
    """

    def __init__(self, connection: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        #: Whether a message could not be sent because the process has ended.
        self.is_lost = False
        self._connection = connection
        self._loop = loop
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._timer: asyncio.TimerHandle | None = None
        self._give_up_at = 0.0

    def send(self, content: bytes) -> None:
        """Send a message after those that wait, or drop it if they are too many."""
        if self._size + len(content) > MOST_WAITING:
            return
        self._waiting.append(content)
        self._size += len(content)
        if self._timer is None:
            self._give_up_at = self._loop.time() + GIVE_UP_SECONDS
            self._flush()

    def close(self) -> None:
        """Drop what waits."""
        if self._timer is not None:
            self._timer.cancel()
        self._connection.close()

    def _flush(self) -> None:
        self._timer = None
        try:
            while self._waiting:
                self._connection.send(self._waiting[0])
                self._size -= len(self._waiting.popleft())
                self._give_up_at = self._loop.time() + GIVE_UP_SECONDS
        except OSError as error:
            is_busy = error.errno in _BUSY
            if is_busy and self._loop.time() < self._give_up_at:
                self._timer = self._loop.call_later(RETRY_SECONDS, self._flush)
                return
            self.is_lost = not is_busy
            self._waiting.clear()
            self._size = 0


def _new_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.settimeout(0)
    # Some systems allow 2 kB otherwise.
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * LIMIT)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * LIMIT)
    return made


def _receive(listener: socket.socket, receive: Callable[[bytes], None]) -> None:
    with suppress(BlockingIOError):
        receive(listener.recv(LIMIT))
