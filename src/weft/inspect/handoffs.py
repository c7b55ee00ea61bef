"""The handoffs of a run: to whom, and which rules were asked on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.engine.conditions import evaluate
from weft.engine.events import Event, HandedOff, TurnStarted
from weft.engine.routing import RoutingRule
from weft.errors import ExpressionError
from weft.findings import Json
from weft.inspect.steps import Step, steps
from weft.runtime.workflow import Workflow


@dataclass(frozen=True, slots=True)
class RuleAsked:
    """A rule that was asked, in the order of asking, and what came of it.

    `verdict` is yes, no, always for a rule without a condition, or why there is no answer.
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


def handoff_record(workflow: Workflow, step: Step, data: HandedOff) -> HandoffRecord:
    """Return the record of a handoff, with the rules that were asked."""
    return HandoffRecord(
        seq=step.event.seq,
        at=step.event.at,
        source=data.source,
        target=data.target,
        why=data.why,
        rule=data.rule,
        condition=condition_of(workflow, data),
        asked=_asked(workflow, step.before.variables, data),
    )


def opening_handoffs(
    workflow: Workflow, run: str, events: Sequence[Event]
) -> tuple[HandoffRecord, ...]:
    """Return the handoffs before the first turn."""
    found: list[HandoffRecord] = []
    for step in steps(workflow.compiled, run, events):
        if isinstance(step.event.data, TurnStarted):
            break
        if isinstance(step.event.data, HandedOff):
            found.append(handoff_record(workflow, step, step.event.data))
    return tuple(found)


def _asked(
    workflow: Workflow, values: Mapping[str, Json], data: HandedOff
) -> tuple[RuleAsked, ...]:
    routing = workflow.compiled.routing
    if data.why == "joined":
        return ()
    before = routing.pre.get(data.source, ())
    is_before = data.why == "reply_limit" or data.rule in {it.index for it in before}
    asked: list[RuleAsked] = []
    for rule in before if is_before else routing.post.get(data.source, ()):
        asked.append(_verdict(workflow, values, rule))
        if rule.index == data.rule:
            break
    return tuple(asked)


def _verdict(workflow: Workflow, values: Mapping[str, Json], rule: RoutingRule) -> RuleAsked:
    verdict = "always"
    if rule.condition is not None:
        try:
            verdict = "yes" if evaluate(rule.condition, values) else "no"
        except ExpressionError as error:
            verdict = str(error)
    text = workflow.spec.handoffs[rule.index].condition
    return RuleAsked(rule.index, rule.target, text, verdict)
