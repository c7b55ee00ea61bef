"""Starts: what begins a run of a workflow, read from the words of its plan."""

import re
from collections.abc import Iterator
from typing import Final

from weft.generator.compile.models import form_name
from weft.generator.compile.sources import collection_of
from weft.generator.compile.texts import words_of
from weft.generator.workflow_plan import WorkflowPlan
from weft.spec.orchestrator import (
    ChatStart,
    DatabaseStart,
    FormStart,
    ScheduleStart,
    Start,
    WebhookStart,
)

#: Words that say on which days; the first that is found counts, and named days before "weekly".
DAYS: Final = (
    (r"\b(?:weekday|working day|workday)s?\b", "* * MON-FRI"),
    (r"\bweekends?\b", "* * SAT,SUN"),
    (r"\bmonthly\b|\b(?:every|each) month\b", "1 * *"),
)
_NAMED_DAYS: Final = re.compile(r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b", re.IGNORECASE)
_WEEKLY: Final = re.compile(r"\bweekly\b|\b(?:every|each) week\b", re.IGNORECASE)
_NIGHTLY: Final = re.compile(r"\bnightly\b|\b(?:every|each) night\b", re.IGNORECASE)
_EVERY: Final = re.compile(
    r"\b(?:every|each) (?:(\d+) )?(minute|hour)s?\b|\b(hour)ly\b", re.IGNORECASE
)
_AT: Final = re.compile(
    r"\bat (\d{1,2})(?:[:.](\d\d)\b)?\s*(?:([ap])\.?m\b|(o'?clock)\b)?", re.IGNORECASE
)
_MORNING: Final = 6
_NIGHT: Final = 1


def start_of(workflow: WorkflowPlan) -> Start:
    """Return how a run of a workflow begins."""
    match workflow.strategy.trigger:
        case "chat":
            return ChatStart()
        case "form_submit":
            return FormStart(form=form_name(workflow))
        case "schedule":
            return ScheduleStart(cron=cron_of(_said(workflow)))
        case "database_condition":
            return DatabaseStart(collection=_watched(workflow), condition="status == 'new'")
        case "webhook":
            return WebhookStart(path="-".join(words_of(workflow.name)))


def start_notes(workflow: WorkflowPlan) -> Iterator[str]:
    """Say which start was read from the plan, where that is not plain."""
    match start_of(workflow):
        case ScheduleStart(cron=cron, timezone=zone):
            yield f"{workflow.name} starts by schedule {cron} ({zone})"
        case DatabaseStart(collection=collection):
            yield f"{workflow.name} starts when a document of {collection} gets status 'new'"
        case _:
            pass


def cron_of(text: str) -> str:
    """Return the schedule that a text speaks of; every day at six where it speaks of none.

    >>> cron_of("A report every Tuesday at 6 pm")
    '0 18 * * TUE'
    """
    if often := _interval(text):
        return often
    hour, minute = _time(text)
    return f"{minute} {hour} {_days(text)}"


def _interval(text: str) -> str | None:
    for number, unit, hourly in _EVERY.findall(text):
        step = int(number or 1)
        of_hours = bool(hourly) or unit.lower() == "hour"
        if 0 < step < (24 if of_hours else 60):
            every = "*" if step == 1 else f"*/{step}"
            return f"0 {every} * * *" if of_hours else f"{every} * * * *"
    return None


def _time(text: str) -> tuple[int, int]:
    for found in _AT.finditer(text):
        hour, minute, half = int(found[1]), int(found[2] or 0), (found[3] or "").lower()
        if half and 0 < hour <= 12:
            hour = hour % 12 + (12 if half == "p" else 0)
        if (found[2] or half or found[4]) and hour < 24 and minute < 60:
            return hour, minute
    return (_NIGHT if _NIGHTLY.search(text) else _MORNING), 0


def _days(text: str) -> str:
    for pattern, days in DAYS:
        if re.search(pattern, text, re.IGNORECASE):
            return days
    named = dict.fromkeys(it[:3].upper() for it in _NAMED_DAYS.findall(text))
    if not named and _WEEKLY.search(text):
        named = {"MON": None}
    return f"* * {','.join(named) or '*'}"


def _said(workflow: WorkflowPlan) -> str:
    modules = (f"{it.purpose} {it.description}" for it in workflow.modules)
    return "\n".join((workflow.description, workflow.strategy.workflow_description, *modules))


def _watched(workflow: WorkflowPlan) -> str:
    """Return the collection whose documents start a run: the first that the plan reads."""
    kinds = ("data_entity", "entity", "data_reference", "database")
    for it in workflow.blueprint.global_context_variables:
        if it.type in kinds:
            return collection_of(it)
    return f"{workflow.name}Requests"
