"""Names: how they look, how they are compared, and which ones are taken."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

AGENT_NAME: Final = re.compile(r"[A-Z][A-Za-z0-9]*\Z")
SNAKE_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
FUNCTION_REF: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*\Z")

#: Comparing letter by letter is slow: among more candidates only the same word is looked for.
MOST_COMPARED: Final = 500

#: Targets a handoff may name besides an agent.
USER: Final = "user"
TERMINATE: Final = "terminate"

#: Variables every run has without declaring them; `enterprise_id` is an older name of `app_id`.
BUILT_IN_VARIABLES: Final = frozenset(
    {"app_id", "enterprise_id", "user_id", "chat_id", "workflow_name"}
)


def slug(text: str) -> str:
    """Reduce a name to lower-case letters and digits, so that spellings of one name compare equal.

    >>> slug("Context-Aware Routing") == slug("ContextAwareRouting")
    True
    """
    return re.sub(r"[^a-z0-9]", "", text.lower())


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate a person most likely meant by `name`, or None if none is close."""
    known = sorted(set(candidates))
    wanted = slug(name)
    close = [candidate for candidate in known if slug(candidate) == wanted]
    if not close and len(known) <= MOST_COMPARED:
        close = get_close_matches(name, known, n=1, cutoff=0.6)
    return close[0] if close else None
