"""Stores for the stress: real ones, one that loses answers, and broken ones that it must find."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from support.effort import TIMES
from weft.adapters import store_rules
from weft.adapters.nats.signal import NatsSignal
from weft.adapters.sql import write
from weft.adapters.sql.postgres import text
from weft.adapters.sql.postgres.store import PostgresStore
from weft.adapters.sql.sqlite import SqliteStore
from weft.engine.rows import Batch, Mail
from weft.errors import StoreError
from weft.ports.store import Store

#: Milliseconds without a heartbeat after which an owner is dead: as in use, or less to save time.
DEAD_AFTER: Final = 2000 if TIMES == 1 else store_rules.DEAD_AFTER


async def open_store(address: str, nats: str = "") -> Store:
    """Open a store: a file, or a PostgreSQL address; NATS wakes its workers if it is named."""
    if address.startswith("postgresql://"):
        name = urlsplit(address).path.strip("/")
        signal = NatsSignal(nats, name=name) if nats else None
        return await PostgresStore.open(address, dead_after=DEAD_AFTER, signal=signal)
    return await SqliteStore.open(Path(address), durability="normal", dead_after=DEAD_AFTER)


class Losing:
    """A store that throws away a share of the answers to what it has written."""

    def __init__(self, store: Store, chance: random.Random, share: float) -> None:
        self._store = store
        self._chance = chance
        self._share = share

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, batch: Batch, *, owner: str) -> bool:
        left = await self._store.append(batch, owner=owner)
        self._lose()
        return left

    async def put(self, mail: Mail, *, package: bytes | None = None) -> str:
        run = await self._store.put(mail, package=package)
        self._lose()
        return run

    def _lose(self) -> None:
        if self._chance.random() < self._share:
            raise StoreError("the answer was lost", retryable=True, uncertain=True)


def _without_owner_check() -> None:
    write.Group.is_stale = lambda self, owner, writer: False


def _without_look_at_mail() -> None:
    write.Group.is_unread = lambda self, mail: False


def _without_seen() -> None:
    see = write.Group._see

    def forgetful(self: Any) -> Any:
        rows = None
        steps = see(self)
        try:
            while True:
                call = steps.send(rows)
                answer = yield call
                rows = call.rows if call.statement is write.SEE else answer
        except StopIteration:
            return

    write.Group._see = forgetful


def _with_unsorted_locks() -> None:
    text.PARTS["lock"] = text.PARTS["lock"].replace("w.app, w.run", "random()")


#: Broken stores: each breaks one rule that the stress must notice.
MUTANTS: Final[dict[str, Callable[[], None]]] = {
    "no-owner-check": _without_owner_check,
    "no-look-at-mail": _without_look_at_mail,
    "no-seen": _without_seen,
    "unsorted-locks": _with_unsorted_locks,
}
