"""Family VAR, first part: whether a variable's own declaration makes sense."""

import keyword
from collections.abc import Iterator
from typing import Final

from weft.check.code.facts import function_named, missing_function
from weft.check.code.functions import not_given
from weft.check.declarations import assigned, placed_triggers
from weft.check.rules.comparisons import instead, kinds_of, objections
from weft.check.rules.conditions import first_mentions
from weft.check.spelling import (
    did_you_mean,
    listed,
    respelling,
    short,
    unknown_name,
    variable_meant,
)
from weft.check.subject import Hit, Subject, find_cycles, rule
from weft.check.values import (
    declared_values,
    holds_secret,
    is_open_secret,
    shown_value_error,
    variable_types,
)
from weft.errors import ExpressionError
from weft.findings import Json, Path
from weft.ids import BUILT_IN_VARIABLES, FUNCTION_REF
from weft.spec.condition_parser import parse_condition
from weft.spec.conditions import KEYWORDS
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
                f"{name} does not say how its document is found",
                hint=('add "search_by" with a field, or "query_template" with a query',),
            )
        elif source.search_by is not None and source.query_template is not None:
            yield Hit(
                (*path, "query_template"),
                f"{name} says in two ways how its document is found",
                hint=('keep either "search_by" or "query_template"',),
            )
        if source.field is not None and source.fields:
            yield Hit(
                (*path, "fields"),
                f"{name} takes one field and an object of fields at once",
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
    for name, source in subject.sources(ComputedSource):
        if _computing_condition(source):
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


@rule("VAR004", "variables", "models", "code")
def computation_is_sound(subject: Subject) -> Iterator[Hit]:
    for name, source in subject.sources(ComputedSource):
        yield from _inputs_exist(subject, name, source)
        if FUNCTION_REF.match(source.computation):
            yield from _function_hits(subject, name, source)
        else:
            yield from _condition_hits(subject, name, source)


def _function_hits(subject: Subject, name: str, source: ComputedSource) -> Iterator[Hit]:
    path, by = ("variables", name, "source", "computation"), f"{name} is computed by"
    missing = missing_function(subject, source.computation)
    found = function_named(subject, source.computation)
    lacking = not_given(found[1], source.inputs) if found else []
    if missing:
        fact = f"{by} {source.computation}, but {missing.fact}"
        yield Hit(path, fact, hint=missing.hint)
    elif lacking:
        names = [it.name for it in lacking]
        known = [it for it in names if it in subject.variable_names]
        yield Hit(
            path,
            f"{by} {source.computation}, which requires {listed(names)}, no input of it",
            cause=(f"the inputs are {listed(source.inputs)}",) if source.inputs else (),
            hint=(f'add "{known[0]}" to the inputs',)
            if known
            else did_you_mean(names[0], source.inputs)
            or ("name the parameters like the inputs, or give them default values",),
        )


def _inputs_exist(subject: Subject, name: str, source: ComputedSource) -> Iterator[Hit]:
    for index, entry in enumerate(source.inputs):
        if entry not in subject.variable_names:
            path = ("variables", name, "source", "inputs", index)
            fact = f'{name} is computed from "{entry}", which is no variable'
            yield unknown_name(path, entry, subject.variable_names, fact, "declare the variable")


def _computing_condition(source: ComputedSource) -> bool:
    if FUNCTION_REF.match(source.computation):
        return False
    try:
        parse_condition(source.computation)
    except ExpressionError:
        return False  # VAR004 reports it
    return True


def _condition_hits(subject: Subject, name: str, source: ComputedSource) -> Iterator[Hit]:
    path = ("variables", name, "source", "computation")
    try:
        used = first_mentions(source.computation)
    except ExpressionError as error:
        fact = f"the computation of {name} is neither a function nor a condition: {error}"
        hint = error.hint or "write a condition over the inputs"
        yield Hit(path, fact, hint=(hint, _FUNCTION_HINT), offset=error.offset)
        return
    # An input that nobody declares is reported as such, and once.
    inputs = {variable_meant(subject, entry) for entry in source.inputs}
    lacking = [entry for entry in used if entry not in inputs and entry not in source.inputs]
    for entry in lacking:
        fact = f"the computation of {name} uses {entry}, which is not among its inputs"
        hint = did_you_mean(entry, source.inputs) or (f'add "{entry}" to the inputs',)
        yield Hit(path, fact, hint=hint, offset=used[entry], length=len(entry))
    for index, entry in enumerate(source.inputs):
        # Where an input is lacking, one that is not used was likely written in its place.
        if not lacking and entry not in used and entry in subject.variable_names:
            fact = f"the computation of {name} does not use its input {entry}"
            hint = ("remove the input, or use it in the condition",)
            yield Hit(("variables", name, "source", "inputs", index), fact, hint=hint)
    for objection in objections(source.computation, subject.once(variable_types), subject.models):
        fact = f"in the computation of {name}, {objection.fact}"
        yield Hit(path, fact, hint=objection.hint, offset=objection.offset, length=objection.length)


_FUNCTION_HINT: Final = "or name a function of the package as module:function"


@rule("VAR006", "variables")
def name_is_free(subject: Subject) -> Iterator[Hit]:
    for name in subject.spec.variables:
        reason = why_reserved(name)
        if reason:
            yield Hit(
                ("variables", name),
                f"{name} cannot be the name of a variable: {reason}",
                hint=("choose another name",),
                at_key=True,
            )


def why_reserved(name: str) -> str | None:
    """Say why a variable cannot have this name; None if it can."""
    if name in BUILT_IN_VARIABLES:
        return "every run has a variable of this name already"
    if name.startswith("_") or name.lower().startswith("weft"):
        return "names that begin with _ or weft belong to Weft itself"
    if name.lower() in KEYWORDS:
        return "it is a word of the condition language"
    if keyword.iskeyword(name):
        return "it is a word of the Python language"
    if name == "structured_output":
        return "it stands for the reply of an agent with a bound model"
    return None


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


@rule("VAR017", "variables")
def kept_in_entity(subject: Subject) -> Iterator[Hit]:
    entities = [name for name, _ in subject.sources(EntitySource)]
    for name, source in subject.sources(ComputedSource):
        kept = source.persist_to
        if kept is not None and kept not in entities:
            path = ("variables", name, "source", "persist_to")
            fact = f'{name} is to be kept in "{kept}", which is no entity variable'
            otherwise = "name a variable whose source is entity"
            yield unknown_name(path, kept, entities, fact, otherwise)


@rule("VAR019", "variables")
def entity_can_be_found(subject: Subject) -> Iterator[Hit]:
    for name, source in subject.sources(EntitySource):
        known = {*source.document, *BUILT_IN_VARIABLES}
        # Without a schema nothing is known about the fields.
        if source.document and source.search_by not in known:
            path = ("variables", name, "source", "search_by")
            yield Hit(
                path,
                f'{name} is found by "{source.search_by}", which is no field of its schema',
                hint=did_you_mean(source.search_by, known) or ("add the field to the schema",),
                fix=respelling(path, source.search_by, source.document),
            )


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
                f"{name} has merge, but nobody sets a variable whose source is "
                f"{variable.source.type}",
                hint=('remove "merge", or use a derived or entity source',),
            )
        elif kind not in kinds_of(variable.type):
            yield Hit(
                path,
                f"{name} is {short(print_type(variable.type))}, "
                f"of which {variable.merge} can make nothing",
                hint=(f"set the type to {types}", 'or remove "merge"'),
            )


#: What each way to merge needs: the kind of the values, and types of that kind.
_MERGED: Final = {"append": ("list", "list"), "merge": ("object", "dict or a model")}
