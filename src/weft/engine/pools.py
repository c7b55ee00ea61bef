"""Collecting artifacts: gates that need several, joins by a key in a window, batches."""

from collections.abc import Iterator

from weft.engine.board_events import DeliveryMissed
from weft.engine.board_rules import SubscriptionRules
from weft.engine.board_state import Artifact, BoardState, Delivery, Groups, Pool
from weft.engine.commands import Command, Record
from weft.engine.events import Event, TimerSet
from weft.engine.log import Fifo
from weft.engine.state import State, without


def collect(
    state: State, board: BoardState, rules: SubscriptionRules, key: str, it: Artifact, event: Event
) -> tuple[BoardState, list[Command]]:
    """Take an artifact in for a subscription; what is complete is ready, or joins a batch."""
    commands: list[Command] = []
    if rules.join is not None and rules.join.within_count is not None:
        seen = board.seen.get(rules.name, 0) + 1
        board = board.changed(seen={**board.seen, rules.name: seen})
        board, missed = _pass_over(board, rules, seen - 1 - rules.join.within_count)
        commands += missed
    if rules.single:
        board, more = _complete(board, rules, (it,), event)
        return board, [*commands, *more]
    pool = board.pools.get((rules.name, key)) or Pool({}, seen=board.seen.get(rules.name, 0))
    waiting = pool.waiting.get(it.type) or Fifo[Artifact]()
    pool = pool._replace(waiting={**pool.waiting, it.type: waiting.added(it)})
    group = _taken(rules, pool)
    if group is None:
        if not pool.timer and rules.join is not None and rules.join.within_seconds is not None:
            pool = pool._replace(timer=f"window:{rules.name}:{event.seq}")
            due = event.at + round(rules.join.within_seconds * 1000)
            commands.append(Record(TimerSet(pool.timer, due, "board"), turn=0))
        return board.changed(pools={**board.pools, (rules.name, key): pool}), commands
    left = {
        type_: found.rest(rules.needed[type_])
        for type_, found in pool.waiting.items()
        if len(found) > rules.needed[type_]
    }
    if left and rules.join is None:
        board = board.changed(pools={**board.pools, (rules.name, key): pool._replace(waiting=left)})
    else:  # What is left of a key begins a window of its own with the next that comes.
        state.timers = without(state.timers, pool.timer)
        pools = without(board.pools, (rules.name, key))
        board = board.changed(
            pools={**pools, (rules.name, key): Pool(left, seen=pool.seen)} if left else pools
        )
    board, more = _complete(board, rules, group, event)
    return board, [*commands, *more]


def _taken(rules: SubscriptionRules, pool: Pool) -> tuple[Artifact, ...] | None:
    """Return what is complete: of each type the oldest, in the order the types are declared."""
    if any(len(pool.waiting.get(it, ())) < count for it, count in rules.needed.items()):
        return None
    places = dict.fromkeys(rules.needed, 0)
    group: list[Artifact] = []
    for type_ in rules.types:
        group.append(pool.waiting[type_][places[type_]])
        places[type_] += 1
    return tuple(group)


def _pass_over(
    board: BoardState, rules: SubscriptionRules, before: int
) -> tuple[BoardState, list[Command]]:
    """Let go of what has waited while too many others came."""
    gone = [key for key, pool in board.pools.items() if key[0] == rules.name and pool.seen < before]
    if not gone:
        return board, []
    told = "too many others came in between"
    pools = {key: it for key, it in board.pools.items() if key not in gone}
    return board.changed(pools=pools), [missed(rules.name, board.pools[it], told) for it in gone]


def _complete(
    board: BoardState, rules: SubscriptionRules, group: tuple[Artifact, ...], event: Event
) -> tuple[BoardState, list[Command]]:
    batch = rules.batch
    if batch is None:
        return enqueue(board, rules.name, group, event.seq), []
    held = board.batches.get(rules.name) or Groups(Fifo())
    held = held._replace(groups=held.groups.added(group))
    commands: list[Command] = []
    if batch.size is not None and len(held.groups) >= batch.size:
        return _flush(board, rules.name, held, event), commands
    if not held.timer and batch.timeout_seconds is not None:
        held = held._replace(timer=f"batch:{rules.name}:{event.seq}")
        due = event.at + round(batch.timeout_seconds * 1000)
        commands.append(Record(TimerSet(held.timer, due, "board"), turn=0))
    return board.changed(batches={**board.batches, rules.name: held}), commands


def _flush(board: BoardState, subscription: str, held: Groups, event: Event) -> BoardState:
    whole = tuple(it for group in held.groups for it in group)
    board = board.changed(batches=without(board.batches, subscription))
    return enqueue(board, subscription, whole, event.seq)


def enqueue(
    board: BoardState, subscription: str, artifacts: tuple[Artifact, ...], order: int
) -> BoardState:
    """Let artifacts wake their agent when its time comes."""
    queue = board.queues.get(subscription) or Fifo[Delivery]()
    queue = queue.added(Delivery(artifacts, order))
    return board.changed(queues={**board.queues, subscription: queue})


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
            gone = board.changed(pools=without(board.pools, key))
            return gone, [missed(key[0], pool, "the others did not come in time")]
    return board, []


def batch_over(board: BoardState, timer: str, event: Event) -> BoardState:
    """Let a batch be handled that is not full when its time is over."""
    for subscription, held in board.batches.items():
        if held.timer == timer:
            return _flush(board, subscription, held, event)
    return board


def missed(subscription: str, pool: Pool, detail: str) -> Command:
    ids = tuple(it.id for found in pool.waiting.values() for it in found)
    return Record(DeliveryMissed(subscription, ids, "expired", detail), turn=0)


def unfinished(board: BoardState) -> Iterator[Command]:
    """Say what has come to nothing when a run is over."""
    for (subscription, _), pool in board.pools.items():
        ids = tuple(it.id for found in pool.waiting.values() for it in found)
        yield Record(DeliveryMissed(subscription, ids, "unfinished"), turn=0)
    for subscription, held in board.batches.items():
        ids = tuple(it.id for group in held.groups for it in group)
        yield Record(DeliveryMissed(subscription, ids, "unfinished"), turn=0)
