"""Tokens: how large a text is to a model, as far as one can tell without asking it."""

from typing import Final

#: Characters that make one token, roughly, in any language; used where nobody counts exactly.
CHARACTERS_PER_TOKEN: Final = 4


def estimate(text: str) -> int:
    """Return about how many tokens a text takes."""
    return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN
