"""Immutable sequences, queues and key sets that share their items with earlier versions."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar, cast

T = TypeVar("T")

#: How many items that were taken a queue keeps before it lets go of them.
_MOST_TAKEN: Final = 256


class Log(Generic[T]):
    """An immutable sequence whose `added` shares the items it already has.

    All versions that grew from each other look at one list, each at its own length of it. Only a
    version that is not the newest copies when something is added to it.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)
        self._length = len(self._items)

    def added(self, *items: T) -> "Log[T]":
        """Return this sequence with more items."""
        shared = self._items if len(self._items) == self._length else self._items[: self._length]
        shared.extend(items)
        grown: Log[T] = object.__new__(type(self))
        grown._items, grown._length = shared, len(shared)
        return grown

    def since(self, length: int) -> list[T]:
        """Return the items that were added after the sequence was so long."""
        return self._items[length : self._length]

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> T:
        return self._items[index]

    def __iter__(self) -> Iterator[T]:
        return islice(self._items, self._length)

    def __reversed__(self) -> Iterator[T]:
        return (self._items[index] for index in range(self._length - 1, -1, -1))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Log) and list(self) == list(cast("Log[T]", other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Log({list(self)!r})"


class Fifo(Generic[T]):
    """An immutable queue that shares its items with its earlier versions.

    What was taken is let go of now and then, so that the cost of one step does not grow.
    """

    __slots__ = ("_items", "_taken")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = Log(items)
        self._taken = 0

    def added(self, *items: T) -> "Fifo[T]":
        """Return this queue with more items at its end."""
        return self._with(self._items.added(*items), self._taken)

    def __getitem__(self, index: int) -> T:
        return self._items[self._taken + index]

    def rest(self, count: int = 1) -> "Fifo[T]":
        """Return this queue without the items that are next."""
        taken = self._taken + count
        if taken >= _MOST_TAKEN and taken * 2 >= len(self._items):
            return Fifo(self._items.since(taken))
        return self._with(self._items, taken)

    def _with(self, items: Log[T], taken: int) -> "Fifo[T]":
        twin: Fifo[T] = object.__new__(type(self))
        twin._items, twin._taken = items, taken
        return twin

    def __len__(self) -> int:
        return len(self._items) - self._taken

    def __iter__(self) -> Iterator[T]:
        return iter(self._items.since(self._taken))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fifo) and list(self) == list(cast("Fifo[T]", other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Fifo({list(self)!r})"


class KeyLog:
    """An immutable set of keys that only grows, sharing what it has with its earlier versions."""

    __slots__ = ("_length", "_places")

    def __init__(self, keys: Iterable[str] = ()) -> None:
        #: Each key with how many came before it.
        self._places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
        self._length = len(self._places)

    def added(self, key: str) -> "KeyLog":
        """Return this set with one more key."""
        if key in self:
            return self
        places = self._places
        if len(places) != self._length:  # A later version has grown from this one already.
            places = {known: place for known, place in places.items() if place < self._length}
        places[key] = self._length
        grown: KeyLog = object.__new__(KeyLog)
        grown._places, grown._length = places, self._length + 1
        return grown

    def __contains__(self, key: object) -> bool:
        return self._places.get(cast("str", key), self._length) < self._length

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[str]:
        return islice(self._places, self._length)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyLog) and list(self) == list(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"KeyLog({list(self)!r})"
