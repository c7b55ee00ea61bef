"""Takes the router's decision in."""

from typing import Final, Literal

_HOURS: Final = {"low": 48, "normal": 24, "high": 4}


def analyze_request(
    domain: Literal["unknown", "tech", "finance", "general"],
    urgency: Literal["low", "normal", "high"],
    summary: str,
    agent_message: str,
) -> dict[str, object]:
    """Return the decision with the time within which a person would answer the request."""
    return {
        "domain": domain,
        "summary": summary,
        "answer_within_hours": _HOURS[urgency],
        "agent_message": agent_message,
    }
