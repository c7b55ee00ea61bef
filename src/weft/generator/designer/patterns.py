"""Which pattern a brief calls for: each word that speaks for one counts, and is named."""

from dataclasses import dataclass
from typing import Final

from weft.generator.designer.brief import Brief, without_directives
from weft.generator.designer.several import WorkflowPart, workflow_parts
from weft.generator.designer.team import words_of
from weft.generator.designer.text import Wording, fold, plain_line
from weft.generator.designer.titles import title_of
from weft.generator.names import pascal_case, unique
from weft.spec.patterns import PATTERN_BY_ID, PATTERNS, Pattern
from weft.spec.plan import PatternSelection, PlannedWorkflow
from weft.spec.workflow import PackRole

#: Terms that speak for a pattern and how much, by its number; each row counts once.
SIGNALS: Final[dict[int, tuple[tuple[int, str], ...]]] = {
    1: (
        (4, "route|routes|routed|routing|router|weiterleit*|weitergeleitet|振り分け"),
        (3, "right specialist|right expert|right department|right team|right person|right desk"),
        (3, "zustandig*|acheminer|aiguill*|orienter|derivar|dirigir|encamin*|enrut*|担当者"),
        (2, "depending on|je nach|segun el|selon le|according to the topic|by topic|by subject"),
        (2, "forwarded to|forwards|forward it|passed on to|directed to|goes to whoever"),
        (1, "classif*|categor*|einordn*|clasific*"),
    ),
    2: (
        (4, "escalat*|eskalier*|eskalation*|escalar|escala|escalad*|エスカレーション"),
        (3, "first line|first level|tier 1|tier one|level 1|first tier|ersten ebene|primer nivel"),
        (3, "cannot solve|can t solve|cannot resolve|cannot answer|too hard|too difficult|harder"),
        (2, "second line|second level|tier 2|tier two|level 2|level 3|tier 3|segundo nivel"),
        (2, "more experienced|more senior|senior*|stronger|moves up|move up|handed up"),
    ),
    3: (
        (4, "review until|revise until|reviewed until|revised until|until the reviewer"),
        (3, "revis*|rework*|redraft*|rewrit*|uberarbeit*|corrig*|remanier*|推敲|修正"),
        (2, "until|bis der|bis die|bis alles|hasta que|jusqu a ce"),
        (2, "feedback|ruckmeldung*|comentarios|retours"),
        (2, "iterat*|again and again|rounds|loop|critici*|critique*|sent back|goes back|it back"),
        (1, "review*|draft*|entwurf*|borrador*|brouillon*|polish*|improve*"),
    ),
    4: (
        (5, "hierarch*|jerarqui*|階層"),
        (4, "sub team*|subteam*|team lead|team leads|teamleit*|chefs d equipe|leads who"),
        (3, "delegat*|delegier*|delegar|delega|delegue*"),
        (2, "managers|department head*|heads of|director|departments|under them|their workers"),
        (1, "report to|reports to|teams"),
    ),
    5: (
        (4, "brainstorm*|lluvia de ideas|remue meninges|round table|roundtable|ブレスト"),
        (3, "discuss*|debate*|diskutier*|discut*|debat*|話し合|議論"),
        (3, "freely|free flowing|open discussion|whoever has|whoever wants|as equals|libremente"),
        (2, "each other|peers|among themselves|miteinander|entre ellos|entre eux"),
        (1, "together|creative|exchange ideas"),
    ),
    6: (
        (4, "step by step|schritt fur schritt|paso a paso|etape par etape|pipeline|assembly line"),
        (3, "one after the other|one after another|in sequence|in this order|nacheinander|順番"),
        (2, "stages|steps|phases|schritte*|pasos|etapes"),
        (1, "first|zuerst|primero|d abord|まず"),
        (1, "then|danach|dann|anschliessend|luego|despues|ensuite|puis|次に"),
        (1, "finally|at the end|zum schluss|schliesslich|finalmente|por ultimo|enfin|最後に"),
    ),
    7: (
        (4, "second opinion*|two opinions|three opinions|zweite meinung|segunda opinion"),
        (4, "redundan*|複数の回答"),
        (3, "independently|independent opinion*|independent answer*|independent assessment*"),
        (3, "unabhangig*|independientemente|independamment|without seeing each other|in parallel"),
        (3, "pick the best|picks the best|choose the best|chooses the best|best answer|vote*"),
        (2, "majority|consensus|same question|same case|same task|cross check*"),
        (1, "compare*|vergleich*"),
    ),
    8: (
        (4, "hub|coordinator*|koordinator*|coordinador*|coordinateur*|取りまとめ|調整役"),
        (3, "coordinat*|koordinier*|coordina|central*|zentral*"),
        (3, "consult*|asks each|ask each|asks the specialist*|asks specialist*|befrag*"),
        (2, "brings together|bring together|puts together|combines|combine|merges|collects"),
        (2, "one point of contact|single point of contact|one contact"),
    ),
    9: (
        (5, "triage*|triagier*|triaje|トリアージ"),
        (3, "tasks|task list|to do|to dos|todo*|aufgaben*|tareas|taches|checklist*|タスク"),
        (3, "breaks down|break down|broken down|break them down|zerleg*|worked off|backlog"),
        (2, "prioriti*|priorisier*|prioriz*|urgent|urgency|dringend*|severity|優先"),
    ),
}
#: Its own name speaks for a pattern more than anything else.
_BY_NAME: Final = 6
#: What a pattern needs to be chosen: one word that occurs everywhere is not enough.
_ENOUGH: Final = 2
#: Of equal scores, the rarer intent first; the words of a pipeline occur in any story.
_ORDER: Final = (7, 4, 2, 9, 3, 1, 8, 5, 6)
_PIPELINE: Final = PATTERN_BY_ID[6]


@dataclass(frozen=True, slots=True)
class Choice:
    """The selection, why it was made, and the score of each pattern by title."""

    selection: PatternSelection
    reasons: tuple[str, ...]
    scores: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _Score:
    pattern: Pattern
    points: int
    quotes: tuple[str, ...]


def choose_pattern(brief: Brief) -> Choice:
    """Choose the pattern most words speak for, and tell whether several workflows are meant.

    Words of comments count twice, those of directives not. `pattern: X` in a comment
    decides for the first workflow.
    """
    parts = workflow_parts(brief)
    if not parts:
        scores = _scores(brief.wording, brief)
        pattern, reason = _decide(scores, brief.pattern)
        title = title_of(brief, pattern)
        name = pascal_case(title, "Workflow")
        planned = (_planned(name, "primary", brief.goal, pattern),)
        selection = PatternSelection(is_multi_workflow=False, pack_name=title, workflows=planned)
        reasons = (reason, *_others(scores, pattern), _field(brief))
        return Choice(selection, reasons, _table(scores))
    return _several(brief, parts)


def _several(brief: Brief, parts: tuple[WorkflowPart, ...]) -> Choice:
    planned: list[PlannedWorkflow] = []
    reasons: list[str] = []
    names: list[str] = []
    for number, part in enumerate(parts):
        scores = _scores(Wording(part.text), brief)
        pattern, reason = _decide(scores, None if number else brief.pattern)
        names.append(unique(part.name, names))
        planned.append(_planned(names[-1], part.role, part.text, pattern))
        reasons.append(f"{names[-1]}: {reason}")
    titles = [words_of(it).title() for it in names]
    why = f"The brief asks for {len(parts)} workflows: {', '.join(names)}."
    selection = PatternSelection(
        is_multi_workflow=True,
        decomposition_reason=why,
        pack_name=plain_line(f"{', '.join(titles[:-1])} and {titles[-1]}", 60),
        workflows=tuple(planned),
    )
    scores = _table(_scores(brief.wording, brief))
    return Choice(selection, (why, *reasons, _field(brief)), scores)


def _field(brief: Brief) -> str:
    """Say which field of work was recognised, and by which word."""
    terms = brief.domain.terms
    found = brief.wording.find(terms) if terms else None
    if found is None:
        return "No field of work was recognised: the team is a general one."
    return f"Field of work: {brief.domain.name}, because of '{found}'."


def _planned(name: str, role: PackRole, text: str, pattern: Pattern) -> PlannedWorkflow:
    return PlannedWorkflow.model_validate(
        {
            "name": name,
            "role": role,
            "description": plain_line(text, 240) or name,
            "pattern_id": pattern.id,
            "pattern_name": pattern.title,
        }
    )


def _scores(wording: Wording, brief: Brief) -> list[_Score]:
    comments = [Wording(without_directives(it)) for it in brief.comments]
    return [_score(pattern, wording, comments) for pattern in PATTERNS]


def _score(pattern: Pattern, wording: Wording, comments: list[Wording]) -> _Score:
    points, quotes = 0, list[str]()
    name = fold(pattern.title.replace("-", " "))
    # The plain word "star" or "organic" is no name of a pattern.
    named = (_BY_NAME, name if " " in name else f"{name} pattern")
    for weight, terms in (named, *SIGNALS[pattern.id]):
        for said, times, where in (
            (wording, 1, ""),
            *((it, 2, " in a comment") for it in comments),
        ):
            if quote := said.find(terms):
                points += weight * times
                quotes.append(f"'{quote}'{where}")
    return _Score(pattern, points, tuple(dict.fromkeys(quotes)))


def _decide(scores: list[_Score], wanted: Pattern | None) -> tuple[Pattern, str]:
    if wanted is not None:
        return wanted, f"{wanted.title}: a comment says 'pattern: {wanted.title}'."
    best = max(scores, key=lambda it: (it.points, -_ORDER.index(it.pattern.id)))
    if best.points < _ENOUGH:
        return _PIPELINE, "Pipeline: no word of the brief spoke for another pattern."
    return best.pattern, f"{best.pattern.title}: the brief says {_quoted(best.quotes)}."


def _others(scores: list[_Score], chosen: Pattern) -> tuple[str, ...]:
    """Say what spoke for other patterns."""
    return tuple(
        f"Not {it.pattern.title} ({it.points} point{'s' if it.points > 1 else ''}): "
        f"the brief says {_quoted(it.quotes)}."
        for it in sorted(scores, key=lambda it: -it.points)
        if it.points and it.pattern != chosen
    )


def _quoted(quotes: tuple[str, ...]) -> str:
    return " and ".join(filter(None, (", ".join(quotes[:-1]), quotes[-1])))


def _table(scores: list[_Score]) -> tuple[tuple[str, int], ...]:
    return tuple((it.pattern.title, it.points) for it in scores)
