"""Texts: free words of a plan as they may stand in a package."""

import re
from typing import Final

from weft.check.secrets import secret_in

_INSERTED: Final = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}")
_HIDDEN: Final = "(secret)"


def plain(text: str) -> str:
    """Return free words without what looks like a secret, which no package may hold."""
    if not secret_in("text", text):
        return text
    masked = re.sub(r"\S+", lambda it: _HIDDEN if secret_in("text", it[0]) else it[0], text)
    return _HIDDEN if secret_in("text", masked) else masked


def literal(text: str) -> str:
    """Return free words for a prompt: braces in them put no variable in.

    >>> literal("use {name}")
    'use {{name}}'
    """
    return _INSERTED.sub(lambda it: f"{{{it[0]}}}", plain(text).strip())


def line(text: str, most: int = 140) -> str:
    """Return free words as one line that is not longer than so many characters."""
    whole = " ".join(plain(text).split())
    return whole if len(whole) <= most else f"{whole[: most - 3].rstrip()}..."


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name or a phrase, in small letters."""
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return tuple(it.lower() for it in re.findall(r"[A-Za-z0-9]+", parted))


def mentions(text: str, name: str) -> bool:
    """Tell whether a text speaks of a name, however it is spelled: user_tier, User tier, userTier.

    >>> mentions("Asks for the customer tier.", "customer_tier")
    True
    """
    wanted = " ".join(words_of(name))
    return bool(wanted) and f" {wanted} " in f" {' '.join(words_of(text))} "
