"""Several workflows in one brief: which are asked for, and what the brief says of each."""

import re
from dataclasses import dataclass, replace
from typing import Final

from weft.generator.designer.brief import Brief, read_brief
from weft.generator.designer.text import Wording, is_small
from weft.generator.names import pascal_case
from weft.spec.plan import PatternSelection
from weft.spec.workflow import PackRole

#: How many workflows are made of one brief at most.
_MOST: Final = 5
_ASKED: Final = (
    "two workflows|three workflows|four workflows|2 workflows|3 workflows|several workflows"
    "|two processes|three processes|several processes|multiple workflows|two separate|pack of"
    "|a pack|separate workflow*|second workflow|another workflow|own workflow|zwei workflows"
    "|drei workflows|mehrere workflows|zwei prozesse|dos flujos|tres flujos|deux workflows"
)
_NUMBERS: Final = {"three": 3, "four": 4, "3": 3, "4": 4, "drei": 3, "tres": 3, "trois": 3}
#: "an onboarding workflow", "a separate billing process", "one workflow for refunds"
_MENTION: Final = re.compile(
    r"\b(?:an?|one|another|the|ein|eine[nr]?|der|un|una)\s+(?:separate\s+|own\s+|second\s+|third\s+"
    r"|first\s+)?(?:workflow|process)\s+(?:for|that handles|für|para)\s+(?:the\s+|our\s+)?"
    r"(?P<after>[A-Za-z][\w-]*(?:\s[A-Za-z][\w-]*)?)"
    r"|\b(?:an?|one|another|the|ein|eine[nr]?|un|una)\s+(?:separate\s+|second\s+|third\s+|first\s+)?"
    r"(?P<before>(?:[A-Za-z][\w-]*\s){1,2}?)(?:workflow|process)\b",
    re.IGNORECASE,
)
_FOLLOWS: Final = "then|afterwards|after that|followed by|once|danach|luego|despues|ensuite"
_ALONE: Final = "independent*|on its own|by itself|unrelated|unabhangig*|independiente*"


@dataclass(frozen=True, slots=True)
class WorkflowPart:
    """What a brief says of one of several workflows."""

    name: str
    role: PackRole
    text: str


def workflow_parts(brief: Brief) -> tuple[WorkflowPart, ...]:
    """Return the workflows a brief asks for if it asks for several, else nothing.

    It does when it speaks of two, several or separate workflows or a pack, or names two of which
    one follows the other. They are called what it calls them, and each is told by the words up to
    the next; where it names fewer than two, they are the preparation and the work itself.
    """
    said, text = brief.wording, brief.wording.text
    asked = said.find(_ASKED)
    places = _mentions(text)
    if asked is None and (len(places) < 2 or not said.has(_FOLLOWS)):
        return ()
    if len(places) < 2:
        steps = ("Preparation", "Execution", "Follow Up", "Reporting")
        number = _NUMBERS.get((asked or "two").split()[0].lower(), 2)
        subject = pascal_case(brief.domain.thing, "Request")
        places = [(0, f"{subject}{pascal_case(it, 'Work')}") for it in steps[:number]]
        texts = [text] * number
    else:
        ends = [*(start for start, _ in places[1:]), len(text)]
        begins = [0, *ends[:-1]]
        texts = [text[start:end] for start, end in zip(begins, ends, strict=True)]
    return tuple(
        WorkflowPart(name, _role(number, text), text)
        for number, ((_, name), text) in enumerate(zip(places, texts, strict=True))
    )


def _mentions(text: str) -> list[tuple[int, str]]:
    """Return each workflow that is spoken of, and where the words about it begin.

    They begin with the sentence, or where a sentence speaks of two, with the mention.
    """
    names: dict[str, int] = {}
    before = 0
    for found in _MENTION.finditer(text):
        words = (found["after"] or found["before"]).split()
        name = pascal_case(" ".join(it for it in words if not is_small(it)), "")
        if name and name not in names:
            begin = max(text.rfind(it, 0, found.start()) for it in (". ", ".\n", "\n\n"))
            names[name] = begin + 1 if begin > before else found.start()
            before = found.start()
    return [(at, name) for name, at in names.items()][:_MOST]


def _role(number: int, text: str) -> PackRole:
    if number == 0:
        return "primary"
    return "independent" if Wording(text).has(_ALONE) else "dependent"


def briefs_of(brief: Brief, selection: PatternSelection) -> tuple[Brief, ...]:
    """Return what a brief says of each workflow of the selection.

    Of several, each has the people, data and services its own words call for. What the person
    answered beyond the defaults, and an approval no part speaks of, is for the first.
    """
    if len(selection.workflows) == 1:
        return (brief,)
    texts = {it.name: it.text for it in workflow_parts(brief)}
    parts = [
        read_brief(texts.get(it.name, it.description), {"goal": it.name}, brief.comments)
        for it in selection.workflows
    ]
    approving = [it for it in parts if it.approver] or parts[:1]
    shared = [
        replace(
            part,
            trigger=brief.trigger,
            initiated_by=brief.initiated_by,
            schedule=brief.schedule,
            approver=brief.approver if part in approving else None,
            integrations=tuple(it for it in part.integrations if it in brief.integrations),
        )
        for part in parts
    ]
    usual = read_brief(brief.text, {}, brief.comments)
    shared[0] = replace(
        shared[0],
        specialists=_joined(shared[0].specialists, brief.specialists, usual.specialists),
        integrations=_joined(shared[0].integrations, brief.integrations, usual.integrations),
        risks=shared[0].risks or brief.risks,
    )
    return tuple(shared)


def _joined(
    own: tuple[str, ...], asked: tuple[str, ...], usual: tuple[str, ...]
) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*own, *(it for it in asked if it not in usual))))
