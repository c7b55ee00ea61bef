"""The shapes of 13.1 to 13.10: what the agents of the second half reply with."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from weft.spec.agents import ConditionScope, PromptSection
from weft.spec.orchestrator import RuntimeExtension, StartupMode
from weft.spec.part import JsonMap, JsonValue, Name, Part, Text
from weft.spec.patterns import PatternOrDefault
from weft.spec.tools import HookType, Surface
from weft.spec.triggers import LifecyclePoint, Trigger
from weft.spec.type_field import ModelField, OutputBinding, OutputModel, TypeField
from weft.spec.variables import (
    RefreshStrategy,
    ServiceAuth,
    ServiceCache,
    ServiceRetry,
    Transition,
    WriteStrategy,
)

_PythonFile: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.py$")]
_Function: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
_AgentName: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Za-z0-9]*$")]
_Short: TypeAlias = Annotated[str, StringConstraints(max_length=140)]


class ShownAs(Part):
    """What a tool shows, and where; nothing for a tool that shows nothing."""

    component: Name | None
    mode: Surface | None


class ToolEntry(Part):
    """A tool of the manifest."""

    agent: _AgentName
    file: _PythonFile
    function: _Function
    description: _Short
    tool_type: Literal["UI_Tool", "Agent_Tool"]
    auto_invoke: bool | None
    ui: ShownAs


class LifecycleEntry(Part):
    """A function at a boundary, in the manifest."""

    agent: _AgentName | None
    file: _PythonFile
    function: _Function
    description: Text
    tool_type: Literal["Lifecycle_Tool"]
    auto_invoke: None
    ui: ShownAs
    trigger: LifecyclePoint
    integration: Name | None


class ToolsManifestOutput(Part):
    """13.1: every tool of every agent."""

    tools: tuple[ToolEntry, ...]
    lifecycle_tools: tuple[LifecycleEntry, ...]


class ConfigSource(Part):
    """A setting of the deployment."""

    type: Literal["config"]
    env_var: Name
    default_value: JsonValue
    required: bool


class DataReferenceSource(Part):
    """A document that is read."""

    type: Literal["data_reference"]
    database: Name | None
    collection: Name
    query_template: JsonMap
    fields: tuple[Name, ...]
    refresh_strategy: RefreshStrategy


class DataEntitySource(Part):
    """A document that is read and written."""

    type: Literal["data_entity"]
    database: Name | None
    collection: Name
    search_by: Name
    document: dict[str, ModelField] = Field(alias="schema")
    write_strategy: WriteStrategy


class ComputedValueSource(Part):
    """A value that follows from others."""

    type: Literal["computed"]
    computation: Text
    inputs: tuple[Name, ...]
    persist_to: Name | None


class StateSource(Part):
    """A value that events set."""

    type: Literal["state"]
    initial: JsonValue
    transitions: tuple[Transition, ...]
    trigger: Trigger | tuple[Trigger, ...] | None
    persist: bool


class ExternalCallSource(Part):
    """The answer of a service."""

    type: Literal["external"]
    service: Name
    operation: Name
    url: Text
    auth: ServiceAuth | None
    cache: ServiceCache | None
    retry: ServiceRetry | None


PlannedSource: TypeAlias = Annotated[
    ConfigSource
    | DataReferenceSource
    | DataEntitySource
    | ComputedValueSource
    | StateSource
    | ExternalCallSource,
    Field(discriminator="type"),
]


class VariableDefinition(Part):
    """One variable and where it comes from."""

    type: TypeField
    description: Text
    source: PlannedSource


class ContextVariablesPlan(Part):
    """All variables, and which agent is shown which."""

    definitions: dict[Name, VariableDefinition]
    agents: dict[_AgentName, tuple[Name, ...]]


class ContextVariablesPlanOutput(Part):
    """13.2: the variables."""

    plan: ContextVariablesPlan = Field(alias="ContextVariablesPlan")


class RuntimeAgent(Part):
    """An agent as it runs."""

    agent_name: _AgentName
    prompt_sections: tuple[PromptSection, ...]
    max_consecutive_auto_reply: int = Field(ge=1, le=500)
    auto_tool_mode: bool
    structured_outputs_required: bool


class RuntimeAgentsOutput(Part):
    """13.3: the agents."""

    agents: tuple[RuntimeAgent, ...]


class HandoffRule(Part):
    """Who is next, and when."""

    source_agent: _AgentName
    target_agent: Name
    condition: Text | None
    condition_scope: ConditionScope
    priority: int


class HandoffRulesOutput(Part):
    """13.4: the rules."""

    handoff_rules: tuple[HandoffRule, ...]


class OrchestrationConfigOutput(Part):
    """13.5: the workflow as a whole."""

    workflow_name: Name
    max_turns: int = Field(ge=1, le=500)
    human_in_the_loop: bool
    startup_mode: StartupMode
    orchestration_pattern: PatternOrDefault
    initial_message_to_user: Text | None
    initial_message: Text | None
    initial_agent: Name
    visual_agents: tuple[Name, ...]
    runtime_extensions: tuple[RuntimeExtension, ...] = ()


class StructuredModelsOutput(Part):
    """13.6: the models and who is bound to them."""

    models: tuple[OutputModel, ...]
    registry: tuple[OutputBinding, ...]


class CodeFile(Part):
    """A file of code, and what must be installed for it."""

    filename: Annotated[
        str,
        StringConstraints(pattern=r"^tools/([A-Z][A-Za-z0-9]*\.jsx|[a-z][a-z0-9_]*\.py)$"),
    ]
    content: Text
    requirements: tuple[Name, ...] = Field(alias="installRequirements")


class PythonFile(CodeFile):
    """A file of Python code."""

    filename: Annotated[str, StringConstraints(pattern=r"^tools/[a-z][a-z0-9_]*\.py$")]


class UIToolsFilesOutput(Part):
    """13.7: components and the Python side of what people are asked."""

    tools: tuple[CodeFile, ...]


class AgentToolsFilesOutput(Part):
    """13.8: the tools that agents call."""

    tools: tuple[PythonFile, ...]


class HookFile(Part):
    """A file of hooks, and when they are called."""

    filename: Annotated[str, StringConstraints(pattern=r"^hooks/[a-z][a-z0-9_]*\.py$")]
    content: Text
    trigger: HookType
    integration: Name | None


class HookFilesOutput(Part):
    """13.9: the hooks."""

    hook_files: tuple[HookFile, ...]


class DownloadRequestOutput(Part):
    """13.10: the package is there."""

    agent_message: Text
