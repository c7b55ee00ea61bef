"""Collecting artifacts: gates that need several, joins by a key in a window, batches."""

from collections.abc import Iterable, Iterator
from typing import Final

from weft.engine.board.publishing import timer_name
from weft.engine.board.rules import SubscriptionRules
from weft.engine.board.state import (
    Artifact,
    BoardState,
    JoinWindow,
    OpenWindows,
    PendingBatch,
)
from weft.engine.commands import Command, Record
from weft.engine.events import DeliveryMissed, Event, TimerSet
from weft.engine.persistent import Fifo, SharedDict
from weft.engine.state import State, without

#: Said of what waited for others that did not come while its window was open.
TOO_LATE: Final = "the others did not arrive in time"


def collect(
    state: State,
    board: BoardState,
    rules: SubscriptionRules,
    key: str,
    artifact: Artifact,
    event: Event,
) -> tuple[BoardState, list[Command]]:
    """Add an artifact to a subscription; a complete group is queued, or added to its batch."""
    commands: list[Command] = []
    is_counted = rules.join is not None and rules.join.within_count is not None
    if rules.join is not None and rules.join.within_count is not None:
        seen = board.seen.get(rules.name, 0) + 1
        board = board.replace(seen={**board.seen, rules.name: seen})
        last = seen - 1 - rules.join.within_count
        board, commands = _pass_over(state, board, rules, last)
    if rules.single:
        board, more = _complete(state, board, rules, (artifact,), event)
        return board, [*commands, *more]
    windows = board.joins.get(rules.name) or OpenWindows(SharedDict(), SharedDict(), Fifo())
    window = windows.windows.get(key)
    if window is not None and _is_late(state, window.timer, event):
        commands.append(_missed_window(rules.name, window, TOO_LATE))
        state.timers, window = state.timers.removed(window.timer), None
    window = window or JoinWindow({}, seen=board.seen.get(rules.name, 0))
    waiting = window.waiting.get(artifact.type) or Fifo[Artifact]()
    window = window._replace(waiting={**window.waiting, artifact.type: waiting.added(artifact)})
    group = _taken(rules, window)
    if group is None:
        window, opened = _open_window(rules, window, event)
        windows = windows.stored(key, window, is_counted=is_counted)
        return board.with_windows(rules.name, windows), [*commands, *opened]
    left = {
        type_: found.rest(rules.needed[type_])
        for type_, found in window.waiting.items()
        if len(found) > rules.needed[type_]
    }
    state.timers = state.timers.removed(window.timer)
    if left:  # It waits for others of its own, in a window of its own.
        window, opened = _open_window(rules, JoinWindow(left, seen=window.seen), event)
        windows = windows.stored(key, window, is_counted=is_counted)
        commands += opened
    else:
        windows = windows.closed(key)
    board = board.with_windows(rules.name, windows)
    board, more = _complete(state, board, rules, group, event)
    return board, [*commands, *more]


def _open_window(
    rules: SubscriptionRules, window: JoinWindow, event: Event
) -> tuple[JoinWindow, list[Command]]:
    """Start the timer of a window that has a time limit and no timer yet."""
    if window.timer or rules.join is None or rules.join.within_seconds is None:
        return window, []
    window = window._replace(timer=timer_name(f"window:{rules.name}", event.seq))
    due = event.at + round(rules.join.within_seconds * 1000)
    return window, [Record(TimerSet(window.timer, due, "board"), turn=0)]


def _is_late(state: State, id_: str, event: Event) -> bool:
    """Return whether a timer is due and has not fired yet, since no process was running."""
    timer = state.timers.get(id_)
    return timer is not None and timer.at <= event.at


def _taken(rules: SubscriptionRules, window: JoinWindow) -> tuple[Artifact, ...] | None:
    """Return a complete group: of each type the oldest, in the order of declaration; else None."""
    if any(
        len(window.waiting.get(each_type, ())) < count for each_type, count in rules.needed.items()
    ):
        return None
    places = dict.fromkeys(rules.needed, 0)
    group: list[Artifact] = []
    for type_ in rules.types:
        group.append(window.waiting[type_][places[type_]])
        places[type_] += 1
    return tuple(group)


def _pass_over(
    state: State, board: BoardState, rules: SubscriptionRules, before: int
) -> tuple[BoardState, list[Command]]:
    """Drop windows in which too many other artifacts came."""
    windows = board.joins.get(rules.name)
    if windows is None or not len(windows.opened) or windows.opened[0][0] >= before:
        return board, []
    missed: list[Command] = []
    opened = windows.opened
    while len(opened) and opened[0][0] < before:
        seen, key = opened[0]
        opened = opened.rest()
        window = windows.windows.get(key)
        if window is not None and window.seen == seen:
            missed.append(_missed_window(rules.name, window, "too many others came in between"))
            state.timers = state.timers.removed(window.timer)
            windows = windows.closed(key)
    return board.with_windows(rules.name, windows._replace(opened=opened)), missed


def _complete(
    state: State,
    board: BoardState,
    rules: SubscriptionRules,
    group: tuple[Artifact, ...],
    event: Event,
) -> tuple[BoardState, list[Command]]:
    batch = rules.batch
    if batch is None:
        return board.enqueued(rules.name, group, event.seq), []
    held = board.batches.get(rules.name)
    if held is not None and _is_late(state, held.timer, event):
        state.timers = state.timers.removed(held.timer)
        board, held = _flush(board, rules.name, held, event), None
    held = held or PendingBatch(Fifo())
    held = held._replace(groups=held.groups.added(group))
    commands: list[Command] = []
    if batch.size is not None and len(held.groups) >= batch.size:
        state.timers = state.timers.removed(held.timer)
        return _flush(board, rules.name, held, event), commands
    if not held.timer and batch.timeout_seconds is not None:
        held = held._replace(timer=timer_name(f"batch:{rules.name}", event.seq))
        due = event.at + round(batch.timeout_seconds * 1000)
        commands.append(Record(TimerSet(held.timer, due, "board"), turn=0))
    return board.replace(batches={**board.batches, rules.name: held}), commands


def _flush(board: BoardState, subscription: str, held: PendingBatch, event: Event) -> BoardState:
    whole = tuple(artifact for group in held.groups for artifact in group)
    board = board.replace(batches=without(board.batches, subscription))
    return board.enqueued(subscription, whole, event.seq)


def flush_batches(state: State, board: BoardState, event: Event) -> BoardState:
    """Queue all batches now."""
    for subscription, held in board.batches.items():
        state.timers = state.timers.removed(held.timer)
        board = _flush(board, subscription, held, event)
    return board


def close_window(board: BoardState, timer: str) -> tuple[BoardState, list[Command]]:
    """Drop a window whose other artifacts did not come in time."""
    for subscription, windows in board.joins.items():
        key = windows.timed.get(timer)
        if key is not None:
            gone = board.with_windows(subscription, windows.closed(key))
            return gone, [_missed_window(subscription, windows.windows[key], TOO_LATE)]
    return board, []


def close_batch(board: BoardState, timer: str, event: Event) -> BoardState:
    """Queue a batch that is not full when its time is over."""
    for subscription, held in board.batches.items():
        if held.timer == timer:
            return _flush(board, subscription, held, event)
    return board


def _missed_window(subscription: str, window: JoinWindow, detail: str) -> Command:
    ids = tuple(entry.id for found in window.waiting.values() for entry in found)
    return Record(DeliveryMissed(subscription, ids, "expired", detail), turn=0)


def unfinished_deliveries(board: BoardState) -> Iterator[DeliveryMissed]:
    """Yield the deliveries that are unfinished when a run ends."""
    for subscription, windows in board.joins.items():
        for window in windows.windows.values():
            yield _left(subscription, *window.waiting.values())
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
