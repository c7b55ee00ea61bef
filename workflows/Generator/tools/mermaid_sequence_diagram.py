"""Shows the plan with its diagram, and waits for the approval."""

from weft import Context
from weft.spec.plan import ActionPlan

from .approvals import add_round, ask_approval


async def mermaid_sequence_diagram(
    agent_message: str, context_variables: Context
) -> dict[str, object]:
    """Ask for the approval of the plan, in the name of the tool that `approve_at` names.

    The diagram that is shown is the one drawn from the plan, whatever was returned.
    """
    plan = ActionPlan.model_validate(context_variables["action_plan"])
    add_round(plan, context_variables)
    asked_by = context_variables.get_str("approve_at")
    return await ask_approval(asked_by, plan, agent_message, context_variables)
