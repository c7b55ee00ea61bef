"""Work given from a lead to those below."""

from typing import Literal


def assign_team(team: Literal["research", "writing"], goal: str) -> str:
    """Give a team its goal."""
    return f"The {team} team works on: {goal}"


def assign_research(questions: list[str]) -> str:
    """Give the fact finder questions to answer."""
    return f"{len(questions)} questions assigned"


def assign_draft(outline: list[str]) -> str:
    """Give the draft writer an outline to follow."""
    return f"{len(outline)} sections assigned"
