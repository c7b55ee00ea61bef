"""Checks whether meeting notes hold enough to work with."""

from typing import Final

_FEWEST_WORDS: Final = 20


def check_notes(notes: str) -> dict[str, object]:
    """Return whether the notes are usable, with their length in words."""
    words = len(notes.split())
    return {"state": "usable" if words >= _FEWEST_WORDS else "too_short", "words": words}
