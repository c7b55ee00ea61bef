"""Compiling: everything about a workflow that does not change while it runs, computed once."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pydantic import ValidationError

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
from weft.engine.state import State
from weft.engine.turn.hook_points import (
    REPLY_HOOKS,
    SEND_HOOK,
    HookFunction,
    declared_hooks,
    function_triggers,
    hooks_at,
    is_function,
)
from weft.engine.variables.computed import link_computed
from weft.engine.variables.trigger_index import NO_KINDS, TriggerKinds, index_triggers
from weft.findings import Json, Path
from weft.spec.agents import Agent
from weft.spec.templates import references
from weft.spec.tools import UiTool
from weft.spec.triggers import CUSTOM, CustomTrigger, Trigger
from weft.spec.types import Ref
from weft.spec.variables import (
    ComputedSource,
    DatabaseSource,
    DerivedSource,
    EntitySource,
    ExternalSource,
    FileSource,
    RefreshStrategy,
    Source,
    Variable,
    is_call,
)
from weft.spec.workflow import WorkflowSpec

#: The modes whose runs may wait although no person is asked, and when they do.
_PAUSES: Final[Mapping[TurnMode, Callable[[State], bool]]] = {
    board_mode: board_mode.is_paused,
    flow_mode: flow_mode.is_paused,
}


def mode_of(spec: WorkflowSpec) -> TurnMode:
    """Return the mode of a workflow: conversation, board or flow."""
    if spec.board is not None:
        return board_mode
    return conversation_mode if spec.flow is None else flow_mode


def compile_workflow(spec: WorkflowSpec, kinds: TriggerKinds = NO_KINDS) -> CompiledWorkflow:
    """Compile a workflow.

    `kinds` are the triggers that plug-ins add.
    """
    routing = link_routing(spec)
    computed = link_computed(spec.variables)
    asked = function_triggers(spec.variables)
    hooks = (*declared_hooks(spec), *asked, *computed.functions.values())
    triggers = index_triggers(spec.variables, kinds)
    once = _read(spec, "once")
    entities = {
        name: variable.source
        for name, variable in spec.variables.items()
        if isinstance(variable.source, EntitySource)
    }
    servers = tuple(server.name for server in spec.mcp_servers)
    mode = mode_of(spec)
    handlers, expected = {**HANDLERS, **mode.HANDLERS}, {**EXPECTED, **mode.EXPECTED}
    return CompiledWorkflow(
        mode=mode,
        handlers={kind: (handler, expected.get(kind)) for kind, handler in handlers.items()},
        is_paused=_PAUSES.get(mode),
        orchestrator=spec.orchestrator,
        startup=startup_mode(spec.orchestrator),
        agents=_agents(spec, hooks),
        routing=routing,
        groups={group.name: group for group in routing.groups.values()},
        variables=spec.variables,
        models={model.name: {f: e.type for f, e in model.fields.items()} for model in spec.models},
        triggers=triggers,
        start_values=_start_values(spec),
        reasons={
            index: handoff.reason for index, handoff in enumerate(spec.handoffs) if handoff.reason
        },
        hooks=hooks,
        computed=computed,
        once=once,
        per_phase=_read(spec, "per_phase"),
        servers=servers,
        entities=entities,
        carried_values=tuple(
            name for name, variable in spec.variables.items() if _is_carried(variable)
        ),
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
        for name, variable in spec.variables.items()
        if refreshed(variable.source) == strategy and not variable.secret
    )


def refreshed(source: Source) -> RefreshStrategy | None:
    """Return when a source is read; None if it is not read from outside, or only by tools."""
    if is_call(source):
        return None
    if isinstance(source, DatabaseSource | ExternalSource):
        return source.refresh_strategy
    return "once" if isinstance(source, EntitySource | FileSource) else None


def _shown_to(spec: WorkflowSpec, agent: Agent) -> set[str]:
    """Return the variables whose values an agent is sent."""
    sections = (references(section.content) for section in agent.prompt_sections)
    named = {entry.name for found in sections for entry in found}
    return named | set(spec.exposure.get(agent.agent_name, ()))


def _agents(spec: WorkflowSpec, hooks: Sequence[HookFunction]) -> dict[str, ActivationRules]:
    on_demand = _read(spec, "on_demand")
    asked = tuple(hook for hook in hooks if hook.hook == "trigger")
    bound = {binding.agent: binding.model for binding in spec.registry}
    rules: dict[str, ActivationRules] = {}
    for agent in spec.agents:
        name = agent.agent_name
        tools = {tool.function: tool for tool in spec.tools if tool.agent == name}
        auto = next(
            (each_tool.function for each_tool in tools.values() if each_tool.auto_invoke), None
        )
        model = bound.get(name)
        before = hooks_at(hooks, name, "before_agent")
        reply = hooks_at(hooks, name, *REPLY_HOOKS)
        shown = _shown_to(spec, agent)
        wanted = tuple(each_name for each_name in on_demand if each_name in shown)
        rules[name] = ActivationRules(
            limit=reply_limit(agent),
            tools={each_tool: tool for each_tool, tool in tools.items() if not tool.auto_invoke},
            output=Ref(model) if model else None,
            auto_tool=auto if agent.auto_tool_mode else None,
            tells={
                tool.function: tool.tell
                for tool in tools.values()
                if isinstance(tool, UiTool) and tool.tell
            },
            tells_asked={
                tool.function: tool.tell_asked
                for tool in tools.values()
                if isinstance(tool, UiTool) and tool.tell_asked
            },
            targets=handoff_tools(spec, agent),
            before=before,
            reply=reply,
            send=hooks_at(hooks, name, SEND_HOOK),
            after=(*hooks_at(hooks, name, "after_agent"), *asked),
            servers=servers_of(spec, name),
            on_demand=wanted,
            plain=not (before or reply or wanted),
        )
    for each_agent in spec.board.agents if spec.board else ():
        for engine in range(1, len(each_agent.engines)):
            rules[role_of(each_agent.agent, engine)] = rules[each_agent.agent]
    for role, _, work in roles(spec.flow) if spec.flow else ():
        rules[role] = rules[work.agent]
    for group in spec.orchestrator.parallel:
        if group.merge == "custom":
            rules[group.name] = ActivationRules(limit=1, tools={}, function=group.function)
    return rules


def servers_of(spec: WorkflowSpec, agent: str) -> tuple[str, ...]:
    """Return the tool servers an agent may use."""
    return tuple(
        server.name for server in spec.mcp_servers if not server.agents or agent in server.agents
    )


def handoff_tools(spec: WorkflowSpec, agent: Agent) -> dict[str, str]:
    """Return the tools by which the model of an agent may hand off, each with its target."""
    if not agent.handoff_tools:
        return {}
    own = (
        handoff.target_agent
        for handoff in spec.handoffs
        if handoff.source_agent == agent.agent_name
    )
    return {f"hand_off_to_{target}": target for target in dict.fromkeys(own)}


def _start_values(spec: WorkflowSpec) -> dict[str, Json]:
    """Return the values that need nothing from outside; the runtime adds the others."""
    values: dict[str, Json] = {}
    for name, variable in spec.variables.items():
        match variable.source:
            case DerivedSource(default=default):
                values[name] = default
            case ExternalSource(default=default) as source if is_call(source):
                values[name] = default
            case source if source.type == "static":
                values[name] = source.value
            case _:
                values[name] = None
    return values


# -- what this version does not perform


_NOT_YET: Final = "which this version of Weft does not perform"
_ON_BOARDS: Final = ("which a board does not call", "write a component in its place")
_IN_FLOWS: Final = ("which a flow does not call", "write a step in its place")

#: The hook points of the run itself, which every mode has.
_RUN_POINTS: Final = (*BEFORE_RUN, *AFTER_RUN)
_WAIT: Final = "take it out, or wait for a version that performs it"


class UnsupportedFeature(NamedTuple):
    """A declaration without effect: its place in the spec, what it is, and why."""

    path: Path
    what: str
    why: str = _NOT_YET
    hint: str = _WAIT


def not_performed(
    spec: WorkflowSpec, kinds: TriggerKinds = NO_KINDS
) -> tuple[UnsupportedFeature, ...]:
    """Return everything a workflow declares that would have no effect."""
    return (
        *_of_orchestrator(spec),
        *_of_variables(spec, kinds),
        *_of_steps(spec),
    )


def refusal(workflow: str, left: UnsupportedFeature) -> str:
    """Return the message for a declaration without effect."""
    return f"{workflow} declares {left.what}, {left.why}"


def _of_orchestrator(spec: WorkflowSpec) -> Iterator[UnsupportedFeature]:
    orchestrator = spec.orchestrator
    declared = {
        "budgets": orchestrator.budgets,
        "loop_guard": orchestrator.loop_guard,
    }
    for name, value in declared.items():
        if value:
            yield UnsupportedFeature(("orchestrator", name), name)


def _of_variables(spec: WorkflowSpec, kinds: TriggerKinds) -> Iterator[UnsupportedFeature]:
    for name, variable in spec.variables.items():
        source = variable.source
        if not isinstance(source, DerivedSource):
            continue
        path: Path = ("variables", name, "source")
        placed: list[tuple[Path, Trigger | None]] = [
            *(
                ((*path, "triggers", at), each_trigger)
                for at, each_trigger in enumerate(source.triggers)
            ),
            *(
                ((*path, "transitions", at, "trigger"), transition.trigger)
                for at, transition in enumerate(source.transitions)
            ),
        ]
        for place, trigger in placed:
            if not isinstance(trigger, CustomTrigger):
                continue
            fault = _custom_fault(trigger, kinds)
            if fault:
                yield UnsupportedFeature(
                    place, f"a trigger of {name}, {CUSTOM}{trigger.name}", *fault
                )


def _custom_fault(trigger: CustomTrigger, kinds: TriggerKinds) -> tuple[str, str] | None:
    """Return why the trigger of a plug-in cannot be performed here, and what to do."""
    if trigger.name not in kinds:
        there = ", ".join(f"{CUSTOM}{kind}" for kind in sorted(kinds)) or "none"
        hint = f"install the plug-in that adds it, or correct the name; installed: {there}"
        return "which no installed plug-in adds", hint
    try:
        kinds[trigger.name].settings.model_validate(trigger.settings)
    except ValidationError as error:
        faults = (
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
        )
        return f"whose settings do not fit ({'; '.join(faults)})", "correct them"
    return None


def _of_steps(spec: WorkflowSpec) -> Iterator[UnsupportedFeature]:
    """Yield the code around turns that only a conversation calls."""
    if spec.board is None and spec.flow is None:
        return
    why = _IN_FLOWS if spec.board is None else _ON_BOARDS
    for index, agent in enumerate(spec.agents):
        if agent.auto_tool_mode and spec.board is None:
            told = f"the automatic tool of {agent.agent_name}"
            yield UnsupportedFeature(("agents", index, "auto_tool_mode"), told, *why)
    for index, hook in enumerate(spec.hooks):
        if hook.hook_type not in _RUN_POINTS:
            yield UnsupportedFeature(("hooks", index), f"the hook {hook.function}", *why)
    for index, tool in enumerate(spec.lifecycle_tools):
        if tool.trigger not in _RUN_POINTS:
            what = f"the lifecycle tool {tool.function}"
            yield UnsupportedFeature(("lifecycle_tools", index), what, *why)
    for call in function_triggers(spec.variables):
        name = call.variable
        yield UnsupportedFeature(("variables", name), f"a function trigger of {name}", *why)
    for name, variable in spec.variables.items():
        source = variable.source
        if isinstance(source, ComputedSource) and is_function(source.computation):
            what = f"{name}, computed by a function"
            yield UnsupportedFeature(("variables", name, "source"), what, *why)
