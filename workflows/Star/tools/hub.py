"""What the hub can do with an event: ask about it, or hand over the plan."""

from typing import Literal


def ask_specialist(specialist: Literal["venue", "catering", "budget"], question: str) -> str:
    """Put a question to one specialist."""
    return f"Asked {specialist}: {question}"


def deliver_plan(summary: str) -> str:
    """Hand the finished plan over."""
    return f"Plan delivered: {summary}"
