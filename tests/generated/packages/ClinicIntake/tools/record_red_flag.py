"""Keeps the judgement of the red flag check."""

from typing import Literal


def record_red_flag(flag: Literal["present", "unclear", "none"], why: str) -> str:
    """Keep the judgement, with the words it rests on."""
    return f"{flag}: {why}"
