"""Handoffs: which agent is next, and the limits that end a run."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias, cast

from weft.engine.commands import Command, Judge, Record, Start
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conversation.routing import (
    GroupRules,
    Route,
    RoutingRule,
    Test,
    nearest_rule,
    routes_after,
    routes_before,
)
from weft.engine.events import ConditionJudged, Event, Forked, HandedOff, RequestOpened
from weft.engine.state import Judging, State
from weft.engine.turn.run import end_run, stop_after_turn
from weft.engine.variables.conditions import evaluate
from weft.engine.variables.triggers import fire, handoff
from weft.engine.variables.values import write_documents
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import TERMINATE, USER

#: The judgements of the rules that are evaluated now, by rule.
Verdicts = Mapping[int, bool]
NO_VERDICTS: Final[Verdicts] = {}

#: The rules that were asked, in order, and whether each holds.
Asked: TypeAlias = list[tuple[int, bool]]


class _NotJudged(Exception):
    """A rule must be judged before the next can be asked."""

    def __init__(self, rule: int) -> None:
        super().__init__(rule)
        self.rule = rule


def on_handed_off(
    compiled: CompiledWorkflow, state: State, event: Event, data: HandedOff
) -> list[Command]:
    """Continue with the user, the end, an agent or a group."""
    state.handoffs_since_turn += 1
    fired, seen = fire(compiled, state, event.turn, handoff(compiled, data))
    commands = fired
    if state.unwritten and data.source != data.target:
        commands += write_documents(compiled, state, "on_phase_transition")
    if data.target == TERMINATE:
        return [*commands, end_run(compiled, "completed", _reason(compiled, data))]
    if data.target == USER and _has_turns(compiled, state):
        return [*commands, ask_user(state, event, data.source)]
    if data.target == USER:  # No agent could answer what the user would say.
        return [*commands, _out_of_turns(compiled, state)]
    return [*commands, start_turn(compiled, state, data.target, seen)]


def start_turn(
    compiled: CompiledWorkflow,
    state: State,
    agent: str,
    values: Mapping[str, Json],
    verdicts: Verdicts = NO_VERDICTS,
) -> Command:
    """Start the turn of an agent or a group, unless a rule, a limit or the last turn forbids it."""
    group = compiled.routing.groups.get(agent)
    over = _end_before(compiled, state, group)
    if over is not None:
        return over
    if group is not None:
        return Record(Forked(group.name, group.members), turn=0)
    asked: Asked = []
    try:
        route = next(routes_before(compiled.routing, agent, _test(values, verdicts, asked)), None)
    except ExpressionError as error:
        return fail_unanswerable(compiled, agent, error)
    except _NotJudged as unknown:
        return _judge(state, agent, "pre", unknown.rule, verdicts)
    if route is not None:
        return Record(handoff_event(agent, route, asked))
    last, streak = state.last_speaker
    if agent == last and streak >= compiled.agents[agent].limit:
        return _out_of_replies(compiled, agent, streak, asked)
    return Start(agent)


def _end_before(
    compiled: CompiledWorkflow, state: State, group: GroupRules | None
) -> Command | None:
    """Return the end of a run if no further turn is allowed."""
    if state.stopping:
        return stop_after_turn(compiled)
    if group is not None and not _has_turns(compiled, state, len(group.members)):
        return _out_of_turns(compiled, state, f": {group.name} would go beyond max_turns")
    if not _has_turns(compiled, state):
        return _out_of_turns(compiled, state)
    if state.handoffs_since_turn > len(compiled.agents):
        circle = "handoff rules form a cycle in which no agent replies"
        return end_run(compiled, "failed", circle)
    return None


def after_turn(
    compiled: CompiledWorkflow,
    state: State,
    agent: str,
    values: Mapping[str, Json],
    verdicts: Verdicts = NO_VERDICTS,
) -> Command:
    """Hand off after a turn."""
    if state.stopping:
        return stop_after_turn(compiled)
    asked: Asked = []
    try:
        route = next(routes_after(compiled.routing, agent, _test(values, verdicts, asked)))
    except ExpressionError as error:
        return fail_unanswerable(compiled, agent, error)
    except _NotJudged as unknown:
        return _judge(state, agent, "post", unknown.rule, verdicts)
    return Record(handoff_event(agent, route, asked))


def pre_route(compiled: CompiledWorkflow, agent: str, values: Mapping[str, Json]) -> Route | None:
    """Return the rule that hands off in the middle of a turn, since something has changed.

    A condition in words is judged once, before the turn.
    """
    if agent not in compiled.routing.pre:
        return None
    asked: Asked = []
    route = next(routes_before(compiled.routing, agent, _test_without_judge(values, asked)), None)
    return route and replace(route, asked=tuple(asked))


def on_condition_judged(
    compiled: CompiledWorkflow, state: State, _event: Event, data: ConditionJudged
) -> list[Command]:
    """Evaluate the rules again, now that one more of them is judged."""
    judging, state.judging = cast("Judging", state.judging), None
    state.spent = state.spent.plus(data.usage)
    if data.error:
        told = f"a condition of {judging.agent} could not be judged: {data.error}"
        return [end_run(compiled, "failed", told)]
    verdicts = {**judging.verdicts, data.rule: data.holds, **_compared(compiled, data)}
    go_on = start_turn if judging.scope == "pre" else after_turn
    return [go_on(compiled, state, judging.agent, state.variables, verdicts)]


def _compared(compiled: CompiledWorkflow, data: ConditionJudged) -> Verdicts:
    """Return the verdicts of the rules that were compared together: the nearest one holds."""
    scores = {int(rule): score for rule, score in data.scores.items()}
    nearest = nearest_rule(compiled.routing, scores)
    return {rule: rule == nearest for rule in scores}


def _judge(
    state: State,
    agent: str,
    scope: Literal["pre", "post"],
    rule: int,
    verdicts: Verdicts,
) -> Command:
    state.judging = Judging(agent, scope, rule, state.seq, verdicts)
    return Judge(agent, rule, state.seq)


def ask_user(state: State, event: Event, agent: str) -> Command:
    """Wait for a message of the user; the agent that handed off answers it."""
    return Record(RequestOpened(f"{state.run}:{event.seq}", kind="chat", agent=agent), turn=0)


def _has_turns(compiled: CompiledWorkflow, state: State, wanted: int = 1) -> bool:
    return state.turns + wanted <= compiled.orchestrator.max_turns


def _out_of_turns(compiled: CompiledWorkflow, state: State, why: str = "") -> Command:
    turns = "1 turn" if state.turns == 1 else f"{state.turns} turns"
    return end_run(compiled, "max_turns", f"the run has used its {turns}{why}")


def _out_of_replies(compiled: CompiledWorkflow, agent: str, streak: int, asked: Asked) -> Command:
    if compiled.orchestrator.human_in_the_loop and compiled.startup != "BackendOnly":
        return Record(HandedOff(agent, USER, "reply_limit", evaluated=_as_recorded(asked)))
    replies = "1 reply" if streak == 1 else f"{streak} replies"
    return end_run(compiled, "failed", f"{agent} has given {replies} in a row")


def fail_unanswerable(compiled: CompiledWorkflow, agent: str, error: ExpressionError) -> Command:
    """End a run in which a rule cannot be evaluated."""
    return end_run(compiled, "failed", f"a rule of {agent} could not be evaluated: {error}")


def handoff_event(agent: str, route: Route, asked: Iterable[tuple[int, bool]]) -> HandedOff:
    """Return the event that names the next agent, with the rules that were evaluated."""
    return HandedOff(agent, route.target, route.why, route.rule, _as_recorded(asked))


def _as_recorded(asked: Iterable[tuple[int, bool]]) -> dict[str, bool]:
    return {str(rule): holds for rule, holds in asked}


def _reason(compiled: CompiledWorkflow, data: HandedOff) -> str:
    declared = None if data.rule is None else compiled.reasons.get(data.rule)
    return declared or f"{data.source} ended the run"


def _test(values: Mapping[str, Json], verdicts: Verdicts, asked: Asked) -> Test:
    """Evaluate each rule, and record the result."""

    def holds(rule: RoutingRule) -> bool:
        if rule.condition is not None:
            verdict = evaluate(rule.condition, values)
        elif rule.index in verdicts:
            verdict = verdicts[rule.index]
        else:
            raise _NotJudged(rule.index)
        asked.append((rule.index, verdict))
        return verdict

    return holds


def _test_without_judge(values: Mapping[str, Json], asked: Asked) -> Test:
    """Evaluate each rule that needs no judge, and record the result."""

    def holds(rule: RoutingRule) -> bool:
        if rule.condition is None:
            return False
        verdict = evaluate(rule.condition, values)
        asked.append((rule.index, verdict))
        return verdict

    return holds
