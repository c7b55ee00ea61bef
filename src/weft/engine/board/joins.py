"""Collecting artifacts: gates that need several, joins by a key in a window, batches."""

from collections.abc import Iterable, Iterator
from typing import Final

from weft.engine.board.publishing import timer_name
from weft.engine.board.rules import SubscriptionRules
from weft.engine.board.state import Artifact, BoardState, Delivery, Groups, Pool
from weft.engine.commands import Command, Record
from weft.engine.events import DeliveryMissed, Event, TimerSet
from weft.engine.log import Fifo
from weft.engine.state import State, without

#: Said of what waited for others that did not come while its window was open.
TOO_LATE: Final = "the others did not come in time"


def collect(
    state: State,
    board: BoardState,
    rules: SubscriptionRules,
    key: str,
    artifact: Artifact,
    event: Event,
) -> tuple[BoardState, list[Command]]:
    """Take an artifact in for a subscription; what is complete is ready, or joins a batch."""
    commands: list[Command] = []
    if rules.join is not None and rules.join.within_count is not None:
        seen = board.seen.get(rules.name, 0) + 1
        board = board.replace(seen={**board.seen, rules.name: seen})
        last = seen - 1 - rules.join.within_count
        board, commands = _pass_over(state, board, rules, last)
    if rules.single:
        board, more = _complete(state, board, rules, (artifact,), event)
        return board, [*commands, *more]
    place = (rules.name, key)
    pool = board.pools.get(place)
    if pool is not None and _is_late(state, pool.timer, event):
        commands.append(missed(rules.name, pool, TOO_LATE))
        state.timers, pool = without(state.timers, pool.timer), None
    pool = pool or Pool({}, seen=board.seen.get(rules.name, 0))
    waiting = pool.waiting.get(artifact.type) or Fifo[Artifact]()
    pool = pool._replace(waiting={**pool.waiting, artifact.type: waiting.added(artifact)})
    group = _taken(rules, pool)
    if group is None:
        pool, opened = _opened(rules, pool, event)
        return board.replace(pools={**board.pools, place: pool}), [*commands, *opened]
    left = {
        type_: found.rest(rules.needed[type_])
        for type_, found in pool.waiting.items()
        if len(found) > rules.needed[type_]
    }
    if pool.timer:
        state.timers = without(state.timers, pool.timer)
    if left:  # It waits for others of its own, in a window of its own.
        pool, opened = _opened(rules, Pool(left, seen=pool.seen), event)
        board, commands = board.replace(pools={**board.pools, place: pool}), [*commands, *opened]
    else:
        board = board.replace(pools=without(board.pools, place))
    board, more = _complete(state, board, rules, group, event)
    return board, [*commands, *more]


def _opened(rules: SubscriptionRules, pool: Pool, event: Event) -> tuple[Pool, list[Command]]:
    """Let the time of a window begin, where it has one and it has not begun."""
    if pool.timer or rules.join is None or rules.join.within_seconds is None:
        return pool, []
    pool = pool._replace(timer=timer_name(f"window:{rules.name}", event.seq))
    due = event.at + round(rules.join.within_seconds * 1000)
    return pool, [Record(TimerSet(pool.timer, due, "board"), turn=0)]


def _is_late(state: State, id_: str, event: Event) -> bool:
    """Tell whether a time is over whose timer has not fired yet: nobody may have been there."""
    timer = state.timers.get(id_)
    return timer is not None and timer.at <= event.at


def _taken(rules: SubscriptionRules, pool: Pool) -> tuple[Artifact, ...] | None:
    """Return what is complete: of each type the oldest, in the order the types are declared."""
    if any(
        len(pool.waiting.get(each_type, ())) < count for each_type, count in rules.needed.items()
    ):
        return None
    places = dict.fromkeys(rules.needed, 0)
    group: list[Artifact] = []
    for type_ in rules.types:
        group.append(pool.waiting[type_][places[type_]])
        places[type_] += 1
    return tuple(group)


def _pass_over(
    state: State, board: BoardState, rules: SubscriptionRules, before: int
) -> tuple[BoardState, list[Command]]:
    """Let go of what has waited while too many others came."""
    gone = [key for key, pool in board.pools.items() if key[0] == rules.name and pool.seen < before]
    if not gone:
        return board, []
    told = "too many others came in between"
    timers = {board.pools[each_key].timer for each_key in gone}
    state.timers = {id_: timer for id_, timer in state.timers.items() if id_ not in timers}
    pools = {key: each_pool for key, each_pool in board.pools.items() if key not in gone}
    return board.replace(pools=pools), [
        missed(rules.name, board.pools[each_key], told) for each_key in gone
    ]


def _complete(
    state: State,
    board: BoardState,
    rules: SubscriptionRules,
    group: tuple[Artifact, ...],
    event: Event,
) -> tuple[BoardState, list[Command]]:
    batch = rules.batch
    if batch is None:
        return enqueue(board, rules.name, group, event.seq), []
    held = board.batches.get(rules.name)
    if held is not None and _is_late(state, held.timer, event):
        state.timers = without(state.timers, held.timer)
        board, held = _flush(board, rules.name, held, event), None
    held = held or Groups(Fifo())
    held = held._replace(groups=held.groups.added(group))
    commands: list[Command] = []
    if batch.size is not None and len(held.groups) >= batch.size:
        if held.timer:
            state.timers = without(state.timers, held.timer)
        return _flush(board, rules.name, held, event), commands
    if not held.timer and batch.timeout_seconds is not None:
        held = held._replace(timer=timer_name(f"batch:{rules.name}", event.seq))
        due = event.at + round(batch.timeout_seconds * 1000)
        commands.append(Record(TimerSet(held.timer, due, "board"), turn=0))
    return board.replace(batches={**board.batches, rules.name: held}), commands


def _flush(board: BoardState, subscription: str, held: Groups, event: Event) -> BoardState:
    whole = tuple(artifact for group in held.groups for artifact in group)
    board = board.replace(batches=without(board.batches, subscription))
    return enqueue(board, subscription, whole, event.seq)


def enqueue(
    board: BoardState,
    subscription: str,
    artifacts: tuple[Artifact, ...],
    order: int,
    tries: int = 0,
) -> BoardState:
    """Let artifacts wake their agent when its time comes."""
    queue = board.queues.get(subscription) or Fifo[Delivery]()
    queue = queue.added(Delivery(artifacts, order, tries))
    return board.replace(queues={**board.queues, subscription: queue})


def flush_batches(state: State, board: BoardState, event: Event) -> BoardState:
    """Let everything that was collected for batches be handled now."""
    for subscription, held in board.batches.items():
        state.timers = without(state.timers, held.timer)
        board = _flush(board, subscription, held, event)
    return board


def window_over(board: BoardState, timer: str) -> tuple[BoardState, list[Command]]:
    """Give up what the others did not come for in time."""
    for key, pool in board.pools.items():
        if pool.timer == timer:
            gone = board.replace(pools=without(board.pools, key))
            return gone, [missed(key[0], pool, TOO_LATE)]
    return board, []


def batch_over(board: BoardState, timer: str, event: Event) -> BoardState:
    """Let a batch be handled that is not full when its time is over."""
    for subscription, held in board.batches.items():
        if held.timer == timer:
            return _flush(board, subscription, held, event)
    return board


def missed(subscription: str, pool: Pool, detail: str) -> Command:
    ids = tuple(entry.id for found in pool.waiting.values() for entry in found)
    return Record(DeliveryMissed(subscription, ids, "expired", detail), turn=0)


def unfinished(board: BoardState) -> Iterator[DeliveryMissed]:
    """Say what has come to nothing when a run is over."""
    for (subscription, _), pool in board.pools.items():
        yield _left(subscription, *pool.waiting.values())
    for subscription, held in board.batches.items():
        yield _left(subscription, *held.groups)
    for subscription, queue in board.queues.items():
        yield _left(subscription, *(each_delivery.artifacts for each_delivery in queue))
    for subscription, delivery in board.deferred.values():
        yield _left(subscription, delivery.artifacts)
    for delayed in board.delayed.values():
        yield from (_left(subscription, (delayed.artifact,)) for subscription in delayed.wakes)


def _left(subscription: str, *found: Iterable[Artifact]) -> DeliveryMissed:
    ids = tuple(artifact.id for several in found for artifact in several)
    return DeliveryMissed(subscription, ids, "unfinished")
