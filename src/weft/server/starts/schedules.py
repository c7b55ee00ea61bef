"""Schedules: each server works out by itself when a start is due, and one of them begins the run.

The id of the run follows from the schedule and the time, so the store refuses a second one.
"""

import asyncio
import logging
from contextlib import suppress
from datetime import datetime
from typing import Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from weft.errors import PortError, StoreError, UsageError, WeftError
from weft.server.starts.firing import Start, Starts, State
from weft.server.starts.packages import CURRENT
from weft.spec.orchestrator import ScheduleStart

_log: Final = logging.getLogger("weft.server")

#: Milliseconds in which a time counts as not missed yet, and until the next attempt to start.
GRACE: Final = 60_000
_RETRY: Final = 5_000

#: The most starts for times that were missed.
MOST_MISSED: Final = 100


def due_times(trigger: ScheduleStart, after: int, now: int) -> list[int]:
    """Return the times after one and up to another at which runs are to begin, oldest first.

    Raises UsageError for a schedule or a zone that is not valid.
    """
    if trigger.catch_up == "none":
        after = max(after, now - GRACE)
    most = 1 if trigger.catch_up == "last" else MOST_MISSED
    found: list[int] = []
    # Backwards, so that it costs the same however long the server was away.
    for due in _times(trigger, now // 1000 + 1, backwards=True):
        at = round(due.timestamp() * 1000)
        if at <= after or len(found) == most:
            break
        found.append(at)
    return found[::-1]


def next_time(trigger: ScheduleStart, now: int) -> int | None:
    """Return the next time after now; None if there is none. Raises UsageError as `due_times`."""
    due = next(_times(trigger, now // 1000), None)
    return None if due is None else round(due.timestamp() * 1000)


def _times(trigger: ScheduleStart, seconds: int, *, backwards: bool = False) -> CronSim:
    try:
        zone = ZoneInfo(trigger.timezone)
        return CronSim(trigger.cron, datetime.fromtimestamp(seconds, zone), reverse=backwards)
    except ZoneInfoNotFoundError:
        raise UsageError(f"there is no time zone {trigger.timezone}") from None
    except CronSimError as error:
        raise UsageError(f"the schedule {trigger.cron} is not valid: {error}") from error


class Schedules:
    """Begins the runs of schedules."""

    def __init__(self, starts: Starts) -> None:
        self._starts = starts
        self._clock = starts.clock
        #: When each start is looked at again.
        self._next: dict[Start, int] = {}
        #: What was said of schedules that are not valid.
        self._faults: dict[Start, str] = {}
        self._working: dict[Start, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Begin runs when they are due, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                found = await self._starts.of_type(ScheduleStart)
                if found is not None:
                    self._next = {start: self._next.get(start, 0) for start in found}
                now = self._clock.now()
                for start, at in self._next.items():
                    if at <= now and start not in self._working:
                        # In a task of its own: importing a package may take long.
                        self._next[start] = now + GRACE
                        self._working[start] = group.create_task(self._begin_due(start, now))
                until = min(self._next.values(), default=now + GRACE)
                due = asyncio.ensure_future(self._clock.sleep_until(until))
                waiting = [due, *self._working.values()]
                await asyncio.wait(waiting, timeout=CURRENT, return_when=asyncio.FIRST_COMPLETED)
                due.cancel()

    async def _begin_due(self, start: Start, now: int) -> None:
        """Begin the runs of a schedule that are due, and set when it is looked at again."""
        following = now + GRACE
        try:
            following = await self._fire(start, now)
        except PortError as error:
            following = now + _RETRY
            _log.warning("the schedule %s is tried again: %s", start.workflow, error)
        except WeftError as error:
            if self._faults.get(start) != str(error):
                self._faults[start] = str(error)
                with suppress(StoreError):
                    await self._starts.note(start, by="schedule", error=str(error))
        except Exception:  # noqa: BLE001 - one start must not stop the others.
            _log.exception("the schedule %s failed", start.workflow)
        finally:
            self._working.pop(start, None)
        if start in self._next:
            self._next[start] = following

    async def _fire(self, start: Start, now: int) -> int:
        trigger = cast("ScheduleStart", start.trigger)
        following = next_time(trigger, now)
        declared = f"{trigger.cron} {trigger.timezone}"

        def know(state: State) -> None:
            """Begin with now where the schedule is new."""
            if state.get("declared") != declared:
                state.update(declared=declared, after=now)

        state = await self._starts.update(start, know)
        if not state.get("paused"):
            due = due_times(trigger, cast("int", state["after"]), now)
            for at in due:
                await self._fire_at(start, at)
            if due:
                await self._starts.update(start, lambda state: _advance(state, now))
        return now + GRACE if following is None else following

    async def _fire_at(self, start: Start, due: int) -> None:
        try:
            await self._starts.fire(start, start.run_id(due), at=due, by="schedule", due=due)
        except WeftError as error:
            if isinstance(error, PortError) and error.retryable:
                raise
            # Otherwise it is in the log, and the next time comes.


def _advance(state: State, now: int) -> None:
    state["after"] = max(cast("int", state.get("after") or 0), now)
