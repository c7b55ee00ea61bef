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

ROUTING, ESCALATION, FEEDBACK, HIERARCHICAL, ORGANIC, PIPELINE, REDUNDANT, STAR, TRIAGE = range(1, 10)  # fmt: skip
#: How many specialists a pattern needs beside those it brings along, and takes without being told.
_NUMBERS: Final = {
    ROUTING: (2, 3),
    ESCALATION: (2, 3),
    FEEDBACK: (1, 1),
    HIERARCHICAL: (2, 4),
    ORGANIC: (3, 3),
    PIPELINE: (2, 3),
    REDUNDANT: (2, 3),
    STAR: (2, 3),
    TRIAGE: (1, 2),
}
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
    return next((kind for kind, terms in _KINDS.items() if name.has(terms)), "core")


def words_of(agent: str) -> str:
    """Return the words of an agent's name: "tax advisor" for TaxAdvisor."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", agent).lower()


def core_team(brief: Brief, pattern_id: int, taken: Collection[str]) -> tuple[str, ...]:
    """Return the names of the agents that the main module of a pattern needs, in its order."""
    subject = brief.domain.thing
    people = _people(brief, pattern_id)
    half = (len(people) + 1) // 2
    orders: dict[int, list[str]] = {
        ROUTING: [f"{subject} router", *people],
        FEEDBACK: [*people, f"{subject} reviewer"],
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
    renamed = {fold(pascal_case(old, "")): new for old, new in brief.renamed}
    for person in people:
        name = pascal_case(person, "Specialist")
        name = pascal_case(renamed.get(fold(name), name), name)
        name = _RESERVED.get(name, name)
        used = {*taken, *names}
        if name in used:
            name = pascal_case(f"{brief.domain.thing} {person}", name)
        names.append(unique(name, used))
    return tuple(names)


def _people(brief: Brief, pattern_id: int) -> list[str]:
    """Return the specialists: those that were named, else the domain's, as many as are needed."""
    least, usual = _NUMBERS[pattern_id]
    domain = brief.domain
    known = [name for name, _ in (*domain.team, *GENERAL.team)]
    subject = domain.thing
    if all(it in known for it in brief.specialists):
        if pattern_id == ESCALATION:
            return [f"{subject} first line", f"{subject} second line", f"{subject} expert"]
        if pattern_id == REDUNDANT:
            return [f"{order} {subject} assessor" for order in ("first", "second", "third")]
        chosen = [*brief.specialists, *known][: max(usual, least)]
        if pattern_id not in (FEEDBACK, TRIAGE):
            chosen = [*brief.specialists, *chosen]
    else:
        chosen = list(brief.specialists)
    gone = {fold(pascal_case(it, "")) for it in brief.removed}
    spare = [it for it in known if fold(pascal_case(it, "")) not in gone]
    kept = list(dict.fromkeys(it for it in chosen if fold(pascal_case(it, "")) not in gone))
    return [*kept, *(it for it in spare if it not in kept)][: max(len(kept), least)]


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
