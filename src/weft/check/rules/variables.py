"""Family VAR, first part: whether a variable's own declaration makes sense."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from weft.check.declarations import assigned, of_plugins, placed_triggers
from weft.check.rules.comparisons import instead, kinds_of
from weft.check.rules.conditions import computing_conditions, first_mentions
from weft.check.rules.references import Reference, unknown_name
from weft.check.spelling import (
    PATH_HINT,
    did_you_mean,
    is_address_path,
    respelling,
    short,
    variable_meant,
)
from weft.check.subject import Hit, Subject, find_cycles, rule
from weft.check.values import (
    declared_values,
    holds_secret,
    is_open_secret,
    shown_value_error,
)
from weft.engine.compile import not_performed, refusal
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.orchestrator import Budget, Orchestrator, ScheduleStart, WebhookStart
from weft.spec.triggers import ToolCallTrigger
from weft.spec.types import print_type
from weft.spec.variables import (
    ComputedSource,
    DatabaseSource,
    DerivedSource,
    EntitySource,
    Variable,
)

#: Sources whose values something else than the run decides.
_READ_ONLY: Final = frozenset({"static", "environment", "computed", "database", "external", "file"})


@rule("VAR001", "variables")
def database_lookup_is_clear(subject: Subject) -> Iterator[Hit]:
    for name, source in subject.sources(DatabaseSource):
        path = ("variables", name, "source")
        if source.search_by is None and source.query_template is None:
            yield Hit(
                path,
                f"{name} has neither search_by nor query_template",
                hint=('add "search_by" with a field, or "query_template" with a query',),
            )
        elif source.search_by is not None and source.query_template is not None:
            yield Hit(
                (*path, "query_template"),
                f"{name} has both search_by and query_template",
                hint=('keep either "search_by" or "query_template"',),
            )
        if source.field is not None and source.fields:
            yield Hit(
                (*path, "fields"),
                f"{name} has both field and fields",
                hint=('keep either "field" or "fields"',),
            )


@rule("VAR002", "variables", "models")
def value_fits_type(subject: Subject) -> Iterator[Hit]:
    told: set[tuple[str, str]] = set()
    for name, what, path, value in _written_values(subject):
        variable = subject.spec.variables[name]
        fault = shown_value_error(name, variable, value, subject.models)
        # A state stands in many transitions.
        if fault and (name, fault) not in told and not is_open_secret(variable):
            told.add((name, fault))
            hint = _if_unwritten(subject, path) or _meant(name, variable, value)
            yield Hit(path, f"{what} does not fit {name}: {fault}", hint=hint)


def _if_unwritten(subject: Subject, path: Path) -> tuple[str, ...]:
    """Return the hint for a trigger whose value is left to its default; none for any other."""
    trigger = next((it.trigger for it in placed_triggers(subject) if it.path == path), None)
    if isinstance(trigger, ToolCallTrigger):
        return (
            "remove the trigger if the tool sets the variable itself",
            'or use "tool_response" with "response_key" to take the value from the result',
        )
    return ('write "value" in the trigger; it is true by default',) if trigger else ()


def _meant(name: str, variable: Variable, value: Json) -> tuple[str, ...]:
    shown = short(print_type(variable.type))
    general = f"correct the value, or the type {shown}"
    # Only texts are mistaken for something else; a secret is not repeated.
    if not isinstance(value, str) or variable.secret or holds_secret(name, value):
        return (general,)
    meant = instead(variable.type, value)
    return (*meant, f"or correct the type {shown}") if meant else (general,)


def _written_values(subject: Subject) -> Iterator[tuple[str, str, Path, Json]]:
    for name, path, value in declared_values(subject):
        yield name, f"the {path[-1]}", path, value
    for placed in placed_triggers(subject):
        if found := assigned(placed):
            yield placed.variable, "the value set by the trigger", found.path, found.value
    for name, source in subject.sources(DerivedSource):
        for index, transition in enumerate(source.transitions):
            place = ("variables", name, "source", "transitions", index)
            yield name, "the state", (*place, "from"), transition.from_
            yield name, "the state", (*place, "to"), transition.to
    conditions = [
        name
        for name, _, placed in computing_conditions(subject)
        if not isinstance(placed.condition, ExpressionError)
    ]
    for name, _ in subject.sources(ComputedSource):
        if name in conditions:
            yield name, "the true or false of a condition", ("variables", name, "type"), True


@rule("VAR003", "variables")
def computation_ends(subject: Subject) -> Iterator[Hit]:
    for cycle in find_cycles({name: it.inputs for name, it in subject.sources(ComputedSource)}):
        first = cycle[0]
        yield Hit(
            ("variables", first, "source", "inputs"),
            f"{first} is computed from itself: {' -> '.join((*cycle, first))}",
            hint=("take one of these variables out of the inputs of another",),
        )


@rule("VAR004", "variables")
def inputs_match_computation(subject: Subject) -> Iterator[Hit]:
    for name, source, placed in computing_conditions(subject):
        if isinstance(placed.condition, ExpressionError):
            continue  # COND001 reports it
        used = first_mentions(placed.text)
        # NAME001 reports an unknown input; it counts as the variable that was probably meant.
        inputs = {variable_meant(subject, entry) for entry in source.inputs}
        lacking = [entry for entry in used if entry not in inputs and entry not in source.inputs]
        for entry in lacking:
            message = f"the computation of {name} uses {entry}, which is not one of its inputs"
            hint = did_you_mean(entry, source.inputs) or (f'add "{entry}" to "inputs"',)
            yield Hit(placed.path, message, hint=hint, offset=used[entry], length=len(entry))
        for index, entry in enumerate(source.inputs):
            # An unused input was probably written in the place of a lacking one.
            if not lacking and entry not in used and entry in subject.variable_names:
                message = f"the computation of {name} does not use its input {entry}"
                hint = ("remove the input, or use it in the condition",)
                yield Hit(("variables", name, "source", "inputs", index), message, hint=hint)


@rule("VAR013", "variables")
def writers_can_write(subject: Subject) -> Iterator[Hit]:
    for name, variable in subject.spec.variables.items():
        kind = variable.source.type
        if variable.writers and kind in _READ_ONLY:
            yield Hit(
                ("variables", name, "writers"),
                f"{name} has writers, but a run cannot set a variable whose source is {kind}",
                hint=('remove "writers", or use a derived or entity source',),
            )


@rule("NAME001", "variables")
def entity_can_be_found(subject: Subject) -> Iterator[Hit]:
    for name, source in subject.sources(EntitySource):
        known = {*source.document, *BUILT_IN_VARIABLES}
        # Without a schema nothing is known about the fields.
        if source.document and source.search_by not in known:
            path = ("variables", name, "source", "search_by")
            hit = unknown_name(
                Reference(path, "", source.search_by, f"{name} is searched by"),
                "field",
                known,
                'add the field to "schema"',
            )
            yield replace(hit, fix=respelling(path, source.search_by, source.document))


@rule("VAR028", "variables")
def merge_fits(subject: Subject) -> Iterator[Hit]:
    for name, variable in subject.spec.variables.items():
        wanted = _MERGED.get(variable.merge or "")
        if wanted is None:
            continue
        kind, types = wanted
        path = ("variables", name, "merge")
        if not isinstance(variable.source, DerivedSource | EntitySource):
            yield Hit(
                path,
                f"{name} has merge, but a run cannot set a variable whose source is "
                f"{variable.source.type}",
                hint=('remove "merge", or use a derived or entity source',),
            )
        elif kind not in kinds_of(variable.type):
            yield Hit(
                path,
                f"{name} is {short(print_type(variable.type))}, "
                f"which {variable.merge} cannot combine",
                hint=(f"set the type to {types}", 'or remove "merge"'),
            )


#: What each way to merge needs: the kind of the values, and types of that kind.
_MERGED: Final = {"append": ("list", "list"), "merge": ("object", "dict or a model")}


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
