"""The board: artifacts wake agents, and what these publish wakes others, until all is quiet.

A run is one correlation. What an artifact wakes stands in its event; what is collected, queued
and counted is a fold of these. Agents work side by side, each with a thread of its own.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from weft.engine import documents, pools
from weft.engine.board_events import (
    ArtifactArrived,
    ArtifactPublished,
    BatchesFlushed,
    DeliveryDeferred,
    DeliveryMissed,
)
from weft.engine.board_rules import BoardAgentRules, BoardRules, SubscriptionRules
from weft.engine.board_state import Artifact, BoardState, Delayed, Delivery
from weft.engine.codec import read_json, unfenced
from weft.engine.commands import Assemble, Command, Fetch, Record, Start
from weft.engine.compiled import CompiledWorkflow
from weft.engine.conditions import evaluate
from weft.engine.ending import end_run
from weft.engine.events import (
    Event,
    ModelReplied,
    Outcome,
    RunStarted,
    TimerSet,
    ToolCalled,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
from weft.engine.log import Fifo, Log
from weft.engine.publishing import (
    NO_KEY,
    Draft,
    JsonDraft,
    Unpublishable,
    parse_output,
    published,
    read_draft,
    reviewed,
)
from weft.engine.schedules import next_time
from weft.engine.state import Activation, Message, State, Timer, without
from weft.engine.triggers import agent_turn_count, fire, lifecycle
from weft.errors import ExpressionError
from weft.findings import Json
from weft.spec.board import TICK, BoardAgent

#: The boundaries of an activation at which code is called, and what begins the names of all.
ENGINE: Final = "board:engine"
PUBLISH: Final = "board:publish"
AFTER: Final = "board:post_publish"
ERROR: Final = "board:error"
POINTS: Final = frozenset({ENGINE, PUBLISH, AFTER, ERROR})

#: Where what a provider gave stands in what was fetched.
BOARD: Final = "board"

#: What begins the name of who publishes where no agent does.
OUTSIDE: Final = ("user:", "schedule:")

#: A run that collects for all, or keeps a schedule, ends when it is quiet after so many events.
LONG: Final = 10_000

_IDLE: Final = "idle"
_SCHEDULE: Final = "schedule"


def rules_of(compiled: CompiledWorkflow) -> BoardRules:
    """Return the rules of a board; only runs of boards come here."""
    return cast("BoardRules", compiled.board)


def board_of(state: State) -> BoardState:
    return cast("BoardState", state.board)


def begin(
    compiled: CompiledWorkflow, state: State, event: Event, data: RunStarted
) -> list[Command]:
    """Begin a correlation, a collection or a schedule."""
    state.board = BoardState(
        data.correlation or state.run, last_at=event.at, schedule=data.schedule
    )
    if data.schedule:
        return _schedule(compiled, board_of(state), event)
    if data.collects:
        return []
    due = event.at + round(rules_of(compiled).spec.idle_seconds * 1000)
    return [Record(TimerSet(_IDLE, due, "board"), turn=0)]


# -- what is published, and whom it wakes


def on_artifact_published(
    compiled: CompiledWorkflow, state: State, event: Event, data: ArtifactPublished
) -> list[Command]:
    """Deliver an artifact to all who want it, now or when it can be seen."""
    board = board_of(state)
    id_ = data.id or f"{state.run}.{event.seq}"
    it = Artifact(
        id_, data.type, data.payload, data.by, data.tags, data.partition,
        board.correlation, event.at,
    )  # fmt: skip
    board = board.changed(
        counts={**board.counts, data.type: board.counts.get(data.type, 0) + 1},
        outside=board.outside + data.by.startswith(OUTSIDE),
        last_at=event.at,
    )
    if data.id:
        board = board.changed(ids=board.ids.added(data.id))
    state.board = board
    commands: list[Command] = [
        Record(DeliveryMissed(name, (id_,), "no_key" if fault == NO_KEY else "predicate", fault), 0)
        for name, fault in data.faults.items()
    ]
    elsewhere = frozenset(data.letters.values())
    wakes = {name: key for name, key in data.wakes.items() if name not in elsewhere}
    direct = bool(data.direct)
    commands += _deliver(compiled, state, event, it, wakes, event.at + data.delay, direct=direct)
    return [*commands, *start_next(compiled, state)]


def on_artifact_arrived(
    compiled: CompiledWorkflow, state: State, event: Event, data: ArtifactArrived
) -> list[Command]:
    """Deliver an artifact of another run to the subscription that collects it."""
    board = board_of(state)
    it = Artifact(
        data.id, data.type, data.payload, data.by, data.tags, data.partition,
        data.correlation, data.created_at,
    )  # fmt: skip
    state.board = board.changed(
        counts={**board.counts, data.type: board.counts.get(data.type, 0) + 1},
        outside=board.outside + 1,
        ids=board.ids.added(data.letter),
        last_at=event.at,
    )
    wakes = {data.subscription: data.key}
    commands = _deliver(compiled, state, event, it, wakes, data.visible_at)
    return [*commands, *start_next(compiled, state)]


def _deliver(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    it: Artifact,
    wakes: Mapping[str, str],
    visible_at: int,
    *,
    direct: bool = False,
) -> list[Command]:
    board, rules = board_of(state), rules_of(compiled)
    if wakes and visible_at > event.at:
        timer = f"visible:{event.seq}"
        state.board = board.changed(delayed={**board.delayed, timer: Delayed(it, wakes)})
        return [Record(TimerSet(timer, visible_at, "board"), turn=0)]
    commands: list[Command] = []
    if direct:  # It is given to the agent, whatever that would wait for.
        for name in list(wakes)[:1]:
            board = pools.enqueue(board, name, (it,), event.seq)
    else:
        for name, key in wakes.items():
            subscription = rules.subscriptions[name]
            board, more = pools.collect(state, board, subscription, key, it, event)
            commands += more
    state.board = board
    return commands


def on_delivery_missed(
    compiled: CompiledWorkflow, state: State, _event: Event, data: DeliveryMissed
) -> list[Command]:
    """Nothing follows but that others are next, where an agent was woken too often."""
    if data.why != "breaker":
        return []
    board = board_of(state)
    queue = board.queues[data.subscription].rest()
    state.board = board.changed(queues=_queued(board, data.subscription, queue))
    return start_next(compiled, state) or _when_quiet(compiled, state)


def on_batches_flushed(
    compiled: CompiledWorkflow, state: State, event: Event, _data: BatchesFlushed
) -> list[Command]:
    """Let everything that was collected for batches be handled now."""
    state.board = pools.flush_batches(state, board_of(state), event)
    return start_next(compiled, state)


def _queued(
    board: BoardState, subscription: str, queue: Fifo[Delivery]
) -> Mapping[str, Fifo[Delivery]]:
    if len(queue):
        return {**board.queues, subscription: queue}
    return without(board.queues, subscription)


# -- who is next


def start_next(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Start as many activations as may work side by side: the most urgent first, then in order."""
    board, rules = board_of(state), rules_of(compiled)
    if not board.queues or state.stopping or state.ending is not None or 0 in state.active:
        return []
    running = Counter(it.agent for it in state.active.values())
    free = rules.spec.max_concurrency - len(state.active)
    taken: dict[str, int] = {}
    starts = Counter[str]()
    commands: list[Command] = []
    while free > 0:
        chosen = _most_urgent(rules, board, running, taken)
        if chosen is None:
            break
        woken = board.woken.get(chosen.agent, 0) + starts[chosen.agent]
        if woken >= rules.spec.breaker * max(1, board.outside):
            # More often than what came from outside explains.
            ids = tuple(it.id for it in board.queues[chosen.name][0].artifacts)
            told = f"{chosen.agent} was woken {woken} times"
            trips = Record(DeliveryMissed(chosen.name, ids, "breaker", told), turn=0)
            return commands or [trips]
        starts[chosen.agent] += 1
        taken[chosen.name] = taken.get(chosen.name, 0) + 1
        running[chosen.agent] += 1
        free -= 1
        commands.append(Start(chosen.agent, step=chosen.name))
    return commands


def _most_urgent(
    rules: BoardRules, board: BoardState, running: Mapping[str, int], taken: Mapping[str, int]
) -> SubscriptionRules | None:
    best: tuple[int, int] | None = None
    chosen: SubscriptionRules | None = None
    for name, queue in board.queues.items():
        place = taken.get(name, 0)
        it = rules.subscriptions[name]
        if place >= len(queue) or running.get(it.agent, 0) >= rules.agents[it.agent].concurrency:
            continue
        if not _is_activated(it, board):
            continue
        urgency = (-it.priority, queue[place].order)
        if best is None or urgency < best:
            best, chosen = urgency, it
    return chosen


def _is_activated(it: SubscriptionRules, board: BoardState) -> bool:
    """Tell whether there is enough on the board for a subscription; a type without any counts 0."""
    if it.activation is None:
        return True
    try:
        return evaluate(it.activation, Counter(board.counts))
    except ExpressionError:
        return False


def start(
    compiled: CompiledWorkflow, state: State, event: Event, data: TurnStarted
) -> list[Command]:
    """Let an agent work on what has woken it."""
    board, number = board_of(state), event.turn
    queue = board.queues[data.step]
    woken = {**board.woken, data.agent: board.woken.get(data.agent, 0) + 1}
    state.board = board.changed(queues=_queued(board, data.step, queue.rest()), woken=woken)
    active = Activation(data.agent, number, step=data.step, inputs=queue[0].artifacts)
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
    board, timer = board_of(state), f"defer:{event.seq}"
    delivery = Delivery(state.active[event.turn].inputs, event.seq)
    state.board = board.changed(deferred={**board.deferred, timer: (data.subscription, delivery)})
    return [Record(TimerSet(timer, data.at, "board"), turn=0)]


# -- what an agent does


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


def drafts_of(compiled: CompiledWorkflow, active: Activation, output: Json) -> list[JsonDraft]:
    """Return what a model has made as drafts."""
    return parse_output(spec_of(compiled, active.agent), output)


def _evaluate(
    compiled: CompiledWorkflow, state: State, active: Activation, event: Event
) -> list[Command]:
    """Let the next engine work: a model that is asked, or a function that is called."""
    engine = rules_of(compiled).agents[active.agent].engines[active.at]
    if engine.function:
        id_ = f"engine-{active.number}-{active.at}-{len(active.candidates)}"
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
    id_ = f"{point.removeprefix('board:')}-{active.number}"
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
            if made["state"]:
                active = active.changed(fetched={**(active.fetched or {}), "state": made["state"]})
            return evaluated(compiled, state, active, made["artifacts"], event)
        case "board:publish":
            return _publish(compiled, state, active, drafts)
        case "board:error":
            state.drop(active.number)
            return _after(compiled, state)
        case _:
            return _end(state, active)


def call_failed(
    compiled: CompiledWorkflow, state: State, active: Activation, point: str, error: str
) -> list[Command]:
    """Let the activation fail with its code; what was published stays, whatever came after."""
    if point == ERROR:
        state.drop(active.number)
        return _after(compiled, state)
    state.put(active.changed(missing=frozenset()))
    if point == AFTER:
        return _end(state, state.active[active.number])
    return [Record(TurnFailed(active.agent, error, "tool"), active.number)]


def _publish(
    compiled: CompiledWorkflow,
    state: State,
    active: Activation,
    drafts: Sequence[JsonDraft],
) -> list[Command]:
    rules, made = rules_of(compiled), list[Command]()
    partition = active.inputs[0].partition if active.inputs else ""
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
        made.append(Record(published(rules, state.app, read), active.number))
    if rules.agents[active.agent].after_code:
        return [*made, *_call(state, active.changed(result=cast("Json", list(drafts))), AFTER)]
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
    return [*fired, *flushed, *_after(compiled, state)]


def failed(
    compiled: CompiledWorkflow, state: State, active: Activation, data: TurnFailed
) -> list[Command]:
    """Put down what has come to nothing, and go on with the others."""
    ids = tuple(it.id for it in active.inputs)
    missed = Record(DeliveryMissed(active.step, ids, "failed", data.error), turn=0)
    if rules_of(compiled).agents[active.agent].error_code:
        state.calls = {k: it for k, it in state.calls.items() if it.turn != active.number}
        return [missed, *_call(state, active.changed(result=data.error), ERROR)]
    state.drop(active.number)
    return [missed, *_after(compiled, state)]


def _after(compiled: CompiledWorkflow, state: State) -> list[Command]:
    return start_next(compiled, state) or _when_quiet(compiled, state)


def _when_quiet(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Take note that nothing is to be done; a run that was long, or is to stop, ends then."""
    if state.active:
        return []
    board = board_of(state)
    if state.stopping:
        return over(compiled, state, "cancelled", "stopped on request after the turn")
    if board.schedule and not state.timers:
        return [end_run(compiled, "completed", "its schedule is over")]
    state.board = board.changed(outside=0, woken={})
    unwanted = board.queues or board.pools or board.batches or board.deferred or state.timers
    if state.seq >= LONG and not unwanted:
        return [end_run(compiled, "completed", "everything was handled")]
    return []


# -- time


def fired(compiled: CompiledWorkflow, state: State, event: Event, timer: Timer) -> list[Command]:
    """Let happen what the time of a board has come for."""
    board = board_of(state)
    kind = timer.id.partition(":")[0]
    commands: list[Command] = []
    match kind:
        case "idle":
            return _when_idle(compiled, state, event)
        case "schedule":
            return _tick(compiled, state, event, timer)
        case "visible":
            delayed = board.delayed[timer.id]
            state.board = board.changed(delayed=without(board.delayed, timer.id))
            commands = _deliver(compiled, state, event, delayed.artifact, delayed.wakes, 0)
        case "defer":
            name, delivery = board.deferred[timer.id]
            board = board.changed(deferred=without(board.deferred, timer.id))
            state.board = pools.enqueue(board, name, delivery.artifacts, delivery.order)
        case "window":
            state.board, commands = pools.window_over(board, timer.id)
        case _:
            state.board = pools.batch_over(board, timer.id, event)
    return [*commands, *start_next(compiled, state)]


def _when_idle(compiled: CompiledWorkflow, state: State, event: Event) -> list[Command]:
    """End a correlation in which nothing has happened for long; else look again later."""
    board, seconds = board_of(state), rules_of(compiled).spec.idle_seconds
    due = board.last_at + round(seconds * 1000)
    busy = state.active or board.deferred or board.delayed
    if due > event.at or busy:
        return [Record(TimerSet(_IDLE, max(due, event.at + 1000), "board"), turn=0)]
    return over(compiled, state, "completed", f"nothing has happened for {seconds:g} seconds")


def over(compiled: CompiledWorkflow, state: State, outcome: Outcome, reason: str) -> list[Command]:
    """End a run, and say of everything that waits or is under way that it comes to nothing."""
    broken = (
        DeliveryMissed(it.step, tuple(a.id for a in it.inputs), "unfinished")
        for it in state.active.values()
        if it.step
    )
    missed = [Record(it, turn=0) for it in (*broken, *pools.unfinished(board_of(state)))]
    return [*missed, end_run(compiled, outcome, reason)]


def _schedule(
    compiled: CompiledWorkflow, board: BoardState, event: Event, planned: int | None = None
) -> list[Command]:
    """Set the next time of a schedule; when there is none, its run is over."""
    rules: BoardAgentRules = rules_of(compiled).agents[board.schedule]
    schedule = rules.schedule
    most = schedule.max_repeats if schedule else 0
    if schedule is None or (most is not None and board.ticks >= most):
        return []
    due = next_time(schedule, event.at, planned)
    if due is None:
        return []
    return [Record(TimerSet(f"{_SCHEDULE}:{board.ticks + 1}", due, "board"), turn=0)]


def _tick(compiled: CompiledWorkflow, state: State, event: Event, timer: Timer) -> list[Command]:
    board = board_of(state).changed(ticks=board_of(state).ticks + 1)
    state.board = board
    payload: Json = {"iteration": board.ticks, "fired_at": event.at}
    draft = Draft(TICK, payload, f"schedule:{board.schedule}", direct=board.schedule)
    tick = Record(published(rules_of(compiled), state.app, draft), turn=0)
    return [tick, *_schedule(compiled, board, event, timer.at)]
