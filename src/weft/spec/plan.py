"""The action plan: what a workflow shall be, as people approve it before files are made.

The design agents of the Generator each produce one part, wrapped in a key that names the part and
not the agent. The plan is the record of these five parts that a person approves.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import AliasChoices, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from weft.spec.agents import AgentType, HumanInteraction
from weft.spec.orchestrator import InitiatedBy, WorkflowDependencies
from weft.spec.part import Name, Part, Text
from weft.spec.patterns import PATTERN_BY_ID, PatternName, PatternTitle
from weft.spec.tools import Surface
from weft.spec.triggers import LifecyclePoint
from weft.spec.workflow import PackRole

Trigger: TypeAlias = Literal["chat", "form_submit", "schedule", "database_condition", "webhook"]
SourceKind: TypeAlias = Literal[
    "config", "data_reference", "data_entity", "computed", "state", "external",
    "environment", "database", "entity", "derived", "static", "file",
]  # fmt: skip
GenerationMode: TypeAlias = Literal["text", "image", "video", "audio"]
ShortText: TypeAlias = Annotated[str, StringConstraints(max_length=140)]


def _check_legend(pattern_id: int, pattern_name: str) -> None:
    """Refuse a pattern id and a pattern name that belong to different patterns."""
    title = PATTERN_BY_ID[pattern_id].title
    if title != pattern_name:
        raise PydanticCustomError(
            "pattern_legend",
            "pattern {id} is {title}, not {name}",
            {"id": pattern_id, "title": title, "name": pattern_name},
        )


class _WithPattern(Part):
    """Anything that names its pattern by id and by title."""

    pattern_id: int = Field(ge=1, le=9)
    pattern_name: PatternTitle

    @model_validator(mode="after")
    def _agrees_with_legend(self) -> "_WithPattern":
        _check_legend(self.pattern_id, self.pattern_name)
        return self


class PlannedWorkflow(_WithPattern):
    """One workflow of the selection."""

    name: Name
    role: PackRole
    description: Text


class PatternSelection(Part):
    """Which pattern, and whether one workflow or several."""

    is_multi_workflow: bool
    decomposition_reason: Text | None = None
    pack_name: Name
    workflows: tuple[PlannedWorkflow, ...] = Field(min_length=1)


class StrategyModule(_WithPattern):
    """A part of the workflow with a purpose of its own."""

    module_name: Annotated[str, StringConstraints(pattern=r"^Module \d+: .+")]
    module_index: int = Field(ge=0)
    module_description: Text
    agents_needed: tuple[Name, ...]
    workflow: Name | None = Field(
        default=None,
        description="The workflow of the selection it belongs to; null: the first one.",
    )


class WorkflowStrategy(Part):
    """What the workflow does."""

    workflow_name: Name
    workflow_description: Text
    human_in_loop: bool = Field(validation_alias=AliasChoices("human_in_loop", "human_in_the_loop"))
    pattern: tuple[PatternName, ...] = Field(min_length=1)
    trigger: Trigger
    initiated_by: InitiatedBy
    modules: tuple[StrategyModule, ...] = Field(min_length=1)


class PlannedVariable(Part):
    """A variable the workflow needs."""

    name: Name
    type: SourceKind
    purpose: Text
    trigger_hint: Text | None = None


class PlannedComponent(Part):
    """Something a person sees and answers."""

    module_name: Name
    agent: Name
    tool: Name
    label: Text
    component: Name
    display: Surface
    summary: Annotated[str, StringConstraints(max_length=200)]


class PlannedLifecycle(Part):
    """A function at a boundary of the run or of a turn."""

    name: Name
    purpose: Text
    trigger: LifecyclePoint
    integration: Name | None = None


class TechnicalBlueprint(Part):
    """What all modules share."""

    global_context_variables: tuple[PlannedVariable, ...] = ()
    ui_components: tuple[PlannedComponent, ...] = ()
    before_chat_lifecycle: PlannedLifecycle | None = None
    after_chat_lifecycle: PlannedLifecycle | None = None
    workflow_dependencies: WorkflowDependencies = WorkflowDependencies()


class PlannedTool(Part):
    """A tool an agent calls."""

    name: Name
    integration: Name | None = None
    purpose: ShortText
    interaction_mode: Literal["inline", "artifact", "none"]


class PlannedHook(Part):
    """A change of an agent's behaviour."""

    name: Name
    purpose: ShortText


class PlannedAgent(Part):
    """Who does the work."""

    agent_name: Name
    agent_type: AgentType
    objective: Text
    human_interaction: HumanInteraction
    generation_mode: GenerationMode | None = None
    max_consecutive_auto_reply: int = Field(ge=1, le=500)
    agent_tools: tuple[PlannedTool, ...] = ()
    lifecycle_tools: tuple[PlannedLifecycle, ...] = ()
    system_hooks: tuple[PlannedHook, ...] = ()


class ModuleAgents(Part):
    """The agents of one module."""

    module_index: int = Field(ge=0)
    agents: tuple[PlannedAgent, ...]


class MermaidSequenceDiagram(Part):
    """The plan as a picture."""

    workflow_name: Name
    mermaid_diagram: Text
    legend: tuple[str, ...] = ()


class PatternSelectionOutput(Part):
    """What the agent that chooses the pattern returns."""

    selection: PatternSelection = Field(alias="PatternSelection")


class WorkflowStrategyOutput(Part):
    """What the agent that sets the strategy returns."""

    strategy: WorkflowStrategy = Field(alias="WorkflowStrategy")


class TechnicalBlueprintOutput(Part):
    """What the agent that lays out the infrastructure returns."""

    blueprint: TechnicalBlueprint = Field(alias="TechnicalBlueprint")


class ModuleAgentsOutput(Part):
    """What the agent that staffs the modules returns."""

    modules: tuple[ModuleAgents, ...] = Field(alias="ModuleAgents")


class MermaidSequenceDiagramOutput(Part):
    """What the agent that draws the plan returns."""

    diagram: MermaidSequenceDiagram = Field(alias="MermaidSequenceDiagram")
    agent_message: Text


class ActionPlan(Part):
    """The five parts a person approves, as one versioned record."""

    version: int = Field(default=1, ge=1, description="Which round of the design it is.")
    selection: PatternSelection = Field(alias="PatternSelection")
    strategy: WorkflowStrategy = Field(alias="WorkflowStrategy")
    blueprint: TechnicalBlueprint = Field(alias="TechnicalBlueprint")
    modules: tuple[ModuleAgents, ...] = Field(alias="ModuleAgents")
    diagram: MermaidSequenceDiagram = Field(alias="MermaidSequenceDiagram")
