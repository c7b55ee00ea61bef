"""The timers of a run: which are set, and which is due first, at a cost that hardly grows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from weft.engine.persistent import SharedDict

#: Later than every time: nothing is due.
NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer, and the fork it belongs to; 0 for the run itself."""

    id: str
    at: int
    owner: int


class _Node(NamedTuple):
    """A timer in a leftist heap: it is due before its children, and every right path is short."""

    at: int
    id: str
    rank: int
    left: "_Node | None"
    right: "_Node | None"


def _merged(one: _Node | None, other: _Node | None) -> _Node | None:
    if one is None or other is None:
        return one or other
    if other[:2] < one[:2]:
        one, other = other, one
    left, right = one.left, cast("_Node", _merged(one.right, other))
    if left is None or left.rank < right.rank:
        left, right = right, left
    return _Node(one.at, one.id, right.rank + 1 if right else 1, left, right)


class Timers(Mapping[str, Timer]):
    """The timers of a run: an immutable mapping by id that knows which is due first."""

    __slots__ = ("_heap", "_timers", "due_at")

    def __init__(self, timers: Mapping[str, Timer] | None = None) -> None:
        #: When the first one is due; NEVER if there is none.
        self.due_at = min((timer.at for timer in (timers or {}).values()), default=NEVER)
        self._timers: SharedDict[str, Timer] = SharedDict()
        #: It may have timers that are gone, but not at its top.
        self._heap: _Node | None = None
        for timer in (timers or {}).values():
            self._timers = self._timers.added(timer.id, timer)
            self._heap = _merged(self._heap, _Node(timer.at, timer.id, 1, None, None))

    def added(self, timer: Timer) -> "Timers":
        """Return these timers with another, in place of the one with its id."""
        heap = _merged(self._heap, _Node(timer.at, timer.id, 1, None, None))
        return self._with(self._timers.added(timer.id, timer), heap)

    def removed(self, id_: str) -> "Timers":
        """Return these timers without one, which may be missing."""
        left = self._timers.removed(id_)
        return self if left is self._timers else self._with(left, self._heap)

    def _with(self, timers: SharedDict[str, Timer], heap: _Node | None) -> "Timers":
        twin: Timers = object.__new__(Timers)
        twin._timers, twin._heap = timers, _without_gone(timers, heap)
        twin.due_at = NEVER if twin._heap is None else twin._heap.at
        return twin

    def due(self, now: int) -> list[Timer]:
        """Return the timers whose time has come, by time and id."""
        found: list[Timer] = []
        heap = self._heap
        while heap is not None and heap.at <= now:
            timer = self._timers[heap.id]
            if not found or found[-1] is not timer:  # It may have been set twice for one time.
                found.append(timer)
            heap = _without_gone(self._timers, _merged(heap.left, heap.right))
        return found

    def __getitem__(self, key: str) -> Timer:
        return self._timers[key]

    def __contains__(self, key: object) -> bool:
        return key in self._timers

    def __len__(self) -> int:
        return len(self._timers)

    def __iter__(self) -> Iterator[str]:
        return iter(self._timers)

    def __repr__(self) -> str:
        return f"Timers({dict(self)!r})"


def _without_gone(timers: SharedDict[str, Timer], heap: _Node | None) -> _Node | None:
    """Return a heap whose top is a timer that is set."""
    while heap is not None:
        timer = timers.get(heap.id)
        if timer is not None and timer.at == heap.at:
            break
        heap = _merged(heap.left, heap.right)
    return heap
