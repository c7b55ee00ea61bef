"""What the engine needs to know of a workflow, worked out once for all its runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weft.engine.board.rules import BoardRules, compile_board, role_of
from weft.engine.conversation.routing import GroupRules, Routing, link_routing
from weft.engine.defaults import reply_limit, startup_mode
from weft.engine.flow.plan import FlowPlan, compile_flow, roles
from weft.engine.turn.hook_points import (
    REPLY_HOOKS,
    SEND_HOOK,
    TRIGGER,
    PointCall,
    at_point,
    declared_points,
    function_triggers,
)
from weft.engine.variables.computed import ComputedRules, link_computed
from weft.engine.variables.trigger_index import TriggerIndex, index_triggers
from weft.engine.variables.trigger_kinds import NO_KINDS, TriggerKinds
from weft.findings import Json
from weft.spec.agents import Agent
from weft.spec.orchestrator import Orchestrator, StartupMode
from weft.spec.templates import references
from weft.spec.tools import AgentTool, UiTool
from weft.spec.types import Ref, TypeExpr
from weft.spec.variables import (
    DatabaseSource,
    DerivedSource,
    EntitySource,
    ExternalSource,
    FileSource,
    RefreshStrategy,
    Source,
    Variable,
    WriteStrategy,
)
from weft.spec.workflow import WorkflowSpec

#: The boundaries of the run itself.
BEFORE_RUN: Final = ("on_start", "before_chat")
AFTER_RUN: Final = ("after_chat", "on_complete", "on_fail")


@dataclass(frozen=True, slots=True)
class ActivationRules:
    """How an agent works: with a model, or with the function that merges what a group said."""

    limit: int
    tools: Mapping[str, AgentTool | UiTool]
    #: The model its replies must fit, and the tool that is called with the fields of a reply.
    output: TypeExpr | None = None
    auto_tool: str | None = None
    #: The function that works in place of a model.
    function: str | None = None
    #: The targets the model may hand off to itself, by the tool that does it.
    targets: Mapping[str, str] = field(default_factory=dict[str, str])
    #: What is called before its turn, before each of its replies, with its reply, and after it.
    before: tuple[PointCall, ...] = ()
    reply: tuple[PointCall, ...] = ()
    send: tuple[PointCall, ...] = ()
    after: tuple[PointCall, ...] = ()
    #: The tool servers it may use.
    servers: tuple[str, ...] = ()
    #: The variables that are read anew for each of its turns.
    on_demand: tuple[str, ...] = ()
    #: Nothing of the above is there to be done before a reply.
    plain: bool = True


@dataclass(frozen=True, slots=True)
class CompiledWorkflow:
    """A workflow, sorted for quick look-up."""

    orchestrator: Orchestrator
    startup: StartupMode
    agents: Mapping[str, ActivationRules]
    routing: Routing
    groups: Mapping[str, GroupRules]
    variables: Mapping[str, Variable]
    models: Mapping[str, Mapping[str, TypeExpr]]
    triggers: TriggerIndex
    start_values: Mapping[str, Json]
    #: Why a run ends, by the index of the handoff that ends it.
    reasons: Mapping[int, str]
    #: The functions that are called at boundaries, and those of the run itself among them.
    points: tuple[PointCall, ...] = ()
    computed: ComputedRules = field(default_factory=ComputedRules)
    #: The variables that are read from outside at the start, and whenever the agent changes.
    once: tuple[str, ...] = ()
    per_phase: tuple[str, ...] = ()
    #: The tool servers that are asked for their tools at the start.
    servers: tuple[str, ...] = ()
    #: The entity variables, and when their documents are written.
    entities: Mapping[str, WriteStrategy] = field(default_factory=dict[str, WriteStrategy])
    #: The variables that later runs of a user begin with.
    kept: tuple[str, ...] = ()
    #: Whether there is something to do before a run begins, and before it is over.
    prepares: bool = False
    finishes: bool = False
    #: What wakes the agents of a board, and the order of the steps of a flow; None for a
    #: conversation.
    board: BoardRules | None = None
    flow: FlowPlan | None = None


def compile_workflow(spec: WorkflowSpec, kinds: TriggerKinds = NO_KINDS) -> CompiledWorkflow:
    """Work out everything about a workflow that does not change while it runs.

    `kinds` are the triggers that plug-ins add.
    """
    routing = link_routing(spec)
    computed = link_computed(spec.variables)
    asked = function_triggers(spec.variables)
    points = (*declared_points(spec), *asked, *computed.functions.values())
    triggers = index_triggers(spec.variables, kinds)
    once = _read(spec, "once")
    entities: dict[str, WriteStrategy] = {
        name: it.source.write_strategy
        for name, it in spec.variables.items()
        if isinstance(it.source, EntitySource)
    }
    servers = tuple(it.name for it in spec.mcp_servers)
    return CompiledWorkflow(
        orchestrator=spec.orchestrator,
        startup=startup_mode(spec.orchestrator),
        agents=_agents(spec, points),
        routing=routing,
        groups={it.name: it for it in routing.groups.values()},
        variables=spec.variables,
        models={it.name: {f: e.type for f, e in it.fields.items()} for it in spec.models},
        triggers=triggers,
        start_values=_start_values(spec),
        reasons={index: it.reason for index, it in enumerate(spec.handoffs) if it.reason},
        points=points,
        computed=computed,
        once=once,
        per_phase=_read(spec, "per_phase"),
        servers=servers,
        entities=entities,
        kept=tuple(name for name, it in spec.variables.items() if _is_kept(it)),
        prepares=bool(once or servers or computed.functions or at_point(points, None, *BEFORE_RUN)),
        finishes=bool(
            entities
            or at_point(points, None, *AFTER_RUN)
            or any(event == "after_chat" for event, _ in triggers.lifecycle)
        ),
        board=compile_board(spec.orchestrator.workflow_name, spec.board) if spec.board else None,
        flow=compile_flow(spec.flow) if spec.flow else None,
    )


def _is_kept(variable: Variable) -> bool:
    return isinstance(variable.source, DerivedSource) and variable.source.persist


def _read(spec: WorkflowSpec, strategy: RefreshStrategy) -> tuple[str, ...]:
    """Return the variables that are read from outside at these times; secrets are not kept."""
    return tuple(
        name
        for name, it in spec.variables.items()
        if refreshed(it.source) == strategy and not it.secret
    )


def refreshed(source: Source) -> RefreshStrategy | None:
    """Return when a source is read; None for what is not read from outside."""
    if isinstance(source, DatabaseSource | ExternalSource):
        return source.refresh_strategy
    return "once" if isinstance(source, EntitySource | FileSource) else None


def _shown_to(spec: WorkflowSpec, agent: Agent) -> set[str]:
    """Return the variables that stand in what an agent is sent."""
    sections = (references(it.content) for it in agent.prompt_sections)
    named = {it.name for found in sections for it in found}
    return named | set(spec.exposure.get(agent.agent_name, ()))


def _agents(spec: WorkflowSpec, points: Sequence[PointCall]) -> dict[str, ActivationRules]:
    on_demand = _read(spec, "on_demand")
    asked = tuple(it for it in points if it.point.startswith(TRIGGER))
    bound = {binding.agent: binding.model for binding in spec.registry}
    rules: dict[str, ActivationRules] = {}
    for agent in spec.agents:
        name = agent.agent_name
        tools = {tool.function: tool for tool in spec.tools if tool.agent == name}
        auto = next((it.function for it in tools.values() if it.auto_invoke), None)
        model = bound.get(name)
        before = at_point(points, name, "before_agent")
        reply = at_point(points, name, *REPLY_HOOKS)
        shown = _shown_to(spec, agent)
        wanted = tuple(it for it in on_demand if it in shown)
        rules[name] = ActivationRules(
            limit=reply_limit(agent),
            tools={it: tool for it, tool in tools.items() if not tool.auto_invoke},
            output=Ref(model) if model else None,
            auto_tool=auto if agent.auto_tool_mode else None,
            targets=handoff_tools(spec, agent),
            before=before,
            reply=reply,
            send=at_point(points, name, SEND_HOOK),
            after=(*at_point(points, name, "after_agent"), *asked),
            servers=servers_of(spec, name),
            on_demand=wanted,
            plain=not (before or reply or wanted),
        )
    for it in spec.board.agents if spec.board else ():
        for engine in range(1, len(it.engines)):
            rules[role_of(it.agent, engine)] = rules[it.agent]
    for role, _, work in roles(spec.flow) if spec.flow else ():
        rules[role] = rules[work.agent]
    for group in spec.orchestrator.parallel:
        if group.merge == "custom":
            rules[group.name] = ActivationRules(limit=1, tools={}, function=group.function)
    return rules


def servers_of(spec: WorkflowSpec, agent: str) -> tuple[str, ...]:
    """Return the tool servers an agent may use."""
    return tuple(it.name for it in spec.mcp_servers if not it.agents or agent in it.agents)


def handoff_tools(spec: WorkflowSpec, agent: Agent) -> dict[str, str]:
    """Return the tools by which the model of an agent may hand off, and to whom each does."""
    if not agent.handoff_tools:
        return {}
    own = (it.target_agent for it in spec.handoffs if it.source_agent == agent.agent_name)
    return {f"hand_off_to_{target}": target for target in dict.fromkeys(own)}


def _start_values(spec: WorkflowSpec) -> dict[str, Json]:
    """The values that need nothing from outside; the shell adds those that do."""
    values: dict[str, Json] = {}
    for name, variable in spec.variables.items():
        match variable.source:
            case DerivedSource(default=default):
                values[name] = default
            case source if source.type == "static":
                values[name] = source.value
            case _:
                values[name] = None
    return values
