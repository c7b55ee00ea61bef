"""Boards: artifacts wake agents, which work, publish artifacts, and so wake others."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from weft.engine.board.correlation import (
    board_of,
    end_correlation,
    on_artifact_arrived,
    on_artifact_published,
    on_batches_flushed,
    on_delivery_missed,
    on_timer,
    rules_of,
    start_correlation,
    start_next,
    start_next_or_idle,
    with_queue,
)
from weft.engine.board.publishing import (
    JsonDraft,
    Unpublishable,
    activation_name,
    artifact_event,
    parse_output,
    product_name,
    review_drafts,
    timer_name,
)
from weft.engine.board.state import BoardState, Delivery
from weft.engine.commands import Command, Fetch, Record
from weft.engine.compiled import CompiledWorkflow, Expected, Handler
from weft.engine.events import (
    ArtifactArrived,
    ArtifactPublished,
    BatchesFlushed,
    ContextFetched,
    DeliveryDeferred,
    DeliveryMissed,
    Event,
    EventData,
    ModelReplied,
    RunForked,
    RunStarted,
    TimerSet,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
from weft.engine.events.codec import parse_reply
from weft.engine.events.kinds import BoardHook, BoardInput
from weft.engine.message import Message
from weft.engine.persistent import Log
from weft.engine.state import Activation, OpenCall, State
from weft.engine.turn.calls import assemble
from weft.engine.turn.hooks import close_hook
from weft.engine.turn.run import on_run_forked, prepare
from weft.engine.variables.triggers import agent_text, fire, lifecycle
from weft.engine.variables.values import write_documents
from weft.findings import Json
from weft.spec.board import BoardAgent

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


def start_run(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    data: RunStarted,
    _values: Mapping[str, Json],
) -> list[Command]:
    """Start a correlation, a collection or a schedule."""
    commands = start_correlation(compiled, state, event, data)
    return [*commands, *prepare(compiled, state)] if compiled.prepares else commands


def start_turns(
    compiled: CompiledWorkflow, state: State, _values: Mapping[str, Json], _agent: str
) -> list[Command]:
    """Wake the agents for which artifacts are waiting."""
    return start_next(compiled, state)


def _on_run_forked(
    compiled: CompiledWorkflow, state: State, event: Event, data: RunForked
) -> list[Command]:
    """Give a fork a correlation of its own."""
    state.board = board_of(state).replace(correlation=state.run)
    return on_run_forked(compiled, state, event, data)


def _may_start(state: State, _turn: int, data: TurnStarted) -> bool:
    return state.board is not None and data.step in state.board.queues


def on_turn_started(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnStarted
) -> list[Command]:
    """Let an agent work on the artifacts that have woken it."""
    board, number = board_of(state), event.turn
    queue = board.queues[data.step]
    woken = {**board.woken, data.agent: board.woken.get(data.agent, 0) + 1}
    state.board = board.replace(queues=with_queue(board, data.step, queue.rest()), woken=woken)
    active = _woken(board, event, data, queue[0])
    state.count_turn(data.agent, number)
    state.threads = {**state.threads, number: Log[Message]()}
    commands, _ = fire(compiled, state, number, lifecycle(compiled, "before_agent", data.agent))
    active = active.replace(stage="fetching", seq=event.seq)
    fetch = fetch_of(compiled, active)
    if fetch.board or fetch.names:
        state.update(active)
        return [*commands, fetch]
    return [*commands, *_evaluate(compiled, state, active, event)]


def _woken(board: BoardState, event: Event, data: TurnStarted, delivery: Delivery) -> Activation:
    inputs = delivery.artifacts
    return Activation(
        data.agent,
        event.turn,
        step=data.step,
        inputs=inputs,
        name=activation_name(board.correlation, data.step, inputs, delivery.tries),
        tries=delivery.tries,
    )


def fetch_of(compiled: CompiledWorkflow, active: Activation) -> Fetch:
    """Return what a turn needs before its engines run."""
    names = (*compiled.per_phase, *compiled.agents[active.agent].on_demand)
    prepares = rules_of(compiled).agents[active.agent].prepares
    return Fetch(active.agent, active.number, names, servers=False, seq=active.seq, board=prepares)


def on_fetched(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    active: Activation,
    data: ContextFetched,
) -> list[Command]:
    """Continue with what providers and components gave, unless a component stops the turn."""
    given = data.board or BoardInput()
    active = active.replace(board_input=given)
    ids = tuple(artifact.id for artifact in active.inputs)
    match given.get("verdict", "continue"):
        case "defer":
            at = event.at + max(1, round(float(given.get("seconds", 1)) * 1000))
            state.update(active.replace(stage="ending"))
            put_off = DeliveryDeferred(active.step, ids, at)
            return [
                Record(put_off, active.number),
                Record(TurnEnded(active.agent), active.number),
            ]
        case "skip" | "block" as verdict:
            why = "skipped" if verdict == "skip" else "blocked"
            state.update(active.replace(stage="ending"))
            told = str(given.get("detail", ""))
            missed = DeliveryMissed(active.step, ids, why, told)
            return [Record(missed, turn=0), Record(TurnEnded(active.agent), active.number)]
        case _:
            return _evaluate(compiled, state, active, event)


def on_fetch_failed(
    _state: State, active: Activation, _data: ContextFetched, error: str
) -> list[Command]:
    """Fail the turn."""
    return [Record(TurnFailed(active.agent, error, "source"))]


def ask_again(
    compiled: CompiledWorkflow, state: State, active: Activation, _values: Mapping[str, Json]
) -> list[Command]:
    """Ask the model of the engine again."""
    return assemble(compiled, state, active)


def on_delivery_deferred(
    _compiled: CompiledWorkflow, state: State, event: Event, data: DeliveryDeferred
) -> list[Command]:
    """Store a delivery until it is tried again."""
    board, timer = board_of(state), timer_name("defer", event.seq)
    active = state.active[event.turn]
    delivery = Delivery(active.inputs, event.seq, active.tries + 1)
    state.board = board.replace(deferred=board.deferred.added(timer, (data.subscription, delivery)))
    return [Record(TimerSet(timer, data.at, "board"), turn=0)]


def role_of(compiled: CompiledWorkflow, active: Activation) -> str:
    """Return the role of an agent for the engine that runs."""
    return rules_of(compiled).agents[active.agent].engines[active.engine_index].role


def resume_turn(compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    """Return the call that a turn waits for, where a journal was cut before it."""
    waiting = [id_ for id_ in active.missing if id_ not in state.calls]
    if not waiting:
        return []
    if active.stage == "tools":
        engine = rules_of(compiled).agents[active.agent].engines[active.engine_index]
        called = ToolCalled(waiting[0], engine.function, {}, hook="engine")
    else:
        hook = cast("BoardHook", waiting[0].rpartition("-")[0])
        called = ToolCalled(waiting[0], hook, {}, hook=hook)
    return [Record(called, active.number)]


def read_reply(
    compiled: CompiledWorkflow, active: Activation, data: ModelReplied
) -> tuple[Json, str | None]:
    """Parse the artifacts of a reply; an agent that publishes nothing has no value."""
    if not rules_of(compiled).agents[active.agent].publishes:
        return None, None
    if data.output_error:
        return None, data.output_error
    return parse_reply(data.text), None


def on_reply(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    active: Activation,
    data: ModelReplied,
    output: Json,
) -> list[Command]:
    """Continue with the artifacts of a reply."""
    state.say(active.agent, data.text, event)
    drafts = [] if output is None else parse_output(spec_of(compiled, active.agent), output)
    said = agent_text(compiled, active.agent, data.text)
    commands, _ = fire(compiled, state, event.turn, said)
    return [*commands, *take_drafts(compiled, state, active, drafts, event)]


def _evaluate(
    compiled: CompiledWorkflow, state: State, active: Activation, event: Event
) -> list[Command]:
    """Run the next engine: ask its model, or call its function."""
    engine = rules_of(compiled).agents[active.agent].engines[active.engine_index]
    if engine.function:
        id_ = f"engine-{active.name}-{active.engine_index}-{len(active.candidates)}"
        state.update(active.replace(stage="tools", missing=frozenset({id_})))
        return [Record(ToolCalled(id_, engine.function, {}, hook="engine"), active.number)]
    told = Message("user", "", inputs_text(active), event.seq)
    state.threads = {**state.threads, active.number: Log([told])}
    return assemble(compiled, state, active)


def inputs_of(active: Activation) -> list[JsonDraft]:
    """Return the inputs of an engine: the artifacts that woke the agent, or the last drafts."""
    if active.engine_index and active.drafts is not None:
        return active.drafts
    changed = (active.board_input or {}).get("inputs")
    if changed is not None:
        return changed
    return [artifact.as_json() for artifact in active.inputs]


def inputs_text(active: Activation) -> str:
    """Return the inputs as the text that a model gets."""
    lines = (
        json.dumps({"type": draft["type"], "payload": draft["payload"]}, ensure_ascii=False)
        for draft in inputs_of(active)
    )
    return "\n".join(("Inputs:", *lines))


def take_drafts(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    drafts: Sequence[JsonDraft],
    event: Event,
) -> list[Command]:
    """Run the next engine or the next attempt, or publish the result."""
    rules = rules_of(compiled).agents[active.agent]
    drafts = list(drafts)
    active = active.replace(drafts=drafts, shown=None, missing=frozenset())
    if active.engine_index + 1 < len(rules.engines):
        active = active.replace(engine_index=active.engine_index + 1, call=active.call + 1)
        return _evaluate(compiled, state, active, event)
    candidates = (*active.candidates, drafts)
    if len(candidates) < rules.attempts:
        active = active.replace(
            candidates=candidates, engine_index=0, call=active.call + 1, drafts=None
        )
        return _evaluate(compiled, state, active, event)
    active = active.replace(candidates=candidates)
    if rules.publishing_code:
        return _call(state, active, "publish")
    try:
        passed = review_drafts(spec_of(compiled, active.agent), drafts, {})
    except Unpublishable as error:
        state.update(active)
        return [Record(TurnFailed(active.agent, str(error), "output"), active.number)]
    return _publish(compiled, state, active, passed)


def spec_of(compiled: CompiledWorkflow, agent: str) -> BoardAgent:
    """Return the declaration of an agent."""
    return next(
        each_agent for each_agent in rules_of(compiled).spec.agents if each_agent.agent == agent
    )


def _call(state: State, active: Activation, hook: BoardHook) -> list[Command]:
    id_ = f"{hook}-{active.name}"
    state.update(active.replace(stage="after", missing=frozenset({id_})))
    return [Record(ToolCalled(id_, hook, {}, hook=hook), active.number)]


def on_hook_returned(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolReturned
) -> list[Command]:
    """Continue with the result of code of the board."""
    active, value = close_hook(state, event, call), data.value
    drafts = cast("list[JsonDraft]", value or [])
    match call.hook:
        case "engine":
            made = cast("Mapping[str, Any]", value)
            board_input: BoardInput = {**(active.board_input or {}), "state": made["state"]}
            active = active.replace(board_input=board_input)
            return take_drafts(compiled, state, active, made["artifacts"], event)
        case "publish":
            return _publish(compiled, state, active, drafts)
        case "error":
            state.close_turns(active.number)
            return start_next_or_idle(compiled, state)
        case _:
            return _end(state, active)


def on_hook_failed(
    compiled: CompiledWorkflow, state: State, event: Event, call: OpenCall, data: ToolFailed
) -> list[Command]:
    """Fail the turn with its code; artifacts that are published stay."""
    active = close_hook(state, event, call)
    if call.hook == "error":
        state.close_turns(active.number)
        return start_next_or_idle(compiled, state)
    if call.hook == "post_publish":
        return _end(state, active)
    return [Record(TurnFailed(active.agent, data.error, "tool"), active.number)]


def _publish(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    drafts: Sequence[JsonDraft],
) -> list[Command]:
    rules, made = rules_of(compiled), list[Command]()
    partition = active.inputs[0].partition if active.inputs else ""
    correlation = board_of(state).correlation
    places = Counter[str]()
    done: list[JsonDraft] = []
    for draft in drafts:
        if "blocked" in draft:
            told = f"{draft['type']} {draft['blocked']}"
            made.append(Record(DeliveryMissed("", (), "blocked", told), active.number))
            continue
        try:
            artifact = artifact_event(rules, state.app, draft, by=active.agent, partition=partition)
        except ValueError:
            state.update(active)
            told = f"the visibility of an artifact of the type {draft['type']} cannot be used"
            return [Record(TurnFailed(active.agent, told, "output"), active.number)]
        policy = json.dumps(artifact.visibility)
        name = product_name(active.name, correlation, artifact.visibility, places[policy])
        places[policy] += 1
        done.append({**draft, "id": name})
        made.append(Record(replace(artifact, id=name), active.number))
    if rules.agents[active.agent].after_code:
        return [*made, *_call(state, active.replace(drafts=done), "post_publish")]
    return [*made, *_end(state, active)]


def _end(state: State, active: Activation) -> list[Command]:
    state.update(active.replace(stage="ending", missing=frozenset()))
    return [Record(TurnEnded(active.agent), active.number)]


def on_turn_ended(
    compiled: CompiledWorkflow, state: State, event: Event, _data: TurnEnded
) -> list[Command]:
    """Set what the end of a turn sets, and start the next turns."""
    active = state.active[event.turn]
    count = state.turn_counts.get(active.agent, 0)
    turns = compiled.triggers.agent_turn_count.get((active.agent, count), ())
    ended = lifecycle(compiled, "after_agent", active.agent)
    commands, _ = fire(compiled, state, active.number, [*turns, *ended])
    state.close_turns(active.number)
    flushed = write_documents(compiled, state, "on_phase_transition") if state.unwritten else []
    return [*commands, *flushed, *start_next_or_idle(compiled, state)]


def on_turn_failed(
    compiled: CompiledWorkflow, state: State, _event: Event, active: Activation, data: TurnFailed
) -> list[Command]:
    """Record the delivery as missed, and continue with the others."""
    ids = tuple(artifact.id for artifact in active.inputs)
    missed = Record(DeliveryMissed(active.step, ids, "failed", data.error), turn=0)
    if rules_of(compiled).agents[active.agent].error_code:
        state.calls = {k: call for k, call in state.calls.items() if call.turn != active.number}
        return [missed, *_call(state, active.replace(error=data.error), "error")]
    state.close_turns(active.number)
    return [missed, *start_next_or_idle(compiled, state)]


def stop(compiled: CompiledWorkflow, state: State, user: str) -> list[Command]:
    """End the run, and record the deliveries that are not finished."""
    return end_correlation(compiled, state, "cancelled", f"stopped by {user}")


def resume(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Wake the agents for which artifacts are waiting."""
    return [] if state.board is None else start_next(compiled, state)


def is_paused(_state: State) -> bool:
    """Return that a board waits for artifacts while no agent works."""
    return True


def _is_new(state: State, _turn: int, data: ArtifactPublished) -> bool:
    return state.board is not None and not (data.id and data.id in state.board.ids)


def _is_unread(state: State, _turn: int, data: ArtifactArrived) -> bool:
    return state.board is not None and data.mail not in state.board.ids


def _has_begun(state: State, _turn: int, _data: EventData) -> bool:
    return state.board is not None


HANDLERS: Final[Mapping[type[EventData], Handler]] = {
    RunForked: _on_run_forked,
    TurnStarted: on_turn_started,
    TurnEnded: on_turn_ended,
    ArtifactPublished: on_artifact_published,
    ArtifactArrived: on_artifact_arrived,
    DeliveryMissed: on_delivery_missed,
    DeliveryDeferred: on_delivery_deferred,
    BatchesFlushed: on_batches_flushed,
}

EXPECTED: Final[Mapping[type[EventData], Expected]] = {
    TurnStarted: _may_start,
    ArtifactPublished: _is_new,
    ArtifactArrived: _is_unread,
    DeliveryMissed: _has_begun,
    DeliveryDeferred: lambda state, turn, _data: turn in state.active,
    BatchesFlushed: _has_begun,
}
