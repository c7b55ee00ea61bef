"""The interview: what a person is asked about a brief, and what counts where nobody answers."""

import re
from dataclasses import dataclass
from typing import Final

from weft.generator.designer.text import LONGEST_TEXT, Wording, plain_line
from weft.generator.designer.words import KNOWERS, ROLES, SERVICES, find_domain
from weft.spec.plan import Trigger


@dataclass(frozen=True, slots=True)
class Question:
    """One question of the form."""

    name: str
    text: str
    help: str


QUESTIONS: Final = (
    Question("goal", "What shall the workflow achieve?", "One sentence; it names the workflow."),
    Question(
        "started_by",
        "What starts it?",
        "chat, form, schedule, webhook or database change.",
    ),
    Question("approver", "Who approves the result?", "A role, such as finance manager; or nobody."),
    Question("data", "Which data does it work with?", "Names, parted by commas."),
    Question("integrations", "Which services does it use?", "Names, parted by commas; or none."),
    Question("specialists", "Which specialists take part?", "Roles, parted by commas."),
    Question("risks", "What may go wrong?", "What must not happen; or nothing in particular."),
)

NOBODY: Final = "nobody"
NONE: Final = "none"
NO_RISK: Final = "nothing in particular"
#: Who approves where a brief speaks of approval and names nobody.
SOMEBODY: Final = "person in charge"
#: How many of a list are taken.
MOST: Final = 6
_GOAL: Final = "Work on requests and return a result"

#: What starts a workflow: its word in answers, and what briefs say. Of equal ones the first.
_STARTS: Final[dict[Trigger, tuple[str, tuple[str, ...]]]] = {
    "webhook": (
        "webhook",
        (
            "webhook*",
            "http post|posts to us|post request",
            "callback*|sends us an event",
            "ウェブフック",
        ),
    ),
    "database_condition": (
        "database change",
        (
            "database change*|changes in the database|database condition|database row",
            "falls below|drops below|goes below|fallt unter|unter den mindestbestand|cae por debajo",
            "new row|row appears|record changes|status changes|in der datenbank andert|下回",
        ),
    ),
    "schedule": (
        "schedule",
        (
            "schedule*|cron|zeitplan|programado",
            "nightly|daily|weekly|monthly|hourly|taglich*|wochentlich*|diario|diariamente",
            "every night|every morning|every day|every week|every month|every hour|every evening"
            "|every monday|every friday|each morning|each night|each week|at midnight",
            "jede nacht|jeden tag|jeden morgen|jede woche|cada noche|cada dia|cada semana"
            "|cada manana|chaque jour|chaque nuit|毎朝|毎日|毎週|毎晩",
        ),
    ),
    "form_submit": (
        "form",
        (
            "a form|the form|web form|online form|request form|formular*|formulaire|フォーム",
            "submit*|fills in|fills out|fill in|fill out|eingereicht|enviar el",
        ),
    ),
    "chat": ("chat", ("chat*", "talk*|conversation|ask us|writes to us", "チャット")),
}
_NAMES: Final[dict[str, Trigger]] = {
    "chat|user|person": "chat",
    "form|formular*|formulaire": "form_submit",
    "schedule|cron|clock|timer": "schedule",
    "webhook": "webhook",
    "database*|datenbank*": "database_condition",
}
_APPROVAL: Final = (
    "approv*|sign off|signs off|signed off|signoff|freigabe*|freigegeben|genehmig*|aproba*|aprueb*"
    "|approuv*|validation finale|承認"
)
_NO_APPROVAL: Final = (
    "no approval|without approval|without any approval|nobody approves|no one approves"
    "|no sign off|without sign off|ohne freigabe|sin aprobacion|sans approbation|承認は不要"
)
_ARTICLES: Final = r"(?:the|our|a|an|my|der|die|den|dem|unser\w*|la|el|le|su|nuestr[oa])\s+"
_WHO: Final = rf"(?:{_ARTICLES})?((?:[^\W\d_][\w-]*\s){{0,2}}[^\W\d_][\w-]*)"
_APPROVED_BY: Final = (
    re.compile(
        r"(?:approved|approval|signed[ -]off|sign[ -]?off|freigegeben|genehmigt|freigabe|aprobad[oa]"
        rf"|aprobación|approuvée?)\s+(?:by|from|of|von|durch|por|de|par)\s+{_WHO}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"{_ARTICLES}((?:[^\W\d_][\w-]*\s){{0,2}}?[^\W\d_][\w-]*)\s"
        r"(?:must\s|has to\s|should\s|needs to\s|then\s|finally\s|always\s)?"
        r"(?:approves?|signs?[ -]off|genehmigt|aprueba)\b",
        re.IGNORECASE,
    ),
)
_RISKY: Final = (
    "must not|must never|never|careful|risk*|danger*|sensitive|confidential|personal data|privacy"
    "|go wrong|goes wrong|fraud*|auf keinen fall|niemals|vertraulich*|nunca|jamais|confidencial*"
    "|個人情報"
)
#: Words that end a name when one walks back from its last word.
_SMALL: Final = frozenset(
    "a all an and another any are as at be best both but by can do each either every few first for"
    " from good has have her his in into is it its least make many more most my need needs new next"
    " no of on one or other our own right same second several should some such than that the their"
    " then these they third this those three to two until us use using want we where which who whose"
    " will with you your second-level human real der die das ein eine und oder von el la los las y o"
    " un una de le les et ou ask asks consults consult whichever appropriate suitable matching"
    " different various specialised specialized independent".split()
)
_LIST: Final = re.compile(
    r"((?:[^\W\d_][\w-]*(?:, (?:and |or )?| and | or )){1,5}[^\W\d_][\w-]*)\s+"
    r"(specialist|expert|agent|team|desk|advis[eo]r|engineer|analyst)s?\b",
    re.IGNORECASE,
)


def defaults(text: str) -> dict[str, str]:
    """Return the answer to each question that is taken where nobody gives another.

    The goal is the first sentence. What starts it and which services it uses follows from words of
    the brief; a chat and none without them. Nobody approves unless the brief speaks of it.
    Specialists are those the brief names; where it names none, and for the data, the domain says.
    """
    wording = Wording(text[:LONGEST_TEXT])
    domain = find_domain(wording)
    approver = named_approver(wording)
    people = [it for it in named_specialists(wording) if it != approver]
    services = [name for name, terms in SERVICES.items() if wording.has(terms)]
    return {
        "goal": _first_sentence(wording.text) or _GOAL,
        "started_by": _STARTS[likely_start(wording)][0],
        "approver": approver or NOBODY,
        "data": ", ".join(name for name, _ in domain.data),
        "integrations": ", ".join(services[:MOST]) or NONE,
        "specialists": ", ".join(people or [name for name, _ in domain.team[:3]]),
        "risks": _risk(wording.text) or NO_RISK,
    }


def likely_start(wording: Wording) -> Trigger:
    """Return what starts the workflow, after most of its words; a chat without any."""
    scores = {
        trigger: sum(wording.has(terms) for terms in groups)
        for trigger, (_, groups) in _STARTS.items()
    }
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] else "chat"


def named_start(answer: str) -> Trigger:
    """Return what an answer names as the start."""
    wording = Wording(answer)
    return next((it for terms, it in _NAMES.items() if wording.has(terms)), likely_start(wording))


def named_approver(wording: Wording) -> str | None:
    """Return who approves: the role the text names, a person in charge, or None."""
    if wording.has(_NO_APPROVAL) or not wording.has(_APPROVAL):
        return None
    for pattern in _APPROVED_BY:
        for found in pattern.finditer(wording.text):
            if name := _role(found[1]):
                return name
    return SOMEBODY


def _role(phrase: str) -> str:
    """Return the words of a role: up to the first small one."""
    role: list[str] = []
    for word in phrase.split():
        if word.lower() in _SMALL or word.lower() in {"before", "after", "when", "if", "once"}:
            break
        role.append(word.lower())
    return plain_line(" ".join(role), 40)


def named_specialists(wording: Wording) -> list[str]:
    """Return the people a text names by a word for a role, in its order, in lower case."""
    found: list[str] = []
    for listing in _LIST.finditer(wording.text):
        subjects = re.split(r",\s*(?:and |or )?| and | or ", listing[1].lower())
        role = listing[2].lower()
        last = " ".join(_before(subjects[-1].split()))
        kept = [*(" ".join(_before(it.split())) for it in subjects[:-1]), last]
        found += [f"{it} {'specialist' if role == 'team' else role}" for it in kept if it]
    words = list(wording.words())
    for place, word in enumerate(words):
        role = word.removesuffix("s")
        if role in ROLES or role in KNOWERS:
            subject = _before(words[max(0, place - 2) : place])
            if subject or role in ROLES:
                found.append(" ".join([*subject, role]))
    unlike = [it for it in found if not any(it != other and it in other for other in found)]
    return [plain_line(it, 40) for it in dict.fromkeys(unlike)][:MOST]


def _before(words: list[str]) -> list[str]:
    """Return the last words, back to the first small one."""
    kept: list[str] = []
    for word in reversed(words):
        if word in _SMALL or not word.isalpha() or word.removesuffix("s") in ROLES:
            break
        kept.insert(0, word)
    return kept


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+|(?<=。)|\n\s*\n", text)


def _first_sentence(text: str) -> str:
    lines = (plain_line(it, 160) for it in _sentences(text[:4000]))
    return next((it.rstrip(".。") for it in lines if any(sign.isalnum() for sign in it)), "")


def _risk(text: str) -> str:
    risky = (it for it in _sentences(text) if Wording(it).has(_RISKY))
    return plain_line(next(risky, ""), 160)
