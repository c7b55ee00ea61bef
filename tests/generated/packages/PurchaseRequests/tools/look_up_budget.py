"""Looks budgets up."""

from weft import Context


async def look_up_budget(cost_center: str, context_variables: Context) -> dict[str, object]:
    """Return what is left of the budget of a cost centre."""
    context_variables.set("cost_center", cost_center.strip())
    budget = await context_variables.refresh("budget")
    return {"cost_center": cost_center, "budget": budget or "no such cost centre"}
