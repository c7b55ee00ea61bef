"""Suppression: variables that are declared and do not exist where a workflow runs.

In production that is what comes from the environment; what is suppressed stands in no prompt, not
even as null, and cannot be routed on, set or given.
"""

from collections.abc import Collection
from typing import Final

from weft.spec.agents import Agent, PromptSection, VariablesIngredient
from weft.spec.templates import references
from weft.spec.workflow import WorkflowSpec

#: Sources that do not exist in production, and those that `CONTEXT_INCLUDE_SCHEMA` switches off.
IN_PRODUCTION: Final = frozenset({"environment"})
WITHOUT_SCHEMA: Final = frozenset({"database"})


def suppressed_variables(spec: WorkflowSpec, sources: Collection[str]) -> frozenset[str]:
    """Return the variables that do not exist; secrets are references and always do."""
    return frozenset(
        name for name, it in spec.variables.items() if it.source.type in sources and not it.secret
    )


def without_sources(spec: WorkflowSpec, sources: Collection[str]) -> WorkflowSpec:
    """Return a spec as if variables of some sources had never been declared."""
    gone = suppressed_variables(spec, sources) if sources else frozenset[str]()
    if not gone:
        return spec
    return spec.model_copy(
        update={
            "variables": {name: it for name, it in spec.variables.items() if name not in gone},
            "exposure": {
                agent: tuple(it for it in names if it not in gone)
                for agent, names in spec.exposure.items()
            },
            "agents": tuple(_agent(it, gone) for it in spec.agents),
        }
    )


def _agent(agent: Agent, gone: frozenset[str]) -> Agent:
    context = tuple(
        it.model_copy(update={"names": tuple(name for name in it.names if name not in gone)})
        if isinstance(it, VariablesIngredient)
        else it
        for it in agent.context
        if not _is_empty(it, gone)
    )
    sections = tuple(_section(it, gone) for it in agent.prompt_sections)
    return agent.model_copy(update={"context": context, "prompt_sections": sections})


def _is_empty(ingredient: object, gone: frozenset[str]) -> bool:
    """Tell whether an ingredient names nothing that exists: without names it would mean all."""
    names = ingredient.names if isinstance(ingredient, VariablesIngredient) else ()
    return bool(names) and gone.issuperset(names)


def _section(section: PromptSection, gone: frozenset[str]) -> PromptSection:
    text = section.content
    for it in reversed(references(text)):
        if it.name in gone:
            text = text[: it.offset - 1] + text[it.offset + len(it.name) + 1 :]
    return section if text == section.content else section.model_copy(update={"content": text})
