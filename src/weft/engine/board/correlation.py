"""A correlation: artifacts are delivered to subscriptions, which wake agents, until it is idle.

A run is one correlation. The event of an artifact says which subscriptions want it; queues, joins
and counts are a fold of these events. Agents work in parallel, each with a thread of its own.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Final, cast

from weft.engine.board.joins import (
    close_batch,
    close_window,
    collect,
    flush_batches,
    unfinished_deliveries,
)
from weft.engine.board.publishing import (
    NO_KEY,
    artifact_event,
    tick_name,
    timer_name,
)
from weft.engine.board.rules import BoardAgentRules, BoardRules, SubscriptionRules, next_time
from weft.engine.board.state import (
    Artifact,
    BoardState,
    Delayed,
    Delivery,
    board_owner,
)
from weft.engine.commands import Command, Record, Start
from weft.engine.compiled import CompiledWorkflow
from weft.engine.events import (
    ArtifactArrived,
    ArtifactPublished,
    BatchesFlushed,
    DeliveryMissed,
    Event,
    Outcome,
    RunStarted,
    TimerSet,
)
from weft.engine.persistent import Fifo
from weft.engine.state import State, without
from weft.engine.timers import Timer
from weft.engine.turn.run import end_run
from weft.engine.variables.conditions import evaluate
from weft.errors import ExpressionError
from weft.findings import Json
from weft.ids import OUTSIDE
from weft.spec.board import TICK

#: A run that collects across correlations, or keeps a schedule, ends when idle after this many.
LONG: Final = 10_000

_IDLE: Final = "idle"
_SCHEDULE: Final = "schedule"


def rules_of(compiled: CompiledWorkflow) -> BoardRules:
    """Return the rules of a board; only runs of boards come here."""
    return cast("BoardRules", compiled.board)


def board_of(state: State) -> BoardState:
    return cast("BoardState", state.board)


def start_correlation(
    compiled: CompiledWorkflow, state: State, event: Event, data: RunStarted
) -> list[Command]:
    """Begin a correlation, a collection or a schedule."""
    rules = rules_of(compiled)
    owner = board_owner(data.user, shared=rules.spec.shared)
    state.board = BoardState(
        data.correlation or state.run, owner, last_at=event.at, schedule=data.schedule
    )
    if data.schedule:
        return _schedule(compiled, board_of(state), event)
    if data.collects:
        return []
    due = event.at + round(rules.spec.idle_seconds * 1000)
    return [Record(TimerSet(_IDLE, due, "board"), turn=0)]


# -- artifacts


def on_artifact_published(
    compiled: CompiledWorkflow, state: State, event: Event, data: ArtifactPublished
) -> list[Command]:
    """Deliver an artifact to the subscriptions that want it, now or when it becomes visible."""
    board = board_of(state)
    artifact = Artifact(
        data.id, data.type, data.payload, data.by, data.tags, data.partition,
        board.correlation, event.at, data.visibility,
    )  # fmt: skip
    board = board.replace(last_at=event.at)
    if data.by.startswith(OUTSIDE):
        board = board.replace(outside=board.outside + 1, ids=board.ids.added(data.id))
    state.board = board
    commands: list[Command] = [
        Record(_undeliverable(data.id, name, fault), turn=0) for name, fault in data.errors.items()
    ]
    elsewhere = frozenset(data.forwarded_to.values())
    wakes = {name: key for name, key in data.wakes.items() if name not in elsewhere}
    direct = bool(data.direct)
    visible_at = event.at + data.delay
    commands += _deliver(
        compiled, state, event, artifact, wakes, visible_at, direct=direct, counts=data.counts
    )
    return [*commands, *start_next(compiled, state)]


def _undeliverable(artifact: str, subscription: str, fault: str) -> DeliveryMissed:
    why = "no_key" if fault == NO_KEY else "predicate"
    return DeliveryMissed(subscription, (artifact,), why, fault)


def on_artifact_arrived(
    compiled: CompiledWorkflow, state: State, event: Event, data: ArtifactArrived
) -> list[Command]:
    """Deliver an artifact of another run to the subscription that collects it."""
    board = board_of(state)
    artifact = Artifact(
        data.id, data.type, data.payload, data.by, data.tags, data.partition,
        data.correlation, data.created_at,
    )  # fmt: skip
    state.board = board.replace(
        outside=board.outside + 1,
        ids=board.ids.added(data.mail),
        last_at=event.at,
    )
    wakes = {data.subscription: data.key}
    commands = _deliver(compiled, state, event, artifact, wakes, data.visible_at)
    return [*commands, *start_next(compiled, state)]


def _deliver(
    compiled: CompiledWorkflow,
    state: State,
    event: Event,
    artifact: Artifact,
    wakes: Mapping[str, str],
    visible_at: int,
    *,
    direct: bool = False,
    counts: tuple[str, ...] = (),
) -> list[Command]:
    board, rules = board_of(state), rules_of(compiled)
    if (wakes or counts) and visible_at > event.at:
        timer = timer_name("visible", event.seq)
        delayed = Delayed(artifact, wakes, direct, counts)
        state.board = board.replace(delayed=board.delayed.added(timer, delayed))
        return [Record(TimerSet(timer, visible_at, "board"), turn=0)]
    for name in counts:
        counted = board.counts.get(name, {})
        counted = {**counted, artifact.type: counted.get(artifact.type, 0) + 1}
        board = board.replace(counts={**board.counts, name: counted})
    commands: list[Command] = []
    for name, key in wakes.items():
        subscription = rules.subscriptions[name]
        if direct or subscription.at_once:
            board = board.enqueued(name, (artifact,), event.seq)
        else:
            board, more = collect(state, board, subscription, key, artifact, event)
            commands += more
        if direct:  # It is given to one agent, without joins or batches.
            break
    state.board = board
    return commands


def on_delivery_missed(
    compiled: CompiledWorkflow, state: State, _event: Event, data: DeliveryMissed
) -> list[Command]:
    """Start other turns if an agent was woken too often; else do nothing."""
    if data.why != "wake_limit":
        return []
    board = board_of(state)
    queue = board.queues[data.subscription].rest()
    state.board = board.replace(queues=with_queue(board, data.subscription, queue))
    return start_next(compiled, state) or _on_idle(compiled, state)


def on_batches_flushed(
    compiled: CompiledWorkflow, state: State, event: Event, _data: BatchesFlushed
) -> list[Command]:
    """Queue all batches now."""
    state.board = flush_batches(state, board_of(state), event)
    return start_next(compiled, state)


def with_queue(
    board: BoardState, subscription: str, queue: Fifo[Delivery]
) -> Mapping[str, Fifo[Delivery]]:
    """Return all queues after one has changed; one that is empty goes."""
    if len(queue):
        return {**board.queues, subscription: queue}
    return without(board.queues, subscription)


# -- the next turns


def start_next(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Start as many turns as may run in parallel: by priority, then in order."""
    board, rules = board_of(state), rules_of(compiled)
    if not board.queues or state.stopping or state.ending is not None or 0 in state.active:
        return []
    running = Counter(active.agent for active in state.active.values())
    free = rules.spec.max_concurrency - len(state.active)
    taken: dict[str, int] = {}
    starts = Counter[str]()
    commands: list[Command] = []
    while free > 0:
        chosen = _most_urgent(rules, board, running, taken)
        if chosen is None:
            break
        woken = board.woken.get(chosen.agent, 0) + starts[chosen.agent]
        if woken >= rules.spec.max_wakes_per_input * max(1, board.outside):
            waiting = board.queues[chosen.name][taken.get(chosen.name, 0)]
            ids = tuple(artifact.id for artifact in waiting.artifacts)
            told = f"{chosen.agent} was woken {woken} times"
            trips = Record(DeliveryMissed(chosen.name, ids, "wake_limit", told), turn=0)
            return [*commands, trips]
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
        subscription = rules.subscriptions[name]
        if (
            place >= len(queue)
            or running.get(subscription.agent, 0) >= rules.agents[subscription.agent].concurrency
        ):
            continue
        if not _is_activated(subscription, board):
            continue
        urgency = (-subscription.priority, queue[place].order)
        if best is None or urgency < best:
            best, chosen = urgency, subscription
    return chosen


def _is_activated(subscription: SubscriptionRules, board: BoardState) -> bool:
    """Return whether the activation condition of a subscription holds; missing types count 0."""
    if subscription.activation is None:
        return True
    try:
        return evaluate(subscription.activation, Counter(board.counts.get(subscription.name, {})))
    except ExpressionError:
        return False


def start_next_or_idle(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Start the next turns, or note that the board is idle."""
    return start_next(compiled, state) or _on_idle(compiled, state)


def _on_idle(compiled: CompiledWorkflow, state: State) -> list[Command]:
    """Note that the board is idle; a run that is long, or is to stop, ends then."""
    if state.active:
        return []
    board = board_of(state)
    if state.stopping:
        return end_correlation(compiled, state, "cancelled", "stopped on request after the turn")
    if board.schedule and not state.timers:
        return end_correlation(compiled, state, "completed", "the schedule has ended")
    state.board = board.replace(outside=0, woken={})
    unwanted = board.queues or board.joins or board.batches or board.deferred or state.timers
    if state.seq >= LONG and not unwanted:
        return [end_run(compiled, "completed", "all artifacts were handled")]
    return []


# -- timers


def on_timer(compiled: CompiledWorkflow, state: State, event: Event, timer: Timer) -> list[Command]:
    """Do what a timer of the board was set for."""
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
            state.board = board.replace(delayed=board.delayed.removed(timer.id))
            artifact, wakes, direct, counts = delayed
            commands = _deliver(
                compiled, state, event, artifact, wakes, 0, direct=direct, counts=counts
            )
        case "defer":
            name, delivery = board.deferred[timer.id]
            board = board.replace(deferred=board.deferred.removed(timer.id))
            state.board = board.enqueued(name, delivery.artifacts, delivery.order, delivery.tries)
        case "window":
            state.board, commands = close_window(board, timer.id)
        case _:
            state.board = close_batch(board, timer.id, event)
    return [*commands, *start_next(compiled, state)]


def _when_idle(compiled: CompiledWorkflow, state: State, event: Event) -> list[Command]:
    """End a correlation that was idle for its time limit; else check again later."""
    board, seconds = board_of(state), rules_of(compiled).spec.idle_seconds
    due = board.last_at + round(seconds * 1000)
    busy = state.active or len(state.timers) > (_IDLE in state.timers)
    if due > event.at or busy:
        return [Record(TimerSet(_IDLE, max(due, event.at + 1000), "board"), turn=0)]
    return end_correlation(compiled, state, "completed", f"no activity for {seconds:g} seconds")


def end_correlation(
    compiled: CompiledWorkflow, state: State, outcome: Outcome, reason: str
) -> list[Command]:
    """End a run, and record all deliveries that are not finished."""
    broken = (
        DeliveryMissed(active.step, tuple(a.id for a in active.inputs), "unfinished")
        for active in state.active.values()
        if active.step
    )
    missed = [Record(entry, turn=0) for entry in (*broken, *unfinished_deliveries(board_of(state)))]
    return [*missed, end_run(compiled, outcome, reason)]


def _schedule(
    compiled: CompiledWorkflow, board: BoardState, event: Event, planned: int | None = None
) -> list[Command]:
    """Set the timer for the next time of a schedule, if there is one."""
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
    board = board_of(state).replace(ticks=board_of(state).ticks + 1)
    state.board = board
    payload: Json = {"iteration": board.ticks, "fired_at": event.at}
    name = tick_name(board.correlation, board.ticks)
    tick = artifact_event(
        rules_of(compiled),
        state.app,
        {"type": TICK, "payload": payload, "id": name},
        by=f"schedule:{board.schedule}",
        direct=board.schedule,
    )
    return [Record(tick, turn=0), *_schedule(compiled, board, event, timer.at)]
