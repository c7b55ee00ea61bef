"""Shows the plan with its diagram, and waits for the approval."""

from weft import Context, show_ui_tool
from weft.spec.plan import ActionPlan

from .approvals import add_round, ask_approval, shown_plan


async def mermaid_sequence_diagram(
    agent_message: str, context_variables: Context
) -> dict[str, object]:
    """Ask for the approval of the plan, unless it was given before.

    The diagram that is shown is the one drawn from the plan, whatever was returned.
    """
    plan = ActionPlan.model_validate(context_variables["action_plan"])
    add_round(plan, context_variables)
    # Not by what was accepted: a call that is made again after a restart has its answer already.
    if context_variables.get("approve_at") == "action_plan" and not context_variables["plan_given"]:
        await show_ui_tool("mermaid_sequence_diagram", shown_plan(plan, agent_message))
        return {"plan_acceptance": "accepted"}
    return await ask_approval("mermaid_sequence_diagram", plan, agent_message, context_variables)
