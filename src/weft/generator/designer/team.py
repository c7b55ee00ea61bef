"""Teams: who a module needs, in the order its pattern wires them, and what each of them is."""

import re
from collections.abc import Collection, Sequence
from typing import Final, Literal, TypeAlias

from weft.generator.designer.brief import Brief
from weft.generator.designer.text import Wording, fold
from weft.generator.designer.words import GENERAL
from weft.generator.names import pascal_case, unique
from weft.spec.agents import AgentType
from weft.spec.plan import GenerationMode, StrategyModule

#: intake: a person is asked first; approval: somebody decides; delivery: the result is sent.
ModuleKind: TypeAlias = Literal["intake", "core", "approval", "delivery"]

#: The patterns by their numbers.
ROUTING, ESCALATION, FEEDBACK, HIERARCHICAL, ORGANIC = 1, 2, 3, 4, 5
PIPELINE, REDUNDANT, STAR, TRIAGE = 6, 7, 8, 9

#: How many specialists a pattern needs beside those it brings along, by its number.
_LEAST: Final = {
    ROUTING: 2,
    ESCALATION: 2,
    FEEDBACK: 1,
    HIERARCHICAL: 2,
    ORGANIC: 3,
    PIPELINE: 2,
    REDUNDANT: 2,
    STAR: 2,
    TRIAGE: 1,
}
#: How many agents it takes for a pattern to be one.
LEAST_AGENTS: Final = {
    ROUTING: 3,
    ESCALATION: 2,
    FEEDBACK: 2,
    HIERARCHICAL: 3,
    ORGANIC: 3,
    PIPELINE: 1,
    REDUNDANT: 3,
    STAR: 2,
    TRIAGE: 3,
}
#: Who takes part in patterns for which a domain has no people.
_MADE_UP: Final = {
    ESCALATION: ("{} first line", "{} second line", "{} expert"),
    REDUNDANT: ("first {} assessor", "second {} assessor", "third {} assessor"),
}
#: Roles that judge the work of others.
_JUDGES: Final = "editor|reviewer|critic|auditor|examiner"
#: Names that mean somebody else in handoffs.
_RESERVED: Final = {"User": "UserAgent", "Terminate": "TerminateAgent"}
_KINDS: Final[dict[ModuleKind, str]] = {
    "intake": "intake|clarif*|gather*|collect*",
    "approval": "approv*|sign off|freigabe",
    "delivery": "deliver*|notif*|send*|publish*",
}
_MEDIA: Final[dict[GenerationMode, str]] = {
    "image": "illustrator|image|images|picture|photo",
    "video": "video|film|animation",
    "audio": "audio|podcast|voice|music",
}


def kind_of(module: StrategyModule) -> ModuleKind:
    """Return what a module is for: its name says so, and only a short pipeline is no core."""
    if module.pattern_id != PIPELINE or len(module.agents_needed) > 1:
        return "core"
    name = Wording(module.module_name.partition(":")[2])
    kinds: list[ModuleKind] = [kind for kind, terms in _KINDS.items() if name.has(terms)]
    return kinds[0] if kinds else "core"


def words_of(agent: str) -> str:
    """Return the words of an agent's name: "tax advisor" for TaxAdvisor."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", agent).lower()


def core_team(brief: Brief, pattern_id: int, taken: Collection[str]) -> tuple[str, ...]:
    """Return the names of the agents that the main module of a pattern needs, in its order."""
    subject = brief.domain.thing
    people = _people(brief, pattern_id)
    half = (len(people) + 1) // 2
    judges = [it for it in people[1:] if Wording(it).has(_JUDGES)]
    judge = judges[-1] if judges else f"{subject} reviewer"
    orders: dict[int, list[str]] = {
        ROUTING: [f"{subject} router", *people],
        FEEDBACK: [*(it for it in people if it != judge), judge],
        HIERARCHICAL: [
            f"{subject} director",
            "analysis lead",
            *people[:half],
            "delivery lead",
            *people[half:],
        ],
        REDUNDANT: [*people, f"{subject} judge"],
        STAR: [f"{subject} coordinator", *people],
        TRIAGE: [f"{subject} triage", *people, f"{subject} summarizer"],
    }
    return agent_names(brief, orders.get(pattern_id, people), taken)


def agent_names(brief: Brief, people: Sequence[str], taken: Collection[str]) -> tuple[str, ...]:
    """Return people as names of agents that are not taken; new names of comments are used."""
    names: list[str] = []
    renamed = {_key(old): new for old, new in brief.renamed}
    for person in people:
        name = pascal_case(person, "Specialist")
        name = pascal_case(renamed.get(_key(name), name), name)
        name = _RESERVED.get(name, name)
        used = {*taken, *names}
        # One of several workflows has its name as its goal.
        if name in used and " " not in brief.goal:
            name = pascal_case(f"{brief.goal} {person}", name)
        names.append(unique(name, used))
    return tuple(names)


def _people(brief: Brief, pattern_id: int) -> list[str]:
    """Return the specialists: those that were named, else the domain's, as many as are needed.

    Who is usual in a domain has no rank and no rival: tiers and those who answer side by side are
    made up, unless people were named for them.
    """
    least = _LEAST[pattern_id]
    domain = brief.domain
    people = list(brief.specialists)
    if brief.is_usual_team:
        usual = [name for name, _ in domain.team]
        named = [it for it in people if it not in usual]
        made_up = _MADE_UP.get(pattern_id)
        if made_up:
            people = [it.format(domain.thing) for it in made_up]
            people[2:] = [it for it in named if not people[0].endswith(it)] or people[2:]
        elif pattern_id in (FEEDBACK, TRIAGE):
            people = [*people[: 1 if pattern_id == FEEDBACK else 2], *named]
    spare = [name for name, _ in (*domain.team, *GENERAL.team)]
    gone = {_key(it) for it in brief.removed}
    kept = list(dict.fromkeys(it for it in people if _key(it) not in gone))
    more = [it for it in spare if _key(it) not in gone and it not in kept]
    return [*kept, *more[: max(0, least - len(kept))]]


def _key(name: str) -> str:
    return fold(pascal_case(name, ""))


def agent_types(pattern_id: int, names: Sequence[str]) -> tuple[AgentType, ...]:
    """Return what each agent of a main module is, by its place and, for leads, by its name."""
    types: list[AgentType] = ["worker"] * len(names)
    if pattern_id in (ROUTING, TRIAGE):
        types[0] = "router"
    if pattern_id == ESCALATION:
        types[0] = "intake"
    if pattern_id in (FEEDBACK, REDUNDANT):
        types[-1] = "evaluator"
    if pattern_id in (STAR, HIERARCHICAL):
        types[0] = "orchestrator"
    if pattern_id == HIERARCHICAL:
        leads = [at for at, it in enumerate(names) if at and re.search(r"(Lead|Manager)\d*$", it)]
        for at in leads or [1]:
            types[at] = "orchestrator"
    for at, name in enumerate(names):
        if types[at] == "worker" and medium_of(name):
            types[at] = "generator"
    return tuple(types)


def medium_of(agent: str) -> GenerationMode | None:
    """Return what an agent makes that is no text, by its name."""
    name = Wording(words_of(agent))
    return next((medium for medium, terms in _MEDIA.items() if name.has(terms)), None)


def closing_agent(names: Sequence[str]) -> str:
    """Return who says how far a pipeline has come: the last who does not make pictures."""
    return next((it for it in reversed(names) if not medium_of(it)), names[-1])
