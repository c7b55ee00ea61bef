"""Messages between processes by NOTIFY, for the live stream."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from weft.adapters.sql.postgres.connections import FAILURES, Line
from weft.adapters.sql.postgres.listener import Listener
from weft.errors import StoreError

_log: Final = logging.getLogger(__name__)

#: A notification is at most 8,000 bytes long.
LIMIT: Final = 7_900
#: Messages that wait to be sent; later ones are dropped.
MAX_WAITING: Final = 1_000

_SEND: Final = "SELECT pg_notify(t, c) FROM unnest($1::text[], $2::text[]) AS message (t, c)"


class PostgresBus:
    """Sends and receives notifications over connections of a store."""

    limit = LIMIT

    def __init__(self, line: Line, listener: Listener, schema: str) -> None:
        self._line = line
        self._listener = listener
        self._schema = schema
        self._waiting: list[tuple[str, str]] = []
        self._sending: asyncio.Task[None] | None = None

    def send(self, topic: str, content: bytes) -> None:
        """Send a message to the listeners of a topic, with all others that wait."""
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append((self._channel(topic), content.decode()))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.create_task(self._send_all())

    def listen(self, topic: str, receive: Callable[[bytes], None]) -> None:
        """Call `receive` for every message of a topic from now on."""
        self._listener.listen(self._channel(topic), lambda payload: receive(payload.encode()))

    async def close(self) -> None:
        """Send what waits."""
        if self._sending is not None:
            await self._sending

    def _channel(self, topic: str) -> str:
        return f"{self._schema}_live_{topic}"

    async def _send_all(self) -> None:
        while self._waiting:
            messages, self._waiting = self._waiting, []
            try:
                async with self._line.use() as connection:
                    await connection.fetch(_SEND, *zip(*messages, strict=True))
            except (StoreError, *FAILURES) as error:
                # Text that is not seen while it is written comes with the reply.
                _log.info("%d live messages were dropped: %s", len(messages), error)
