"""How the word passes: who gets it next, and what keeps it from going round for ever."""

from collections.abc import Mapping

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conditions import evaluate
from weft.engine.events import Event, HandedOff, RequestOpened, RunEnded, TurnStarted
from weft.engine.routing import Route, RoutingRule, Test, routes_after, routes_before
from weft.engine.state import State
from weft.engine.triggers import fire, handoff
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import TERMINATE, USER


def on_handed_off(
    compiled: CompiledWorkflow, state: State, event: Event, data: HandedOff
) -> list[Command]:
    """The word goes to the user, to the end, or to an agent."""
    state.handoffs_since_turn += 1
    fired = fire(state, handoff(compiled, state, data))
    if data.target == TERMINATE:
        return [*fired.records, Record(RunEnded("completed", _reason(compiled, data)))]
    if data.target == USER and _has_turns(compiled, state):
        return [*fired.records, ask_user(state, event, data.source)]
    if data.target == USER:  # What the user would say, nobody could answer.
        return [*fired.records, _out_of_turns(state)]
    return [*fired.records, start_turn(compiled, state, data.target, fired.values)]


def start_turn(
    compiled: CompiledWorkflow, state: State, agent: str, values: Mapping[str, Json]
) -> Command:
    """Give an agent its turn, unless a rule, a limit or the end of all turns takes it away."""
    if not _has_turns(compiled, state):
        return _out_of_turns(state)
    if state.handoffs_since_turn > len(compiled.agents):
        return Record(RunEnded("failed", "rules pass the word in a circle and nobody speaks"))
    try:
        route = next(routes_before(compiled.routing, agent, _test(values)), None)
    except ExpressionError as error:
        return _unanswerable(agent, error)
    if route is not None:
        return Record(_handoff(agent, route))
    last, streak = state.last_speaker
    if agent == last and streak >= compiled.agents[agent].limit:
        return _out_of_replies(compiled, agent, streak)
    return Record(TurnStarted(agent, state.turns + 1))


def after_turn(
    compiled: CompiledWorkflow, state: State, agent: str, values: Mapping[str, Json]
) -> Command:
    """Pass the word on after a turn."""
    if state.stopping:
        return Record(RunEnded("cancelled", "stopped on request after the turn"))
    try:
        return Record(_handoff(agent, next(routes_after(compiled.routing, agent, _test(values)))))
    except ExpressionError as error:
        return _unanswerable(agent, error)


def ask_user(state: State, event: Event, agent: str) -> Command:
    """Wait for what the user says; the agent that handed over answers it."""
    return Record(RequestOpened(id=f"{state.run}:{event.seq}", kind="chat", agent=agent))


def _has_turns(compiled: CompiledWorkflow, state: State) -> bool:
    return state.turns < compiled.orchestrator.max_turns


def _out_of_turns(state: State) -> Command:
    return Record(RunEnded("max_turns", f"the run has had its {state.turns} turns"))


def _out_of_replies(compiled: CompiledWorkflow, agent: str, streak: int) -> Command:
    if compiled.orchestrator.human_in_the_loop and compiled.startup != "BackendOnly":
        return Record(HandedOff(agent, USER, "reply_limit"))
    return Record(RunEnded("failed", f"{agent} has given {streak} replies in a row"))


def _unanswerable(agent: str, error: ExpressionError) -> Command:
    return Record(RunEnded("failed", f"a rule of {agent} has no answer: {error}"))


def _handoff(agent: str, route: Route) -> HandedOff:
    return HandedOff(agent, route.target, route.why, route.rule)


def _reason(compiled: CompiledWorkflow, data: HandedOff) -> str:
    declared = None if data.rule is None else compiled.reasons.get(data.rule)
    return declared or f"{data.source} ended the run"


def _test(values: Mapping[str, Json]) -> Test:
    def holds(rule: RoutingRule) -> bool:
        return rule.condition is not None and evaluate(rule.condition, values)

    return holds
