"""The handoffs of a run: to whom, and which rules were asked on the way."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

from weft.engine.conversation.routing import RoutingRule, nearest_rule
from weft.engine.events import ConditionJudged, Event, HandedOff, Usage
from weft.engine.events.codec import read_json, unfenced
from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError
from weft.findings import Json
from weft.inspect.steps import Step
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class Judgement:
    """What was judged of the condition of a handoff. `verdict` says it in words.

    Where descriptions were compared, `scores` says how near each of them is, by rule, and
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
    #: Why it came to no verdict.
    error: str
    model: str
    answerer: str
    usage: Usage
    scores: Mapping[int, float] = field(default_factory=dict[int, float])
    comparison: str = ""


@dataclass(frozen=True, slots=True)
class RuleAsked:
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
    asked: tuple[RuleAsked, ...]


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
    return Judgement(
        seq=event.seq,
        at=event.at,
        agent=event.actor.removeprefix("agent:"),
        rule=data.rule,
        target=rule.target_agent if rule else "",
        condition=(rule.condition if rule else None) or "",
        holds=data.holds,
        verdict=data.fault or (f"{word}, because {reason}" if reason else word),
        error=data.fault,
        model=data.model,
        answerer=data.answerer,
        usage=data.usage,
        scores=scores,
        comparison=", ".join(
            f"{handoffs[index].target_agent} {scores[index]:.2f}" for index in scores
        ),
    )


def _verdict_word(rule: int, scores: Mapping[int, float], *, holds: bool) -> str:
    word = "yes" if holds else "no"
    return f"{word}, similarity {scores[rule]:.2f}" if rule in scores else word


def _reason(text: str) -> str:
    """Return why a model judged so, as far as it says."""
    try:
        found = read_json(unfenced(text).encode())
    except ValueError:
        return ""
    reason = cast("dict[str, Json]", found).get("reason") if isinstance(found, dict) else None
    return reason.strip().rstrip(".") if isinstance(reason, str) else ""


def handoff_record(
    workflow: Workflow, step: Step, data: HandedOff, judged: Iterable[Judgement] = ()
) -> HandoffRecord:
    """Return the record of a handoff, with the rules that were asked and what models judged."""
    return HandoffRecord(
        seq=step.event.seq,
        at=step.event.at,
        source=data.source,
        target=data.target,
        why=data.why,
        rule=data.rule,
        condition=condition_of(workflow, data),
        asked=_rules_asked(
            workflow,
            step.before.variables,
            data,
            {judgement_record.rule: judgement_record for judgement_record in judged},
        ),
    )


def _rules_asked(
    workflow: Workflow,
    values: Mapping[str, Json],
    data: HandedOff,
    judged: Mapping[int, Judgement],
) -> tuple[RuleAsked, ...]:
    routing = workflow.compiled.routing
    if data.why in ("joined", "chosen"):
        return ()
    before = routing.pre.get(data.source, ())
    is_before = data.why == "reply_limit" or data.rule in {rule.index for rule in before}
    asked: list[RuleAsked] = []
    for rule in before if is_before else routing.post.get(data.source, ()):
        asked.append(_verdict(workflow, values, rule, judged))
        if rule.index == data.rule:
            break
    return tuple(asked)


def _verdict(
    workflow: Workflow,
    values: Mapping[str, Json],
    rule: RoutingRule,
    judged: Mapping[int, Judgement],
) -> RuleAsked:
    verdict = "always"
    if rule.judged:
        verdict = _judged_verdict(workflow, rule.index, judged)
    elif rule.condition is not None:
        try:
            verdict = "yes" if evaluate(rule.condition, values) else "no"
        except ExpressionError as error:
            verdict = str(error)
    text = workflow.spec.handoffs[rule.index].condition
    return RuleAsked(rule.index, rule.target, text, verdict)


def _judged_verdict(workflow: Workflow, rule: int, judged: Mapping[int, Judgement]) -> str:
    """Return the verdict of a rule, judged alone or compared with others."""
    if rule in judged:
        return judged[rule].verdict
    for judgement_record in judged.values():
        if rule in judgement_record.scores:
            nearest = nearest_rule(workflow.compiled.routing, judgement_record.scores)
            return _verdict_word(rule, judgement_record.scores, holds=rule == nearest)
    return "not judged"
