"""The interview: what a person is asked about a brief, and what counts where nobody answers."""

import re
from typing import Final

from weft.generator.designer.text import LONGEST_TEXT, Wording, is_small, plain_line
from weft.generator.designer.words import KNOWERS, ROLES, SERVICES, find_domain, usual_team
from weft.spec.plan import Trigger

NOBODY: Final = "nobody"
NONE: Final = "none"
NO_RISK: Final = "nothing in particular"
#: Who approves where a brief speaks of approval and names nobody.
SOMEBODY: Final = "person in charge"
#: How many of a list are taken.
MOST: Final = 6
_GOAL: Final = "Work on requests and return a result"

#: When the clock starts a workflow, in the words that its schedule is made of; the first counts.
_SCHEDULES: Final = {
    "every hour": "hourly|every hour|each hour|stundlich*|jede stunde|cada hora|chaque heure",
    "every weekday": "every weekday|each weekday|on weekdays|every working day|werktags",
    "every month": "monthly|every month|each month|monatlich|jeden monat|cada mes|chaque mois|毎月",
    **{
        f"every {'' if day in ('monday', 'friday') else 'week, on '}{day.title()}": (
            f"every {day}|each {day}|on {day}s|jeden {german}|{german}s|cada {spanish}"
            f"|los {spanish}*|chaque {french}|毎週{japanese}"
        )
        for day, german, spanish, french, japanese in (
            ("monday", "montag", "lunes", "lundi", "月曜"),
            ("tuesday", "dienstag", "martes", "mardi", "火曜"),
            ("wednesday", "mittwoch", "miercoles", "mercredi", "水曜"),
            ("thursday", "donnerstag", "jueves", "jeudi", "木曜"),
            ("friday", "freitag", "viernes", "vendredi", "金曜"),
            ("saturday", "samstag", "sabado", "samedi", "土曜"),
            ("sunday", "sonntag", "domingo", "dimanche", "日曜"),
        )
    },
    "every week": "weekly|every week|each week|wochentlich*|jede woche|cada semana|毎週",
    "every night": "nightly|every night|each night|at midnight|jede nacht|cada noche|chaque nuit",
    "every day": "daily|every day|every morning|each morning|taglich*|jeden tag|jeden morgen|diario"
    "|diariamente|cada dia|chaque jour|毎朝|毎日|"
    + "|".join(
        f"at {hour} {half}|at {hour}{half}" for hour in range(1, 13) for half in ("am", "pm")
    ),
}
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
            "falls below|drops below|goes below|fallt unter|cae por debajo|passe sous",
            "new row|row appears|record changes|status changes|in der datenbank andert|下回",
        ),
    ),
    "schedule": (
        "schedule",
        ("schedule*|cron|zeitplan|programado", *_SCHEDULES.values()),
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
    "|approuv*|validation finale|承認|confirms|must confirm|has to confirm|confirmed by|bestatigt"
    "|final say|last word|ok from|okay from"
)
_NO_APPROVAL: Final = (
    "no approval|without approval|without any approval|nobody approves|no one approves"
    "|no sign off|without sign off|ohne freigabe|sin aprobacion|sans approbation|承認は不要"
)
_ARTICLES: Final = (
    r"(?:the|our|a|an|my|their|your|der|die|den|dem|unser\w*|la|el|le|su|nuestr[oa])\s+"
)
_WHO: Final = rf"(?:{_ARTICLES})?((?:[^\W\d_][\w-]*\s){{0,2}}[^\W\d_][\w-]*)"
_APPROVED_BY: Final = (
    re.compile(
        r"(?:approved|approval|signed[ -]off|sign[ -]?off|freigabe|aprobad[oa]|aprobación|approuvé)"
        rf"e?\s+(?:by|from|of|durch|por|de|par)\s+{_WHO}",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?:von|vom)\s+{_WHO}\s+(?:freigegeben|genehmigt)", re.IGNORECASE),
    re.compile(
        rf"{_ARTICLES}((?:[^\W\d_][\w-]*\s){{0,2}}?[^\W\d_][\w-]*)\s"
        r"(?:must\s|has to\s|should\s|needs to\s|then\s|finally\s|always\s)?"
        r"(?:approves?|confirms?|signs?[ -]off|genehmigt|bestätigt|aprueba)\b",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:asks?|ok from|okay from|confirmed by)\s+{_WHO}\s+(?:before|first)\b", re.IGNORECASE
    ),
)
_RISKY: Final = (
    "must not|must never|never|careful|risk*|danger*|sensitive|confidential|personal data"
    "|go wrong|goes wrong|fraud*|auf keinen fall|niemals|vertraulich*|nunca|jamais|confidencial*"
    "|個人情報"
)
_ROLES: Final = frozenset({*ROLES, *KNOWERS})
#: Who is called after what follows: "head of claims".
_HEADS: Final = frozenset({"head", "chief", "director", "jefe", "jefa", "manager"})
#: Words have an end: a search through thousands of letters in one piece would take minutes.
_ITEM: Final = r"(?:an? |the )?[^\W\d_][\w-]{0,40}(?: [^\W\d_][\w-]{0,40})?"
_LIST: Final = re.compile(
    rf"(?<![\w-])((?:{_ITEM}(?:, (?:and |or )?| and | or )){{1,5}}{_ITEM})\s+"
    r"(specialist|expert|agent|team|desk|advis[eo]r|engineer|analyst)s?\b",
    re.IGNORECASE,
)
#: A short first line stands by itself.
_TITLE: Final = re.compile(r"\A([^\n,.!?:]{3,40})\n")
_GREETING: Final = re.compile(
    r"\A(?:hi|hello|hey|dear|good (?:morning|day|afternoon|evening)|hallo|guten (?:tag|morgen)"
    r"|hola|buenos días|bonjour)\b(?!-)(?: (?:all|there|team|everyone|everybody|zusammen)\b)*"
    r"(?:[.]|(?: [^\W\d_]+){0,3}(?:[,!:\n]+| - |$))?\s*",
    re.IGNORECASE,
)
_EMPTY: Final = re.compile(
    r"(?:thank|(?:i |we )?hope (?:you|this|all)|how are you|my name is \w+\W*$|please help"
    r"|can you help|(?:i|we) need (?:your )?help\W*$|i have an idea|vielen dank|gracias|merci)",
    re.IGNORECASE,
)


def defaults(text: str) -> dict[str, str]:
    """Return the answer to each question that is taken where nobody gives another.

    The goal is the first sentence that says something. What starts it and which services it uses
    follows from words of the brief; a chat and none without them. Nobody approves unless the brief
    speaks of it. Specialists are those the brief names; one alone comes after those of the domain,
    which also says who takes part where nobody is named, and which data there is.
    """
    wording = Wording(text[:LONGEST_TEXT])
    domain = find_domain(wording)
    approver = named_approver(wording)
    people = [it for it in named_specialists(wording) if it != approver]
    if len(people) < 2:
        people = [*usual_team(wording, domain), *people]
    risk = _risk(wording)
    services = [name for name, terms in SERVICES.items() if _uses(wording, Wording(risk), terms)]
    return {
        "goal": _first_sentence(wording.text) or _GOAL,
        "started_by": _STARTS[likely_start(wording)][0],
        "approver": approver or NOBODY,
        "data": ", ".join(name for name, _ in domain.data),
        "integrations": ", ".join(services[:MOST]) or NONE,
        "specialists": ", ".join(dict.fromkeys(people)),
        "risks": plain_line(risk) or NO_RISK,
    }


def _uses(wording: Wording, risk: Wording, terms: str) -> bool:
    """Tell whether a service is named; that nothing may be sent by mail is no reason to send."""
    return any(wording.count(it) > risk.count(it) for it in terms.split("|"))


def likely_start(wording: Wording) -> Trigger:
    """Return what starts the workflow, after most of its words; a chat without any."""
    scores: dict[Trigger, int] = {
        trigger: sum(wording.has(terms) for terms in groups)
        for trigger, (_, groups) in _STARTS.items()
    }
    most = max(scores.values())
    likely: list[Trigger] = [it for it, score in scores.items() if score == most]
    return likely[0] if most else "chat"


def named_start(answer: str) -> Trigger:
    """Return what an answer names as the start."""
    wording = Wording(answer)
    named: list[Trigger] = [it for terms, it in _NAMES.items() if wording.has(terms)]
    return named[0] if named else likely_start(wording)


def named_schedule(text: str) -> str | None:
    """Return when a text says that something happens again and again, in English."""
    wording = Wording(text)
    return next((when for when, terms in _SCHEDULES.items() if wording.has(terms)), None)


def named_approver(wording: Wording) -> str | None:
    """Return who approves: the role the text names, a person in charge, or None."""
    if wording.has(_NO_APPROVAL):
        return None
    for pattern in _APPROVED_BY:
        for found in pattern.finditer(wording.text):
            if name := _role(found[1]):
                return name
    return SOMEBODY if wording.has(_APPROVAL) else None


def _role(phrase: str) -> str:
    """Return the words of a role: up to the first small one."""
    role: list[str] = []
    for word in phrase.split():
        if is_small(word) and not (role and role[-1] in _HEADS and word.lower() in ("of", "de")):
            break
        role.append(word.lower())
    return plain_line(" ".join(role), 40)


def named_specialists(wording: Wording) -> list[str]:
    """Return the people a text names by a word for a role, in its order, in lower case."""
    found: list[str] = []
    for listing in _LIST.finditer(wording.text):
        subjects = re.split(r",\s*(?:and |or )?| and | or ", listing[1].lower())
        role = listing[2].lower()
        kept = [" ".join(_before(it.split())) for it in subjects]
        if all(kept):
            found += [f"{it} {'specialist' if role == 'team' else role}" for it in kept]
    words = wording.words
    for place, word in enumerate(words):
        role = word.removesuffix("s")
        if _is_role(word):
            subject = _before(words[max(0, place - 2) : place])
            if subject or role in ROLES:
                found.append(" ".join([*subject, role]))
    unlike = [it for it in found if not any(it != other and it in other for other in found)]
    return [plain_line(it, 40) for it in dict.fromkeys(unlike)][:MOST]


def _is_role(word: str) -> bool:
    return word.removesuffix("s") in _ROLES


def _before(words: list[str]) -> list[str]:
    """Return the last words, back to the first small one."""
    kept: list[str] = []
    for word in reversed(words):
        if is_small(word) or not word.isalpha() or _is_role(word):
            break
        kept.insert(0, word)
    return kept


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+|(?<=。)|\n\s*\n", text)


def _first_sentence(text: str) -> str:
    """Return the first sentence that says something, without a greeting."""
    parted = _TITLE.sub("\\1\n\n", text[:4000])
    told = (_GREETING.sub("", it.strip(" \n#*")) for it in _sentences(parted))
    lines = [it for it in (plain_line(it) for it in told) if any(sign.isalnum() for sign in it)]
    goal = next((it for it in lines if not _EMPTY.match(it)), next(iter(lines), ""))
    goal = goal[:1].upper() + goal[1:]
    return goal if goal.endswith("...") else goal.rstrip(".。")


def _risk(wording: Wording) -> str:
    """Return the first sentence that holds the first word of danger."""
    quote = wording.find(_RISKY)
    return next((it for it in _sentences(wording.text) if quote and quote in it), "")
