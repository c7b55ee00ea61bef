"""How names are spelt in Weft, and how several of them are written in a sentence."""

import re
from collections.abc import Iterable
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def pascal_case(name: str) -> str:
    """Write a name in PascalCase, as agents, models and components are named.

    >>> pascal_case("billing_agent"), pascal_case("HTTPClient")
    ('BillingAgent', 'HTTPClient')
    """
    return "".join(word[0].upper() + word[1:] for word in _WORD.findall(name)).lstrip("0123456789")


def snake_case(name: str) -> str:
    """Write a name in snake_case, as variables, functions and fields are named.

    >>> snake_case("currentDomain"), snake_case("HTTP-Status")
    ('current_domain', 'http_status')
    """
    return "_".join(word.lower() for word in _WORD.findall(name)).lstrip("0123456789_")


def short(text: str) -> str:
    """Cut a text that would not fit into a sentence."""
    return text if len(text) <= 80 else text[:77] + "..."


def listed(names: Iterable[str]) -> str:
    """Write names as people do: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
