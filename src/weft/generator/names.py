"""Names: from words to identifiers, the same way everywhere in a generated package."""

import re
from collections.abc import Collection
from keyword import iskeyword
from typing import Final
from unicodedata import combining, normalize

#: The longest name that is made; the rest of a phrase is left out.
_LONGEST: Final = 48


def _words(text: str) -> list[str]:
    """Return the words of a phrase or an identifier in Latin letters, without accents."""
    plain = "".join(sign for sign in normalize("NFKD", text) if not combining(sign))
    parted = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", plain)
    return re.findall(r"[A-Za-z0-9]+", parted)


def pascal_case(text: str, default: str) -> str:
    """Return a phrase as PascalCase; the default where it has no Latin letter to begin with.

    >>> pascal_case("customer-support router", "Workflow")
    'CustomerSupportRouter'
    """
    words = [word[0].upper() + word[1:] for word in _words(text)]
    name = _within(words, "")
    return name if name and name[0].isalpha() else default


def snake_case(text: str, default: str) -> str:
    """Return a phrase as snake_case that Python takes for a name; the default where there is none.

    >>> snake_case("Customer e-mail", "value")
    'customer_e_mail'
    """
    name = _within([word.lower() for word in _words(text)], "_")
    if not name or not name[0].isalpha():
        return default
    return f"{name}_" if iskeyword(name) else name


def _within(words: list[str], joint: str) -> str:
    name = ""
    for word in words:
        longer = f"{name}{joint}{word}" if name else word[:_LONGEST]
        if len(longer) > _LONGEST:
            break
        name = longer
    return name


def unique(name: str, taken: Collection[str]) -> str:
    """Return a name that is not taken yet, with a number after it where it was.

    >>> unique("Writer", {"Writer"})
    'Writer2'
    """
    if name not in taken:
        return name
    number = 2
    while f"{name}{number}" in taken:
        number += 1
    return f"{name}{number}"
