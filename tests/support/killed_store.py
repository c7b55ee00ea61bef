"""The store of a process that is killed: from then on it writes nothing and releases nothing."""

import asyncio

from weft.errors import StoreError

WRITES = ("put", "take", "claim", "beat", "rename", "release", "save_snapshot")


class KilledStore:
    """A way to a store that ends with `kill`, as the process that has it does."""

    def __init__(self, store):
        self._store = store
        self._is_dead = False

    def kill(self):
        """Let nothing be written any more."""
        self._is_dead = True

    def __getattr__(self, name):
        if self._is_dead and name in WRITES:
            return self._refuse
        return getattr(self._store, name)

    async def append(self, batch, *, owner):
        if self._is_dead:
            await asyncio.Event().wait()
        return await self._store.append(batch, owner=owner)

    async def _refuse(self, *_given, **_named):
        raise StoreError("this process is dead")

    async def close(self):
        """Close the connection: the operating system does it."""
        await self._store.close()
