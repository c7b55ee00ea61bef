"""The life of a run and of a turn: assemble, ask the model, use tools, come to an end."""

from typing import Final

from weft.engine.book import Rulebook
from weft.engine.codec import read_json
from weft.engine.commands import Assemble, CallModel, Command, Record
from weft.engine.events import (
    CUT,
    ContextAssembled,
    Event,
    MessageShown,
    ModelFailed,
    ModelReplied,
    OutputRefused,
    RunEnded,
    RunForked,
    RunStarted,
    StopAsked,
    ToolCalled,
    ToolFailed,
    ToolRequest,
    TurnEnded,
    TurnStarted,
)
from weft.engine.passing import arrive, ask_user, leave
from weft.engine.state import Message, Spent, State, Turn
from weft.engine.triggers import fire, heard, said, taken
from weft.findings import Json
from weft.spec.type_meaning import mismatch
from weft.spec.types import TypeExpr

#: How many replies may fail to fit their model, and how many model calls one turn may take.
MAX_REFUSALS: Final = 3
MAX_CALLS: Final = 25


def on_run_started(book: Rulebook, state: State, event: Event, data: RunStarted) -> list[Command]:
    """The first words: of the user, of the workflow, or of the first agent."""
    state.status = "running"
    state.workflow, state.digest = data.workflow, data.digest
    state.app, state.user, state.started_at = data.app, data.user, event.at
    state.model = data.model
    state.variables = {**book.start_values, **data.values}
    opening = book.orchestrator.initial_message_to_user
    commands: list[Command] = [Record(MessageShown(opening))] if opening else []
    if book.orchestrator.initial_message is not None:
        state.say(Message("user", "", book.orchestrator.initial_message, event.seq))
    if data.message is not None:
        state.hear(data.message, event.seq)
    fired = fire(state, heard(book, state, data.message) if data.message else ())
    commands += fired.records
    agent = book.orchestrator.initial_agent
    if book.startup == "UserDriven" and data.message is None:
        return [*commands, ask_user(state, event, agent)]
    return [*commands, arrive(book, state, agent, fired.values)]


def on_run_forked(_book: Rulebook, state: State, event: Event, data: RunForked) -> list[Command]:
    """Nothing follows: what was under way goes on. What was spent before is the other run's."""
    state.parent = data.parent
    state.model = data.model or state.model
    state.started_at = event.at
    state.spent = Spent()
    return []


def on_message_shown(
    _book: Rulebook, _state: State, _event: Event, _data: MessageShown
) -> list[Command]:
    """Nothing follows: agents do not see it."""
    return []


def on_turn_started(
    _book: Rulebook, state: State, _event: Event, data: TurnStarted
) -> list[Command]:
    """Put together what the agent is to see."""
    agent = data.agent
    last, streak = state.last
    state.status = "running"
    state.turn = Turn(agent, data.turn)
    state.turns = data.turn
    state.taken = {**state.taken, agent: state.taken.get(agent, 0) + 1}
    state.last = (agent, streak + 1 if agent == last else 1)
    state.hops = 0
    return [Assemble(agent, data.turn, 1)]


def on_context_assembled(
    _book: Rulebook, state: State, event: Event, data: ContextAssembled
) -> list[Command]:
    """Ask the model."""
    turn = state.turn
    if turn is None or turn.stage != "assembling" or (data.turn, data.call) != _spot(turn):
        return []
    state.turn = turn.changed(stage="model", seq=event.seq)
    return [CallModel(turn.agent, turn.number, turn.call, event.seq)]


def on_model_replied(
    book: Rulebook, state: State, event: Event, data: ModelReplied
) -> list[Command]:
    """Use the tools it asks for, or take its words for the end of the turn."""
    turn = _asked(state, data)
    if turn is None:
        return []
    state.say(Message("agent", turn.agent, data.text, event.seq, requests=data.tool_requests))
    state.spent = state.spent.plus(data.usage)
    if data.tool_requests:
        missing = frozenset(request.id for request in data.tool_requests)
        state.turn = turn.changed(stage="tools", calls={}, missing=missing)
        return [Record(_tool_event(book, turn.agent, it)) for it in data.tool_requests]
    return _final(book, state, turn, data)


def _asked(state: State, data: ModelReplied | ModelFailed | OutputRefused) -> Turn | None:
    """Return the turn whose model was asked for this; None for what comes late or twice."""
    turn = state.turn
    if turn is None or turn.stage != "model" or (data.turn, data.call) != _spot(turn):
        return None
    return turn


def _spot(turn: Turn) -> tuple[int, int]:
    return turn.number, turn.call


def _tool_event(book: Rulebook, agent: str, request: ToolRequest) -> ToolCalled | ToolFailed:
    tools = book.parts[agent].tools
    if request.tool in tools:
        return ToolCalled(request.id, request.tool, request.arguments)
    known = ", ".join(tools) or "none"
    return ToolFailed(request.id, f"there is no tool {request.tool}; there is: {known}", "unknown")


def _final(book: Rulebook, state: State, turn: Turn, reply: ModelReplied) -> list[Command]:
    """Take a reply without tool calls: refuse it, call the automatic tool with it, or end."""
    part = book.parts[turn.agent]
    output, fault = _read_output(book, part.output, reply.text)
    if fault is not None:
        if reply.finish == CUT:
            fault += " (the reply was cut at its longest)"
        return [Record(OutputRefused(turn.number, turn.call, fault))]
    triggered = fire(state, said(book, state, turn.agent, reply.text)).records
    if part.auto_tool is not None and output is not None:
        again = f"-{turn.sent_back + 1}" if turn.sent_back else ""
        id_ = f"auto-{turn.number}{again}"
        state.turn = turn.changed(stage="tools", calls={}, missing=frozenset({id_}))
        return [*triggered, Record(ToolCalled(id_, part.auto_tool, output, auto=True))]
    state.turn = turn.changed(stage="ending")
    return [*triggered, Record(TurnEnded(turn.agent, turn.number))]


def _read_output(
    book: Rulebook, output: TypeExpr | None, text: str
) -> tuple[dict[str, Json] | None, str | None]:
    """Read a reply as the model its agent is bound to; say what does not fit."""
    if output is None:
        return None, None
    try:
        value = read_json(text.encode())
    except ValueError as error:
        return None, f"the reply is not JSON: {error}"
    fault = mismatch(output, value, book.models)
    return (None, fault) if fault else (value, None)  # pyright: ignore[reportReturnType]


def on_output_refused(
    _book: Rulebook, state: State, event: Event, data: OutputRefused
) -> list[Command]:
    """Tell the agent what does not fit, and let it try again within limits."""
    turn = _asked(state, data)
    if turn is None:
        return []
    if turn.refusals + 1 >= MAX_REFUSALS:
        reason = f"{turn.agent} gave no reply that fits its model: {data.fault}"
        return [Record(RunEnded("failed", reason))]
    told = f"Your reply does not fit what is asked for: {data.fault}. Reply again."
    state.say(Message("user", "", told, event.seq, to=turn.agent))
    return next_call(state, turn.changed(refusals=turn.refusals + 1))


def next_call(state: State, turn: Turn) -> list[Command]:
    """Let the model of a turn speak again."""
    if turn.call >= MAX_CALLS:
        reason = f"{turn.agent} took {MAX_CALLS} model calls in one turn and came to no end"
        return [Record(RunEnded("failed", reason))]
    state.turn = turn = turn.changed(stage="assembling", call=turn.call + 1)
    return [Assemble(turn.agent, turn.number, turn.call)]


def on_model_failed(
    _book: Rulebook, state: State, _event: Event, data: ModelFailed
) -> list[Command]:
    """A run cannot go on without its model."""
    turn = _asked(state, data)
    if turn is None:
        return []
    reason = f"the model of {turn.agent} gave no answer: {data.error}"
    return [Record(RunEnded("failed", reason))]


def on_turn_ended(book: Rulebook, state: State, _event: Event, data: TurnEnded) -> list[Command]:
    """Pass the word on."""
    state.turn = None
    fired = fire(state, taken(book, state, data.agent))
    return [*fired.records, leave(book, state, data.agent, fired.values)]


def on_stop_asked(_book: Rulebook, state: State, _event: Event, data: StopAsked) -> list[Command]:
    """Stop now, or remember to stop when the turn is over."""
    if data.mode == "after_turn" and state.turn is not None:
        state.stopping = True
        return []
    return [Record(RunEnded("cancelled", f"stopped by {data.user}"))]


def on_run_ended(_book: Rulebook, state: State, _event: Event, data: RunEnded) -> list[Command]:
    """Nothing is open any more."""
    state.status = "ended"
    state.turn, state.requests = None, {}
    state.outcome, state.reason = data.outcome, data.reason
    return []
