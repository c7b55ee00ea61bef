"""Immutable sequences, queues, key sets and mappings whose versions share their entries."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, overload

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")

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
        return islice(reversed(self._items), len(self._items) - self._length, None)

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


#: Each value with how many keys were added before its own.
_Entries: TypeAlias = dict[K, tuple[int, V]]


class _Place(Generic[K, V]):
    """Where the entries of a version are: here, or at a neighbour which differs in one entry."""

    __slots__ = ("entries", "entry", "key", "neighbour")

    def __init__(self, entries: _Entries[K, V] | None) -> None:
        self.entries = entries
        self.neighbour: _Place[K, V] | None = None
        self.key: Any = None
        #: The entry of the key here; None if it has none.
        self.entry: tuple[int, V] | None = None

    def give(self, neighbour: "_Place[K, V]", key: K, entry: tuple[int, V] | None) -> None:
        """Give the entries to a neighbour; `entry` is that of the key here."""
        neighbour.entries, neighbour.neighbour = self.entries, None
        neighbour.key = neighbour.entry = None
        self.entries, self.neighbour, self.key, self.entry = None, neighbour, key, entry

    def take(self) -> _Entries[K, V]:
        """Bring the entries here, step by step from where they are."""
        path: list[_Place[K, V]] = []
        holder = self
        while holder.neighbour is not None:
            path.append(holder)
            holder = holder.neighbour
        entries = cast("_Entries[K, V]", holder.entries)
        for place in reversed(path):
            key, entry = place.key, place.entry
            holder.give(place, key, entries.get(key))
            if entry is None:
                del entries[key]
            else:
                entries[key] = entry
            holder = place
        return entries


class SharedDict(Mapping[K, V]):
    """An immutable mapping that shares its entries with its other versions.

    All versions that grew from each other share one dict. One version has it; each other knows
    the way there, and in which entries it differs. Reading a version brings the dict to it, so
    that the version that was read last is as fast as a dict.
    Entries are in the order in which their keys were added.
    """

    __slots__ = ("_count", "_length", "_place")

    def __init__(self, mapping: Mapping[K, V] | None = None) -> None:
        pairs = (mapping or {}).items()
        entries = {key: (place, value) for place, (key, value) in enumerate(pairs)}
        self._place = _Place(entries)
        self._length = self._count = len(entries)

    def added(self, key: K, value: V) -> "SharedDict[K, V]":
        """Return this mapping with an entry. A key that is there keeps its place."""
        if not self._length:  # It shares nothing, and may be the beginning of many others.
            return SharedDict({key: value})
        entries = self._entries()
        known = entries.get(key)
        if known is None:
            twin = self._next(key, None, self._length + 1, self._count + 1)
            entries[key] = (self._count, value)
        else:
            twin = self._next(key, known, self._length, self._count)
            entries[key] = (known[0], value)
        return twin

    def removed(self, key: K) -> "SharedDict[K, V]":
        """Return this mapping without an entry, which may be missing."""
        known = self._entries().pop(key, None)
        if known is None:
            return self
        return self._next(key, known, self._length - 1, self._count)

    def _next(
        self, key: K, known: tuple[int, V] | None, length: int, count: int
    ) -> "SharedDict[K, V]":
        twin: SharedDict[K, V] = object.__new__(type(self))
        twin._place, twin._length, twin._count = _Place[K, V](None), length, count
        self._place.give(twin._place, key, known)
        return twin

    def _entries(self) -> _Entries[K, V]:
        entries = self._place.entries
        return self._place.take() if entries is None else entries

    def __getitem__(self, key: K) -> V:
        return self._entries()[key][1]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V | D) -> V | D: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        """Return a value, or the default if the key is missing."""
        found = self._entries().get(key)
        return default if found is None else found[1]

    def __contains__(self, key: object) -> bool:
        return key in self._entries()

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[K]:
        entries = self._entries()
        return iter(sorted(entries, key=lambda key: entries[key][0]))

    def __repr__(self) -> str:
        return f"SharedDict({dict(self)!r})"
