"""Records the router's decision."""

from typing import Final, Literal

_HOURS: Final = {"low": 48, "normal": 24, "high": 4}


def analyze_request(
    domain: Literal["unknown", "tech", "finance", "general"],
    urgency: Literal["low", "normal", "high"],
    summary: str,
    agent_message: str,
    context_variables,
) -> dict[str, object]:
    """Return the decision, how soon a person would answer, and whether one takes over at once."""
    premium = context_variables.get("customer_plan") == "premium"
    return {
        "domain": domain,
        "summary": summary,
        "answer_within_hours": _HOURS[urgency],
        "has_priority": premium and urgency == "high",
        "agent_message": agent_message,
    }
