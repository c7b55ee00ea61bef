"""Free texts of a plan, as they may be written into a package."""

import re
from typing import Final

from weft.check.secrets import secret_in

_INSERTED: Final = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_HIDDEN: Final = "(secret)"


def plain(text: str) -> str:
    """Return a text without what looks like a secret, which no package may hold."""
    if not secret_in("text", text):
        return text
    masked = re.sub(r"\S+", lambda word: _HIDDEN if secret_in("text", word[0]) else word[0], text)
    return _HIDDEN if secret_in("text", masked) else masked


def literal(text: str) -> str:
    """Return a text for a prompt: its braces insert no variable.

    >>> literal("use {name}")
    'use {{name}}'
    """
    return _INSERTED.sub(lambda name: f"{{{name[0]}}}", plain(text).strip())


def line(text: str, most: int = 140) -> str:
    """Return a text as one line of limited length."""
    whole = " ".join(plain(text).split())
    return whole if len(whole) <= most else f"{whole[: most - 3].rstrip()}..."


def title(name: str) -> str:
    """Return a name as words that begin with a capital letter.

    >>> title("customer_tier")
    'Customer tier'
    """
    return name.replace("_", " ").strip().capitalize()
