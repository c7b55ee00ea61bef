"""Schedules: when the clock wakes an agent next. All times are UTC."""

import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Final

from weft.errors import ExpressionError
from weft.spec.board import Schedule
from weft.spec.providers import milliseconds

#: The first and the last value of each field: minute, hour, day, month, weekday (0 and 7: Sunday).
_FIELDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_PART: Final = re.compile(r"(\*|\d{1,2}(?:-\d{1,2})?)(?:/(\d{1,3}))?\Z")

#: A day that a cron expression names comes within this many, or never.
_LONGEST: Final = 366 * 8


def next_time(schedule: Schedule, now: int, planned: int | None = None) -> int | None:
    """Return when a schedule fires next, in milliseconds; None if never again.

    `planned` is when it should have fired last: what is late does not put off the next, and what
    nobody was there for is not made up for.
    """
    start = now + round(schedule.delay_seconds * 1000) if planned is None else now
    if schedule.at is not None:
        return max(milliseconds(schedule.at), start) if planned is None else None
    if schedule.every_seconds is not None:
        every = max(1, round(schedule.every_seconds * 1000))
        return start if planned is None else planned + every * ((now - planned) // every + 1)
    time = datetime.fromtimestamp(start / 1000, UTC)
    if schedule.daily is not None:
        hour, minute = map(int, schedule.daily.split(":"))
        due = time.replace(hour=hour, minute=minute, second=0, microsecond=0)
        return milliseconds(due if due > time else due + timedelta(days=1))
    due = next_cron(schedule.cron or "", time)
    return None if due is None else milliseconds(due)


def next_cron(text: str, after: datetime) -> datetime | None:
    """Return the first minute after a time that a cron expression names.

    >>> next_cron("30 6 * * 1", datetime(2026, 11, 17, tzinfo=UTC)).isoformat()
    '2026-11-23T06:30:00+00:00'
    """
    minutes, hours, days, months, weekdays = parse_cron(text)
    fields = text.split()
    either = fields[2] != "*" and fields[4] != "*"  # As cron has it: then one of them is enough.
    time = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    for _ in range(_LONGEST):
        on_day, on_weekday = time.day in days, time.isoweekday() % 7 in weekdays
        named = (on_day or on_weekday) if either else (on_day and on_weekday)
        if time.month in months and named:
            for hour in (it for it in sorted(hours) if it >= time.hour):
                least = time.minute if hour == time.hour else 0
                minute = next((it for it in sorted(minutes) if it >= least), None)
                if minute is not None:
                    return time.replace(hour=hour, minute=minute)
        time = time.replace(hour=0, minute=0) + timedelta(days=1)
    return None


@cache
def parse_cron(text: str) -> tuple[frozenset[int], ...]:
    """Return the values that each of the five fields allows. Raises ExpressionError."""
    fields = text.split()
    if len(fields) != len(_FIELDS):
        raise ExpressionError(
            f"{text!r} has {len(fields)} fields, not five",
            hint="write minute, hour, day, month and weekday, as in 30 6 * * 1",
        )
    found = [_values(it, *limits) for it, limits in zip(fields, _FIELDS, strict=True)]
    found[4] = frozenset(it % 7 for it in found[4])
    return tuple(found)


def _values(field: str, least: int, most: int) -> frozenset[int]:
    values: set[int] = set()
    for part in field.split(","):
        match = _PART.match(part)
        if match is None:
            raise ExpressionError(
                f"{part!r} is no field of a cron expression", hint="write *, 5, 1-5, */15 or 1,3"
            )
        span, step = match.group(1), int(match.group(2) or 1)
        first, _, last = span.partition("-")
        low = least if first == "*" else int(first)
        alone = most if first == "*" or match.group(2) else low
        high = int(last) if last else alone
        if not (least <= low <= high <= most and step):
            raise ExpressionError(
                f"{part!r} is out of range", hint=f"it goes from {least} to {most}"
            )
        values.update(range(low, high + 1, step))
    return frozenset(values)
