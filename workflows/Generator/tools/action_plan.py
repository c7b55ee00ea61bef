"""Joins the parts to an action plan."""

from weft import Context
from weft.generator.judging import joined_plan

from .approvals import add_round
from .design import keep_part


def action_plan(
    ModuleAgents: list[object], context_variables: Context, instead_of: str | None = None
) -> dict[str, object]:
    """Store the last part of the plan, and the plan that all parts make."""
    output = {"ModuleAgents": ModuleAgents}
    keep_part("WorkflowImplementationAgent", output, instead_of, context_variables)
    plan = joined_plan(context_variables)
    context_variables.set("action_plan", plan.model_dump(mode="json", by_alias=True))
    add_round(plan, context_variables)
    context_variables.set("action_plan_acceptance", "pending")
    return {"plan_acceptance": "pending", "plan_hash": context_variables["action_plan_hash"]}
