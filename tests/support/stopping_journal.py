"""A store that stops, as it does for a process that dies."""

import asyncio


class StoppingJournal:
    """Stops at an append for good: before it is written, or after."""

    def __init__(self, journal, fatal, *, after):
        self._journal = journal
        self._left = fatal
        self._after = after
        self.stopped = asyncio.Event()

    def __getattr__(self, name):
        return getattr(self._journal, name)

    async def append(self, batch):
        self._left -= 1
        if self._left <= 0:
            if self._left == 0 and self._after:
                await self._journal.append(batch)
            self.stopped.set()
            await asyncio.Event().wait()
        await self._journal.append(batch)

    async def claim(self, *args, **options):
        """Take runs over while it lives; the dead release nothing."""
        return not self.stopped.is_set() and await self._journal.claim(*args, **options)

    async def close(self):
        """Leave the store to those who live."""
