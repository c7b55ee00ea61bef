"""What has reached a run and is still to be taken in, and who waits for it."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from weft.errors import RunError
from weft.runtime.runs.effects import Broken, NewEvents


@dataclass(frozen=True, slots=True)
class Delivery:
    """Something to be done with a run, and who waits for it to be done."""

    work: Callable[[], Awaitable[Any]]
    done: asyncio.Future[Any] | None = None

    async def perform(self) -> None:
        """Do it, and tell whoever waits for it what came of it."""
        done = self.done
        try:
            result = await self.work()
        except asyncio.CancelledError:
            self.fail(RunError("the host was closed; look whether it was written"))
            raise
        except Exception as error:  # the outcome belongs to whoever waits for it
            if done is None:
                raise
            self.fail(error)
        else:
            if done is not None and not done.done():
                done.set_result(result)

    def fail(self, fault: Exception) -> None:
        """Tell whoever waits that it was not done."""
        if self.done is not None and not self.done.done():
            self.done.set_exception(fault)


#: A delivery, the result of an effect, or an effect that ended without one.
Item: TypeAlias = Delivery | NewEvents | Broken


class Inbox:
    """Results and deliveries, in the order they came."""

    def __init__(self, write: Callable[[NewEvents], Awaitable[None]]) -> None:
        self._write = write
        self._items: deque[Item] = deque()

    def __bool__(self) -> bool:
        return bool(self._items)

    def put(self, item: Item) -> None:
        """Let something wait to be taken in."""
        self._items.append(item)

    def take(self) -> Delivery:
        """Return the first that waits, as something to be done."""
        item = self._items.popleft()
        if isinstance(item, Delivery):
            return item
        if isinstance(item, Broken):
            return Delivery(partial(_raise, item.fault))
        return Delivery(partial(self._write, item))

    @property
    def results(self) -> list[NewEvents]:
        """The results that wait."""
        return [it for it in self._items if isinstance(it, tuple)]

    def fail_waiters(self, fault: Exception) -> None:
        """Take nothing in any more, and tell everybody who waits for it."""
        while self._items:
            self.take().fail(fault)


async def _raise(fault: Exception | None) -> None:
    if isinstance(fault, RunError):
        raise fault
    raise RunError(f"an effect ended without a result: {fault or 'cancelled'}") from fault
