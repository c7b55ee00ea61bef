"""Suggestions: what a person most likely meant by a name that does not exist."""

from collections.abc import Iterable

from weft.check.subject import Subject
from weft.findings import Fix, Path, SetValue
from weft.ids import nearest, slug


def did_you_mean(name: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """Return the hint that names the closest candidate, or nothing if none is close."""
    close = nearest(name, candidates)
    return (f'did you mean "{close}"?',) if close else ()


def variable_meant(subject: Subject, name: str) -> str:
    """Return the variable that a name means, also when it is misspelt.

    A misspelt name is reported where it stands. What depends on it is judged as if it were right.
    """
    if name in subject.variable_names:
        return name
    return nearest(name, subject.variable_names) or name


def agent_meant(subject: Subject, name: str) -> str:
    """Return the agent that a name means, also when it is misspelt."""
    return name if name in subject.agents else nearest(name, subject.agents) or name


def respelling(path: Path, name: str, candidates: Iterable[str]) -> Fix | None:
    """Return the fix for a name that is another one in different spelling, and no second one."""
    wanted = slug(name)
    same = [candidate for candidate in candidates if wanted and slug(candidate) == wanted]
    if len(same) != 1:
        return None
    return Fix(f'write "{same[0]}" for "{name}"', (SetValue(path, same[0]),))
