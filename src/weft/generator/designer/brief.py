"""The brief: what a person wants, read once into data that the rules of the designer use."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from weft.generator.designer.interview import (
    MOST,
    NO_RISK,
    SOMEBODY,
    defaults,
    named_schedule,
    named_start,
)
from weft.generator.designer.text import LONGEST_TEXT, Wording, fold, plain_line
from weft.generator.designer.words import MESSENGERS, Domain, find_domain, usual_team
from weft.generator.names import pascal_case
from weft.spec.orchestrator import InitiatedBy
from weft.spec.patterns import Pattern, find_pattern
from weft.spec.plan import Trigger

_INITIATED_BY: Final[dict[Trigger, InitiatedBy]] = {
    "chat": "user",
    "form_submit": "user",
    "schedule": "system",
    "database_condition": "system",
    "webhook": "external_event",
}
_NOTHING: Final = "nobody|none|no one|nothing|no|niemand|nadie|personne|keine*|ninguno|nadie|なし"
#: A name in a comment: up to four whole words of a line, back to the first that goes on.
_NAME: Final = (
    r"((?:(?!(?:and|but|please|because|so|then|instead|as|who|from)\b)[^\W_][\w-]*+[ ]?){1,4})"
)
_PATTERN, _TRIGGER, _NO_APPROVAL, _APPROVAL, _ADD, _RENAME, _REMOVE = _DIRECTIVES = tuple(
    re.compile(it, re.IGNORECASE)
    for it in (
        rf"\bpattern\s*:\s*{_NAME}",
        rf"\btrigger\s*:\s*{_NAME}",
        r"\bno approval\b",
        rf"\bapproval by {_NAME}",
        rf"\badd (?:an? )?specialist {_NAME}",
        rf"\brename (?:the )?{_NAME}to {_NAME}",
        rf"\bremove (?:the )?{_NAME}",
    )
)


@dataclass(frozen=True)
class Brief:
    """What shall be made."""

    goal: str
    text: str
    trigger: Trigger
    initiated_by: InitiatedBy
    approver: str | None
    data: tuple[str, ...]
    #: PascalCase.
    integrations: tuple[str, ...]
    specialists: tuple[str, ...]
    risks: str | None
    #: When it starts, where the clock starts it: "every week".
    schedule: str | None = None
    comments: tuple[str, ...] = ()
    #: What comments directed: the pattern, who is left out, and new names of agents.
    pattern: Pattern | None = None
    removed: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()

    @cached_property
    def wording(self) -> Wording:
        """All that was said in the brief, and in answers that say more."""
        text = Wording(self.text)
        more = [it for it in (self.goal, self.risks) if it and not text.repeats(it)]
        return Wording("\n\n".join((self.text, *more))) if more else text

    @cached_property
    def domain(self) -> Domain:
        """The domain it speaks of; comments say how it is worked on, not on what."""
        return find_domain(self.wording)

    def name_before(self, agent: str) -> str:
        """Return what an agent was called before a comment gave it another name."""
        return next((old for old, new in self.renamed if _same(new, agent)), agent)

    @property
    def is_usual_team(self) -> bool:
        """Whether the specialists begin with those of the domain, since nobody named others."""
        usual = usual_team(self.wording, self.domain)
        return self.specialists[: len(usual)] == usual

    @property
    def messengers(self) -> tuple[str, ...]:
        """The services that carry messages to people."""
        return tuple(it for it in self.integrations if it in MESSENGERS)

    @property
    def services(self) -> tuple[str, ...]:
        """The other services: those that know something."""
        return tuple(it for it in self.integrations if it not in MESSENGERS)


def read_brief(text: str, answers: Mapping[str, str], comments: Sequence[str] = ()) -> Brief:
    """Read a brief, the answers about it, and what was said of earlier plans.

    An answer that is not blank wins over the default that follows from the text. Words of comments
    speak for a pattern; besides, these directives in them are followed, the last one winning:
    `pattern: X`, `trigger: X`, `add specialist X`, `remove X`, `rename X to Y`, `no approval`,
    `approval by X`. Whatever else stands anywhere is words and nothing more.
    """
    text = text[:LONGEST_TEXT]
    given = {name: it for name, it in answers.items() if plain_line(it)}
    answer = {**defaults(text), **given}
    trigger = named_start(answer["started_by"])
    risks = plain_line(answer["risks"])
    brief = Brief(
        goal=plain_line(answer["goal"]),
        text=text,
        trigger=trigger,
        initiated_by=_INITIATED_BY[trigger],
        approver=_one(answer["approver"]),
        data=_listed(answer["data"]),
        integrations=_services(answer["integrations"]),
        specialists=_listed(answer["specialists"]),
        risks=None if risks == NO_RISK or _is_nothing(risks) else risks,
        schedule=named_schedule(answer["started_by"]) or named_schedule(text),
        comments=tuple(it[:LONGEST_TEXT] for it in comments if it.strip()),
    )
    for comment in brief.comments:
        brief = _directed(brief, comment)
    return brief


def _is_nothing(answer: str) -> bool:
    return len(answer.split()) <= 3 and Wording(answer).has(_NOTHING)


def _one(answer: str) -> str | None:
    line = re.sub(r"^(?:the|our|a|an|my)\s+", "", plain_line(answer, 40), flags=re.IGNORECASE)
    return None if not line or _is_nothing(line) else line


def _listed(answer: str) -> tuple[str, ...]:
    if _is_nothing(answer):
        return ()
    items = (_one(it) for it in re.split(r"[,;、\n]|\band\b", answer[:2000]))
    return tuple(dict.fromkeys(it for it in items if it and pascal_case(it, "")))[:MOST]


def _services(answer: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pascal_case(it, "Service") for it in _listed(answer)))


def _same(one: str, other: str) -> bool:
    """Tell whether a person and an agent, or two spellings of one, are the same."""
    return fold(pascal_case(one, "")) == fold(pascal_case(other, ""))


def without_directives(comment: str) -> str:
    """Return a comment without the words of its directives."""
    for directive in _DIRECTIVES:
        comment = directive.sub(" ; ", comment)
    return comment


def _directed(brief: Brief, comment: str) -> Brief:
    """Follow the directives of one comment."""
    if found := _PATTERN.search(comment):
        brief = replace(brief, pattern=_pattern(found[1]) or brief.pattern)
    if found := _TRIGGER.search(comment):
        trigger = named_start(found[1])
        schedule = named_schedule(found[1]) or brief.schedule
        brief = replace(
            brief, trigger=trigger, initiated_by=_INITIATED_BY[trigger], schedule=schedule
        )
    if _NO_APPROVAL.search(comment):
        brief = replace(brief, approver=None)
    if found := _APPROVAL.search(comment):
        brief = replace(brief, approver=_one(found[1]) or SOMEBODY)
    for added in _ADD.findall(comment):
        brief = replace(brief, specialists=_with(brief.specialists, added))
    for left, taken in _RENAME.findall(comment):
        earlier = ((old, taken if _same(new, left) else new) for old, new in brief.renamed)
        brief = replace(brief, renamed=(*earlier, (left, taken)))
    for name in _REMOVE.findall(comment):
        brief = _without(brief, name)
    return brief


def _pattern(named: str) -> Pattern | None:
    """Return the pattern that the first words name."""
    words = named.split()
    titles = (" ".join(words[:number]) for number in range(len(words), 0, -1))
    return next((found for it in titles if (found := find_pattern(it))), None)


def _with(specialists: tuple[str, ...], added: str) -> tuple[str, ...]:
    name = _one(added)
    if name is None or not pascal_case(name, "") or any(_same(name, it) for it in specialists):
        return specialists
    return (*specialists, name)


def _without(brief: Brief, named: str) -> Brief:
    """Leave out the specialist that the first words name."""
    words = named.split()
    for number in range(len(words), 0, -1):
        name = " ".join(words[:number])
        if any(_same(name, it) for it in brief.specialists):
            kept = tuple(it for it in brief.specialists if not _same(name, it))
            return replace(brief, specialists=kept, removed=(*brief.removed, name))
    return brief
