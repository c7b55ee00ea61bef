"""Messages between processes over NATS, for the live stream."""

from collections.abc import Callable
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg

from weft.adapters.nats.connection import NatsConnection

#: Far below the 1 MB that NATS allows by default.
LIMIT: Final = 250_000


class NatsBus:
    """Sends to and receives from subjects of NATS, without storage."""

    limit = LIMIT

    def __init__(self, url: str, name: str = "weft") -> None:
        self._name = name
        self._listeners: dict[str, Callable[[bytes], None]] = {}
        self._subscribed = False
        self._connection = NatsConnection(url, self._subscribe_all)

    def send(self, topic: str, content: bytes) -> None:
        """Send a message to the listeners of a topic."""
        self._connection.send(f"{self._name}-live.{topic}", content)

    def listen(self, topic: str, receive: Callable[[bytes], None]) -> None:
        """Call `receive` for every message of a topic, from the next connection on."""
        self._listeners[topic] = receive

    @property
    def is_ready(self) -> bool:
        """Whether messages are sent and received now."""
        return self._connection.is_ready

    async def close(self) -> None:
        """Stop sending and receiving."""
        await self._connection.close()

    async def _subscribe_all(self, client: Client) -> None:
        if self._subscribed:  # The client itself subscribes again after a lost connection.
            return
        self._subscribed = True
        for topic, receive in self._listeners.items():

            async def deliver(message: Msg, receive: Callable[[bytes], None] = receive) -> None:
                receive(message.data)

            subject = f"{self._name}-live.{topic}"
            await client.subscribe(subject, cb=deliver)  # pyright: ignore[reportUnknownMemberType]
