"""Ownership of runs: the id under which this process owns runs, and its heartbeat.

An owner is one life of a process. It sends a heartbeat every second while it holds runs; the store
gives the runs of an owner without a heartbeat for 5 seconds to others. A heartbeat that comes later
is refused: the process takes a new id, and drops the runs that others have taken.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Collection
from itertools import count
from typing import Final

from weft.engine.rows import RunRow
from weft.errors import StoreError
from weft.ports.clock import Clock
from weft.ports.store import Heartbeat, RunKey, Store

_log: Final = logging.getLogger("weft.runtime")

#: Milliseconds between two heartbeats, and without one after which an owner counts as dead.
HEARTBEAT: Final = 1_000
DEAD_AFTER: Final = 5_000

#: Seconds after the last accepted heartbeat in which effects may begin: less than DEAD_AFTER.
_SAFE_SECONDS: Final = 4.0


class StoreClock:
    """A clock that shows the time of the store, which decides when a run is due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offset = 0

    def now(self) -> int:
        """Return the milliseconds since 1970."""
        return self._clock.now() + self._offset

    def new_id(self) -> str:
        """Return an id that sorts by time and cannot be guessed."""
        return self._clock.new_id()

    async def sleep_until(self, at: int) -> None:
        """Return when the store's time has come."""
        await self._clock.sleep_until(at - self._offset)

    def follow(self, now: int, asked_at: int) -> None:
        """Follow the time that the store has reported since this clock was at `asked_at`."""
        here = self.now()
        if not asked_at <= now <= here:
            self._offset += now - (asked_at + here) // 2


class Ownership:
    """The owner id of this process, which changes when a heartbeat is refused."""

    def __init__(
        self,
        store: Store,
        clock: StoreClock,
        *,
        is_needed: Callable[[], bool],
        on_renamed: Callable[[Collection[RunKey]], None],
        on_freed: Callable[[], None],
    ) -> None:
        """`on_renamed` is called with the runs that this process still owns, under its new id.

        `on_freed` is called when runs of another owner may have become free.
        """
        self.owner = clock.new_id()
        #: The answer to the last heartbeat.
        self.last_beat: Heartbeat | None = None
        self._store = store
        self._clock = clock
        self._is_needed = is_needed
        self._on_renamed = on_renamed
        self._on_freed = on_freed
        self._numbers = count(1)
        self._task: asyncio.Task[None] | None = None
        #: When the last accepted heartbeat was sent, by the monotonic clock.
        self._beaten = 0.0
        self._renewed = asyncio.Event()
        self._is_draining = False
        #: Held while the id changes, and the id that it changes to.
        self._renaming = asyncio.Lock()
        self._next_owner = ""

    def new_batch(self) -> str:
        """Return an id that no other batch has."""
        return f"{self.owner}.{next(self._numbers)}"

    async def current(self) -> str:
        """Return the id of the owner when it is not about to change."""
        async with self._renaming:
            return self.owner

    def begin(self) -> None:
        """Send heartbeats from now on, for as long as they are needed.

        The first batch that holds a run records the owner as alive.
        """
        if self._task is None and self._store.is_shared:
            self._beaten = asyncio.get_running_loop().time()
            self._renewed.set()
            self._task = asyncio.create_task(self._send_heartbeats())

    @property
    def is_begun(self) -> bool:
        """Whether the store knows this owner as alive, if that is needed."""
        return self._task is not None or not self._store.is_shared

    @property
    def is_safe(self) -> bool:
        """Whether no other process can own the runs of this owner yet: effects may begin."""
        if not self._store.is_shared or self._is_draining:
            return not self._is_draining
        return asyncio.get_running_loop().time() - self._beaten < _SAFE_SECONDS

    async def wait_until_safe(self) -> None:
        """Return when a heartbeat was accepted, if the last one is too old; never after `drain`."""
        while not self.is_safe:
            self._renewed.clear()
            await self._renewed.wait()

    def drain(self) -> None:
        """Allow no more effects to begin."""
        self._is_draining = True

    async def beat(self) -> Heartbeat | None:
        """Send a heartbeat; return None if the store cannot be reached."""
        sent, asked_at = asyncio.get_running_loop().time(), self._clock.now()
        try:
            beat = await self._store.beat(self.owner)
        except StoreError as error:
            _log.warning("the heartbeat could not be written: %s", error)
            return None
        self._clock.follow(beat.now, asked_at)
        before, self.last_beat = self.last_beat, beat
        if before is not None and before.others.keys() - beat.others.keys():
            self._on_freed()  # Another owner is dead, or owns no more runs.
        if not beat.alive:
            self._beaten = -math.inf  # Independent of the local clock: others may own the runs.
            self._next_owner = self._next_owner or self._clock.new_id()
            async with self._renaming:
                try:
                    kept = await self._store.rename(self.owner, self._next_owner)
                except StoreError as error:  # The next heartbeat tries again.
                    _log.warning("the heartbeat could not be written: %s", error)
                    return None
                self.owner, self._next_owner = self._next_owner, ""
                self._on_renamed(kept)
        self._beaten = sent
        self._renewed.set()
        return beat

    async def _send_heartbeats(self) -> None:
        at = self._clock.now()
        while True:
            now = self._clock.now()
            # A slow answer does not delay the next one, nor does a clock that was set back.
            at = min(max(at + HEARTBEAT, now), now + HEARTBEAT)
            await self._clock.sleep_until(at)
            if not self._is_needed():
                break
            await self.beat()
        # The next heartbeat would come too late.
        self.owner = self._clock.new_id()
        self._task = None

    async def close(self) -> None:
        """Send no more heartbeats."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class OwnerWatch:
    """Tells whether other owners that hold runs may be dead: their runs are recovered then.

    An owner is alive if its heartbeat changes after it was first seen.
    """

    def __init__(self) -> None:
        self._silent: dict[str, int] = {}
        self._alive: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._silent)

    def update(self, beat: Heartbeat) -> None:
        """Record the owners that a heartbeat has reported."""
        self._silent = {
            owner: seen_at
            for owner, seen_at in beat.others.items()
            if self._silent.get(owner, seen_at) == seen_at and owner not in self._alive
        }
        self._alive = {owner for owner in beat.others if owner not in self._silent}

    def clear(self) -> None:
        """Forget all owners."""
        self._silent = {}


def is_alive(row: RunRow, now: int) -> bool:
    """Return whether the owner of a run has sent a heartbeat in time."""
    return bool(row.owner) and row.heartbeat > now - DEAD_AFTER
