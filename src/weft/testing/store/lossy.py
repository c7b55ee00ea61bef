"""A store whose answers get lost, as when a connection breaks after a commit.

    store = LossyStore(MemoryStore())

What was written is there; the caller gets an error that says so.
"""

from collections.abc import Callable
from typing import Any

from weft.engine.rows import Batch, Mail
from weft.errors import StoreError
from weft.ports.store import Claimed, Heartbeat, Store


class LossyStore:
    """Writes everything, and then loses the answers that it is asked to lose.

    `lose` gets the number of each answer, from 1 on; by default every other one is lost. What is
    written again after a loss is answered.
    """

    def __init__(
        self, store: Store, lose: Callable[[int], bool] = lambda number: number % 2 == 1
    ) -> None:
        self._store = store
        self._lose = lose
        #: How many answers there were, and how many of them were lost.
        self.answered = 0
        self.lost = 0
        self._lost: set[object] = set()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a method of the store
        return getattr(self._store, name)

    async def append(self, batch: Batch, *, owner: str) -> bool:
        """Write a batch; raise StoreError if the answer is to be lost."""
        left = await self._store.append(batch, owner=owner)
        self._answer(batch.id)
        return left

    async def put(self, mail: Mail, *, package: bytes | None = None) -> str:
        """Send mail; raise StoreError if the answer is to be lost."""
        run = await self._store.put(mail, package=package)
        self._answer((mail.to, mail.id))
        return run

    async def claim(self, owner: str, *, limit: int = 50) -> Claimed:
        """Claim runs; raise StoreError if the answer is to be lost."""
        claimed = await self._store.claim(owner, limit=limit)
        self._answer("claim")
        return claimed

    async def beat(self, owner: str) -> Heartbeat:
        """Record a heartbeat; raise StoreError if the answer is to be lost."""
        beat = await self._store.beat(owner)
        self._answer("beat")
        return beat

    def _answer(self, what: object) -> None:
        if what in self._lost:
            self._lost.discard(what)
            return
        self.answered += 1
        if self._lose(self.answered):
            self.lost += 1
            self._lost.add(what)
            raise StoreError("the connection broke", retryable=True, uncertain=True)
