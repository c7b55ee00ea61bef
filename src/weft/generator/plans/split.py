"""Splits a plan: an action plan may be of several workflows, and each becomes a package."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from weft.generator.names import pascal_case, unique
from weft.generator.plans.rules import module_of, module_purpose
from weft.generator.plans.workflow_plan import PlannedModule, WorkflowPlan
from weft.spec.patterns import PATTERN_BY_ID
from weft.spec.plan import (
    ActionPlan,
    PlannedVariable,
    PlannedWorkflow,
    StrategyModule,
    TechnicalBlueprint,
)
from weft.spec.workflow import Journey, Pack, PackMember

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
    packages: dict[str, PlannedWorkflow] = {}
    for planned in chosen:
        packages[unique(pascal_case(planned.name, _DEFAULT_NAME), packages)] = planned
    owned = {
        planned.name: [
            module
            for module in plan.strategy.modules
            if (module.workflow or chosen[0].name) == planned.name
        ]
        for planned in chosen
    }
    return tuple(
        _workflow(plan, planned, owned[planned.name], packages)
        for planned in packages.values()
        if owned[planned.name]
    )


def pack_of(plan: ActionPlan) -> Pack | None:
    """Return the pack of a plan of several workflows, with the order in which they are run."""
    if not plan.selection.is_multi_workflow:
        return None
    plans = workflow_plans(plan)
    # An independent workflow can be started at any time.
    steps = tuple((each.name,) for each in plans if each.role != "independent")
    return Pack(
        pack_name=pascal_case(plan.selection.pack_name, "Pack"),
        workflows=tuple(
            PackMember(name=each.name, role=each.role, description=each.description)
            for each in plans
        ),
        journeys=(Journey(name="main", steps=steps),) if steps else (),
    )


def _workflow(
    plan: ActionPlan,
    planned: PlannedWorkflow,
    modules: Sequence[StrategyModule],
    packages: Mapping[str, PlannedWorkflow],
) -> WorkflowPlan:
    made = tuple(_modules(plan, modules))
    name = next(name for name, each in packages.items() if each is planned)
    return WorkflowPlan(
        name=name,
        role=planned.role,
        description=planned.description,
        pattern=PATTERN_BY_ID[planned.pattern_id],
        strategy=plan.strategy.model_copy(update=_own_rules(plan, modules, made)),
        blueprint=_blueprint(plan, made),
        modules=made,
        requires=tuple(dict.fromkeys(_required(plan, name, planned, packages))),
    )


def _own_rules(
    plan: ActionPlan, modules: Sequence[StrategyModule], made: Sequence[PlannedModule]
) -> dict[str, object]:
    """Return what of a strategy concerns these modules: words watched for them, and scenarios."""
    strategy = plan.strategy
    agents = {agent.agent_name for module in made for agent in module.agents}
    places = {name for module in made for name in (module.name, module.purpose)} | agents
    is_first = modules[0].module_index == 0
    return {
        "modules": tuple(modules),
        "watch": strategy.watch if strategy.watch and strategy.watch.to in places else None,
        "scenarios": tuple(
            scenario
            for scenario in strategy.scenarios
            if (places.issuperset(scenario.takes) if scenario.takes else is_first)
        ),
    }


def _required(
    plan: ActionPlan,
    name: str,
    planned: PlannedWorkflow,
    packages: Mapping[str, PlannedWorkflow],
) -> Iterator[str]:
    """Yield the packages to complete before: for dependent ones, the primary workflow."""
    primary = [own for own, each in packages.items() if each.role == "primary" and own != name]
    yield from primary[:1] if planned.role == "dependent" else ()
    for required in plan.blueprint.workflow_dependencies.required_workflows:
        if pascal_case(required, _DEFAULT_NAME) != name:
            yield pascal_case(required, _DEFAULT_NAME)


def _modules(plan: ActionPlan, modules: Sequence[StrategyModule]) -> Iterator[PlannedModule]:
    for module in sorted(modules, key=lambda each: each.module_index):
        yield PlannedModule(
            index=module.module_index,
            name=module.module_name,
            purpose=module_purpose(module),
            description=module.module_description,
            pattern=PATTERN_BY_ID[module.pattern_id],
            agents=module_of(plan.modules, module.module_index),
            leads_to=module.leads_to,
        )


def _blueprint(plan: ActionPlan, modules: Sequence[PlannedModule]) -> TechnicalBlueprint:
    """Return what the modules of one workflow use of what all share."""
    own = _named(plan, modules)
    every = {agent.agent_name for each in plan.modules for agent in each.agents}
    others = every - {agent.agent_name for module in modules for agent in module.agents}
    elsewhere = {
        name
        for each in plan.modules
        for agent in each.agents
        if agent.agent_name in others
        for name in (*agent.reads, *agent.writes)
    }
    return plan.blueprint.model_copy(
        update={
            "global_context_variables": tuple(
                variable
                for variable in plan.blueprint.global_context_variables
                if (names := _names_of(variable)) & own or not names & elsewhere
            ),
            "ui_components": tuple(
                component
                for component in plan.blueprint.ui_components
                if component.agent not in others
            ),
        }
    )


def _named(plan: ActionPlan, modules: Sequence[PlannedModule]) -> set[str]:
    """Return the values that the agents of some modules name, with the keys of these."""
    own = {
        name
        for module in modules
        for agent in module.agents
        for name in (*agent.reads, *agent.writes)
    }
    variables = plan.blueprint.global_context_variables
    return own | {each.key for each in variables if each.key and _names_of(each) & own}


def _names_of(variable: PlannedVariable) -> set[str]:
    return {variable.name, *(field.name for field in variable.fields)}
