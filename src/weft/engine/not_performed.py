"""What a spec may declare and this version does not perform. A run that ignored it would lie."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from weft.findings import Path
from weft.spec.variables import DerivedSource
from weft.spec.workflow import WorkflowSpec

#: Where something stands in the spec, and what it is.
Left: TypeAlias = tuple[Path, str]

HINT: Final = "take it out, or wait for a version that performs it"

_SOURCES: Final = {"computed", "database", "entity", "external", "file"}
_TRIGGERS: Final = {"lifecycle", "timer_expired", "function"}


def not_performed(spec: WorkflowSpec) -> tuple[Left, ...]:
    """Return everything a workflow declares that would have no effect."""
    return (*_of_orchestrator(spec), *_of_variables(spec), *_of_others(spec))


def refusal(workflow: str, what: str) -> str:
    """Say that a workflow declares what would have no effect."""
    return f"{workflow} declares {what}, which this version of Weft does not perform"


def _of_orchestrator(spec: WorkflowSpec) -> Iterator[Left]:
    orchestrator = spec.orchestrator
    declared = {
        "budgets": orchestrator.budgets,
        "loop_guard": orchestrator.loop_guard,
        "runtime_extensions": orchestrator.runtime_extensions,
        "workflow_dependencies": orchestrator.workflow_dependencies.required_workflows,
    }
    for name, value in declared.items():
        if value:
            yield ("orchestrator", name), name
    if orchestrator.trigger.type != "chat":
        yield ("orchestrator", "trigger"), f"a start by {orchestrator.trigger.type}"


def _of_variables(spec: WorkflowSpec) -> Iterator[Left]:
    for name, variable in spec.variables.items():
        path: Path = ("variables", name, "source")
        source = variable.source
        if source.type in _SOURCES:
            yield path, f"the {source.type} source of {name}"
        if not isinstance(source, DerivedSource):
            continue
        if source.persist:
            yield (*path, "persist"), f"persist of {name}"
        for index, trigger in enumerate(source.triggers):
            if trigger.type in _TRIGGERS:
                yield (*path, "triggers", index), f"a {trigger.type} trigger of {name}"
        for index, step in enumerate(source.transitions):
            if step.trigger is not None and step.trigger.type in _TRIGGERS:
                place = (*path, "transitions", index, "trigger")
                yield place, f"a {step.trigger.type} trigger of {name}"


def _of_others(spec: WorkflowSpec) -> Iterator[Left]:
    for index, hook in enumerate(spec.hooks):
        yield ("hooks", index), f"the hook {hook.function}"
    for index, tool in enumerate(spec.lifecycle_tools):
        yield ("lifecycle_tools", index), f"the lifecycle tool {tool.function}"
    for index, handoff in enumerate(spec.handoffs):
        if handoff.condition_type == "llm":
            agent = handoff.source_agent
            yield ("handoffs", index), f"a condition of {agent} that a model is to judge"
    for index, agent in enumerate(spec.agents):
        if agent.generation_mode not in (None, "text"):
            name = agent.agent_name
            yield ("agents", index, "generation_mode"), f"generation_mode of {name}"
    if spec.flow is not None:
        yield ("flow",), "the flow"
    if spec.board is not None:
        yield ("board",), "the board"
