"""Keeps a purchase request."""

from typing import Literal

from weft import Context, RetryModel


def record_request(
    item: str,
    amount: float,
    cost_center: str,
    status: Literal["more", "ready", "withdrawn"],
    context_variables: Context,
) -> dict[str, object]:
    """Keep the request; it is not ready before all is known and the budget was looked up."""
    looked_up = context_variables.get_str("cost_center", "")
    if status == "ready" and looked_up != cost_center.strip():
        raise RetryModel("call look_up_budget with the cost centre first")
    record = context_variables.get_dict("request", {})
    known = {**record, "item": item, "amount": amount, "cost_center": cost_center}
    context_variables.set("request", known)
    complete = bool(item and cost_center and amount > 0)
    how_far = "more" if status == "ready" and not complete else status
    return {"status": how_far, "item": item, "amount": amount}
