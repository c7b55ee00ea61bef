"""Asks whether the package shall take its place."""

from weft import Context, use_ui_tool

#: What is shown of a message.
_LONGEST = 1_000


async def download(agent_message: str, context_variables: Context) -> dict[str, object]:
    """Ask about the bundle that is offered; without one, say to whom it was sent back, and why."""
    target = context_variables.get_str("repair_target")
    if target != "nobody":
        return {"sent_back_to": target, "findings": context_variables.get_list("package_findings")}
    bundle = context_variables.get_dict("bundle")
    shown = {"message": agent_message[:_LONGEST], **bundle["summary"]}
    answer = dict(await use_ui_tool("download", shown))
    return {"promotion": answer["promotion"], "packages": list(bundle["packages"])}
