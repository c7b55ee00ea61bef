"""Hearing of other processes: one connection that listens to all channels of this process."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from weft.adapters.sql.postgres.connections import FAILURES, Connection, Database, end
from weft.errors import StoreError

_log: Final = logging.getLogger(__name__)

#: Seconds after which an idle connection is asked whether it still lives.
ASK_SECONDS: Final = 30.0

Receive = Callable[[str], None]


class Listener:
    """Calls a function for every notification of a channel, over a connection that comes back.

    `on_ready` is called whenever notifications may have been missed: for new channels, and after
    the connection was lost.
    """

    def __init__(self, database: Database, on_ready: Callable[[], None]) -> None:
        self._database = database
        self._on_ready = on_ready
        self._channels: dict[str, Receive] = {}
        self._heard: set[str] = set()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        #: Whether the server could be reached.
        self.is_connected = True

    def listen(self, channel: str, receive: Receive) -> None:
        """Listen to a channel from now on."""
        if channel in self._channels:
            return
        self._channels[channel] = receive
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """End the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            connection: Connection | None = None
            try:
                connection = await self._database.connect()
                self.is_connected = True
                await self._hear(connection)
            except (StoreError, *FAILURES) as error:
                if self.is_connected:
                    self.is_connected = False
                    _log.warning(
                        "notifications of %s stopped: %s; the store is polled until they return",
                        self._database.name,
                        error,
                    )
            finally:
                self._heard.clear()
                if connection is not None:
                    await end(connection)

    async def _hear(self, connection: Connection) -> None:
        connection.add_termination_listener(self._on_terminated)
        while True:
            self._changed.clear()
            new = self._channels.keys() - self._heard
            for channel in new:
                await connection.add_listener(channel, self._receive)
                self._heard.add(channel)
            if new:
                self._on_ready()
            with suppress(TimeoutError):
                async with asyncio.timeout(ASK_SECONDS):
                    await self._changed.wait()
                if connection.is_closed():
                    raise ConnectionError("the connection was lost")
                continue
            async with asyncio.timeout(5):
                await connection.execute("SELECT 1")

    def _on_terminated(self, _connection: object) -> None:
        self._changed.set()

    def _receive(self, _connection: object, _pid: int, channel: str, payload: str) -> None:
        self._channels[channel](payload)
