"""The seventeen agents of the Generator, in their order: what each reads and writes.

The seed's own list is circular: tools need variables, and variables need tools. Here the names of
tools come first, then what is bound to them, then their code.
"""

from dataclasses import dataclass
from typing import Final

from weft.spec.workflow import WorkflowSpec

#: The model that needs no language model: it answers for these agents by stated rules.
DESIGNER: Final = "designer"

#: The decision on the plan; no part of a package is made before it.
APPROVAL: Final = "action_plan_acceptance"

INTERVIEWER: Final = "InterviewAgent"
DOWNLOADER: Final = "DownloadAgent"
REPAIRER: Final = "RepairAgent"

#: How often a package is repaired.
REPAIRS: Final = 3

#: The field of an output in which the Generator notes why a model's part was replaced.
REPLACED: Final = "instead_of"


@dataclass(frozen=True, slots=True)
class Step:
    """One agent of the Generator."""

    agent: str
    #: The variable that holds its part.
    writes: str
    #: The variables it needs.
    reads: tuple[str, ...] = ()
    #: The model its replies fit, and the keys that wrap them; none for a conversation.
    output: str | None = None
    keys: tuple[str, ...] = ()


_DESIGN: Final = (
    ("PatternAgent", "pattern_selection", "PatternSelection"),
    ("WorkflowStrategyAgent", "workflow_strategy", "WorkflowStrategy"),
    ("WorkflowArchitectAgent", "technical_blueprint", "TechnicalBlueprint"),
    ("WorkflowImplementationAgent", "module_agents", "ModuleAgents"),
)
_PARTS: Final[tuple[tuple[str, str, str, tuple[str, ...]], ...]] = (
    ("ToolsManagerAgent", "tools_manifest", "ToolsManifestOutput", ("tools", "lifecycle_tools")),
    (
        "ContextVariablesAgent",
        "context_variables_plan",
        "ContextVariablesPlanOutput",
        ("ContextVariablesPlan",),
    ),
    ("HandoffsAgent", "handoff_rules", "HandoffRulesOutput", ("handoff_rules",)),
    (
        "StructuredOutputsAgent",
        "structured_models",
        "StructuredModelsOutput",
        ("models", "registry"),
    ),
    ("AgentsAgent", "runtime_agents", "RuntimeAgentsOutput", ("agents",)),
    ("OrchestratorAgent", "orchestration_config", "OrchestrationConfigOutput", ()),
    ("UIFileGenerator", "ui_files", "UIToolsFilesOutput", ("tools",)),
    ("AgentToolsFileGenerator", "tool_files", "AgentToolsFilesOutput", ("tools",)),
    ("HookAgent", "hook_files", "HookFilesOutput", ("hook_files",)),
)
_PLAN: Final = tuple(variable for _, variable, _ in _DESIGN)
_WRITTEN: Final = tuple(variable for _, variable, _, _ in _PARTS)

#: The agents that design a part of the plan, and those that write a part of the package.
DESIGNERS: Final = tuple(agent for agent, _, _ in _DESIGN)
MAKERS: Final = tuple(agent for agent, _, _, _ in _PARTS)

STEPS: Final = (
    Step(INTERVIEWER, "interview"),
    *(
        Step(agent, variable, ("interview", *_PLAN[:place]), f"{key}Output", (key,))
        for place, (agent, variable, key) in enumerate(_DESIGN)
    ),
    Step(
        "ProjectOverviewAgent",
        APPROVAL,
        _PLAN,
        "MermaidSequenceDiagramOutput",
        ("MermaidSequenceDiagram", "agent_message"),
    ),
    *(
        Step(agent, variable, ("interview", APPROVAL, *_WRITTEN[:place]), output, keys)
        for place, (agent, variable, output, keys) in enumerate(_PARTS)
    ),
    Step(DOWNLOADER, "bundle", (APPROVAL, *_WRITTEN), "DownloadRequestOutput", ("agent_message",)),
    Step(
        REPAIRER,
        "finding_answers",
        ("interview", APPROVAL, *_WRITTEN, "bundle"),
        "PackageRepairOutput",
        ("parts", "answers"),
    ),
)
STEP_OF: Final = {step.agent: step for step in STEPS}


def is_generator(spec: WorkflowSpec) -> bool:
    """Tell whether a workflow is the Generator, changed or not: all its agents take part.

    Runs of earlier versions have no agent that repairs.
    """
    return STEP_OF.keys() - {REPAIRER} <= {agent.agent_name for agent in spec.agents}
