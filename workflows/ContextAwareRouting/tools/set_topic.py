"""Records what a request is about."""

from typing import Literal


def set_topic(topic: Literal["billing", "technical"], summary: str) -> dict[str, str]:
    """Return the decision as it is passed on; the topic decides who answers."""
    return {"topic": topic, "summary": " ".join(summary.split())}
