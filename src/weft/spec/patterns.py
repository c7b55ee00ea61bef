"""The nine orchestration patterns: ids, names, titles, and the one rule for reading them."""

from dataclasses import dataclass
from itertools import count
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import BeforeValidator

from weft.ids import nearest, slug


@dataclass(frozen=True, slots=True)
class Pattern:
    """One pattern of the legend: number, name in files, title for people, and what it does."""

    id: int
    name: str
    title: str
    summary: str


# Names and titles are literal types, so that each is written once; both have the same order.
_Name: TypeAlias = Literal[
    "ContextAwareRouting",
    "Escalation",
    "FeedbackLoop",
    "Hierarchical",
    "Organic",
    "Pipeline",
    "Redundant",
    "Star",
    "TriageWithTasks",
]
_Title: TypeAlias = Literal[
    "Context-Aware Routing",
    "Escalation",
    "Feedback Loop",
    "Hierarchical",
    "Organic",
    "Pipeline",
    "Redundant",
    "Star",
    "Triage with Tasks",
]
_SUMMARIES: Final = (
    "a router sends each request on",
    "a harder case moves to a stronger agent",
    "a draft is reviewed until it is accepted",
    "a lead delegates to leads who delegate to workers",
    "agents hand off by what was said",
    "each agent hands its result to the next",
    "several agents answer, an evaluator decides",
    "a hub asks specialists one after the other",
    "a request becomes tasks that are worked off",
)

PATTERNS: Final = tuple(map(Pattern, count(1), get_args(_Name), get_args(_Title), _SUMMARIES))
PATTERN_BY_ID: Final = {pattern.id: pattern for pattern in PATTERNS}
PATTERN_BY_NAME: Final = {pattern.name: pattern for pattern in PATTERNS}
_BY_SLUG: Final = {slug(pattern.name): pattern for pattern in PATTERNS}

#: The pattern of a package that follows none of the nine: handoff rules alone decide.
DEFAULT_PATTERN: Final = "DefaultPattern"


def find_pattern(value: str | int) -> Pattern | None:
    """Find a pattern by id, by name, or by any spelling of its title."""
    if isinstance(value, int):
        return PATTERN_BY_ID.get(value)
    return PATTERN_BY_ID.get(int(value)) if value.isdecimal() else _BY_SLUG.get(slug(value))


def nearest_pattern(value: str) -> str | None:
    """Return the pattern name closest to a misspelt one."""
    return nearest(value, [*PATTERN_BY_NAME, DEFAULT_PATTERN])


def _find(value: object) -> Pattern | None:
    if not isinstance(value, str | int) or isinstance(value, bool):
        return None
    return find_pattern(value)


def _name(value: object) -> object:
    """Read a name, title or number; the model refuses any other value."""
    pattern = _find(value)
    return pattern.name if pattern else value


def _title(value: object) -> object:
    pattern = _find(value)
    return pattern.title if pattern else value


PatternName: TypeAlias = Annotated[_Name, BeforeValidator(_name)]
PatternOrDefault: TypeAlias = Annotated[Literal[_Name, "DefaultPattern"], BeforeValidator(_name)]
PatternTitle: TypeAlias = Annotated[_Title, BeforeValidator(_title)]
