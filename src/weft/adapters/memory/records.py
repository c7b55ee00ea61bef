"""What a store in memory has of a server: values by tenant, kind and key."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from typing import NamedTuple

from pydantic_core import from_json, to_json

from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.records import Record


class _Stored(NamedTuple):
    """A value as JSON, so that each reader gets its own copy."""

    content: bytes
    version: int
    at: int

    def record(self, key: str) -> Record:
        """Return the value with its key."""
        return Record(key, from_json(self.content), self.version, self.at)


class MemoryRecords:
    """The records of all tenants."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stored: dict[tuple[str, str], dict[str, _Stored]] = {}
        #: The keys in order.
        self._keys: dict[tuple[str, str], list[str]] = {}

    def find(self, app: str, kind: str, key: str) -> Record | None:
        """Return a record."""
        stored = self._stored.get((app, kind), {}).get(key)
        return None if stored is None else stored.record(key)

    def page(self, app: str, kind: str, after: str, limit: int, *, newest: bool) -> list[Record]:
        """Return records by key, after a key; `newest`: backwards."""
        stored, keys = self._stored.get((app, kind), {}), self._keys.get((app, kind), [])
        most = max(limit, 0)
        if newest:
            stop = bisect_left(keys, after) if after else len(keys)
            found = keys[max(stop - most, 0) : stop][::-1]
        else:
            start = bisect_right(keys, after) if after else 0
            found = keys[start : start + most]
        return [stored[key].record(key) for key in found]

    def add(self, app: str, kind: str, key: str, value: Mapping[str, Json]) -> bool:
        """Write a record, unless there is one."""
        content = to_json(value)
        stored = self._stored.setdefault((app, kind), {})
        if key in stored:
            return False
        stored[key] = _Stored(content, 1, self._clock.now())
        insort(self._keys.setdefault((app, kind), []), key)
        return True

    def put(
        self, app: str, kind: str, key: str, value: Mapping[str, Json], version: int | None
    ) -> bool:
        """Write a record, whatever its version or only if it has this one."""
        content = to_json(value)
        stored = self._stored.get((app, kind), {}).get(key)
        if stored is None:
            return version is None and self.add(app, kind, key, value)
        if version not in (None, stored.version):
            return False
        changed = _Stored(content, stored.version + 1, self._clock.now())
        self._stored[app, kind][key] = changed
        return True

    def delete(self, app: str, kind: str, key: str) -> bool:
        """Delete a record."""
        if self._stored.get((app, kind), {}).pop(key, None) is None:
            return False
        keys = self._keys[app, kind]
        del keys[bisect_left(keys, key)]
        return True
