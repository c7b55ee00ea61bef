"""The rules about the data of a plan: its variables, and what people see and fill in."""

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Final

from weft.check.rules.names import why_reserved
from weft.generator.plans.faults import Fault, at_most, pascal, snake, text, unique
from weft.generator.plans.reserved import agent_name, no_key
from weft.ids import join_names, suggestion
from weft.spec.plan import (
    PlannedField,
    PlannedVariable,
    SourceKind,
    TechnicalBlueprint,
    WorkflowStrategy,
)
from weft.spec.type_meaning import references

MOST_VARIABLES: Final = 60
#: The built-in variables by which documents are found.
KEYS: Final = ("chat_id", "user_id", "app_id")
#: The six kinds of variables, each by the names it may be called.
VARIABLE_KINDS: Final[dict[SourceKind, str]] = {
    "config": "config", "environment": "config",
    "data_reference": "data_reference", "database": "data_reference",
    "data_entity": "data_entity", "entity": "data_entity",
    "computed": "computed",
    "state": "state", "derived": "state",
    "external": "external",
    "file": "file",
}  # fmt: skip
#: The kinds whose value is a document that is found by a key.
DOCUMENTS: Final = ("data_reference", "data_entity")


def variables_faults(
    strategy: WorkflowStrategy, variables: Sequence[PlannedVariable]
) -> Iterator[Fault]:
    """Judge the variables, with the documents they are."""
    at = "TechnicalBlueprint.global_context_variables"
    yield from at_most(at, len(variables), MOST_VARIABLES, "variables")
    yield from unique(
        "variable", ((f"{at}[{n}].name", variable.name) for n, variable in enumerate(variables))
    )
    kept = (each.fields for each in variables if VARIABLE_KINDS.get(each.type) == "data_entity")
    fields = [field.name for field in chain(*kept, start_fields(strategy))]
    known = [*KEYS, *(each.name for each in variables), *fields]
    for place, variable in enumerate(variables):
        path = f"{at}[{place}]"
        reason = why_reserved(variable.name)
        if reason:
            message = f"{variable.name} cannot be the name of a variable: {reason}"
            yield Fault(f"{path}.name", message, "choose another name")
        else:
            yield from snake(f"{path}.name", variable.name)
        yield from no_key(f"{path}.name", variable)
        if variable.type not in VARIABLE_KINDS:
            kinds = ", ".join(dict.fromkeys(VARIABLE_KINDS.values()))
            message = f"{variable.type} is no kind of variable in a plan"
            yield Fault(f"{path}.type", message, f"write one of {kinds}")
        yield from text(f"{path}.purpose", variable.purpose)
        yield from text(f"{path}.trigger_hint", variable.trigger_hint)
        yield from outcomes_faults(path, variable.outcomes)
        yield from fields_faults(f"{path}.fields", variable.fields)
        yield from _stored(path, variable, known)


def _stored(path: str, variable: PlannedVariable, known: Sequence[str]) -> Iterator[Fault]:
    """Judge how a document is found, and what only some kinds of variables have."""
    kind = VARIABLE_KINDS.get(variable.type, "")
    kinds = {
        "outcomes": ("state",),
        "key": DOCUMENTS,
        "shared": DOCUMENTS,
        "collection": DOCUMENTS,
        "fields": (*DOCUMENTS, "external"),
        "url": ("external", "file"),
    }
    for name, having in kinds.items():
        if getattr(variable, name) and kind not in having:
            hint = f"only {join_names(having)} has it"
            yield Fault(f"{path}.{name}", f"the type is {variable.type}", hint)
    if variable.key is not None and (variable.key not in known or variable.key == variable.name):
        hint = suggestion(variable.key, [name for name in known if name != variable.name])
        yield Fault(
            f"{path}.key", f"the key {variable.key} is not the name of a variable or field", hint
        )
    if variable.shared and variable.key in ("chat_id", "user_id"):
        message = f"found by {variable.key}, it is not shared"
        yield Fault(f"{path}.shared", message, "write false, or the key app_id")


def components_faults(strategy: WorkflowStrategy, blueprint: TechnicalBlueprint) -> Iterator[Fault]:
    """Judge what people see and answer."""
    at = "TechnicalBlueprint.ui_components"
    components = blueprint.ui_components
    known = known_values(strategy, blueprint)
    modules = [module.module_name for module in strategy.modules]
    asked = (
        (f"{at}[{n}].tool", f"{component.agent}.{component.tool}")
        for n, component in enumerate(components)
    )
    yield from unique("tool", asked)
    for place, component in enumerate(components):
        path = f"{at}[{place}]"
        if component.module_name not in modules:
            hint = f"available: {join_names(modules, 12)}"
            yield Fault(f"{path}.module_name", f'no module is "{component.module_name}"', hint)
        yield from agent_name(f"{path}.agent", component.agent)
        yield from snake(f"{path}.tool", component.tool)
        yield from pascal(f"{path}.component", component.component)
        yield from text(f"{path}.label", component.label)
        yield from text(f"{path}.summary", component.summary)
        yield from fields_faults(f"{path}.fields", component.fields)
        yield from names_faults(f"{path}.shows", component.shows, known)


def start_fields(strategy: WorkflowStrategy) -> tuple[PlannedField, ...]:
    """Return what a form that starts the workflow asks: a state variable for each field."""
    return strategy.start.fields if strategy.start else ()


def known_values(
    strategy: WorkflowStrategy, blueprint: TechnicalBlueprint
) -> dict[str, PlannedVariable | PlannedField]:
    """Return what agents read and write by name: variables, fields of documents, answers."""
    fields = [
        *start_fields(strategy),
        *(field for component in blueprint.ui_components for field in component.fields),
        *(
            field
            for variable in blueprint.global_context_variables
            if VARIABLE_KINDS.get(variable.type) == "data_entity"
            for field in variable.fields
        ),
    ]
    variables = blueprint.global_context_variables
    return {value.name: value for value in (*fields, *variables)}


def fields_faults(path: str, fields: Sequence[PlannedField]) -> Iterator[Fault]:
    """Judge the fields of a document, a form or an answer."""
    yield from unique(
        "field", ((f"{path}[{n}].name", field.name) for n, field in enumerate(fields))
    )
    for place, field in enumerate(fields):
        yield from snake(f"{path}[{place}].name", field.name)
        if field.name == "context_variables":
            message = "generated code has a parameter of this name"
            yield Fault(f"{path}[{place}].name", message, "choose another name")
        names = references(field.value_type)
        if names:
            message = f"there is no model {join_names(sorted(names))}"
            yield Fault(f"{path}[{place}].type", message, "use str, int, float, bool, list or dict")


def outcomes_faults(path: str, outcomes: Sequence[str]) -> Iterator[Fault]:
    """Judge what something can come to."""
    named = [(f"{path}.outcomes[{place}]", name) for place, name in enumerate(outcomes)]
    yield from unique("outcome", named)
    for where, name in named:
        yield from snake(where, name)


def names_faults(path: str, names: Sequence[str], known: Collection[str]) -> Iterator[Fault]:
    """Refuse names of values that are not there."""
    for place, name in enumerate(names):
        if name not in known:
            message = f"{name} is no variable and no field of a document"
            yield Fault(f"{path}[{place}]", message, suggestion(name, known))
