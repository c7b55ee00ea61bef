"""Joins the parts to an action plan."""

from weft import Context
from weft.generator.judging import accepted
from weft.generator.plan import make_plan
from weft.spec.plan import (
    ModuleAgentsOutput,
    PatternSelection,
    TechnicalBlueprint,
    WorkflowStrategy,
)

from .approvals import add_round


def action_plan(ModuleAgents: list[object], context_variables: Context) -> dict[str, object]:
    """Keep the last part if it holds, and the plan that all parts make."""
    output = {"ModuleAgents": ModuleAgents}
    part = accepted("WorkflowImplementationAgent", output, context_variables)
    plan = make_plan(
        version=len(context_variables.get_list("plan_rounds")) + 1,
        selection=PatternSelection.model_validate(context_variables["pattern_selection"]),
        strategy=WorkflowStrategy.model_validate(context_variables["workflow_strategy"]),
        blueprint=TechnicalBlueprint.model_validate(context_variables["technical_blueprint"]),
        modules=ModuleAgentsOutput.model_validate(part).modules,
    )
    context_variables.set("module_agents", part["ModuleAgents"])
    context_variables.set("action_plan", plan.model_dump(mode="json", by_alias=True))
    add_round(plan, context_variables)
    context_variables.set("action_plan_acceptance", "pending")
    return {"plan_acceptance": "pending", "plan_hash": context_variables["action_plan_hash"]}
