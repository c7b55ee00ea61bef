"""Compiling: everything about a workflow that does not change while it runs, computed once."""

from collections.abc import Sequence

from weft.engine.board import turn as board_mode
from weft.engine.board.rules import compile_board, role_of
from weft.engine.compiled import (
    AFTER_RUN,
    BEFORE_RUN,
    ActivationRules,
    CompiledWorkflow,
    TurnMode,
)
from weft.engine.conversation import turn as conversation_mode
from weft.engine.conversation.routing import link_routing, reply_limit, startup_mode
from weft.engine.flow import turn as flow_mode
from weft.engine.flow.plan import compile_flow, roles
from weft.engine.reduce import EXPECTED, HANDLERS
from weft.engine.turn.hook_points import (
    REPLY_HOOKS,
    SEND_HOOK,
    HookFunction,
    declared_hooks,
    function_triggers,
    hooks_at,
)
from weft.engine.variables.computed import link_computed
from weft.engine.variables.trigger_index import index_triggers
from weft.engine.variables.trigger_kinds import NO_KINDS, TriggerKinds
from weft.findings import Json
from weft.spec.agents import Agent
from weft.spec.templates import references
from weft.spec.types import Ref
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


def mode_of(spec: WorkflowSpec) -> TurnMode:
    """Return how the turns of a workflow follow each other."""
    if spec.board is not None:
        return board_mode
    return conversation_mode if spec.flow is None else flow_mode


def compile_workflow(spec: WorkflowSpec, kinds: TriggerKinds = NO_KINDS) -> CompiledWorkflow:
    """Work out everything about a workflow that does not change while it runs.

    `kinds` are the triggers that plug-ins add.
    """
    routing = link_routing(spec)
    computed = link_computed(spec.variables)
    asked = function_triggers(spec.variables)
    hooks = (*declared_hooks(spec), *asked, *computed.functions.values())
    triggers = index_triggers(spec.variables, kinds)
    once = _read(spec, "once")
    entities: dict[str, WriteStrategy] = {
        name: it.source.write_strategy
        for name, it in spec.variables.items()
        if isinstance(it.source, EntitySource)
    }
    servers = tuple(it.name for it in spec.mcp_servers)
    mode = mode_of(spec)
    return CompiledWorkflow(
        mode=mode,
        handlers={**HANDLERS, **mode.HANDLERS},
        expected={**EXPECTED, **mode.EXPECTED},
        orchestrator=spec.orchestrator,
        startup=startup_mode(spec.orchestrator),
        agents=_agents(spec, hooks),
        routing=routing,
        groups={it.name: it for it in routing.groups.values()},
        variables=spec.variables,
        models={it.name: {f: e.type for f, e in it.fields.items()} for it in spec.models},
        triggers=triggers,
        start_values=_start_values(spec),
        reasons={index: it.reason for index, it in enumerate(spec.handoffs) if it.reason},
        hooks=hooks,
        computed=computed,
        once=once,
        per_phase=_read(spec, "per_phase"),
        servers=servers,
        entities=entities,
        carried_values=tuple(name for name, it in spec.variables.items() if _is_carried(it)),
        prepares=bool(once or servers or computed.functions or hooks_at(hooks, None, *BEFORE_RUN)),
        finishes=bool(
            entities
            or hooks_at(hooks, None, *AFTER_RUN)
            or any(event == "after_chat" for event, _ in triggers.lifecycle)
        ),
        board=compile_board(spec.orchestrator.workflow_name, spec.board) if spec.board else None,
        flow=compile_flow(spec.flow) if spec.flow else None,
    )


def _is_carried(variable: Variable) -> bool:
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


def _agents(spec: WorkflowSpec, hooks: Sequence[HookFunction]) -> dict[str, ActivationRules]:
    on_demand = _read(spec, "on_demand")
    asked = tuple(it for it in hooks if it.hook == "trigger")
    bound = {binding.agent: binding.model for binding in spec.registry}
    rules: dict[str, ActivationRules] = {}
    for agent in spec.agents:
        name = agent.agent_name
        tools = {tool.function: tool for tool in spec.tools if tool.agent == name}
        auto = next((it.function for it in tools.values() if it.auto_invoke), None)
        model = bound.get(name)
        before = hooks_at(hooks, name, "before_agent")
        reply = hooks_at(hooks, name, *REPLY_HOOKS)
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
            send=hooks_at(hooks, name, SEND_HOOK),
            after=(*hooks_at(hooks, name, "after_agent"), *asked),
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
