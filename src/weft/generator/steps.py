"""The sixteen agents of the Generator: what each reads and writes, and the order that follows.

The seed's own list is circular (tools need variables, variables need tools; agents need models
that are made after them). Here each agent says which parts it needs, and the order is worked out:
the names of tools come before what is bound to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final

from weft.errors import UsageError
from weft.spec.workflow import WorkflowSpec

#: The model that needs no model: it answers for these agents by stated rules.
DESIGNER: Final = "designer"

#: The part that a person's approval gives; nothing of the second half is made without it.
APPROVAL: Final = "action_plan_acceptance"


@dataclass(frozen=True, slots=True)
class Step:
    """One agent of the Generator."""

    agent: str
    #: The variable that holds what it made.
    writes: str
    #: The variables it needs.
    reads: tuple[str, ...] = ()
    #: The model its replies fit, and the keys that wrap them; none for a conversation.
    output: str | None = None
    keys: tuple[str, ...] = ()


STEPS: Final = (
    Step("InterviewAgent", "interview"),
    Step(
        "PatternAgent",
        "pattern_selection",
        ("interview",),
        "PatternSelectionOutput",
        ("PatternSelection",),
    ),
    Step(
        "WorkflowStrategyAgent",
        "workflow_strategy",
        ("interview", "pattern_selection"),
        "WorkflowStrategyOutput",
        ("WorkflowStrategy",),
    ),
    Step(
        "WorkflowArchitectAgent",
        "technical_blueprint",
        ("interview", "pattern_selection", "workflow_strategy"),
        "TechnicalBlueprintOutput",
        ("TechnicalBlueprint",),
    ),
    Step(
        "WorkflowImplementationAgent",
        "module_agents",
        ("interview", "pattern_selection", "workflow_strategy", "technical_blueprint"),
        "ModuleAgentsOutput",
        ("ModuleAgents",),
    ),
    Step(
        "ProjectOverviewAgent",
        APPROVAL,
        ("pattern_selection", "workflow_strategy", "technical_blueprint", "module_agents"),
        "MermaidSequenceDiagramOutput",
        ("MermaidSequenceDiagram", "agent_message"),
    ),
    Step(
        "ToolsManagerAgent",
        "tools_manifest",
        (APPROVAL, "technical_blueprint", "module_agents"),
        "ToolsManifestOutput",
        ("tools", "lifecycle_tools"),
    ),
    Step(
        "ContextVariablesAgent",
        "context_variables_plan",
        (APPROVAL, "technical_blueprint", "module_agents", "tools_manifest"),
        "ContextVariablesPlanOutput",
        ("ContextVariablesPlan",),
    ),
    Step(
        "HandoffsAgent",
        "handoff_rules",
        (
            APPROVAL,
            "workflow_strategy",
            "module_agents",
            "tools_manifest",
            "context_variables_plan",
        ),
        "HandoffRulesOutput",
        ("handoff_rules",),
    ),
    Step(
        "StructuredOutputsAgent",
        "structured_models",
        (APPROVAL, "workflow_strategy", "module_agents", "context_variables_plan"),
        "StructuredModelsOutput",
        ("models", "registry"),
    ),
    Step(
        "AgentsAgent",
        "runtime_agents",
        (
            APPROVAL,
            "workflow_strategy",
            "module_agents",
            "tools_manifest",
            "context_variables_plan",
            "structured_models",
        ),
        "RuntimeAgentsOutput",
        ("agents",),
    ),
    Step(
        "OrchestratorAgent",
        "orchestration_config",
        (APPROVAL, "workflow_strategy", "module_agents", "tools_manifest", "handoff_rules"),
        "OrchestrationConfigOutput",
    ),
    Step(
        "UIFileGenerator",
        "ui_files",
        (APPROVAL, "technical_blueprint", "tools_manifest", "context_variables_plan"),
        "UIToolsFilesOutput",
        ("tools",),
    ),
    Step(
        "AgentToolsFileGenerator",
        "tool_files",
        (
            APPROVAL,
            "technical_blueprint",
            "module_agents",
            "tools_manifest",
            "context_variables_plan",
        ),
        "AgentToolsFilesOutput",
        ("tools",),
    ),
    Step(
        "HookAgent",
        "hook_files",
        (
            APPROVAL,
            "workflow_strategy",
            "technical_blueprint",
            "module_agents",
            "context_variables_plan",
        ),
        "HookFilesOutput",
        ("hook_files",),
    ),
    Step(
        "DownloadAgent",
        "bundle",
        (
            "tools_manifest",
            "context_variables_plan",
            "handoff_rules",
            "structured_models",
            "runtime_agents",
            "orchestration_config",
            "ui_files",
            "tool_files",
            "hook_files",
        ),
        "DownloadRequestOutput",
        ("agent_message",),
    ),
)
STEP_OF: Final = {step.agent: step for step in STEPS}


def is_generator(spec: WorkflowSpec) -> bool:
    """Tell whether a workflow is the Generator, be it changed: all its agents take part."""
    return STEP_OF.keys() <= {agent.agent_name for agent in spec.agents}


def ordered(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps so that each comes after those whose parts it reads.

    Steps that need nothing of each other keep their order. Raises UsageError if some wait for each
    other, and names them.
    """
    makers = {step.writes: step.agent for step in steps}
    unmade = {part for step in steps for part in step.reads if part not in makers}
    if unmade:
        raise UsageError(f"nobody makes {', '.join(sorted(unmade))}")
    sorter = TopologicalSorter({it.agent: {makers[part] for part in it.reads} for it in steps})
    try:
        sorter.prepare()
    except CycleError as error:
        around = " -> ".join(reversed(error.args[1]))
        raise UsageError(f"the agents wait for each other: {around}") from error
    places = {step.agent: place for place, step in enumerate(steps)}
    done: list[Step] = []
    ready: list[str] = []
    while sorter.is_active():
        ready = sorted([*ready, *sorter.get_ready()], key=places.__getitem__)
        agent = ready.pop(0)
        done.append(steps[places[agent]])
        sorter.done(agent)
    return tuple(done)
