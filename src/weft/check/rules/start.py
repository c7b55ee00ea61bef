"""Family VAR, seventh part: whether a run can start as the orchestrator says, and its budgets."""

import re
from collections.abc import Iterator
from typing import Final

from weft.check.declarations import of_plugins
from weft.check.spelling import PATH_HINT, is_address_path
from weft.check.subject import Hit, Subject, rule
from weft.engine.compile import not_performed, refusal
from weft.spec.orchestrator import Budget, Orchestrator, ScheduleStart, WebhookStart

_PATH: Final = ("orchestrator", "trigger")
_MONTHS: Final = [
    "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
]  # fmt: skip
_DAYS: Final = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
#: The fields of a schedule: what each is called, its least and greatest number, and its words.
_FIELDS: Final[tuple[tuple[str, int, int, list[str]], ...]] = (
    ("minute", 0, 59, []),
    ("hour", 0, 23, []),
    ("day", 1, 31, []),
    ("month", 1, 12, _MONTHS),
    ("weekday", 0, 7, _DAYS),
)
_ITEM: Final = re.compile(r"(?:\*|(\w+)(?:-(\w+))?)(?:/([0-9]+))?", re.ASCII)
_ZONE: Final = re.compile(r"UTC|[A-Z][A-Za-z_]*(?:/[A-Z][A-Za-z0-9_+-]*)+")
#: Starts at which no person is there.
_UNATTENDED: Final = frozenset({"schedule", "database_condition", "webhook"})
_CEILINGS: Final = Budget.model_fields.keys() - {"level", "warn_share"}


@rule("VAR023", "orchestrator")
def run_can_start(subject: Subject) -> Iterator[Hit]:
    orchestrator = subject.spec.orchestrator
    match orchestrator.trigger:
        case ScheduleStart() as start:
            yield from _schedule(start)
        case WebhookStart(path=str() as path) if not is_address_path(path):
            yield Hit((*_PATH, "path"), f'"{path}" is not a valid path', hint=(PATH_HINT,))
        case _:
            pass
    yield from _mode(orchestrator)


def _schedule(start: ScheduleStart) -> Iterator[Hit]:
    fault = _cron_fault(start.cron)
    if fault:
        hint = 'write minute, hour, day, month and weekday: "0 9 * * MON-FRI" is nine on workdays'
        yield Hit((*_PATH, "cron"), f"the schedule is not valid: {fault}", hint=(hint,))
    if not _ZONE.fullmatch(start.timezone):
        yield Hit(
            (*_PATH, "timezone"),
            f'"{start.timezone}" is not the name of a time zone',
            hint=("write UTC, or an area and a city such as Europe/Berlin",),
        )


def _cron_fault(cron: str) -> str | None:
    fields = cron.split()
    if len(fields) != len(_FIELDS):
        return f"it has {len(fields)} fields in place of five"
    for text, (name, least, most, words) in zip(fields, _FIELDS, strict=True):
        if not all(_is_item(item, least, most, words) for item in text.split(",")):
            return f'"{text}" is not a valid {name} from {least} to {most}'
    return None


def _is_item(item: str, least: int, most: int, words: list[str]) -> bool:
    found = _ITEM.fullmatch(item)
    if found is None or (found[3] and not 1 <= int(found[3]) <= most):
        return False
    numbers = [_number(text, least, words) for text in (found[1], found[2]) if text]
    known = [number for number in numbers if number is not None and least <= number <= most]
    return known == numbers and known == sorted(known)


def _number(text: str, least: int, words: list[str]) -> int | None:
    if text.upper() in words:
        return words.index(text.upper()) + least
    return int(text) if text.isdecimal() else None


def _mode(orchestrator: Orchestrator) -> Iterator[Hit]:
    kind, mode = orchestrator.trigger.type, orchestrator.startup_mode
    if kind in _UNATTENDED and mode in ("UserDriven", "AgentDriven"):
        yield Hit(
            ("orchestrator", "startup_mode"),
            f"the workflow is {mode}, but a {kind} start has no person to talk to",
            hint=('remove "startup_mode"', 'or set it to "BackendOnly"'),
        )


@rule("VAR024", "orchestrator")
def budget_limits_something(subject: Subject) -> Iterator[Hit]:
    for index, budget in enumerate(subject.spec.orchestrator.budgets):
        path = ("orchestrator", "budgets", index)
        if all(getattr(budget, name) is None for name in _CEILINGS):
            yield Hit(
                path,
                f"the budget for the level {budget.level} has no ceiling and limits nothing",
                hint=('add a ceiling such as "tokens"', "or remove the budget"),
            )


@rule("LINK003", "orchestrator", "variables", "flow", "board", "hooks", "lifecycle_tools")
def is_performed(subject: Subject) -> Iterator[Hit]:
    name = subject.spec.orchestrator.workflow_name
    # Of settings that do not fit, VAR027 speaks.
    known = {placed.path for placed, _ in of_plugins(subject)}
    for left in not_performed(subject.spec, subject.kinds):
        if left.path not in known:
            yield Hit(left.path, refusal(name, left), hint=(left.hint,))
