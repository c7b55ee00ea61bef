"""Cutting a plan: an action plan may be of several workflows, and each becomes a package."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from weft.generator.compile.texts import mentions
from weft.generator.names import pascal_case, snake_case, unique
from weft.generator.workflow_plan import PlannedModule, WorkflowPlan
from weft.ids import BUILT_IN_VARIABLES, TERMINATE, USER
from weft.spec.agents import REPLY_LIMITS
from weft.spec.conditions import KEYWORDS
from weft.spec.patterns import PATTERN_BY_ID
from weft.spec.plan import (
    ActionPlan,
    PlannedAgent,
    PlannedComponent,
    PlannedVariable,
    PlannedWorkflow,
    StrategyModule,
    TechnicalBlueprint,
)
from weft.spec.workflow import Journey, Pack, PackMember

#: What no agent is called: the targets of handoffs that are no agents.
_TARGETS: Final = frozenset({USER.capitalize(), TERMINATE.capitalize()})
_RESERVED: Final = BUILT_IN_VARIABLES | KEYWORDS
_DEFAULT_NAME: Final = "Workflow"


def workflow_plans(plan: ActionPlan) -> tuple[WorkflowPlan, ...]:
    """Return the workflows of a plan, each with its own modules and the parts these use."""
    chosen = plan.selection.workflows if plan.selection.is_multi_workflow else ()
    if not chosen:
        name = pascal_case(plan.strategy.workflow_name, _DEFAULT_NAME)
        first = plan.selection.workflows[0].model_copy(
            update={"role": "primary", "description": plan.strategy.workflow_description}
        )
        return (_workflow(plan, first, plan.strategy.modules, {name: first}),)
    packages = _packages(chosen)
    plans: list[WorkflowPlan] = []
    for planned in packages.values():
        modules = [it for it in plan.strategy.modules if _is_of(it, planned.name, chosen)]
        if modules:
            plans.append(_workflow(plan, planned, modules, packages))
    return tuple(plans)


def pack_of(plan: ActionPlan) -> Pack | None:
    """Return the pack of a plan of several workflows: who goes through them in which order."""
    if not plan.selection.is_multi_workflow:
        return None
    plans = workflow_plans(plan)
    # What is independent is begun whenever somebody wants it.
    steps = tuple((it.name,) for it in plans if it.role != "independent")
    return Pack(
        pack_name=pascal_case(plan.selection.pack_name, "Pack"),
        workflows=tuple(
            PackMember(name=it.name, role=it.role, description=it.description) for it in plans
        ),
        journeys=(Journey(name="main", steps=steps),) if steps else (),
    )


def _packages(workflows: Sequence[PlannedWorkflow]) -> dict[str, PlannedWorkflow]:
    named: dict[str, PlannedWorkflow] = {}
    for it in workflows:
        named[unique(pascal_case(it.name, _DEFAULT_NAME), named)] = it
    return named


def _is_of(module: StrategyModule, name: str, workflows: Sequence[PlannedWorkflow]) -> bool:
    """Tell whether a module belongs to a workflow; one that names none is of the first."""
    known = [it.name for it in workflows]
    owner = module.workflow if module.workflow in known else known[0]
    return owner == name


def _workflow(
    plan: ActionPlan,
    planned: PlannedWorkflow,
    modules: Sequence[StrategyModule],
    packages: Mapping[str, PlannedWorkflow],
) -> WorkflowPlan:
    made = tuple(_modules(plan, modules))
    name = next(name for name, it in packages.items() if it is planned)
    return WorkflowPlan(
        name=name,
        role=planned.role,
        description=planned.description,
        pattern=PATTERN_BY_ID[planned.pattern_id],
        strategy=plan.strategy.model_copy(update={"modules": tuple(modules)}),
        blueprint=_blueprint(plan.blueprint, made, plan),
        modules=made,
        requires=tuple(dict.fromkeys(_required(plan, name, planned, packages))),
    )


def _required(
    plan: ActionPlan,
    name: str,
    planned: PlannedWorkflow,
    packages: Mapping[str, PlannedWorkflow],
) -> Iterator[str]:
    """Yield what must have been completed before: for dependents, the primary workflow."""
    primary = [it for it, one in packages.items() if one.role == "primary" and it != name]
    yield from primary[:1] if planned.role == "dependent" else ()
    for it in plan.blueprint.workflow_dependencies.required_workflows:
        required = pascal_case(it, _DEFAULT_NAME)
        if required != name:
            yield required


def _modules(plan: ActionPlan, modules: Sequence[StrategyModule]) -> Iterator[PlannedModule]:
    """Yield the modules in order, their agents under names that are theirs alone."""
    staff = {it.module_index: it.agents for it in plan.modules}
    taken: set[str] = set()
    for module in sorted(modules, key=lambda it: it.module_index):
        purpose = module.module_name.partition(": ")[2]
        agents: list[PlannedAgent] = []
        for agent in staff.get(module.module_index, ()) or _staffed(module, purpose):
            name = unique(pascal_case(agent.agent_name, "Agent"), taken | _TARGETS)
            taken.add(name)
            agents.append(agent.model_copy(update={"agent_name": name}))
        yield PlannedModule(
            index=module.module_index,
            name=module.module_name,
            purpose=purpose,
            description=module.module_description,
            pattern=PATTERN_BY_ID[module.pattern_id],
            agents=tuple(agents),
        )


def _staffed(module: StrategyModule, purpose: str) -> tuple[PlannedAgent, ...]:
    """Return workers for a module that nobody has staffed."""
    names = module.agents_needed or (f"{pascal_case(purpose, 'Module')}Agent",)
    return tuple(
        PlannedAgent(
            agent_name=name,
            agent_type="worker",
            objective=module.module_description,
            human_interaction="none",
            max_consecutive_auto_reply=REPLY_LIMITS["none"],
        )
        for name in names
    )


def _blueprint(
    blueprint: TechnicalBlueprint, modules: Sequence[PlannedModule], plan: ActionPlan
) -> TechnicalBlueprint:
    """Return what the modules of one workflow use of what all share."""
    return blueprint.model_copy(
        update={
            "global_context_variables": tuple(_variables(blueprint, modules, plan)),
            "ui_components": tuple(_components(blueprint, modules)),
        }
    )


def _variables(
    blueprint: TechnicalBlueprint, modules: Sequence[PlannedModule], plan: ActionPlan
) -> Iterator[PlannedVariable]:
    """Yield the variables that a workflow names, and those that no workflow names."""
    own = _words_of(agent for module in modules for agent in module.agents)
    every = _words_of(agent for module in plan.modules for agent in module.agents)
    taken: set[str] = set()
    for it in blueprint.global_context_variables:
        hint = it.trigger_hint or ""
        named = mentions(own, it.name) or any(mentions(hint, one) for one in _names(modules))
        elsewhere = mentions(every, it.name) or any(
            mentions(hint, agent.agent_name) for module in plan.modules for agent in module.agents
        )
        if named or not elsewhere:
            name = unique(_variable_name(it.name), taken)
            taken.add(name)
            yield it.model_copy(update={"name": name})


def _variable_name(text: str) -> str:
    name = snake_case(text, "value")
    return f"{name}_value" if name.strip("_") in _RESERVED else name


def _words_of(agents: Iterable[PlannedAgent]) -> str:
    """Return all that is said about agents and their tools."""
    return "\n".join(
        text
        for agent in agents
        for text in (agent.objective, *(f"{it.name} {it.purpose}" for it in agent.agent_tools))
    )


def _names(modules: Sequence[PlannedModule]) -> Iterator[str]:
    for module in modules:
        for agent in module.agents:
            yield agent.agent_name
            yield from (it.name for it in agent.agent_tools)


def _components(
    blueprint: TechnicalBlueprint, modules: Sequence[PlannedModule]
) -> Iterator[PlannedComponent]:
    """Yield the components of the agents of these modules, under the names these have here."""
    for it in blueprint.ui_components:
        owner = pascal_case(it.agent, "Agent")
        for module in modules:
            for agent in module.agents:
                if agent.agent_name == owner and any(
                    snake_case(one.name, "tool") == snake_case(it.tool, "tool")
                    for one in agent.agent_tools
                ):
                    yield it.model_copy(update={"agent": owner})
