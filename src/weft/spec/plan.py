"""The action plan: what a workflow shall be, as people approve it before files are made.

The design agents of the Generator each produce one part, wrapped in a key that names the part and
not the agent. The plan is the record of these five parts that a person approves.
"""

from typing import Annotated, Literal, TypeAlias, TypeVar, cast

from pydantic import AliasChoices, BeforeValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from weft.spec.agents import AgentType, HumanInteraction
from weft.spec.orchestrator import InitiatedBy, WorkflowDependencies
from weft.spec.part import Addressee, JsonMap, Name, Part, Text, UrlPath
from weft.spec.patterns import PATTERN_BY_ID, PatternName, PatternTitle
from weft.spec.tools import Surface
from weft.spec.triggers import LifecyclePoint
from weft.spec.type_field import TypeField
from weft.spec.type_parser import parse_type
from weft.spec.types import TypeExpr
from weft.spec.workflow import PackRole

Trigger: TypeAlias = Literal["chat", "form_submit", "schedule", "database_condition", "webhook"]
SourceKind: TypeAlias = Literal[
    "config", "data_reference", "data_entity", "computed", "state", "external",
    "environment", "database", "entity", "derived", "static", "file",
]  # fmt: skip
GenerationMode: TypeAlias = Literal["text", "image", "video", "audio"]
ShortText: TypeAlias = Annotated[str, StringConstraints(max_length=140)]

T = TypeVar("T")


def _read_list(value: object) -> object:
    """Read a list: a model may return null for none, and a person one entry without a list."""
    if value is None:
        return ()
    if isinstance(value, str | dict):
        return (cast("object", value),)
    # A validator that is strict takes no list for a tuple.
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value


#: A list that may be left out.
Several: TypeAlias = Annotated[tuple[T, ...], BeforeValidator(_read_list)]


class PlannedField(Part):
    """A field of a document, of a form, or of what a person is asked."""

    name: Name
    type: TypeField | None = Field(default=None, description="null: text.")
    description: Text | None = None

    @property
    def value_type(self) -> TypeExpr:
        """The type of its values."""
        return self.type or parse_type("str")


def _read_field(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


#: A field, or only its name.
AnyField: TypeAlias = Annotated[
    PlannedField, BeforeValidator(_read_field, json_schema_input_type=Name | PlannedField)
]
#: What is said, done or expected in a scenario: in words, or in the keys of `tests/*.yaml`.
ScenarioStep: TypeAlias = Text | JsonMap


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


class NextStep(Part):
    """What follows when a module has come to something."""

    when: Text = Field(description="An outcome of an agent of the module, or a condition in words.")
    to: Text = Field(description="A module by its name or purpose, an agent, `user` or `end`.")
    reason: Text | None = None


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
    leads_to: Several[NextStep] = Field(
        default=(), description="What follows when; the first rule that applies counts."
    )


class PlannedScenario(Part):
    """A way to try the workflow: what the user says and does, and what must happen."""

    says: Several[ScenarioStep] = ()
    takes: dict[Name, Several[Name]] = Field(
        default={}, description="By agent or module: what it comes to, in the order of its turns."
    )
    expect: Several[ScenarioStep] = ()


class PlannedStart(Part):
    """How the start happens; which fields apply depends on the trigger."""

    fields: Several[AnyField] = Field(default=(), description="What the form of the start asks.")
    cron: Name | None = Field(default=None, description="minute hour day month weekday.")
    timezone: Name | None = Field(default=None, description="null: UTC.")
    path: UrlPath | None = Field(default=None, description="The path of the webhook.")
    collection: Name | None = Field(default=None, description="Whose documents start a run.")
    condition: Text | None = Field(default=None, description="What such a document must fulfil.")


class PlannedWatch(Part):
    """Words of the user that interrupt the work, wherever it is."""

    words: Several[Name]
    to: Text = Field(description="A module or agent that takes over.")


class WorkflowStrategy(Part):
    """What the workflow does."""

    workflow_name: Name
    workflow_description: Text
    human_in_loop: bool = Field(validation_alias=AliasChoices("human_in_loop", "human_in_the_loop"))
    pattern: tuple[PatternName, ...] = Field(min_length=1)
    trigger: Trigger
    initiated_by: InitiatedBy
    modules: tuple[StrategyModule, ...] = Field(min_length=1)
    start: PlannedStart | None = None
    greeting: Text | None = Field(default=None, description="What the user reads first.")
    watch: PlannedWatch | None = None
    never: Several[Text] = Field(default=(), description="What must never happen.")
    scenarios: Several[PlannedScenario] = Field(default=(), description="How to try it.")
    assumptions: Several[Text] = Field(
        default=(), description="What was assumed; what begins with OPEN is not decided yet."
    )


class PlannedVariable(Part):
    """A variable the workflow needs."""

    name: Name
    type: SourceKind
    purpose: Text
    trigger_hint: Text | None = None
    outcomes: Several[Name] = Field(default=(), description="The values that a state can have.")
    value_type: TypeField | None = Field(default=None, description="The type of its value.")
    key: Name | None = Field(
        default=None,
        description="How a document is found: chat_id (one for each run), user_id (for each "
        "user), app_id (one for all), or a variable.",
    )
    shared: bool | None = Field(
        default=None, description="Whether all users work on the same document."
    )
    collection: Name | None = None
    fields: Several[AnyField] = Field(default=(), description="What a document holds.")
    url: Text | None = Field(default=None, description="Where a service is asked.")


class PlannedComponent(Part):
    """Something a person sees and answers."""

    module_name: Name
    agent: Name
    tool: Name
    label: Text
    component: Name
    display: Surface
    summary: Annotated[str, StringConstraints(max_length=200)]
    approver: Addressee | None = Field(
        default=None, description="Who answers; null: the user whose run it is."
    )
    shows: Several[Name] = Field(default=(), description="The fields and variables it shows.")
    fields: Several[AnyField] = Field(default=(), description="What the person fills in.")


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
    approver: Addressee | None = Field(
        default=None, description="Who decides; null: the user of the run, if a person decides."
    )
    outcomes: Several[Name] = Field(default=(), description="What it can come to.")
    reads: Several[Name] = Field(default=(), description="The fields and variables it reads.")
    writes: Several[Name] = Field(default=(), description="The fields and variables it sets.")
    tell: Text | None = Field(default=None, description="What the user of the run reads.")


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
