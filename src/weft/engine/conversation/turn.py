"""Conversations: agents take turns and hand off to each other, to groups or to the user."""

from collections.abc import Mapping
from typing import Final, cast

from weft.engine.commands import Command, Record
from weft.engine.compiled import CompiledWorkflow, Expected, Handler, Values
from weft.engine.conversation.groups import (
    fail_late_members,
    join_group,
    member_ended,
    member_failed,
    on_forked,
    on_joined,
    replies_of,
    start_members,
)
from weft.engine.conversation.handoffs import (
    after_turn,
    ask_user,
    handoff_event,
    on_condition_judged,
    on_handed_off,
    start_turn,
)
from weft.engine.conversation.stages import (
    ask_again,
    begin,
    fetch_of,
    hooks_of,
    leave,
    on_fetch_failed,
    on_fetched,
    on_hook_failed,
    on_hook_returned,
    role_of,
    send,
)
from weft.engine.events import (
    ConditionJudged,
    Event,
    EventData,
    Forked,
    HandedOff,
    Joined,
    MessageSent,
    ModelReplied,
    RequestAnswered,
    RunStarted,
    ToolCalled,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
from weft.engine.events.codec import parse_reply
from weft.engine.state import Activation, State
from weft.engine.timers import Timer
from weft.engine.turn.calls import close_request, on_request_answered
from weft.engine.turn.hooks import (
    resume_hook,
)
from weft.engine.turn.run import end_run, prepare
from weft.engine.variables.triggers import agent_text, fire, lifecycle, user_text
from weft.findings import Json
from weft.spec.type_meaning import validation_error
from weft.spec.types import TypeExpr

#: What a mode has; see TurnMode.
__all__ = [
    "EXPECTED",
    "HANDLERS",
    "ask_again",
    "fetch_of",
    "on_fetch_failed",
    "on_fetched",
    "on_hook_failed",
    "on_hook_returned",
    "on_reply",
    "on_timer",
    "on_turn_failed",
    "read_reply",
    "resume",
    "resume_turn",
    "role_of",
    "start_run",
    "start_turns",
    "stop",
]


# -- start


def start_run(
    compiled: CompiledWorkflow, state: State, event: Event, data: RunStarted, values: Values
) -> list[Command]:
    """Wait for a message of the user, or start the first agent."""
    agent = compiled.orchestrator.initial_agent
    asks = compiled.startup == "UserDriven" or data.with_message
    commands: list[Command] = [ask_user(state, event, agent)] if asks else []
    if compiled.prepares:
        return [*commands, *prepare(compiled, state)]
    return commands if asks else [start_turn(compiled, state, agent, values)]


def start_turns(
    compiled: CompiledWorkflow, state: State, values: Values, agent: str
) -> list[Command]:
    """Start the first agent, unless the user is to speak first."""
    if state.requests:
        return []
    return [start_turn(compiled, state, agent or compiled.orchestrator.initial_agent, values)]


def on_message_received(
    compiled: CompiledWorkflow, state: State, event: Event, data: RequestAnswered
) -> list[Command]:
    """Give the message of a user to the agent that waits for it, or an answer to its tool."""
    if state.requests[data.id].kind != "chat":
        return on_request_answered(compiled, state, event, data)
    request = close_request(state, data.id)
    if data.message_id is not None:
        state.message_ids = state.message_ids.added(data.message_id)
    text = str(data.value)
    state.add_user_message(text, event.seq)
    state.last_speaker, state.handoffs_since_turn = ("", 0), 0
    fired, seen = fire(compiled, state, 0, user_text(compiled, text))
    preparing = state.active.get(0)
    if preparing is not None:  # The turn begins when the run is prepared.
        state.update(preparing.replace(next_agent=request.agent))
        return fired
    return [*fired, start_turn(compiled, state, request.agent, seen)]


def _may_start(state: State, _turn: int, data: TurnStarted) -> bool:
    return not data.step and (not data.fork or data.fork in state.groups)


def on_turn_started(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnStarted
) -> list[Command]:
    """Begin a turn, or call the function that merges the replies of a group."""
    agent, number = data.agent, event.turn
    phase = state.last_agent != agent
    state.count_turn(agent, number)
    state.handoffs_since_turn = 0
    if data.fork:
        join_group(state, agent, number, data.fork)
    else:
        last, streak = state.last_speaker
        state.last_speaker = (agent, streak + 1 if agent == last else 1)
    state.last_agent = agent
    values = state.values_of(number)
    active = Activation(agent, number, fork=data.fork, phase=phase, asked=values)
    rules = compiled.agents[agent]
    if rules.function is not None:
        call = f"merge-{number}"
        state.update(active.replace(stage="tools", missing=frozenset({call})))
        replies = replies_of(state, data.fork)
        return [Record(ToolCalled(call, rules.function, {"replies": replies}, auto=True))]
    fired, seen = fire(compiled, state, number, lifecycle(compiled, "before_agent", agent))
    return [*fired, *begin(compiled, state, active, seen)]


# -- the reply


def read_reply(
    compiled: CompiledWorkflow, active: Activation, data: ModelReplied
) -> tuple[Json, str | None]:
    """Parse a reply as the model its agent is bound to."""
    return read_output(compiled, compiled.agents[active.agent].output, data.text)


def read_output(
    compiled: CompiledWorkflow, output: TypeExpr | None, text: str
) -> tuple[dict[str, Json] | None, str | None]:
    """Parse a text as JSON of a type; return the value, or the validation error."""
    if output is None:
        return None, None
    try:
        value = parse_reply(text)
    except ValueError as error:
        return None, f"the reply is not JSON: {error}"
    wrong = validation_error(output, value, compiled.models)
    return (None, wrong) if wrong else (value, None)  # pyright: ignore[reportReturnType]


def on_reply(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    active: Activation,
    data: ModelReplied,
    output: Json,
) -> list[Command]:
    """Call the hooks that may change the reply, or take it unchanged."""
    active = active.replace(held=data.text if data.held else "")
    if compiled.agents[active.agent].send:
        return send(compiled, state, active, data.text)
    fields = cast("dict[str, Json] | None", output)
    return _take_reply(compiled, state, event, active, data.text, fields)


def on_message_sent(
    compiled: CompiledWorkflow, state: State, event: Event, data: MessageSent
) -> list[Command]:
    """Take the reply as the hooks have changed it; nothing follows from one that was accepted."""
    active = state.active[event.turn].replace(edits=(), held=data.text if data.held else "")
    if active.stage != "sending":
        state.update(active)
        return []
    output, wrong = read_output(compiled, compiled.agents[active.agent].output, data.text)
    if wrong is not None:
        error = f"the reply of {active.agent} is not valid after its hooks: {wrong}"
        return [Record(TurnFailed(active.agent, error, "hook"))]
    return _take_reply(compiled, state, event, active, data.text, output)


def _is_sending(state: State, turn: int, _data: MessageSent) -> bool:
    active = state.active.get(turn)
    return active is not None and (active.stage == "sending" or active.held != "")


def _take_reply(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    active: Activation,
    text: str,
    output: dict[str, Json] | None,
) -> list[Command]:
    """Add a reply to the conversation; call the automatic tool with it, or end the turn."""
    state.say(active.agent, text, event)
    said = agent_text(compiled, active.agent, text)
    fired, seen = fire(compiled, state, active.number, said)
    tool = compiled.agents[active.agent].auto_tool
    if tool is None or output is None:
        active = active.replace(reply=text if output is None else output)
        return [*fired, *leave(compiled, state, active, seen)]
    again = f"-{active.sent_back + 1}" if active.sent_back else ""
    id_ = f"auto-{active.number}{again}"
    missing = frozenset({id_})
    state.update(active.replace(stage="tools", missing=missing, reply=output, shown=None))
    return [*fired, Record(ToolCalled(id_, tool, output, auto=True))]


# -- the end of a turn


def on_turn_ended(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnEnded
) -> list[Command]:
    """Hand off, or wait for the others of the group."""
    active = state.active[event.turn]
    count = state.turn_counts.get(data.agent, 0)
    turns = compiled.triggers.agent_turn_count.get((data.agent, count), ())
    fired, seen = fire(compiled, state, event.turn, turns)
    if active.fork:
        active = active.replace(stage="done")
        state.update(active)
        return [*fired, *member_ended(compiled, state, active)]
    state.close_turns(event.turn)
    if active.route is not None and not state.stopping:
        return [*fired, Record(handoff_event(data.agent, active.route, active.route.asked))]
    return [*fired, after_turn(compiled, state, data.agent, seen)]


def on_turn_failed(
    compiled: CompiledWorkflow, state: State, _event: Event, active: Activation, data: TurnFailed
) -> list[Command]:
    """Fail the run, unless the others of a group continue without this turn."""
    if active.fork:
        return member_failed(compiled, state, active, data.error)
    return [end_run(compiled, "failed", data.error)]


def on_timer(
    compiled: CompiledWorkflow, state: State, _event: Event, timer: Timer
) -> list[Command]:
    """Fail the members of a group that are late."""
    return fail_late_members(compiled, state, timer)


def stop(compiled: CompiledWorkflow, _state: State, user: str) -> list[Command]:
    """End the run."""
    return [end_run(compiled, "cancelled", f"stopped by {user}")]


# -- restart


def resume(_compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Return the turns of group members that have not begun."""
    return [start for group in state.groups.values() for start in start_members(group)]


def resume_turn(compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    """Return the call at a hook point that a turn waits for."""
    return resume_hook(compiled, state, active, hooks_of(compiled, active))


HANDLERS: Final[Mapping[type[EventData], Handler]] = {
    TurnStarted: on_turn_started,
    MessageSent: on_message_sent,
    ConditionJudged: on_condition_judged,
    RequestAnswered: on_message_received,
    TurnEnded: on_turn_ended,
    HandedOff: on_handed_off,
    Forked: on_forked,
    Joined: on_joined,
}

EXPECTED: Final[Mapping[type[EventData], Expected]] = {
    TurnStarted: _may_start,
    MessageSent: _is_sending,
    ConditionJudged: lambda state, _turn, data: (
        state.judging is not None and state.judging.rule == data.rule
    ),
    Joined: lambda state, _turn, data: data.fork in state.groups,
}
