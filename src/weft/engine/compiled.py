"""What the engine needs to know of a workflow, worked out once for all its runs."""

from collections.abc import Mapping
from dataclasses import dataclass

from weft.engine.defaults import reply_limit, startup_mode
from weft.engine.routing import GroupRules, Routing, link_routing
from weft.engine.trigger_index import TriggerIndex, index_triggers
from weft.findings import Json
from weft.spec.orchestrator import Orchestrator, StartupMode
from weft.spec.tools import AgentTool, UiTool
from weft.spec.types import Ref, TypeExpr
from weft.spec.variables import DerivedSource, Variable
from weft.spec.workflow import WorkflowSpec


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


def compile_workflow(spec: WorkflowSpec) -> CompiledWorkflow:
    """Work out everything about a workflow that does not change while it runs."""
    routing = link_routing(spec)
    return CompiledWorkflow(
        orchestrator=spec.orchestrator,
        startup=startup_mode(spec.orchestrator),
        agents=_agents(spec),
        routing=routing,
        groups={it.name: it for it in routing.groups.values()},
        variables=spec.variables,
        models={it.name: {f: e.type for f, e in it.fields.items()} for it in spec.models},
        triggers=index_triggers(spec.variables),
        start_values=_start_values(spec),
        reasons={index: it.reason for index, it in enumerate(spec.handoffs) if it.reason},
    )


def _agents(spec: WorkflowSpec) -> dict[str, ActivationRules]:
    bound = {binding.agent: binding.model for binding in spec.registry}
    rules: dict[str, ActivationRules] = {}
    for agent in spec.agents:
        name = agent.agent_name
        tools = {tool.function: tool for tool in spec.tools if tool.agent == name}
        auto = next((it.function for it in tools.values() if it.auto_invoke), None)
        model = bound.get(name)
        rules[name] = ActivationRules(
            limit=reply_limit(agent),
            tools={it: tool for it, tool in tools.items() if not tool.auto_invoke},
            output=Ref(model) if model else None,
            auto_tool=auto if agent.auto_tool_mode else None,
        )
    for group in spec.orchestrator.parallel:
        if group.merge == "custom":
            rules[group.name] = ActivationRules(limit=1, tools={}, function=group.function)
    return rules


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
