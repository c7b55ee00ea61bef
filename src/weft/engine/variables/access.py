"""Access to variables: which exist, who may read them, and who may set them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from weft.engine.compiled import CompiledWorkflow
from weft.engine.variables.conditions import same
from weft.findings import Json
from weft.ids import BUILT_IN_VARIABLES
from weft.spec.agents import Agent, PromptSection, VariablesIngredient
from weft.spec.templates import references
from weft.spec.type_meaning import validation_error
from weft.spec.variables import DerivedSource, EntitySource, Variable
from weft.spec.workflow import WorkflowSpec


@dataclass(frozen=True, slots=True)
class ByTrigger:
    """The writer if a trigger sets a variable; no tool or agent has this name."""


BY_TRIGGER: Final = ByTrigger()

#: The writer: a trigger, or the name of a tool or agent.
Writer: TypeAlias = ByTrigger | str


def access_error(
    variables: Mapping[str, Variable], name: str, writers: Sequence[Writer]
) -> str | None:
    """Return why none of the writers may set a variable to any value, or None."""
    if name in BUILT_IN_VARIABLES:
        return f"{name} identifies the user or tenant of the run and cannot be set"
    variable = variables.get(name)
    if variable is None:
        return f"there is no variable {name}"
    if not isinstance(variable.source, DerivedSource | EntitySource):
        return f"{name} comes from {variable.source.type} and cannot be set"
    if variable.secret:
        return f"{name} is secret and cannot be set"
    allowed = variable.writers
    if allowed is not None and not {BY_TRIGGER, *allowed}.intersection(writers):
        return f"{writers[0]} is not among the writers of {name}"
    return None


def write_error(
    compiled: CompiledWorkflow, values: Mapping[str, Json], name: str, value: Json, *writers: Writer
) -> str | None:
    """Return why a write is refused, or None if one of the writers may make it."""
    fault = access_error(compiled.variables, name, writers)
    if fault:
        return fault
    if value is None and isinstance(compiled.variables[name].source, EntitySource):
        return f"{name} is a document and cannot be set to nothing"
    return value_error(compiled, values, name, value)


def value_error(
    compiled: CompiledWorkflow, values: Mapping[str, Json], name: str, value: Json
) -> str | None:
    """Return why a variable cannot change to a value, or None if it can."""
    variable = compiled.variables[name]
    fault = None if value is None else validation_error(variable.type, value, compiled.models)
    if fault:
        return f"{name}: {fault}"
    source, held = variable.source, values.get(name)
    if isinstance(source, EntitySource) and source.document and isinstance(value, dict):
        return _document_error(compiled, name, source, cast("dict[str, Json]", value))
    if isinstance(source, DerivedSource) and source.transitions and not same(value, held):
        steps = source.transitions
        if not any(same(step.from_, held) and same(step.to, value) for step in steps):
            return f"{name} may not change from {held!r} to {value!r}"
    return None


def _document_error(
    compiled: CompiledWorkflow, name: str, source: EntitySource, document: Mapping[str, Json]
) -> str | None:
    """Return the validation error of a document; undeclared fields are not checked."""
    for field, declared in source.document.items():
        value = document.get(field)
        fault = None if value is None else validation_error(declared.type, value, compiled.models)
        if fault:
            return f"{name}.{field}: {fault}"
    return None


def may_read(variables: Mapping[str, Variable], name: str, agent: str) -> bool:
    """Return whether an agent may see a variable; undeclared ones are hidden."""
    variable = variables.get(name)
    if variable is None:
        return name in BUILT_IN_VARIABLES
    return variable.readers is None or agent in variable.readers


# -- suppression


#: Sources that do not exist in production, and those that `CONTEXT_INCLUDE_SCHEMA` switches off.
IN_PRODUCTION: Final = frozenset({"environment"})
WITHOUT_SCHEMA: Final = frozenset({"database"})


def suppressed_variables(spec: WorkflowSpec, sources: Collection[str]) -> frozenset[str]:
    """Return the variables that do not exist; secrets are references and always do."""
    return frozenset(
        name
        for name, variable in spec.variables.items()
        if variable.source.type in sources and not variable.secret
    )


def without_sources(spec: WorkflowSpec, sources: Collection[str]) -> WorkflowSpec:
    """Return a spec as if variables of some sources had never been declared."""
    gone = suppressed_variables(spec, sources) if sources else frozenset[str]()
    if not gone:
        return spec
    return spec.model_copy(
        update={
            "variables": {
                name: variable for name, variable in spec.variables.items() if name not in gone
            },
            "exposure": {
                agent: tuple(each_name for each_name in names if each_name not in gone)
                for agent, names in spec.exposure.items()
            },
            "agents": tuple(_agent(each_agent, gone) for each_agent in spec.agents),
        }
    )


def _agent(agent: Agent, gone: frozenset[str]) -> Agent:
    context = tuple(
        ingredient.model_copy(
            update={"names": tuple(name for name in ingredient.names if name not in gone)}
        )
        if isinstance(ingredient, VariablesIngredient)
        else ingredient
        for ingredient in agent.context
        if not _is_empty(ingredient, gone)
    )
    sections = tuple(_section(section, gone) for section in agent.prompt_sections)
    return agent.model_copy(update={"context": context, "prompt_sections": sections})


def _is_empty(ingredient: object, gone: frozenset[str]) -> bool:
    """Return whether an ingredient has no names left: an empty list would mean all."""
    names = ingredient.names if isinstance(ingredient, VariablesIngredient) else ()
    return bool(names) and gone.issuperset(names)


def _section(section: PromptSection, gone: frozenset[str]) -> PromptSection:
    text = section.content
    for reference in reversed(references(text)):
        if reference.name in gone:
            text = text[: reference.offset - 1] + text[reference.offset + len(reference.name) + 1 :]
    return section if text == section.content else section.model_copy(update={"content": text})
