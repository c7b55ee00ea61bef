"""The rules of completeness of an action plan: what a person may approve can be made.

The models of the spec refuse what has no form; these rules refuse what has one and makes no sense,
alone or beside the other parts.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from weft.check.problems import describe
from weft.check.rules.variables import cron_in_numbers
from weft.engine.board.rules import parse_cron
from weft.errors import ExpressionError
from weft.generator.plans.data_rules import (
    components_faults,
    fields_faults,
    known_values,
    names_faults,
    outcomes_faults,
    variables_faults,
)
from weft.generator.plans.faults import Fault, at_most, pascal, read_part, text, unique
from weft.generator.plans.reserved import agent_name, function, service
from weft.ids import USER, join_names, slug, suggestion
from weft.spec.agents import REPLY_LIMITS
from weft.spec.patterns import PATTERN_BY_ID
from weft.spec.plan import (
    ActionPlan,
    ModuleAgents,
    PatternSelection,
    PlannedAgent,
    PlannedComponent,
    PlannedLifecycle,
    PlannedTool,
    StrategyModule,
    TechnicalBlueprint,
    Trigger,
    WorkflowStrategy,
)
from weft.spec.triggers import LifecyclePoint

__all__ = [
    "Fault",
    "agents_faults",
    "blueprint_faults",
    "module_of",
    "plan_faults",
    "read_part",
    "selection_faults",
    "strategy_faults",
]

MOST_MODULES: Final = 12
MOST_AGENTS: Final = 16
MOST_TOOLS: Final = 12
#: The longest purpose in the name of a module, as of a tool.
LONGEST_PURPOSE: Final = 140

#: Where a way may lead besides modules and agents.
END: Final = "end"
#: The fields of a start by the trigger they belong to.
_START_FIELDS: Final[dict[str, tuple[Trigger, ...]]] = {
    "fields": ("form_submit", "webhook", "database_condition"),
    "cron": ("schedule",),
    "timezone": ("schedule",),
    "path": ("webhook",),
    "collection": ("database_condition",),
    "condition": ("database_condition",),
}


def plan_faults(plan: ActionPlan) -> tuple[Fault, ...]:
    """Return everything that is wrong with a plan."""
    return (
        *selection_faults(plan.selection),
        *strategy_faults(plan.selection, plan.strategy),
        *blueprint_faults(plan.strategy, plan.blueprint),
        *agents_faults(plan.strategy, plan.blueprint, plan.modules),
    )


def selection_faults(selection: PatternSelection) -> tuple[Fault, ...]:
    """Return what is wrong with the choice of workflows and patterns."""
    return tuple(_selection(selection))


def strategy_faults(selection: PatternSelection, strategy: WorkflowStrategy) -> tuple[Fault, ...]:
    """Return what is wrong with a strategy, alone or beside the selection it follows."""
    return (
        *_strategy(strategy),
        *_pattern_list(strategy),
        *_membership(selection, strategy),
    )


def blueprint_faults(
    strategy: WorkflowStrategy, blueprint: TechnicalBlueprint
) -> tuple[Fault, ...]:
    """Return what is wrong with a blueprint, alone or beside the strategy it serves."""
    return (
        *variables_faults(strategy, blueprint.global_context_variables),
        *components_faults(strategy, blueprint),
        *_boundary("before_chat", blueprint.before_chat_lifecycle),
        *_boundary("after_chat", blueprint.after_chat_lifecycle),
        *_required(strategy, blueprint.workflow_dependencies.required_workflows),
    )


def agents_faults(
    strategy: WorkflowStrategy,
    blueprint: TechnicalBlueprint,
    modules: Sequence[ModuleAgents],
) -> tuple[Fault, ...]:
    """Return what is wrong with the agents, alone or beside strategy and blueprint.

    All paths begin with ModuleAgents: who staffs the modules can put it right.
    """
    agents = list(_placed(modules))
    return (
        *_indexes(strategy, modules),
        *_staff(strategy, modules),
        *unique("agent", ((f"{path}.agent_name", agent.agent_name) for path, agent in agents)),
        *unique("UI tool", _asking(agents)),
        *(fault for path, agent in agents for fault in _agent(path, agent)),
        *_used(strategy, blueprint, agents),
        *_shown(strategy, blueprint.ui_components, modules),
    )


def module_of(modules: Sequence[ModuleAgents], index: int) -> tuple[PlannedAgent, ...]:
    """Return the agents of a module."""
    return tuple(
        agent for module in modules if module.module_index == index for agent in module.agents
    )


def _selection(selection: PatternSelection) -> Iterator[Fault]:
    at = "PatternSelection"
    workflows = selection.workflows
    yield from text(f"{at}.pack_name", selection.pack_name)
    yield from text(f"{at}.decomposition_reason", selection.decomposition_reason)
    several = len(workflows) > 1
    if selection.is_multi_workflow != several:
        said, count = ("true", "one") if selection.is_multi_workflow else ("false", "several")
        hint = f"write {str(several).lower()}, or change the workflows"
        yield Fault(f"{at}.is_multi_workflow", f"it is {said} beside {count}", hint)
    if several and selection.decomposition_reason is None:
        hint = "say why one workflow is not enough"
        yield Fault(f"{at}.decomposition_reason", "several workflows need a reason", hint)
    if not several and selection.decomposition_reason is not None:
        message = "there is one workflow: nothing is taken apart"
        yield Fault(f"{at}.decomposition_reason", message, "write null")
    primary = [workflow.name for workflow in workflows if workflow.role == "primary"]
    if len(primary) != 1:
        message = f"{len(primary)} workflows are primary"
        yield Fault(f"{at}.workflows", message, "let exactly one be primary")
    paths = [f"{at}.workflows[{place}]" for place in range(len(workflows))]
    names = [
        (f"{path}.name", workflow.name) for path, workflow in zip(paths, workflows, strict=True)
    ]
    yield from unique("workflow", names)
    for path, workflow in zip(paths, workflows, strict=True):
        yield from pascal(f"{path}.name", workflow.name)
        yield from text(f"{path}.description", workflow.description)


def _strategy(strategy: WorkflowStrategy) -> Iterator[Fault]:
    at = "WorkflowStrategy"
    yield from text(f"{at}.workflow_name", strategy.workflow_name)
    yield from text(f"{at}.workflow_description", strategy.workflow_description)
    talks = strategy.trigger == "chat"
    if strategy.human_in_loop != talks:
        message = f"a workflow with the trigger {strategy.trigger} has {str(talks).lower()} here"
        yield Fault(f"{at}.human_in_loop", message, f"write {str(talks).lower()}")
    yield from at_most(f"{at}.modules", len(strategy.modules), MOST_MODULES, "modules")
    for place, module in enumerate(strategy.modules):
        yield from _module(f"{at}.modules[{place}]", place, module)
        yield from _ways(f"{at}.modules[{place}]", module, strategy)
    yield from _start(strategy)
    yield from text(f"{at}.greeting", strategy.greeting)
    for name in ("never", "assumptions"):
        for place, said in enumerate(getattr(strategy, name)):
            yield from text(f"{at}.{name}[{place}]", said)
    for place, scenario in enumerate(strategy.scenarios):
        if not (scenario.takes or scenario.says):
            message = "it has neither says nor takes"
            yield Fault(f"{at}.scenarios[{place}]", message, "say what happens, and what follows")
        for name in scenario.takes:
            yield from _target(f"{at}.scenarios[{place}].takes", name, strategy)


def _module(path: str, place: int, module: StrategyModule) -> Iterator[Fault]:
    if module.module_index != place:
        message = f"the index of this module is {module.module_index}, and must be {place}"
        yield Fault(f"{path}.module_index", message, "count modules from 0 without gaps")
    start = f"Module {place + 1}: "
    purpose = module.module_name.removeprefix(start)
    if purpose == module.module_name or purpose != " ".join(purpose.split()):
        message = f'{describe(module.module_name)} is not "{start}Purpose"'
        yield Fault(f"{path}.module_name", message, f'begin with "{start}", on one line')
    if len(purpose) > LONGEST_PURPOSE:
        message = f"the purpose has {len(purpose)} characters"
        yield Fault(f"{path}.module_name", message, f"use at most {LONGEST_PURPOSE}")
    yield from text(f"{path}.module_description", module.module_description)
    if not module.agents_needed:
        yield Fault(f"{path}.agents_needed", "the module has no agent", "name at least one")
    yield from at_most(f"{path}.agents_needed", len(module.agents_needed), MOST_AGENTS, "agents")
    needed = [(f"{path}.agents_needed[{n}]", name) for n, name in enumerate(module.agents_needed)]
    yield from unique("agent", needed)
    for where, name in needed:
        yield from agent_name(where, name)


def _ways(path: str, module: StrategyModule, strategy: WorkflowStrategy) -> Iterator[Fault]:
    """Judge where a module leads; several targets of one condition work in parallel."""
    ways = [
        (f"{path}.leads_to[{n}]", f"{way.when} to {way.to}")
        for n, way in enumerate(module.leads_to)
    ]
    yield from unique("way", ways)
    counts = Counter(way.when for way in module.leads_to)
    for place, way in enumerate(module.leads_to):
        if counts[way.when] > 1 and way.to in (USER, END):
            message = f"{way.when} leads to {way.to} and to others"
            hint = "in parallel work modules or agents: give one target"
            yield Fault(f"{path}.leads_to[{place}].to", message, hint)
        yield from text(f"{path}.leads_to[{place}].when", way.when)
        yield from text(f"{path}.leads_to[{place}].reason", way.reason)
        yield from _target(f"{path}.leads_to[{place}].to", way.to, strategy, (USER, END))


def _target(
    path: str, name: str, strategy: WorkflowStrategy, others: Sequence[str] = ()
) -> Iterator[Fault]:
    """Refuse a target that is no module, no agent, and none of the others."""
    purposes = [module_purpose(module) for module in strategy.modules]
    known = {
        *others,
        *purposes,
        *(module.module_name for module in strategy.modules),
        *(agent for module in strategy.modules for agent in module.agents_needed),
    }
    if name not in known:
        yield Fault(path, f'"{name}" is not there', suggestion(name, [*purposes, *others]))


def module_purpose(module: StrategyModule) -> str:
    """Return the name of a module without its number."""
    return module.module_name.partition(": ")[2]


def _start(strategy: WorkflowStrategy) -> Iterator[Fault]:
    """Judge how a run starts, and the words that interrupt it."""
    at, start = "WorkflowStrategy.start", strategy.start
    for name, triggers in _START_FIELDS.items() if start else ():
        if getattr(start, name) and strategy.trigger not in triggers:
            hint = f"it belongs to the trigger {triggers[0]}"
            yield Fault(f"{at}.{name}", f"the trigger is {strategy.trigger}", hint)
    if start:
        yield from fields_faults(f"{at}.fields", start.fields)
    if start and start.cron:
        try:
            parse_cron(cron_in_numbers(start.cron))
        except ExpressionError as error:
            yield Fault(f"{at}.cron", str(error), error.hint or "")
    if strategy.watch:
        path = "WorkflowStrategy.watch"
        yield from _target(f"{path}.to", strategy.watch.to, strategy)
        if not any(word.strip() for word in strategy.watch.words):
            yield Fault(f"{path}.words", "no word is watched", "name at least one")
        if strategy.trigger != "chat":
            hint = "use it with the trigger chat, or leave it out"
            yield Fault(path, "only what is said in a chat is watched", hint)


def _pattern_list(strategy: WorkflowStrategy) -> Iterator[Fault]:
    at = "WorkflowStrategy.pattern"
    followed = dict.fromkeys(PATTERN_BY_ID[module.pattern_id].name for module in strategy.modules)
    yield from unique("pattern", ((f"{at}[{n}]", name) for n, name in enumerate(strategy.pattern)))
    for place, name in enumerate(strategy.pattern):
        if name not in followed:
            yield Fault(f"{at}[{place}]", f"no module follows {name}", "take it out")
    for name in followed:
        if name not in strategy.pattern:
            yield Fault(at, f"a module follows {name}, which is not listed", f"add {name}")


def _membership(selection: PatternSelection, strategy: WorkflowStrategy) -> Iterator[Fault]:
    at = "WorkflowStrategy.modules"
    names = [workflow.name for workflow in selection.workflows]
    patterns: dict[str, list[int]] = {name: [] for name in names}
    for place, module in enumerate(strategy.modules):
        owner = module.workflow or names[0]
        if owner in patterns:
            patterns[owner].append(module.pattern_id)
        else:
            message = f"{owner} is no workflow of PatternSelection"
            hint = f"available: {join_names(names)}"
            yield Fault(f"{at}[{place}].workflow", message, hint)
    for workflow in selection.workflows:
        followed = patterns[workflow.name]
        if not followed:
            hint = f"name {workflow.name} as the workflow of one"
            yield Fault(at, f"the workflow {workflow.name} has no module", hint)
        elif workflow.pattern_id not in followed:
            message = f"no module of {workflow.name} follows {workflow.pattern_name}"
            yield Fault(at, message, "PatternSelection chose this pattern for it")


def _used(
    strategy: WorkflowStrategy,
    blueprint: TechnicalBlueprint,
    agents: Sequence[tuple[str, PlannedAgent]],
) -> Iterator[Fault]:
    """Judge what agents read, write and come to."""
    known = known_values(strategy, blueprint)
    for path, agent in agents:
        yield from outcomes_faults(path, agent.outcomes)
        yield from names_faults(f"{path}.reads", agent.reads, known)
        yield from names_faults(f"{path}.writes", agent.writes, known)
        written = ((f"{path}.writes[{place}]", name) for place, name in enumerate(agent.writes))
        yield from unique("value", written)


def _boundary(point: LifecyclePoint, lifecycle: PlannedLifecycle | None) -> Iterator[Fault]:
    if lifecycle is None:
        return
    path = f"TechnicalBlueprint.{point}_lifecycle"
    if lifecycle.trigger != point:
        yield Fault(f"{path}.trigger", f"it is {lifecycle.trigger}", f"write {point}")
    yield from _lifecycle(path, lifecycle)


def _lifecycle(path: str, lifecycle: PlannedLifecycle) -> Iterator[Fault]:
    yield from function(f"{path}.name", lifecycle.name)
    yield from text(f"{path}.purpose", lifecycle.purpose)
    yield from service(f"{path}.integration", lifecycle.integration)


def _required(strategy: WorkflowStrategy, required: Sequence[str]) -> Iterator[Fault]:
    at = "TechnicalBlueprint.workflow_dependencies.required_workflows"
    own = {slug(strategy.workflow_name)}
    own |= {slug(module.workflow) for module in strategy.modules if module.workflow}
    placed = [(f"{at}[{place}]", name) for place, name in enumerate(required)]
    yield from unique("workflow", placed)
    for path, name in placed:
        yield from pascal(path, name)
        if slug(name) in own:
            message = f"{name} is a workflow of this plan and cannot be completed before it"
            yield Fault(path, message, "name other workflows only")


def _placed(modules: Sequence[ModuleAgents]) -> Iterator[tuple[str, PlannedAgent]]:
    for place, module in enumerate(modules):
        for number, agent in enumerate(module.agents):
            yield f"ModuleAgents[{place}].agents[{number}]", agent


def _indexes(strategy: WorkflowStrategy, modules: Sequence[ModuleAgents]) -> Iterator[Fault]:
    found = [module.module_index for module in modules]
    wanted = [module.module_index for module in strategy.modules]
    if found != wanted:
        said = f"the module indexes are {join_names([*map(str, found)], MOST_MODULES) or 'missing'}"
        hint = f"write one entry for each of {join_names([*map(str, wanted)], MOST_MODULES)}"
        yield Fault("ModuleAgents", said, f"{hint}, in this order")


def _staff(strategy: WorkflowStrategy, modules: Sequence[ModuleAgents]) -> Iterator[Fault]:
    for module in strategy.modules:
        agents = module_of(modules, module.module_index)
        path = f"ModuleAgents[{module.module_index}].agents"
        yield from at_most(path, len(agents), MOST_AGENTS, "agents")
        missing = set(module.agents_needed) - {agent.agent_name for agent in agents}
        if missing:
            message = f"{join_names(sorted(missing))} needed in {module.module_name}"
            yield Fault(path, message, "WorkflowStrategy names them in agents_needed: add them")


def _asking(agents: Iterable[tuple[str, PlannedAgent]]) -> Iterator[tuple[str, str]]:
    """Yield the tools that ask people: what is answered to one belongs to one agent."""
    for path, agent in agents:
        for place, tool in enumerate(agent.agent_tools):
            if tool.interaction_mode != "none":
                yield f"{path}.agent_tools[{place}].name", tool.name


def _agent(path: str, agent: PlannedAgent) -> Iterator[Fault]:
    yield from agent_name(f"{path}.agent_name", agent.agent_name)
    yield from text(f"{path}.objective", agent.objective)
    yield from text(f"{path}.tell", agent.tell)
    limit = REPLY_LIMITS[agent.human_interaction]
    if agent.max_consecutive_auto_reply > limit:
        message = f"{agent.max_consecutive_auto_reply} replies in a row are too many"
        hint = f"write at most {limit}, the limit for human_interaction {agent.human_interaction}"
        yield Fault(f"{path}.max_consecutive_auto_reply", message, hint)
    if agent.generation_mode is not None and agent.agent_type != "generator":
        message = f"a {agent.agent_type} has no generation mode"
        yield Fault(f"{path}.generation_mode", message, "write null, or the type generator")
    asks = any(tool.interaction_mode != "none" for tool in agent.agent_tools)
    if (agent.human_interaction == "approval" or agent.approver) and not asks:
        message = f"{agent.agent_name} asks for approval and has no tool that shows anything"
        hint = (
            "add a tool that TechnicalBlueprint.ui_components names, or another human_interaction"
        )
        yield Fault(f"{path}.agent_tools", message, hint)
    yield from _functions(path, agent)


def _functions(path: str, agent: PlannedAgent) -> Iterator[Fault]:
    tools = [(f"{path}.agent_tools[{n}]", tool) for n, tool in enumerate(agent.agent_tools)]
    lifecycle = [
        (f"{path}.lifecycle_tools[{n}]", tool) for n, tool in enumerate(agent.lifecycle_tools)
    ]
    hooks = [(f"{path}.system_hooks[{n}]", hook) for n, hook in enumerate(agent.system_hooks)]
    yield from at_most(f"{path}.agent_tools", len(tools), MOST_TOOLS, "tools")
    yield from at_most(f"{path}.lifecycle_tools", len(lifecycle), MOST_TOOLS, "tools")
    yield from at_most(f"{path}.system_hooks", len(hooks), MOST_TOOLS, "hooks")
    named = [(where, part.name) for where, part in (*tools, *lifecycle, *hooks)]
    yield from unique("function", ((f"{where}.name", name) for where, name in named))
    for where, tool in tools:
        yield from _tool(where, tool)
    for where, tool in lifecycle:
        yield from _lifecycle(where, tool)
    for where, hook in hooks:
        yield from function(f"{where}.name", hook.name)
        yield from text(f"{where}.purpose", hook.purpose)


def _tool(path: str, tool: PlannedTool) -> Iterator[Fault]:
    yield from function(f"{path}.name", tool.name)
    yield from text(f"{path}.purpose", tool.purpose)
    yield from service(f"{path}.integration", tool.integration)


def _shown(
    strategy: WorkflowStrategy,
    components: Iterable[PlannedComponent],
    modules: Sequence[ModuleAgents],
) -> Iterator[Fault]:
    """Hold what is shown to people against the tools that show it."""
    indexes = {module.module_name: module.module_index for module in strategy.modules}
    displays: dict[tuple[int, str, str], str] = {}
    for component in components:
        index = indexes.get(component.module_name)
        if index is None:
            continue  # said of the blueprint
        displays[index, component.agent, component.tool] = component.display
        owner = [
            agent for agent in module_of(modules, index) if agent.agent_name == component.agent
        ]
        if component.tool not in [tool.name for agent in owner for tool in agent.agent_tools]:
            message = f"{component.agent} has no tool {component.tool} in {component.module_name}"
            hint = f"the component {component.component} is shown by it: add both"
            yield Fault(f"ModuleAgents[{index}].agents", message, hint)
    for place, module in enumerate(modules):
        for number, agent in enumerate(module.agents):
            for tool_number, tool in enumerate(agent.agent_tools):
                display = displays.get((module.module_index, agent.agent_name, tool.name), "none")
                if tool.interaction_mode != display:
                    path = f"ModuleAgents[{place}].agents[{number}].agent_tools[{tool_number}]"
                    message = f"{tool.name} is {tool.interaction_mode}, its UI component {display}"
                    yield Fault(f"{path}.interaction_mode", message, f"write {display}")
