"""Titles of workflows: short, with blanks, from the goal."""

import re
from itertools import takewhile
from typing import Final

from weft.generator.designer.brief import Brief
from weft.generator.designer.text import Wording, is_small
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
#: "a workflow for supplier audits", "a process that handles late parcels"
_ABOUT: Final = re.compile(
    r"\b(?:workflow|assistant|bot|process)\s+(?:for|that\s+\w+s)\s+(?:the\s+|our\s+|all\s+)?"
    r"((?:[A-Za-z][\w-]*\s?){1,2})",
    re.IGNORECASE,
)
#: Things that a goal may name in place of the thing of its domain.
_THINGS: Final = (
    "alert", "blog", "campaign", "candidate", "complaint", "expense", "hotel", "inventory",
    "newsletter", "outage", "payment", "proposal", "refund", "shipment", "stock", "ticket",
    "vacation",
)  # fmt: skip
_LONGEST: Final = 40


def title_of(brief: Brief, pattern: Pattern) -> str:
    """Return the title of a workflow.

    A goal of up to four words is the title, and so are as many before a colon. Else what the goal
    calls the workflow ("a claims assistant", "a workflow for audits"); else a thing and what the
    pattern does with it: the thing of the domain, or another that the goal names in its place.
    """
    head, colon, _ = brief.goal.partition(":")
    words = head.split()
    if (
        2 <= len(words) <= 4
        and all(re.fullmatch(r"[A-Za-z][\w-]*\.?", it) for it in words)
        and not (colon and any(is_small(it) for it in words))
    ):
        return _titled(words)
    if found := _NAMED.search(brief.goal):
        kept = [it for it in found[1].split() if not is_small(it)]
        ending = found[2].lower()
        named = kept if ending in {"workflow", "process"} else [*kept, ending]
        if kept:
            return _titled(named if len(named) > 1 else [*named, "workflow"])
    if found := _ABOUT.search(brief.goal):
        named = list(takewhile(lambda it: not is_small(it), found[1].split()))
        if named:
            return _titled(named if len(named) > 1 else [*named, "workflow"])
    return f"{_thing(brief).title()} {_ENDINGS[pattern.id]}"


def _thing(brief: Brief) -> str:
    """Return what is worked on, in the words of the goal where it does not name the usual."""
    goal, usual = Wording(brief.goal), brief.domain.thing
    named = (it for it in _THINGS if goal.has(f"{it}|{it}s"))
    return usual if goal.has(f"{usual.split()[-1]}*") else next(named, usual)


def _titled(words: list[str]) -> str:
    title = " ".join(it.strip(".")[:1].upper() + it.strip(".")[1:] for it in words)
    return title[:_LONGEST].strip()
