"""Events from outside a run: mail that it accepts, and timers and expiries that are due.

They are computed from the state alone, so that a store needs no second list of timers.
"""

from typing import NamedTuple

from weft.engine.events import (
    ArtifactArrived,
    ArtifactPublished,
    EventData,
    RequestAnswered,
    RequestExpired,
    TimerFired,
)
from weft.engine.state import State


class DueEvent(NamedTuple):
    """An event whose time has come, and the turn it belongs to."""

    at: int
    data: RequestExpired | TimerFired
    turn: int


def due_events(state: State, now: int) -> list[DueEvent]:
    """Return the timers that fire and the requests that expire, in a fixed order: by time and id.

    Each may make a later one obsolete: ask `accepts` before each is recorded.
    """
    due = [DueEvent(timer.at, TimerFired(timer.id), 0) for timer in state.timers.due(now)]
    due += (
        DueEvent(request.expires_at, RequestExpired(request.id), request.turn)
        for request in state.requests.values()
        if request.expires_at is not None and request.expires_at <= now
    )
    return sorted(due, key=lambda event: (event.at, event.data.id))


def accepts(state: State, data: EventData) -> bool:
    """Return whether a run accepts an event from outside.

    It ignores an answer to a request that is not open, a message, an artifact or mail that it has
    already, a timer that no longer exists, and everything after its end.
    """
    if state.status == "ended":
        return False
    match data:
        case RequestAnswered(id=id_, message_id=message):
            return id_ in state.requests and (message is None or message not in state.message_ids)
        case RequestExpired(id=id_):
            return id_ in state.requests
        case TimerFired(id=id_):
            return id_ in state.timers
        case ArtifactPublished(id=id_) | ArtifactArrived(mail=id_):
            return state.board is not None and id_ not in state.board.ids
        case _:
            return True
