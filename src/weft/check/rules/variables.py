"""Family VAR, first part: whether a variable's own declaration makes sense."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from weft.check.declarations import assigned, of_plugins, placed_triggers
from weft.check.rules.comparisons import instead, kinds_of
from weft.check.rules.references import Reference, unknown_name, unknown_names
from weft.check.spelling import did_you_mean, respelling, short, variable_meant
from weft.check.subject import Hit, Subject, find_cycles, rule
from weft.check.texts import first_mentions, parsed_conditions
from weft.check.values import (
    declared_values,
    holds_secret,
    is_open_secret,
    shown_value_error,
)
from weft.engine.board.rules import parse_cron
from weft.engine.compile import not_performed, refusal
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.orchestrator import ScheduleStart
from weft.spec.triggers import ToolCallTrigger
from weft.spec.types import print_type
from weft.spec.variables import ComputedSource, DerivedSource, EntitySource, Variable

#: Sources whose values do not come from the run.
_READ_ONLY: Final = frozenset({"static", "environment", "computed", "database", "external", "file"})


@rule("VAR002", "variables", "models")
def value_fits_type(subject: Subject) -> Iterator[Hit]:
    reported: set[tuple[str, str]] = set()
    for name, what, path, value in _written_values(subject):
        variable = subject.spec.variables[name]
        fault = shown_value_error(name, variable, value, subject.models)
        # One state can occur in many transitions.
        if fault and (name, fault) not in reported and not is_open_secret(variable):
            reported.add((name, fault))
            hint = _if_unwritten(subject, path) or _meant(name, variable, value)
            yield Hit(path, f"{what} does not fit {name}: {fault}", hint=hint)


def _if_unwritten(subject: Subject, path: Path) -> tuple[str, ...]:
    """Return the hint for a trigger without "value"; empty for any other."""
    trigger = next(
        (placed.trigger for placed in placed_triggers(subject) if placed.path == path), None
    )
    if isinstance(trigger, ToolCallTrigger):
        return (
            "remove the trigger if the tool sets the variable itself",
            'or use "tool_response" with "response_key" to take the value from the result',
        )
    return ('write "value" in the trigger; it is true by default',) if trigger else ()


def _meant(name: str, variable: Variable, value: Json) -> tuple[str, ...]:
    shown = short(print_type(variable.type))
    general = f"correct the value, or the type {shown}"
    # Only a text can be a misspelt value of another type; a secret is not repeated.
    if not isinstance(value, str) or variable.secret or holds_secret(name, value):
        return (general,)
    meant = instead(variable.type, value)
    return (*meant, f"or correct the type {shown}") if meant else (general,)


def _written_values(subject: Subject) -> Iterator[tuple[str, str, Path, Json]]:
    for name, path, value in declared_values(subject):
        yield name, f"the {path[-1]}", path, value
    for placed in placed_triggers(subject):
        if found := assigned(placed):
            value, path = found
            yield placed.variable, "the value set by the trigger", path, value
    for name, source in subject.sources(DerivedSource):
        for index, transition in enumerate(source.transitions):
            place = ("variables", name, "source", "transitions", index)
            yield name, "the state", (*place, "from"), transition.from_
            yield name, "the state", (*place, "to"), transition.to
    for placed, _ in parsed_conditions(subject, ComputedSource):
        name = placed.owner
        yield name, "the true or false of a condition", ("variables", name, "type"), True


@rule("VAR003", "variables")
def computation_ends(subject: Subject) -> Iterator[Hit]:
    for cycle in find_cycles(
        {name: source.inputs for name, source in subject.sources(ComputedSource)}
    ):
        first = cycle[0]
        yield Hit(
            ("variables", first, "source", "inputs"),
            f"{first} is computed from itself: {' -> '.join((*cycle, first))}",
            hint=("take one of these variables out of the inputs of another",),
        )


@rule("VAR004", "variables")
def inputs_match_computation(subject: Subject) -> Iterator[Hit]:
    for placed, _ in parsed_conditions(subject, ComputedSource):
        named, used = placed.part.inputs, first_mentions(placed)
        # NAME001 reports an unknown input; it counts as the variable that was probably meant.
        inputs = {*named, *(variable_meant(subject, entry) for entry in named)}
        lacking = [entry for entry in used if entry not in inputs]
        for entry in lacking:
            message = f"{placed.what} uses {entry}, which is not one of its inputs"
            hint = did_you_mean(entry, named) or (f'add "{entry}" to "inputs"',)
            yield Hit(placed.path, message, hint=hint, offset=used[entry], length=len(entry))
        for index, entry in enumerate(named):
            # An unused input was probably meant to be the missing one.
            if not lacking and entry not in used and entry in subject.variable_names:
                message = f"{placed.what} does not use its input {entry}"
                hint = ("remove the input, or use it in the condition",)
                yield Hit((*placed.path[:-1], "inputs", index), message, hint=hint)


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
        path = ("variables", name, "source", "search_by")
        reference = Reference(path, "variable", source.search_by, f"{name} is searched by")
        known = {*source.document, *BUILT_IN_VARIABLES}
        # Without a schema nothing is known about the fields.
        if source.document and source.search_by not in known:
            hit = unknown_name(reference, "field", known, 'add the field to "schema"')
            yield replace(hit, fix=respelling(path, source.search_by, source.document))
        else:
            yield from unknown_names(subject, [reference])


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


#: The kind of values that each merge needs, and the types of that kind.
_MERGED: Final = {"append": ("list", "list"), "merge": ("object", "dict or a model")}


#: The names of months and weekdays; their numbers are their places in the list.
_MONTHS: Final = [
    "", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
]  # fmt: skip
_WEEKDAYS: Final = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_ZONE: Final = re.compile(r"UTC|[A-Z][A-Za-z_]*(?:/[A-Z][A-Za-z0-9_+-]*)+")
#: Starts without a user.
_UNATTENDED: Final = frozenset({"schedule", "database_condition", "webhook"})


@rule("VAR023", "orchestrator")
def run_can_start(subject: Subject) -> Iterator[Hit]:
    start, mode = subject.spec.orchestrator.trigger, subject.spec.orchestrator.startup_mode
    if isinstance(start, ScheduleStart):
        yield from _schedule(start, ("orchestrator", "trigger"))
    if start.type in _UNATTENDED and mode in ("UserDriven", "AgentDriven"):
        yield Hit(
            ("orchestrator", "startup_mode"),
            f"the workflow is {mode}, but a {start.type} start has no person to talk to",
            hint=('remove "startup_mode"', 'or set it to "BackendOnly"'),
        )


def _schedule(start: ScheduleStart, path: Path) -> Iterator[Hit]:
    try:
        parse_cron(cron_in_numbers(start.cron))
    except ExpressionError as error:
        hint = 'write minute, hour, day, month and weekday: "0 9 * * MON-FRI" is nine on workdays'
        yield Hit((*path, "cron"), f"the schedule is not valid: {error}", hint=(hint,))
    if not _ZONE.fullmatch(start.timezone):
        yield Hit(
            (*path, "timezone"),
            f'"{start.timezone}" is not the name of a time zone',
            hint=("write UTC, or an area and a city such as Europe/Berlin",),
        )


def cron_in_numbers(cron: str) -> str:
    """Write the names of months and weekdays as numbers."""
    fields = cron.split()
    for at, names in ((3, _MONTHS), (4, _WEEKDAYS)):
        for found in re.findall("[A-Za-z]+", fields[at] if at < len(fields) else ""):
            if found.upper() in names:
                number = names.index(found.upper())
                fields[at] = fields[at].replace(found, str(number), 1)
    return " ".join(fields)


@rule("LINK003", "orchestrator", "variables", "flow", "board", "hooks", "lifecycle_tools")
def is_performed(subject: Subject) -> Iterator[Hit]:
    name = subject.spec.orchestrator.workflow_name
    # VAR027 reports settings that do not fit together.
    known = {placed.path for placed, _ in of_plugins(subject)}
    for left in not_performed(subject.spec, subject.kinds):
        if left.path not in known:
            yield Hit(left.path, refusal(name, left), hint=(left.hint,))
