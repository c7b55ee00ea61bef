"""The events in memory that are to be sent to webhooks."""

from collections.abc import Collection, Iterable
from heapq import nsmallest

from weft.engine.rows import OutgoingEvent
from weft.ports.clock import Clock
from weft.ports.store import RunKey


class MemoryOutgoing:
    """When each event is due."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_at: dict[OutgoingEvent, int] = {}

    def add(self, event: OutgoingEvent) -> None:
        """Add an event, which is due at once."""
        self._due_at[event] = event.at

    def take(self, limit: int, hold: int) -> list[OutgoingEvent]:
        """Return events that are due; they are due again in `hold` milliseconds."""
        now = self._clock.now()
        held = {event.webhook for event, due_at in self._due_at.items() if due_at > now}
        due = (event for event in self._due_at if event.webhook not in held)
        taken = nsmallest(limit, due, key=lambda event: (event.at, event.run, event.seq))
        self.postpone(taken, hold)
        return taken

    def postpone(self, events: Iterable[OutgoingEvent], hold: int) -> None:
        """Make events due again in so many milliseconds."""
        due_at = self._clock.now() + hold
        self._due_at.update((event, due_at) for event in events if event in self._due_at)

    def remove(self, events: Iterable[OutgoingEvent]) -> None:
        """Remove events."""
        for event in events:
            self._due_at.pop(event, None)

    def forget(self, gone: Collection[RunKey]) -> None:
        """Remove the events of runs that are removed."""
        self.remove([event for event in self._due_at if (event.app, event.run) in gone])
