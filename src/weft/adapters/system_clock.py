"""The time of the machine, and identities made from it."""

import asyncio
import secrets
import time
from typing import Final

from weft.ids import ID_BITS, sortable_id

#: Longer waits are split: the machine may sleep, or its clock may be set.
_MAX_SLEEP: Final = 60.0


class SystemClock:
    """The clock port over the machine's own clock."""

    def now(self) -> int:
        """Return the milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def new_id(self) -> str:
        """Return an identity that sorts by time and cannot be guessed."""
        return sortable_id(self.now(), secrets.randbits(ID_BITS))

    async def sleep_until(self, at: int) -> None:
        """Return when the time has come."""
        while (left := (at - self.now()) / 1000) > 0:  # noqa: ASYNC110 - no event is set when time passes
            await asyncio.sleep(min(left, _MAX_SLEEP))
