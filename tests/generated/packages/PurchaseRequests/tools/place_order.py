"""Places orders."""

from typing import Literal

from weft import Context


def place_order(
    outcome: Literal["ordered", "failed"], detail: str, context_variables: Context
) -> str:
    """Keep with whom the order was placed, or why it was not."""
    record = context_variables.get_dict("request", {})
    context_variables.set("request", {**record, "order": f"{outcome}: {detail}"})
    return f"{outcome}: {detail}"
