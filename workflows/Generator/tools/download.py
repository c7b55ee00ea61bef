"""Asks whether the package should be promoted."""

from weft import Context, use_ui_tool

#: The longest message that is shown.
_LONGEST = 1_000


async def download(agent_message: str, context_variables: Context) -> dict[str, object]:
    """Ask about the package, with what was left out and where it differs from the plan."""
    bundle = context_variables.get_dict("bundle")
    shown = {"message": agent_message[:_LONGEST], **bundle["summary"]}
    answer = dict(await use_ui_tool("download", shown))
    return {"promotion": answer["promotion"], "packages": list(bundle["packages"])}
