"""Names: how they look, how they are compared, and which ones are taken."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

AGENT_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
SNAKE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
FUNCTION_REF: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*\Z")

#: Targets a handoff may name besides an agent.
USER: Final = "user"
TERMINATE: Final = "terminate"

#: Variables every run has without declaring them.
BUILT_IN_VARIABLES: Final = frozenset({"app_id", "user_id", "chat_id", "workflow_name"})

#: Built-in variables under the names older packages use.
BUILT_IN_ALIASES: Final = {"enterprise_id": "app_id"}


def slug(text: str) -> str:
    """Reduce a name to lower-case letters and digits, so that spellings of one name compare equal.

    >>> slug("Context-Aware Routing") == slug("ContextAwareRouting")
    True
    """
    return re.sub(r"[^a-z0-9]", "", text.lower())


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate a person most likely meant by `name`, or None if none is close."""
    known = sorted(set(candidates))
    same = [candidate for candidate in known if slug(candidate) == slug(name)]
    close = same or get_close_matches(name, known, n=1, cutoff=0.6)
    return close[0] if close else None
