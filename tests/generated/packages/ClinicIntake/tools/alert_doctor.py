"""Asks the duty doctor."""

from weft import use_ui_tool


async def alert_doctor(symptoms: str) -> object:
    """Show the symptoms to the duty doctor, and wait for the decision."""
    return await use_ui_tool("alert_doctor", {"symptoms": symptoms})
