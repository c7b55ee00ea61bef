"""Asks what the workflow shall be, in one form."""

from weft import Context, use_ui_tool

#: More of a brief and of an answer is not kept: every agent of the design half is shown them.
_LONGEST = 20_000
_LONGEST_ANSWER = 4_000


async def interview(  # noqa: PLR0913 - one for each question
    brief: str,
    context_variables: Context,
    *,
    goal: str = "",
    started_by: str = "",
    approver: str = "",
    data: str = "",
    integrations: str = "",
    specialists: str = "",
    risks: str = "",
) -> dict[str, str]:
    """Show the questions with a default for each; what is left open takes its default."""
    defaults = {
        "goal": goal,
        "started_by": started_by,
        "approver": approver,
        "data": data,
        "integrations": integrations,
        "specialists": specialists,
        "risks": risks,
    }
    defaults = {name: text[:_LONGEST_ANSWER] for name, text in defaults.items()}
    shown = {name: text or "(nothing)" for name, text in defaults.items()}
    answer = await use_ui_tool("interview", {"defaults": shown})
    given = {name: str(text).strip()[:_LONGEST_ANSWER] for name, text in dict(answer).items()}
    answers = {name: given.get(name) or text for name, text in defaults.items()}
    context_variables.set("interview", {"brief": brief[:_LONGEST], **answers})
    return answers
