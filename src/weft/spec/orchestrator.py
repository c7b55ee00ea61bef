"""The orchestrator: how the team works together as a whole."""

from typing import Literal, TypeAlias

from pydantic import Field

from weft.spec.limits import Budget, LoopGuard
from weft.spec.part import FunctionRef, Name, Part, Text
from weft.spec.patterns import PatternOrDefault
from weft.spec.starts import ChatStart, InitiatedBy, Start

StartupMode: TypeAlias = Literal["AgentDriven", "UserDriven", "BackendOnly"]
ConditionProfile: TypeAlias = Literal["full", "strict"]


class RuntimeExtension(Part):
    """Something the server mounts or starts for the workflow."""

    kind: Literal["api_router", "startup_service"]
    entrypoint: FunctionRef = Field(description="`module:name` that gives the router or service.")
    prefix: Name | None = Field(default=None, description="Path under which a router is mounted.")


class WorkflowDependencies(Part):
    """What must have happened before this workflow may start."""

    required_workflows: tuple[Name, ...] = ()


class Orchestrator(Part):
    """The settings of the workflow as a whole."""

    workflow_name: Name
    description: Text = ""
    orchestration_pattern: PatternOrDefault = "DefaultPattern"
    initial_agent: Name
    max_turns: int = Field(default=30, ge=1, le=500)
    human_in_the_loop: bool = True
    trigger: Start = ChatStart()
    initiated_by: InitiatedBy = "user"
    startup_mode: StartupMode | None = Field(
        default=None, description="null: follows from trigger and initiated_by."
    )
    initial_message_to_user: Text | None = None
    initial_message: Text | None = Field(
        default=None, description="First message to the initial agent; users do not see it."
    )
    visual_agents: tuple[Name, ...] | None = Field(
        default=None, description="Agents whose messages users see; null means all."
    )
    default_target: Name | None = Field(
        default=None,
        description='Who is next when no rule applies: an agent, "user" or "terminate".',
    )
    condition_profile: ConditionProfile = Field(
        default="full", description="strict: positive tests joined by at most one AND."
    )
    llm_conditions: bool = Field(
        default=False, description="Allow handoffs whose condition a model judges."
    )
    model: Name | None = Field(default=None, description="Language model of all agents.")
    runtime_extensions: tuple[RuntimeExtension, ...] = ()
    workflow_dependencies: WorkflowDependencies = WorkflowDependencies()
    budgets: tuple[Budget, ...] = ()
    loop_guard: LoopGuard | None = None
