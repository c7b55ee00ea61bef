"""The handoffs of a run, with the rules that were evaluated."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from weft.engine.events import ConditionJudged, Event, HandedOff, Usage
from weft.engine.events.codec import parse_reply
from weft.findings import Json
from weft.inspect.steps import record_of
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judgement of a condition by a model or by similarity. `verdict` is its result in words.

    Where descriptions were compared, `scores` has the similarity of each, by rule, and
    `comparison` the same in words.
    """

    seq: int
    at: int
    agent: str
    rule: int
    target: str
    condition: str
    holds: bool
    verdict: str
    #: Why there is no verdict.
    error: str
    model: str
    answerer: str
    usage: Usage
    scores: Mapping[int, float] = field(default_factory=dict[int, float])
    comparison: str = ""


@dataclass(frozen=True, slots=True)
class EvaluatedRule:
    """A rule that was evaluated, in order, and its result.

    `verdict` is yes, no, always for a rule without a condition, or why there is no answer; with
    the model's reason if a model judged it.
    """

    rule: int
    target: str
    condition: str | None
    verdict: str


@dataclass(frozen=True, slots=True)
class HandoffRecord:
    """A handoff; rule and condition are those of the declared one that decided, if one did."""

    seq: int
    at: int
    source: str
    target: str
    why: str
    rule: int | None
    condition: str | None
    evaluated: tuple[EvaluatedRule, ...]


def condition_of(workflow: Workflow, data: HandedOff) -> str | None:
    """Return the condition of the rule that decided a handoff, as the author wrote it."""
    handoffs = workflow.spec.handoffs
    known = data.rule is not None and data.rule < len(handoffs)
    return handoffs[data.rule or 0].condition if known else None


def judgement_record(workflow: Workflow, event: Event, data: ConditionJudged) -> Judgement:
    """Return the record of a judgement."""
    handoffs = workflow.spec.handoffs
    rule = handoffs[data.rule] if data.rule < len(handoffs) else None
    scores = {int(index): score for index, score in data.scores.items()}
    word = _verdict_word(data.rule, scores, holds=data.holds)
    reason = _reason(data.text)
    return record_of(
        Judgement,
        event,
        agent=event.actor.removeprefix("agent:"),
        target=rule.target_agent if rule else "",
        condition=(rule.condition if rule else None) or "",
        verdict=data.error or (f"{word}, because {reason}" if reason else word),
        error=data.error,
        scores=scores,
        comparison=", ".join(
            f"{handoffs[index].target_agent} {scores[index]:.2f}" for index in scores
        ),
    )


def _verdict_word(rule: int, scores: Mapping[int, float], *, holds: bool) -> str:
    word = "yes" if holds else "no"
    return f"{word}, similarity {scores[rule]:.2f}" if rule in scores else word


def _reason(text: str) -> str:
    """Return the model's reason, if it gave one."""
    try:
        found = parse_reply(text)
    except ValueError:
        return ""
    reason = cast("dict[str, Json]", found).get("reason") if isinstance(found, dict) else None
    return reason.strip().rstrip(".") if isinstance(reason, str) else ""


def handoff_record(
    workflow: Workflow, event: Event, data: HandedOff, judged: Iterable[Judgement] = ()
) -> HandoffRecord:
    """Return the record of a handoff, with the evaluated rules and the judgements."""
    rules = tuple(_evaluated_rules(workflow, data, {each.rule: each for each in judged}))
    condition = condition_of(workflow, data)
    return record_of(HandoffRecord, event, condition=condition, evaluated=rules)


def _evaluated_rules(
    workflow: Workflow, data: HandedOff, judged: Mapping[int, Judgement]
) -> Iterator[EvaluatedRule]:
    """Yield the evaluated rules, and the fallback if it decided."""
    handoffs = workflow.spec.handoffs
    verdicts = {
        int(rule): _verdict(int(rule), judged, holds=holds)
        for rule, holds in data.evaluated.items()
    }
    if data.why == "fallback" and data.rule is not None:
        verdicts[data.rule] = "always"
    for rule, verdict in verdicts.items():
        if rule < len(handoffs):  # Another version of the package may have fewer.
            yield EvaluatedRule(
                rule, handoffs[rule].target_agent, handoffs[rule].condition, verdict
            )


def _verdict(rule: int, judged: Mapping[int, Judgement], *, holds: bool) -> str:
    """Return the verdict of a rule; a rule in words was judged by a model or compared."""
    if rule in judged:
        return judged[rule].verdict
    for judgement_record in judged.values():
        if rule in judgement_record.scores:
            return _verdict_word(rule, judgement_record.scores, holds=holds)
    return "yes" if holds else "no"
