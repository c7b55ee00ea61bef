"""Confirmations: a tool writes them, and a service sends them beside the server."""

import asyncio
import logging
from queue import Empty, SimpleQueue

_waiting = SimpleQueue()


def confirm(order: int, text: str) -> str:
    """Send the confirmation of an order."""
    _waiting.put((order, text))
    return "it will be sent"


class Outbox:
    """Sends confirmations from start to stop."""

    async def start(self):
        self._task = asyncio.create_task(self._send())

    async def stop(self):
        self._task.cancel()

    async def _send(self) -> None:
        while True:
            try:
                order, text = _waiting.get_nowait()
            except Empty:
                await asyncio.sleep(0.2)
                continue
            logging.getLogger("shop").info("order %s: %s", order, text)
