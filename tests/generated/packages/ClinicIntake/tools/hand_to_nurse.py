"""Asks the nurse."""

from weft import use_ui_tool


async def hand_to_nurse(summary: str) -> object:
    """Show the summary to the nurse, and wait for the decision."""
    return await use_ui_tool("hand_to_nurse", {"summary": summary})
