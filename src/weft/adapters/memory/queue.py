"""Who works on which run in memory, and when each run is due."""

from collections import Counter
from collections.abc import Collection
from heapq import heapify, heappop, heappush
from typing import Final

from weft.engine.events import Event
from weft.engine.rows import Mail, RequestRow, RunRow, Snapshot
from weft.engine.timers import NEVER
from weft.ports.clock import Clock
from weft.ports.store import Claimed, Heartbeat, OwnerLoad, RunKey, Workload

#: A heap may have so many outdated entries besides twice as many as there are open runs.
_MOST_OUTDATED: Final = 64


class MemoryRun:
    """A run with all that belongs to it alone."""

    __slots__ = (
        "answered", "digest", "due_at", "events", "key", "mail", "name", "owner", "requests", "row",
        "snapshot",
    )  # fmt: skip

    def __init__(self, key: RunKey, name: str, digest: str) -> None:
        self.key = key
        self.name = name
        self.digest = digest
        #: The row of its last batch; None of a run that mail has begun.
        self.row: RunRow | None = None
        self.events: list[Event] = []
        #: The owner of an open run, '' of a free one, and when it needs attention next.
        self.owner = ""
        self.due_at = NEVER
        #: Unread mail by id, in the order it came.
        self.mail: dict[str, Mail] = {}
        #: The open requests, and the ids of those whose answer is unread mail.
        self.requests: dict[str, RequestRow] = {}
        self.answered: set[str] = set()
        self.snapshot: Snapshot | None = None


class MemoryQueue:
    """The open runs with their owners. To claim costs the same however many runs there are."""

    def __init__(self, clock: Clock, dead_after: int) -> None:
        self._clock = clock
        self._dead_after = dead_after
        self.open: dict[RunKey, MemoryRun] = {}
        #: When each owner was last alive.
        self._beats: dict[str, int] = {}
        #: When the runs of each owner are due: heaps of (time, tenant, run). An entry is outdated
        #: if its run is not due at its time any more, or has another owner.
        self._due: dict[str, list[tuple[int, str, str]]] = {}

    def set_work(self, run: MemoryRun, owner: str, due_at: int) -> None:
        """Give a run to an owner, or free it with ''; it is due at a time."""
        if run.owner == owner and run.due_at == due_at:
            return
        run.owner, run.due_at = owner, due_at
        if due_at >= NEVER:
            return
        heap = self._due.setdefault(owner, [])
        heappush(heap, (due_at, *run.key))
        if len(heap) > 2 * len(self.open) + _MOST_OUTDATED:
            heap[:] = [
                (each.due_at, *each.key)
                for each in self.open.values()
                if each.owner == owner and each.due_at < NEVER
            ]
            heapify(heap)

    def end(self, run: MemoryRun) -> None:
        """Remove a run that has ended."""
        del self.open[run.key]
        run.owner, run.due_at = "", NEVER

    def claim(self, owner: str, limit: int) -> Claimed:
        """Take free runs that are due, and return all that are the owner's and due."""
        now = self._clock.now()
        for _ in range(limit):
            free = self._first_due("")
            if free is None or free.due_at > now:
                break
            self.set_work(free, owner, free.due_at)
        mine: dict[RunKey, MemoryRun] = {}
        while (run := self._first_due(owner)) is not None and run.due_at <= now:
            heappop(self._due[owner])
            mine[run.key] = run
        for key, run in mine.items():  # They stay due until their next batch.
            heappush(self._due[owner], (run.due_at, *key))
        return Claimed(now, list(mine))

    def take(self, owner: str, key: RunKey, *, force: bool) -> bool:
        """Make an owner the owner of one open run."""
        run = self.open.get(key)
        if run is None or (run.owner not in ("", owner) and not force):
            return False
        self.set_work(run, owner, run.due_at)
        return True

    def beat(self, owner: str) -> Heartbeat:
        """Record that an owner is alive, unless that comes too late; free the runs of dead ones."""
        now = self._clock.now()
        is_alive = self.refresh(owner, now)
        others: dict[str, int] = {}
        for run in self.open.values():
            if run.owner not in ("", owner):
                seen_at = self.heartbeat(run.owner)
                if seen_at < now - self._dead_after:
                    self.set_work(run, "", now)
                else:
                    others[run.owner] = seen_at
        return Heartbeat(is_alive, now, others)

    def refresh(self, owner: str, now: int) -> bool:
        """Record that an owner is alive; False if that comes too late."""
        is_alive = self._beats.get(owner, now) >= now - self._dead_after
        if is_alive:
            self._beats[owner] = now
        return is_alive

    def heartbeat(self, owner: str) -> int:
        """Return when an owner was last alive; 0 if it never was."""
        return self._beats.get(owner, 0)

    def rename(self, owner: str, new: str) -> list[RunKey]:
        """Give the runs of an owner to another, which is recorded to be alive; return its runs."""
        self._beats.setdefault(new, self._clock.now())
        for run in self.open.values():
            if run.owner == owner:
                self.set_work(run, new, run.due_at)
        return sorted(key for key, run in self.open.items() if run.owner == new)

    def release(self, owner: str, runs: Collection[RunKey], due_at: int) -> None:
        """Free runs of an owner; they are due at a time, or now."""
        due_at = due_at if due_at > 0 else self._clock.now()
        for key in runs:
            run = self.open.get(key)
            if run is not None and run.owner == owner:
                self.set_work(run, "", due_at)

    def next_due(self) -> int | None:
        """Return when the next free run is due."""
        run = self._first_due("")
        return None if run is None else run.due_at

    def workload(self) -> Workload:
        """Return how many runs wait for a worker, and the workers."""
        now = self._clock.now()
        free = [run for run in self.open.values() if not run.owner]
        alive = {owner for owner, at in self._beats.items() if at >= now - self._dead_after}
        held = Counter(run.owner for run in self.open.values() if run.owner)
        owners = sorted(alive | held.keys())
        return Workload(
            now,
            sum(run.due_at <= now for run in free),
            [OwnerLoad(owner, held[owner], self.heartbeat(owner)) for owner in owners],
        )

    def _first_due(self, owner: str) -> MemoryRun | None:
        """Return the run of an owner that is due first; outdated entries before it are dropped."""
        heap = self._due.get(owner)
        while heap:
            due_at, app, name = heap[0]
            run = self.open.get((app, name))
            if run is not None and run.owner == owner and run.due_at == due_at:
                return run
            heappop(heap)
        return None
