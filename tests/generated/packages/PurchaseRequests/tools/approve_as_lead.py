"""Asks the team lead."""

from weft import use_ui_tool


async def approve_as_lead(request_text: str) -> object:
    """Show the request to the team lead, and wait for the decision."""
    return await use_ui_tool("approve_as_lead", {"request_text": request_text})
