"""Spelling of names: naming conventions, lists in messages, and did-you-mean."""

import re
from collections.abc import Iterable
from typing import Final

from weft.check.subject import Subject
from weft.findings import Fix, Path, SetValue
from weft.ids import nearest, slug

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
    """Shorten a text that is too long for a sentence."""
    return text if len(text) <= 80 else text[:77] + "..."


def listed(names: Iterable[str]) -> str:
    """Join names for a sentence: a, b and c."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def did_you_mean(name: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """Return the hint that names the closest candidate, or nothing if none is close."""
    close = nearest(name, candidates)
    return (f'did you mean "{close}"?',) if close else ()


def variable_meant(subject: Subject, name: str) -> str:
    """Return the variable that a name means, also when it is misspelt.

    A misspelt name is reported once, where it is written. Other rules treat it as correct.
    """
    if name in subject.variable_names:
        return name
    return nearest(name, subject.variable_names) or name


def agent_meant(subject: Subject, name: str) -> str:
    """Return the agent that a name means, also when it is misspelt."""
    return name if name in subject.agents else nearest(name, subject.agents) or name


def respelling(path: Path, name: str, candidates: Iterable[str]) -> Fix | None:
    """Return the fix for a name that differs from exactly one candidate only in case or _."""
    wanted = slug(name)
    same = [candidate for candidate in candidates if wanted and slug(candidate) == wanted]
    if len(same) != 1:
        return None
    return Fix(f'write "{same[0]}" for "{name}"', (SetValue(path, same[0]),))
