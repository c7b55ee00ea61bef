"""The orchestrator: settings of the whole workflow, how runs start, and what a run may use."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from weft.spec import keys
from weft.spec.agents import ModelSettings
from weft.spec.part import FunctionRef, Name, Part, Text, UrlPath
from weft.spec.patterns import PatternOrDefault

InitiatedBy: TypeAlias = Literal["user", "system", "external_event"]
CatchUp: TypeAlias = Literal["none", "last", "all"]


class ChatStart(Part):
    """A person opens a chat."""

    type: Literal["chat"] = "chat"


class FormStart(Part):
    """A person submits a form."""

    type: Literal["form_submit"] = "form_submit"
    form: Name | None = Field(default=None, description="Model the submitted values fit.")


class ScheduleStart(Part):
    """The clock."""

    type: Literal["schedule"] = "schedule"
    cron: Name = Field(description="Five fields: minute hour day month weekday.")
    timezone: Name = "UTC"
    catch_up: CatchUp = Field(
        default="none",
        description="What follows for times that were missed. none: nothing, after a minute; "
        "last: one start for the last of them; all: one for each, at most 100.",
    )


class DatabaseStart(Part):
    """A document starts to match a condition."""

    type: Literal["database_condition"] = "database_condition"
    database: Name | None = Field(default=None, description="null takes the workspace's database.")
    collection: Name
    condition: Text = Field(description="Condition over the fields of the changed document.")


class WebhookStart(Part):
    """Another system sends a request to a webhook."""

    type: Literal["webhook"] = "webhook"
    path: UrlPath | None = Field(default=None, description="null takes the workflow's name.")
    secret_env: Name = Field(
        default="WEBHOOK_SECRET",
        description="Environment variable that holds the secret of the senders; while it is "
        "changed it holds two, with a comma between them.",
    )


Start: TypeAlias = Annotated[
    ChatStart | FormStart | ScheduleStart | DatabaseStart | WebhookStart,
    Field(discriminator="type"),
]


StartupMode: TypeAlias = Literal["AgentDriven", "UserDriven", "BackendOnly"]
Merge: TypeAlias = Literal["concatenate", "first", "majority", "collect", "custom"]
ConditionProfile: TypeAlias = Literal["full", "strict"]
BudgetLevel: TypeAlias = Literal["run", "user", "workflow", "tenant"]
Recovery: TypeAlias = Literal[
    "inject_variation", "force_rotation", "synthesize", "decompose", "escalate"
]


class Budget(Part):
    """Ceilings for one level; null means no limit."""

    level: BudgetLevel = "run"
    steps: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=1)
    executions: int | None = Field(default=None, ge=1)
    tool_calls: int | None = Field(default=None, ge=1)
    wall_seconds: float | None = Field(default=None, gt=0)
    cost_usd: float | None = Field(default=None, gt=0)
    warn_share: float = Field(
        default=0.8, gt=0, le=1, description="Warn when this share of a ceiling is used."
    )

    _limits = keys.require_any(
        *("tokens", "steps", "executions", "tool_calls", "wall_seconds", "cost_usd"),
        why="the budget limits nothing",
    )


class LoopGuard(Part):
    """When a run counts as looping, and the reactions, in order."""

    window: int = Field(default=6, ge=3, le=20, description="How many past actions are compared.")
    oscillation: float = Field(default=0.8, gt=0, le=1)
    similarity: float = Field(default=0.85, gt=0, le=1)
    score: float = Field(default=0.7, gt=0, le=1)
    recovery: tuple[Recovery, ...] = ("inject_variation", "escalate")


class RuntimeExtension(Part):
    """A router or service that the server mounts or starts for the workflow."""

    kind: Literal["api_router", "startup_service"]
    entrypoint: FunctionRef = Field(description="`module:name` that gives the router or service.")
    prefix: UrlPath | None = Field(
        default=None, description="Path under which a router is mounted."
    )
    public: bool = Field(
        default=False, description="Anyone may call the router: without a key or a session."
    )

    _of_router = keys.allow_only_with(
        "prefix", "kind", "api_router", why="only a router is mounted under one"
    )
    _called = keys.allow_only_with("public", "kind", "api_router", why="only a router is called")


class WorkflowDependencies(Part):
    """What must be complete before this workflow can start."""

    required_workflows: tuple[Name, ...] = ()


class ParallelGroup(Part):
    """Agents that work in parallel; a handoff to the name of the group starts it."""

    name: Name
    members: Annotated[tuple[Name, ...], Field(min_length=2, max_length=16)]
    merge: Merge = Field(
        default="concatenate",
        description="What the conversation gets of the replies. concatenate: all, in the order of "
        "the members; first: that of the first who is done, the others are broken off; majority: "
        "the one most members gave; collect: one JSON object, reply by member; custom: what "
        "`function` returns.",
    )
    function: FunctionRef | None = Field(
        default=None,
        description="`module:function` that is called with `replies` (reply by member) and whose "
        "result is what the group says; for merge custom.",
    )
    deadline_seconds: Annotated[float, Field(gt=0, le=86_400)] | None = Field(
        default=None, description="After this time, members that are not done have failed."
    )
    on_failure: Literal["fail", "continue"] = Field(
        default="fail",
        description="When a member fails. fail: so does the run; continue: the others count.",
    )
    next: Name | None = Field(
        default=None,
        description='Who is next: an agent, a group, "user" or "terminate". null: as after an '
        "agent without a rule that applies.",
    )

    _has_function = keys.require_with("function", "merge", "custom")
    _calls_function = keys.allow_only_with("function", "merge", "custom")


class Orchestrator(Part):
    """The settings of the workflow as a whole."""

    workflow_name: Annotated[Name, StringConstraints(pattern=r"\S")]
    description: Text = ""
    orchestration_pattern: PatternOrDefault = "DefaultPattern"
    initial_agent: Annotated[str, Field(max_length=200)] = Field(
        default="", description="Who begins a conversation; boards and flows have none."
    )
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
    model_settings: ModelSettings | None = Field(
        default=None, description="How the models of all agents are asked."
    )
    runtime_extensions: tuple[RuntimeExtension, ...] = ()
    workflow_dependencies: WorkflowDependencies = WorkflowDependencies()
    parallel: tuple[ParallelGroup, ...] = Field(
        default=(), description="Groups of agents that take their turns in parallel."
    )
    budgets: tuple[Budget, ...] = ()
    loop_guard: LoopGuard | None = None
