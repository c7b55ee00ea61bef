"""Who is next in a conversation: handoffs, and what keeps them from going round for ever."""

from collections.abc import Mapping

from weft.engine.commands import Command, Record, Start
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conditions import evaluate
from weft.engine.events import Event, Forked, HandedOff, RequestOpened, RunEnded
from weft.engine.routing import Route, RoutingRule, Test, routes_after, routes_before
from weft.engine.state import State
from weft.engine.triggers import fire, handoff
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import TERMINATE, USER


def on_handed_off(
    compiled: CompiledWorkflow, state: State, event: Event, data: HandedOff
) -> list[Command]:
    """Go on with the user, the end, an agent or a group."""
    state.handoffs_since_turn += 1
    fired = fire(state.variables, handoff(compiled, state.variables, data))
    if data.target == TERMINATE:
        return [*fired.records, Record(RunEnded("completed", _reason(compiled, data)))]
    if data.target == USER and _has_turns(compiled, state):
        return [*fired.records, ask_user(state, event, data.source)]
    if data.target == USER:  # No agent could answer what the user would say.
        return [*fired.records, _out_of_turns(state)]
    return [*fired.records, start_turn(compiled, state, data.target, fired.values)]


def start_turn(
    compiled: CompiledWorkflow, state: State, agent: str, values: Mapping[str, Json]
) -> Command:
    """Start the turn of an agent or a group, unless a rule, a limit or the last turn forbids it."""
    group = compiled.routing.groups.get(agent)
    if group is not None and not _has_turns(compiled, state, len(group.members)):
        return _out_of_turns(state, f": {group.name} would go beyond max_turns")
    if not _has_turns(compiled, state):
        return _out_of_turns(state)
    if state.handoffs_since_turn > len(compiled.agents):
        return Record(RunEnded("failed", "handoff rules go round in a circle; no agent replies"))
    if group is not None:
        return Record(Forked(group.name, group.members), turn=0)
    try:
        route = next(routes_before(compiled.routing, agent, _test(values)), None)
    except ExpressionError as error:
        return _unanswerable(agent, error)
    if route is not None:
        return Record(_handoff(agent, route))
    last, streak = state.last_speaker
    if agent == last and streak >= compiled.agents[agent].limit:
        return _out_of_replies(compiled, agent, streak)
    return Start(agent)


def after_turn(
    compiled: CompiledWorkflow, state: State, agent: str, values: Mapping[str, Json]
) -> Command:
    """Hand off after a turn."""
    if state.stopping:
        return stopped()
    try:
        route = next(routes_after(compiled.routing, agent, _test(values)))
    except ExpressionError as error:
        return _unanswerable(agent, error)
    return Record(_handoff(agent, route))


def stopped() -> Command:
    """End a run that was asked to stop when its turn is over."""
    return Record(RunEnded("cancelled", "stopped on request after the turn"))


def ask_user(state: State, event: Event, agent: str) -> Command:
    """Wait for what the user says; the agent that handed over answers it."""
    return Record(RequestOpened(f"{state.run}:{event.seq}", kind="chat", agent=agent), turn=0)


def _has_turns(compiled: CompiledWorkflow, state: State, wanted: int = 1) -> bool:
    return state.turns + wanted <= compiled.orchestrator.max_turns


def _out_of_turns(state: State, why: str = "") -> Command:
    turns = "1 turn" if state.turns == 1 else f"{state.turns} turns"
    return Record(RunEnded("max_turns", f"the run has had its {turns}{why}"))


def _out_of_replies(compiled: CompiledWorkflow, agent: str, streak: int) -> Command:
    if compiled.orchestrator.human_in_the_loop and compiled.startup != "BackendOnly":
        return Record(HandedOff(agent, USER, "reply_limit"))
    replies = "1 reply" if streak == 1 else f"{streak} replies"
    return Record(RunEnded("failed", f"{agent} has given {replies} in a row"))


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
