"""Titles of workflows: short, with blanks, from the goal."""

import re
from typing import Final

from weft.generator.designer.brief import Brief
from weft.generator.designer.text import is_small
from weft.spec.patterns import Pattern

#: What follows the thing that is worked on, by the number of the pattern.
_ENDINGS: Final = {
    1: "Routing",
    2: "Escalation",
    3: "Review",
    4: "Program",
    5: "Discussion",
    6: "Processing",
    7: "Assessment",
    8: "Consultation",
    9: "Triage",
}
_NAMED: Final = re.compile(
    r"\b(?:an?|our|new|the)\s+((?:[A-Za-z][\w-]*\s){1,3}?)(workflow|assistant|bot|process)\b",
    re.IGNORECASE,
)
_LONGEST: Final = 40


def title_of(brief: Brief, pattern: Pattern) -> str:
    """Return the title of a workflow.

    A goal of up to four words is the title. Else what the goal calls the workflow ("a claims
    assistant"); else the thing of the domain and what the pattern does with it.
    """
    words = brief.goal.split()
    if 2 <= len(words) <= 4 and all(re.fullmatch(r"[A-Za-z][\w-]*\.?", it) for it in words):
        return _titled(words)
    if found := _NAMED.search(brief.goal):
        kept = [it for it in found[1].split() if not is_small(it)]
        ending = found[2].lower()
        named = kept if ending in {"workflow", "process"} else [*kept, ending]
        if kept:
            return _titled(named if len(named) > 1 else [*named, "workflow"])
    return f"{brief.domain.thing.title()} {_ENDINGS[pattern.id]}"


def _titled(words: list[str]) -> str:
    title = " ".join(it.strip(".")[:1].upper() + it.strip(".")[1:] for it in words)
    return title[:_LONGEST].strip()
