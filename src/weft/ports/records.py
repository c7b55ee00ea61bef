"""Records: what a server keeps besides runs, such as keys, users, paused starts and deliveries."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from weft.findings import Json


class Record(NamedTuple):
    """A value under a key; `version` grows with every change."""

    key: str
    value: Mapping[str, Json]
    version: int
    #: When it was last written, by the store's clock.
    at: int


class Records(Protocol):
    """Values by tenant, kind and key. What belongs to the whole server has the tenant ''."""

    async def record(self, app: str, kind: str, key: str) -> Record | None:
        """Return a record."""
        ...

    async def records(
        self, app: str, kind: str, *, after: str = "", limit: int = 50, newest: bool = False
    ) -> list[Record]:
        """Return records in the order of their keys, after a key; `newest`: backwards."""
        ...

    async def add_record(self, app: str, kind: str, key: str, value: Mapping[str, Json]) -> bool:
        """Write a record, unless there is one with the key; of several callers one gets True."""
        ...

    async def put_record(
        self,
        app: str,
        kind: str,
        key: str,
        value: Mapping[str, Json],
        *,
        version: int | None = None,
    ) -> bool:
        """Write a record; with a version, only if it has that version still."""
        ...

    async def delete_record(self, app: str, kind: str, key: str) -> bool:
        """Delete a record; False if there was none."""
        ...
