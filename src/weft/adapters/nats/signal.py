"""Signals over NATS JetStream: a work queue for all workers, and a subject for each of them.

JetStream gives a signal to a second worker if the first does not confirm it in time. Who may work
on a run is still decided by the rows of the store.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error
from nats.js.api import ConsumerConfig, RetentionPolicy, StorageType, StreamConfig
from nats.js.client import JetStreamContext
from nats.js.errors import BadRequestError

from weft.adapters.nats.connection import NatsConnection

#: Seconds after which a signal is given to another worker, and after which it is dropped.
CONFIRM_SECONDS: Final = 2
KEEP_SECONDS: Final = 30


class NatsSignal:
    """Wakes the workers that listen at the same NATS server under the same name."""

    def __init__(self, url: str, name: str = "weft") -> None:
        self._stream = f"{name}-wake"
        self._workers: dict[str, Callable[[], None]] = {}
        self._subscriptions: dict[str, list[JetStreamContext.PushSubscription]] = {}
        self._client: Client | None = None
        #: A worker may come while the connection subscribes for all of them: one at a time.
        self._subscribing = asyncio.Lock()
        self._connection = NatsConnection(url, self._subscribe_all)

    def notify(self, owner: str = "") -> None:
        """Wake the worker that owns a run; without an owner, wake one of those that listen."""
        self._connection.send(self._subject(owner))

    @asynccontextmanager
    async def listen(self, owner: str, wake: Callable[[], None]) -> AsyncGenerator[None]:
        """Call `wake` for every signal to this worker inside the block."""
        self._workers[owner] = wake
        try:
            async with self._subscribing:
                is_new = owner not in self._subscriptions
                if is_new and self._client is not None and self._client.is_connected:
                    with suppress(Error, TimeoutError):  # A new connection subscribes once more.
                        await self._subscribe(self._client, owner)
            yield
        finally:
            del self._workers[owner]
            async with self._subscribing:
                await self._unsubscribe(owner)

    @property
    def is_ready(self) -> bool:
        """Whether messages are sent and received now."""
        return self._connection.is_ready

    async def close(self) -> None:
        """Stop listening and sending."""
        await self._connection.close()

    def _subject(self, owner: str) -> str:
        if not owner:
            return f"{self._stream}.any"
        return f"{self._stream}.{hashlib.sha256(owner.encode()).hexdigest()[:20]}"

    async def _subscribe_all(self, client: Client) -> None:
        self._client = client
        config = StreamConfig(
            name=self._stream,
            subjects=[f"{self._stream}.*"],
            retention=RetentionPolicy.WORK_QUEUE,
            storage=StorageType.MEMORY,
            max_age=KEEP_SECONDS,
        )
        stream = _jetstream(client)
        await stream.add_stream(config)  # pyright: ignore[reportUnknownMemberType]
        async with self._subscribing:
            for owner in list(self._workers):
                if owner in self._workers:  # It may have ended meanwhile.
                    await self._unsubscribe(owner)
                    await self._subscribe(client, owner)

    async def _subscribe(self, client: Client, owner: str) -> None:
        wake = self._workers[owner]

        async def receive(message: Msg) -> None:
            wake()
            await message.ack()

        stream = _jetstream(client)
        found = self._subscriptions.setdefault(owner, [])
        # A work queue allows one consumer per subject: all workers share that of "any".
        shared = ConsumerConfig(ack_wait=CONFIRM_SECONDS)
        subject = self._subject("")
        options: dict[str, Any] = {"queue": "workers", "stream": self._stream, "cb": receive}
        try:
            joined = await stream.subscribe(subject, config=shared, **options)
        except BadRequestError:  # Another worker has created it just now: it is there to be joined.
            joined = await stream.subscribe(subject, **options)
        found.append(joined)
        own = ConsumerConfig(ack_wait=CONFIRM_SECONDS, inactive_threshold=KEEP_SECONDS)
        subject = self._subject(owner)
        found.append(
            await stream.subscribe(
                subject,
                durable=subject.replace(".", "-"),
                stream=self._stream,
                cb=receive,
                config=own,
            )
        )

    async def _unsubscribe(self, owner: str) -> None:
        for subscription in self._subscriptions.pop(owner, ()):
            with suppress(Error, TimeoutError):
                await subscription.unsubscribe()


def _jetstream(client: Client) -> JetStreamContext:
    return client.jetstream()  # pyright: ignore[reportUnknownMemberType]
