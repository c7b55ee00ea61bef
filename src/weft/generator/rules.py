"""The rules of completeness of an action plan: what a person may approve can be made.

The models of the spec refuse what has no form; these rules refuse what has one and makes no sense,
alone or beside the other parts.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from weft.check.rules.names import why_reserved
from weft.generator.faults import Fault, at_most, pascal, read_part, snake, text, unique
from weft.generator.reserved import function, no_key, service
from weft.ids import TERMINATE, USER, join_names, slug
from weft.packages.problems import describe
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
    PlannedVariable,
    SourceKind,
    StrategyModule,
    TechnicalBlueprint,
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
MOST_VARIABLES: Final = 60
#: The longest purpose in the name of a module, as of a tool.
LONGEST_PURPOSE: Final = 140

#: How many agents it takes for a pattern to be one, by its id.
LEAST_AGENTS: Final = {1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 1, 7: 3, 8: 2, 9: 2}

#: The six kinds of variables, each by the names it may be called.
VARIABLE_KINDS: Final[dict[SourceKind, str]] = {
    "config": "config", "environment": "config",
    "data_reference": "data_reference", "database": "data_reference",
    "data_entity": "data_entity", "entity": "data_entity",
    "computed": "computed",
    "state": "state", "derived": "state",
    "external": "external",
}  # fmt: skip


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
        *_variables(blueprint.global_context_variables),
        *_components(strategy, blueprint.ui_components),
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
        *unique("agent", ((f"{path}.agent_name", it.agent_name) for path, it in agents)),
        *(fault for path, agent in agents for fault in _agent(path, agent)),
        *_shown(strategy, blueprint.ui_components, modules),
    )


def module_of(modules: Sequence[ModuleAgents], index: int) -> tuple[PlannedAgent, ...]:
    """Return the agents of a module."""
    return tuple(it for one in modules if one.module_index == index for it in one.agents)


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
    primary = [it.name for it in workflows if it.role == "primary"]
    if len(primary) != 1:
        message = f"{len(primary)} workflows are primary"
        yield Fault(f"{at}.workflows", message, "let exactly one be primary")
    paths = [f"{at}.workflows[{place}]" for place in range(len(workflows))]
    names = [(f"{path}.name", it.name) for path, it in zip(paths, workflows, strict=True)]
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


def _module(path: str, place: int, module: StrategyModule) -> Iterator[Fault]:
    if module.module_index != place:
        message = f"{module.module_index} stands in place {place}"
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
        yield Fault(f"{path}.agents_needed", "nobody is needed", "name the agents of the module")
    yield from at_most(f"{path}.agents_needed", len(module.agents_needed), MOST_AGENTS, "agents")
    needed = [(f"{path}.agents_needed[{n}]", it) for n, it in enumerate(module.agents_needed)]
    yield from unique("agent", needed)
    for where, name in needed:
        yield from _agent_name(where, name)


def _agent_name(path: str, name: str) -> Iterator[Fault]:
    yield from pascal(path, name)
    if name.lower() in (USER, TERMINATE):
        yield Fault(path, f'"{name}" is a target of handoffs itself', "choose another name")


def _pattern_list(strategy: WorkflowStrategy) -> Iterator[Fault]:
    at = "WorkflowStrategy.pattern"
    followed = dict.fromkeys(PATTERN_BY_ID[it.pattern_id].name for it in strategy.modules)
    yield from unique("pattern", ((f"{at}[{n}]", it) for n, it in enumerate(strategy.pattern)))
    for place, name in enumerate(strategy.pattern):
        if name not in followed:
            yield Fault(f"{at}[{place}]", f"no module follows {name}", "take it out")
    for name in followed:
        if name not in strategy.pattern:
            yield Fault(at, f"a module follows {name}, which is not listed", f"add {name}")


def _membership(selection: PatternSelection, strategy: WorkflowStrategy) -> Iterator[Fault]:
    at = "WorkflowStrategy.modules"
    names = [it.name for it in selection.workflows]
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


def _variables(variables: Sequence[PlannedVariable]) -> Iterator[Fault]:
    at = "TechnicalBlueprint.global_context_variables"
    yield from at_most(at, len(variables), MOST_VARIABLES, "variables")
    yield from unique("variable", ((f"{at}[{n}].name", it.name) for n, it in enumerate(variables)))
    for place, variable in enumerate(variables):
        path = f"{at}[{place}]"
        reason = why_reserved(variable.name)
        if reason:
            message = f"{variable.name} cannot be the name of a variable: {reason}"
            yield Fault(f"{path}.name", message, "choose another name")
        else:
            yield from snake(f"{path}.name", variable.name)
        yield from no_key(f"{path}.name", variable)
        if variable.type not in VARIABLE_KINDS:
            kinds = ", ".join(dict.fromkeys(VARIABLE_KINDS.values()))
            message = f"{variable.type} is no kind of variable in a plan"
            yield Fault(f"{path}.type", message, f"write one of {kinds}")
        yield from text(f"{path}.purpose", variable.purpose)
        yield from text(f"{path}.trigger_hint", variable.trigger_hint)


def _components(
    strategy: WorkflowStrategy, components: Sequence[PlannedComponent]
) -> Iterator[Fault]:
    at = "TechnicalBlueprint.ui_components"
    modules = [it.module_name for it in strategy.modules]
    asked = ((f"{at}[{n}].tool", f"{it.agent}.{it.tool}") for n, it in enumerate(components))
    yield from unique("tool", asked)
    for place, component in enumerate(components):
        path = f"{at}[{place}]"
        if component.module_name not in modules:
            hint = f"available: {join_names(modules, MOST_MODULES)}"
            yield Fault(f"{path}.module_name", f'no module is "{component.module_name}"', hint)
        yield from _agent_name(f"{path}.agent", component.agent)
        yield from snake(f"{path}.tool", component.tool)
        yield from pascal(f"{path}.component", component.component)
        yield from text(f"{path}.label", component.label)
        yield from text(f"{path}.summary", component.summary)


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
    own |= {slug(it.workflow) for it in strategy.modules if it.workflow}
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
    found = [it.module_index for it in modules]
    wanted = [it.module_index for it in strategy.modules]
    if found != wanted:
        said = f"the module indexes are {join_names([*map(str, found)], MOST_MODULES) or 'missing'}"
        hint = f"write one entry for each of {join_names([*map(str, wanted)], MOST_MODULES)}"
        yield Fault("ModuleAgents", said, f"{hint}, in this order")


def _staff(strategy: WorkflowStrategy, modules: Sequence[ModuleAgents]) -> Iterator[Fault]:
    for module in strategy.modules:
        agents = module_of(modules, module.module_index)
        path = f"ModuleAgents[{module.module_index}].agents"
        least = LEAST_AGENTS[module.pattern_id]
        if len(agents) < least:
            message = f"{len(agents)} in {module.module_name}"
            yield Fault(path, message, f"{module.pattern_name} needs at least {least} agents")
        yield from at_most(path, len(agents), MOST_AGENTS, "agents")
        missing = set(module.agents_needed) - {it.agent_name for it in agents}
        if missing:
            message = f"{join_names(sorted(missing))} needed in {module.module_name}"
            yield Fault(path, message, "WorkflowStrategy names them in agents_needed: add them")


def _agent(path: str, agent: PlannedAgent) -> Iterator[Fault]:
    yield from _agent_name(f"{path}.agent_name", agent.agent_name)
    yield from text(f"{path}.objective", agent.objective)
    limit = REPLY_LIMITS[agent.human_interaction]
    if agent.max_consecutive_auto_reply > limit:
        message = f"{agent.max_consecutive_auto_reply} replies in a row"
        hint = f"at most {limit} where human_interaction is {agent.human_interaction}"
        yield Fault(f"{path}.max_consecutive_auto_reply", message, hint)
    if agent.generation_mode is not None and agent.agent_type != "generator":
        message = f"a {agent.agent_type} has no generation mode"
        yield Fault(f"{path}.generation_mode", message, "write null, or the type generator")
    asks = any(tool.interaction_mode != "none" for tool in agent.agent_tools)
    if agent.human_interaction == "approval" and not asks:
        message = f"{agent.agent_name} asks for approval and has no tool that shows anything"
        hint = (
            "add a tool that TechnicalBlueprint.ui_components names, or another human_interaction"
        )
        yield Fault(f"{path}.agent_tools", message, hint)
    yield from _functions(path, agent)


def _functions(path: str, agent: PlannedAgent) -> Iterator[Fault]:
    tools = [(f"{path}.agent_tools[{n}]", it) for n, it in enumerate(agent.agent_tools)]
    lifecycle = [(f"{path}.lifecycle_tools[{n}]", it) for n, it in enumerate(agent.lifecycle_tools)]
    hooks = [(f"{path}.system_hooks[{n}]", it) for n, it in enumerate(agent.system_hooks)]
    yield from at_most(f"{path}.agent_tools", len(tools), MOST_TOOLS, "tools")
    yield from at_most(f"{path}.lifecycle_tools", len(lifecycle), MOST_TOOLS, "tools")
    yield from at_most(f"{path}.system_hooks", len(hooks), MOST_TOOLS, "hooks")
    named = [(where, it.name) for where, it in (*tools, *lifecycle, *hooks)]
    yield from unique("function", ((f"{where}.name", name) for where, name in named))
    for where, tool in tools:
        yield from _tool(where, tool)
    for where, it in lifecycle:
        yield from _lifecycle(where, it)
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
    indexes = {it.module_name: it.module_index for it in strategy.modules}
    displays: dict[tuple[int, str, str], str] = {}
    for component in components:
        index = indexes.get(component.module_name)
        if index is None:
            continue  # said of the blueprint
        displays[index, component.agent, component.tool] = component.display
        owner = [it for it in module_of(modules, index) if it.agent_name == component.agent]
        if component.tool not in [tool.name for it in owner for tool in it.agent_tools]:
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
