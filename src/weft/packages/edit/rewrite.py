"""Rewriting older spellings in place, with the original path of every value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias, TypeGuard

from weft.findings import Path

Map: TypeAlias = dict[str, object]
List: TypeAlias = list[object]
Key: TypeAlias = str | int


@dataclass(frozen=True, slots=True)
class Change:
    """A message about an older spelling, and its path in the author's file."""

    path: Path
    message: str


@dataclass
class Rewrite:
    """A document that is rewritten to the current spelling.

    Containers keep their identity while they are moved about; `origin` knows by identity where
    each was in the file, and `renamed` knows the key an entry had there. Together they answer
    where a value of the rewritten data came from.
    """

    data: object
    origin: dict[int, Path]
    renamed: dict[tuple[int, Key], Key] = field(default_factory=dict[tuple[int, Key], Key])
    changes: list[Change] = field(default_factory=list[Change])
    #: Contradictions in an older spelling, which cannot be converted.
    contradictions: list[Change] = field(default_factory=list[Change])
    #: Containers made here; held, so that no identity is given out twice.
    made: list[object] = field(default_factory=list[object])

    def origin_of_entry(self, container: object, key: Key) -> Path:
        """Return the path of an entry of a container in the author's file."""
        return (*self.origin.get(id(container), ()), self.renamed.get((id(container), key), key))

    def note(self, container: object, key: Key, message: str) -> None:
        """Record an older spelling at an entry of `container`."""
        self.changes.append(Change(self.origin_of_entry(container, key), message))

    def rename(self, container: Map, old: str, new: str, message: str | None = "") -> None:
        """Give an entry its present key, keeping its place in the order.

        An entry that has the present key too is left alone: the model refuses the older one. An
        empty message means "old is now new"; a message of None records no change.
        """
        if old not in container or new in container:
            return
        if message is not None:
            self.note(container, old, message or f"{old} is now {new}")
        entries = [(new if key == old else key, value) for key, value in container.items()]
        container.clear()
        container.update(entries)
        self.renamed[id(container), new] = old

    def replace(self, container: Map, key: str, value: object, message: str | None) -> None:
        """Replace an older form by a new value; a message of None records no change."""
        if message is not None:
            self.note(container, key, message)
        self.place(value, self.origin_of_entry(container, key))
        container[key] = value

    def drop(self, container: Map, key: str, message: str | None) -> None:
        """Remove an entry that no longer has a meaning."""
        if message is not None:
            self.note(container, key, message)
        del container[key]

    def place(self, value: object, path: Path) -> None:
        """Give a new container the path of the value it was made from."""
        if isinstance(value, dict | list) and id(value) not in self.origin:  # pyright: ignore[reportUnknownArgumentType]
            self.origin[id(value)] = path  # pyright: ignore[reportUnknownArgumentType]
            self.made.append(value)  # pyright: ignore[reportUnknownArgumentType]

    def origin_path(self, path: Path) -> Path:
        """Translate a path in the rewritten data to the path in the author's file."""
        here: object = self.data
        base: Path = self.origin.get(id(here), ())
        for step in path:
            base = (*base, self.renamed.get((id(here), step), step))
            here = child(here, step)
            base = self.origin.get(id(here), base) if is_map(here) or is_list(here) else base
        return base


Dialect: TypeAlias = Callable[[Rewrite], None]


def is_map(value: object) -> TypeGuard[Map]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[List]:
    return isinstance(value, list)


def child(container: object, step: Key) -> object:
    if is_map(container) and isinstance(step, str):
        return container.get(step)
    if is_list(container) and isinstance(step, int) and step < len(container):
        return container[step]
    return None


def maps_in(container: object) -> list[Map]:
    """List the values of a map, or the items of a list, that are maps."""
    if is_map(container):
        return [value for value in container.values() if is_map(value)]
    if is_list(container):
        return [value for value in container if is_map(value)]
    return []
