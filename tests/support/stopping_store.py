"""A store that stops, as it does for a process that dies, and the clock of the process after it."""

import asyncio

from weft.adapters.system_clock import SystemClock
from weft.runtime.runs.ownership import DEAD_AFTER


class LaterClock(SystemClock):
    """The clock of a process that begins when the ones before it count as dead."""

    def __init__(self, lives: int) -> None:
        self._ahead = lives * (DEAD_AFTER + 1000)

    def now(self) -> int:
        return super().now() + self._ahead


class StoppingStore:
    """Stops at an append for good, before or after it is written: a dead process writes nothing."""

    def __init__(self, store, at, *, after):
        self._store = store
        self._left = at
        self._after = after
        self.stopped = asyncio.Event()
        self._writing = set()

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def append(self, batch, *, owner):
        self._left -= 1
        if self._left < 0 or (self._left == 0 and not self._after):
            await self._stop()
        left = await self._whole(self._store.append(batch, owner=owner))
        if self._left == 0:
            await self._stop()
        return left

    async def _stop(self):
        self.stopped.set()
        await asyncio.Event().wait()

    async def _whole(self, writing):
        """Write even if the caller is cancelled: a transaction is not half written."""
        if self.stopped.is_set():
            writing.close()
            await asyncio.Event().wait()
        task = asyncio.create_task(writing)
        self._writing.add(task)
        return await asyncio.shield(task)

    async def put(self, mail, **options):
        return await self._whole(self._store.put(mail, **options))

    async def claim(self, owner, **options):
        return await self._whole(self._store.claim(owner, **options))

    async def take(self, owner, *run, **options):
        return await self._whole(self._store.take(owner, *run, **options))

    async def beat(self, owner):
        return await self._whole(self._store.beat(owner))

    async def rename(self, owner, new):
        return await self._whole(self._store.rename(owner, new))

    async def release(self, owner, runs, **options):
        """Free runs, while the process lives: a dead one releases nothing."""
        if not self.stopped.is_set():
            await self._store.release(owner, runs, **options)

    async def close(self):
        """Write what is under way, then close this connection."""
        self.stopped.set()
        await asyncio.gather(*self._writing, return_exceptions=True)
        await self._store.close()


async def work_until_stopped(host, store, work):
    """Let a host work until its store stops, then leave it as a killed process leaves its runs.

    Returns whether the store has stopped.
    """
    tasks = asyncio.create_task(work), asyncio.create_task(store.stopped.wait())
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    was_stopped = store.stopped.is_set()
    if not was_stopped:
        tasks[0].result()
    store.stopped.set()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await host.close()
    return was_stopped
