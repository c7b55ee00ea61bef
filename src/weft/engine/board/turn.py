"""What an agent of a board does when it is woken: get ready, work, publish, come to an end."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from weft.engine.board.correlation import board_of, next_or_quiet, queued, rules_of
from weft.engine.board.ids import activation_name, product_name, timer_name
from weft.engine.board.publishing import (
    JsonDraft,
    Unpublishable,
    dumped,
    parse_output,
    published,
    read_draft,
    reviewed,
)
from weft.engine.board.state import BoardState, Delivery
from weft.engine.commands import Assemble, Command, Fetch, Record
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    Event,
    ModelReplied,
    TimerSet,
    ToolCalled,
    ToolFailed,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
from weft.engine.events.board import (
    DeliveryDeferred,
    DeliveryMissed,
)
from weft.engine.events.codec import read_json, unfenced
from weft.engine.log import Log
from weft.engine.state import Activation, Message, State
from weft.engine.variables import documents
from weft.engine.variables.triggers import agent_text, agent_turn_count, fire, lifecycle
from weft.findings import Json
from weft.spec.board import BoardAgent

#: The boundaries of an activation at which code is called, and what begins the names of all.
ENGINE: Final = "board:engine"


PUBLISH: Final = "board:publish"


AFTER: Final = "board:post_publish"


ERROR: Final = "board:error"


POINTS: Final = frozenset({ENGINE, PUBLISH, AFTER, ERROR})


#: Where what a provider gave stands in what was fetched.
BOARD: Final = "board"


def start(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnStarted
) -> list[Command]:
    """Let an agent work on what has woken it."""
    board, number = board_of(state), event.turn
    queue = board.queues[data.step]
    woken = {**board.woken, data.agent: board.woken.get(data.agent, 0) + 1}
    state.board = board.changed(queues=queued(board, data.step, queue.rest()), woken=woken)
    active = _woken(board, event, data, queue[0])
    state.turns = number
    state.turn_counts = {
        **state.turn_counts,
        data.agent: state.turn_counts.get(data.agent, 0) + 1,
    }
    state.threads = {**state.threads, number: Log[Message]()}
    writes = lifecycle(compiled, state.variables, "before_agent", data.agent)
    fired, _ = fire(compiled, state, number, writes)
    active = active.changed(stage="fetching", seq=event.seq)
    fetch = fetch_of(compiled, active)
    if fetch.board or fetch.names:
        state.put(active)
        return [*fired, fetch]
    return [*fired, *_evaluate(compiled, state, active, event)]


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
    """Return what an activation needs before it works."""
    names = (*compiled.per_phase, *compiled.agents[active.agent].on_demand)
    prepares = rules_of(compiled).agents[active.agent].prepares
    return Fetch(active.agent, active.number, names, servers=False, seq=active.seq, board=prepares)


def fetched(
    compiled: CompiledWorkflow, state: State, event: Event, found: Mapping[str, Json]
) -> list[Command]:
    """Go on with what providers and components gave, unless these put the activation off."""
    active = state.active[event.turn]
    given = cast("Mapping[str, Any]", found.get(BOARD) or {})
    active = active.changed(fetched=given)
    ids = tuple(it.id for it in active.inputs)
    match given.get("verdict", "continue"):
        case "defer":
            at = event.at + max(1, round(float(given.get("seconds", 1)) * 1000))
            state.put(active.changed(stage="ending"))
            put_off = DeliveryDeferred(active.step, ids, at)
            return [
                Record(put_off, active.number),
                Record(TurnEnded(active.agent), active.number),
            ]
        case "skip" | "block" as verdict:
            why = "skipped" if verdict == "skip" else "blocked"
            state.put(active.changed(stage="ending"))
            told = str(given.get("detail", ""))
            missed = DeliveryMissed(active.step, ids, why, told)
            return [Record(missed, turn=0), Record(TurnEnded(active.agent), active.number)]
        case _:
            return _evaluate(compiled, state, active, event)


def on_delivery_deferred(
    _compiled: CompiledWorkflow, state: State, event: Event, data: DeliveryDeferred
) -> list[Command]:
    """Keep a delivery until it is tried again."""
    board, timer = board_of(state), timer_name("defer", event.seq)
    active = state.active[event.turn]
    delivery = Delivery(active.inputs, event.seq, active.tries + 1)
    state.board = board.changed(deferred={**board.deferred, timer: (data.subscription, delivery)})
    return [Record(TimerSet(timer, data.at, "board"), turn=0)]


def role(compiled: CompiledWorkflow, active: Activation) -> str:
    """Return as what an agent asks the model of the engine that works now."""
    return rules_of(compiled).agents[active.agent].engines[active.at].role


def reopened(
    compiled: CompiledWorkflow, active: Activation, waiting: Sequence[str]
) -> list[Command]:
    """Return the call that is to be recorded next where a fork was cut before it."""
    if not waiting:
        return []
    if active.stage == "tools":
        engine = rules_of(compiled).agents[active.agent].engines[active.at]
        return [Record(ToolCalled(waiting[0], engine.function, {}, point=ENGINE), active.number)]
    point = f"board:{waiting[0].rpartition('-')[0]}"
    return [Record(ToolCalled(waiting[0], point, {}, point=point), active.number)]


def read_reply(
    compiled: CompiledWorkflow, active: Activation, data: ModelReplied
) -> tuple[Json, str | None]:
    """Read what a model has made; say what does not fit. Without anything to publish: no value."""
    if not rules_of(compiled).agents[active.agent].publishes:
        return None, None
    if data.misfit:
        return None, data.misfit
    return read_json(unfenced(data.text).encode()), None


def replied(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    active: Activation,
    data: ModelReplied,
    output: Json,
) -> list[Command]:
    """Go on with what a model has made."""
    drafts = [] if output is None else parse_output(spec_of(compiled, active.agent), output)
    writes = agent_text(compiled, state.variables, active.agent, data.text)
    fired, _ = fire(compiled, state, event.turn, writes)
    return [*fired, *evaluated(compiled, state, active, drafts, event)]


def _evaluate(
    compiled: CompiledWorkflow, state: State, active: Activation, event: Event
) -> list[Command]:
    """Let the next engine work: a model that is asked, or a function that is called."""
    engine = rules_of(compiled).agents[active.agent].engines[active.at]
    if engine.function:
        id_ = f"engine-{active.name}-{active.at}-{len(active.candidates)}"
        state.put(active.changed(stage="tools", missing=frozenset({id_})))
        return [Record(ToolCalled(id_, engine.function, {}, point=ENGINE), active.number)]
    told = Message("user", "", inputs_text(active), event.seq)
    state.threads = {**state.threads, active.number: Log([told])}
    state.put(active.changed(stage="assembling"))
    return [Assemble(engine.role, active.number, active.call)]


def inputs_of(active: Activation) -> list[JsonDraft]:
    """Return what an engine works on: what woke the agent, or what the engine before it made."""
    if active.at and active.result is not None:
        return cast("list[JsonDraft]", active.result)
    changed = (active.fetched or {}).get("inputs")
    if changed is not None:
        return cast("list[JsonDraft]", changed)
    return [
        {
            "id": it.id,
            "type": it.type,
            "payload": it.payload,
            "produced_by": it.by,
            "tags": list(it.tags),
            "partition_key": it.partition or None,
            "correlation_id": it.correlation,
            "created_at": it.created_at,
            "visibility": it.visibility,
        }
        for it in active.inputs
    ]


def inputs_text(active: Activation) -> str:
    """Return what a model is told to work on."""
    lines = (
        json.dumps({"type": it["type"], "payload": it["payload"]}, ensure_ascii=False)
        for it in inputs_of(active)
    )
    return "\n".join(("Inputs:", *lines))


def evaluated(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    drafts: Sequence[JsonDraft],
    event: Event,
) -> list[Command]:
    """Go on with the next engine, with the next attempt, or to what is published."""
    rules = rules_of(compiled).agents[active.agent]
    active = active.changed(result=cast("Json", list(drafts)), shown=None, missing=frozenset())
    if active.at + 1 < len(rules.engines):
        active = active.changed(at=active.at + 1, call=active.call + 1)
        return _evaluate(compiled, state, active, event)
    candidates = (*active.candidates, cast("Json", list(drafts)))
    if len(candidates) < rules.attempts:
        active = active.changed(candidates=candidates, at=0, call=active.call + 1, result=None)
        return _evaluate(compiled, state, active, event)
    active = active.changed(candidates=candidates)
    if rules.publishing_code:
        return _call(state, active, PUBLISH)
    try:
        passed = reviewed(spec_of(compiled, active.agent), list(drafts), {})
    except Unpublishable as error:
        state.put(active)
        return [Record(TurnFailed(active.agent, str(error), "output"), active.number)]
    return _publish(compiled, state, active, passed)


def spec_of(compiled: CompiledWorkflow, agent: str) -> BoardAgent:
    """Return how an agent is declared to take part."""
    return next(it for it in rules_of(compiled).spec.agents if it.agent == agent)


def _call(state: State, active: Activation, point: str) -> list[Command]:
    id_ = f"{point.removeprefix('board:')}-{active.name}"
    state.put(active.changed(stage="after", missing=frozenset({id_})))
    return [Record(ToolCalled(id_, point, {}, point=point), active.number)]


def returned(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    point: str,
    value: Json,
    event: Event,
) -> list[Command]:
    """Take what code at a boundary of an activation returned."""
    active = active.changed(missing=frozenset())
    drafts = cast("list[JsonDraft]", value or [])
    match point:
        case "board:engine":
            made = cast("Mapping[str, Any]", value)
            active = active.changed(fetched={**(active.fetched or {}), "state": made["state"]})
            return evaluated(compiled, state, active, made["artifacts"], event)
        case "board:publish":
            return _publish(compiled, state, active, drafts)
        case "board:error":
            state.drop(active.number)
            return next_or_quiet(compiled, state)
        case _:
            return _end(state, active)


def call_failed(
    compiled: CompiledWorkflow, state: State, active: Activation, point: str, data: ToolFailed
) -> list[Command]:
    """Let the activation fail with its code; what was published stays, whatever came after."""
    if point == ERROR:
        state.drop(active.number)
        return next_or_quiet(compiled, state)
    state.put(active.changed(missing=frozenset()))
    if point == AFTER:
        return _end(state, state.active[active.number])
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
    done: list[Json] = []
    for draft in drafts:
        if "blocked" in draft:
            told = f"{draft['type']} {draft['blocked']}"
            made.append(Record(DeliveryMissed("", (), "blocked", told), active.number))
            continue
        try:
            read = read_draft(draft, by=active.agent, partition=partition)
        except ValueError:
            state.put(active)
            told = f"the visibility of an artifact of the type {draft['type']} cannot be used"
            return [Record(TurnFailed(active.agent, told, "output"), active.number)]
        seen = dumped(read.visibility)
        policy = json.dumps(seen)
        name = product_name(active.name, correlation, seen, places[policy])
        places[policy] += 1
        done.append({**draft, "id": name})
        made.append(Record(published(rules, state.app, read._replace(id=name)), active.number))
    if rules.agents[active.agent].after_code:
        return [*made, *_call(state, active.changed(result=done), AFTER)]
    return [*made, *_end(state, active)]


def _end(state: State, active: Activation) -> list[Command]:
    state.put(active.changed(stage="ending", missing=frozenset()))
    return [Record(TurnEnded(active.agent), active.number)]


def ended(compiled: CompiledWorkflow, state: State, active: Activation) -> list[Command]:
    """Set what the end of a turn sets, and let the next agents work."""
    count = state.turn_counts.get(active.agent, 0)
    writes = [
        *agent_turn_count(compiled, state.variables, active.agent, count),
        *lifecycle(compiled, state.variables, "after_agent", active.agent),
    ]
    fired, _ = fire(compiled, state, active.number, writes)
    state.drop(active.number)
    flushed = documents.write(compiled, state, "on_phase_transition") if state.unwritten else []
    return [*fired, *flushed, *next_or_quiet(compiled, state)]


def failed(
    compiled: CompiledWorkflow, state: State, _event: Event, active: Activation, data: TurnFailed
) -> list[Command]:
    """Put down what has come to nothing, and go on with the others."""
    ids = tuple(it.id for it in active.inputs)
    missed = Record(DeliveryMissed(active.step, ids, "failed", data.error), turn=0)
    if rules_of(compiled).agents[active.agent].error_code:
        state.calls = {k: it for k, it in state.calls.items() if it.turn != active.number}
        return [missed, *_call(state, active.changed(result=data.error), ERROR)]
    state.drop(active.number)
    return [missed, *next_or_quiet(compiled, state)]
