"""The events that are to be sent to webhooks.

None of these need be on disk at once: what is forgotten is sent a second time.
"""

from collections.abc import Sequence
from typing import Final

from weft.adapters.sql.statements import Statement, Transaction
from weft.engine.rows import OutgoingEvent

_DUE: Final = Statement("SELECT 1 FROM webhook_events WHERE due_at <= {now} LIMIT 1")
#: Processes that take events at the same time would not see what the others take.
_ALONE: Final = Statement("{alone webhook_events}")
_TAKE: Final = Statement(
    """
    WITH d AS MATERIALIZED (
        SELECT app, run, seq, webhook FROM webhook_events {by webhook_events_by_time}
        WHERE due_at <= {now}
        AND webhook NOT IN (SELECT webhook FROM webhook_events WHERE due_at > {now})
        ORDER BY at, run, seq LIMIT $1
    )
    UPDATE webhook_events SET due_at = {now} + $2 FROM d
    WHERE webhook_events.app = d.app AND webhook_events.run = d.run AND webhook_events.seq = d.seq
    AND webhook_events.webhook = d.webhook
    RETURNING webhook_events.app, webhook_events.run, webhook_events.seq,
    webhook_events.webhook, webhook_events.at
    """
)
_POSTPONE: Final = Statement(
    "UPDATE webhook_events SET due_at = {now} + $1 WHERE {keys}", "app run seq:number webhook"
)
_REMOVE: Final = Statement("DELETE FROM webhook_events WHERE {keys}", "app run seq:number webhook")


def take(limit: int, hold: int) -> Transaction[list[OutgoingEvent]]:
    """Return events that are due, in the order they were written.

    There are none of a webhook of which another process sends events, or the first one waits.
    """
    if not (yield _DUE()):
        return []
    yield _ALONE()
    rows = yield _TAKE((), limit, hold)
    events = (OutgoingEvent(*row) for row in rows)
    return sorted(events, key=lambda event: (event.at, event.run, event.seq))


def postpone(events: Sequence[OutgoingEvent], hold: int) -> Transaction[None]:
    """Make events due again after so many milliseconds."""
    if events:
        yield [_POSTPONE([event[:4] for event in events], hold)]


def remove(events: Sequence[OutgoingEvent]) -> Transaction[None]:
    """Remove events."""
    if events:
        yield [_REMOVE([event[:4] for event in events])]
