"""Asks the customer for what is missing before a request can be routed."""

from weft import use_ui_tool


async def request_clarification(question: str, options: list[str]) -> dict[str, object]:
    """Show one question with up to four likely answers, and wait for the reply."""
    return await use_ui_tool(
        tool_id="request_clarification",
        payload={"question": question, "options": options[:4]},
    )
