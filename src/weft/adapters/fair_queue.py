"""Waiting in turn: where many tenants share a limit, none of them can keep the others waiting."""

import asyncio
from collections import OrderedDict, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A queue that serves tenants in turn, and the items of each in the order they came."""

    def __init__(self) -> None:
        self._items: OrderedDict[str, deque[T]] = OrderedDict()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def append(self, app: str, item: T) -> None:
        """Add an item of a tenant."""
        self._items.setdefault(app, deque()).append(item)
        self._count += 1

    def popleft(self) -> T:
        """Remove and return the oldest item of the tenant whose turn it is."""
        app, items = self._items.popitem(last=False)
        item = items.popleft()
        if items:
            self._items[app] = items
        self._count -= 1
        return item


class FairSlots:
    """A number of slots; a slot that becomes free goes to the tenant whose turn it is."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: FairQueue[asyncio.Future[None]] = FairQueue()

    async def acquire(self, app: str) -> None:
        """Take a slot; wait until there is one."""
        if self._free > 0:
            self._free -= 1
            return
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(app, given)
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():  # The slot came while it was cancelled.
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back: to a call that waits, or for the next one."""
        while self._waiting:
            given = self._waiting.popleft()
            if not given.done():  # A cancelled call takes no slot, and no turn of its tenant.
                given.set_result(None)
                return
        self._free += 1
