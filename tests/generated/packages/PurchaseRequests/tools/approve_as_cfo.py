"""Asks the CFO."""

from weft import use_ui_tool


async def approve_as_cfo(request_text: str) -> object:
    """Show the request to the CFO, and wait for the decision."""
    return await use_ui_tool("approve_as_cfo", {"request_text": request_text})
