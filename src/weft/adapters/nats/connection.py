"""A connection to NATS that may be down: nothing waits for it, and it comes back by itself.

What is sent before the first connection is sent with it; what is sent during an outage is dropped.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from nats.aio.client import Client
from nats.errors import Error

from weft.errors import UsageError

_LOG: Final = logging.getLogger("weft.nats")

#: Messages that wait to be sent; later ones are dropped.
MAX_WAITING: Final = 10_000
RECONNECT_SECONDS: Final = 1


class NatsConnection:
    """Sends messages while the server can be reached, and drops them while it cannot."""

    def __init__(self, url: str, on_connected: Callable[[Client], Awaitable[None]]) -> None:
        _refuse_bad_address(url)
        self._url = url
        self._client = Client()
        self._on_connected = on_connected
        self._waiting: asyncio.Queue[tuple[str, bytes]] = asyncio.Queue(MAX_WAITING)
        self._is_ready = False
        self._is_down = False
        #: Set when the first connection is ready.
        self._begun = asyncio.Event()
        self._tasks = [asyncio.create_task(self._connect()), asyncio.create_task(self._send())]

    @property
    def is_ready(self) -> bool:
        """Whether messages are sent and received now."""
        return self._is_ready and self._client.is_connected

    def send(self, subject: str, content: bytes = b"") -> None:
        """Send a message; drops it while the connection is lost."""
        is_lost = self._begun.is_set() and not self._client.is_connected
        if not is_lost and not self._waiting.full():
            self._waiting.put_nowait((subject, content))

    async def close(self) -> None:
        """Send what waits, and end the connection."""
        if self.is_ready:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._waiting.join()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    async def _connect(self) -> None:
        await self._client.connect(
            self._url,
            connect_timeout=2,
            reconnect_time_wait=RECONNECT_SECONDS,
            max_reconnect_attempts=-1,
            ping_interval=5,
            max_outstanding_pings=2,
            error_cb=self._report,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._set_up,
        )
        await self._set_up()

    async def _set_up(self) -> None:
        while True:
            try:
                await self._on_connected(self._client)
                break
            except (Error, TimeoutError, OSError) as error:
                await self._report(error)
            await asyncio.sleep(RECONNECT_SECONDS)
            if not self._client.is_connected:  # It is set up when it is connected again.
                return
        self._is_ready = True
        self._begun.set()
        if self._is_down:
            self._is_down = False
            _LOG.info("connected to NATS again")

    async def _send(self) -> None:
        await self._begun.wait()
        while True:
            subject, content = await self._waiting.get()
            try:
                await self._client.publish(subject, content)
            except (Error, OSError) as error:
                await self._report(error)
            finally:
                self._waiting.task_done()

    async def _on_disconnected(self) -> None:
        self._is_ready = False
        if not self._client.is_closed:
            await self._report(ConnectionError("the connection was lost"))

    async def _report(self, error: Exception) -> None:
        """Log the first error of an outage: signals are lost, and runs continue without them."""
        if not self._is_down:
            self._is_down = True
            _LOG.warning(
                "NATS cannot be used: %s. Workers look at the store every second until it can be.",
                str(error) or type(error).__name__,
            )


def _refuse_bad_address(url: str) -> None:
    if not url.startswith(("nats://", "tls://")):
        raise UsageError(f"not an address of NATS: {url!r}", hint="write nats://HOST:4222")
