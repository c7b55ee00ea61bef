"""Refunds."""

from weft import use_ui_tool


async def approve_refund(amount: float) -> dict[str, object]:
    """Ask the customer."""
    return await use_ui_tool(tool_id="approve_refund", payload={"amount": amount})
