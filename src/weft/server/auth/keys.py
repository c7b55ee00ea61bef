"""API keys: random, stored as a hash under a public prefix, limited to a tenant, a user and roles.

The text of a key is `weft_ID_SECRET`. It is shown once, when the key is made or rotated.
"""

import hmac
import logging
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Final, NamedTuple, cast

from weft.errors import AccessDenied, StoreError, UsageError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.records import Record, Records
from weft.server.identity import ROLES, Principal
from weft.server.records import SERVER, RecordCache, all_records

_log: Final = logging.getLogger("weft.server")

PREFIX: Final = "weft_"
#: The records of keys, of the whole server: a caller names no tenant, the key does.
KIND: Final = "key"
#: The id of keys that are not stored; others are hexadecimal.
_PROCESS: Final = "process"

#: Milliseconds between two notes of the use of a key.
_NOTED: Final = 60_000

#: Milliseconds in which the old secret of a rotated key remains valid, unless otherwise said.
GRACE: Final = 24 * 3600 * 1000


class NewKey(NamedTuple):
    """A key that was just made or rotated; its text is not stored."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """What may be shown of a key."""

    id: str
    app: str
    user: str
    roles: list[str]
    groups: list[str]
    name: str
    created_at: int
    expires_at: int | None
    last_used_at: int | None


class HashedKey(NamedTuple):
    """A key without its secret: what may be stored of it."""

    id: str
    hash: str


class ApiKeys:
    """Makes, verifies, rotates and deletes keys."""

    def __init__(self, records: Records, clock: Clock) -> None:
        self.records = records
        self._clock = clock
        self._known = RecordCache(records, clock)
        #: When the use of a key was noted last.
        self._noted: dict[str, int] = {}
        #: Keys that are valid as long as this process runs: by the hash of their secret.
        self._of_process: dict[str, Principal] = {}

    def create_for_process(self, principal: Principal) -> str:
        """Return a key that ends with this process and is not stored."""
        secret = secrets.token_urlsafe(32)
        self._of_process[_hash(secret)] = principal
        return f"{PREFIX}{_PROCESS}_{secret}"

    async def create(
        self,
        app: str,
        user: str,
        roles: Iterable[str],
        *,
        groups: Iterable[str] = (),
        name: str = "",
        expires_at: int | None = None,
    ) -> NewKey:
        """Make a key for a user of a tenant."""
        if not app or not user:
            raise UsageError("a key needs a tenant and a user")
        given = sorted(set(roles))
        if not set(given) & set(ROLES):
            known = ", ".join(ROLES)
            raise UsageError("a key needs a role of the server", hint=f"choose from: {known}")
        id_, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
        value: dict[str, Json] = {
            "app": app,
            "user": user,
            "roles": list[Json](given),
            "groups": list[Json](sorted(set(groups))),
            "name": name,
            "created_at": self._clock.now(),
            "expires_at": expires_at,
            "last_used_at": None,
            "hashes": [{"hash": _hash(secret), "until": None}],
        }
        await self.records.add_record(SERVER, KIND, id_, value)
        return NewKey(id_, f"{PREFIX}{id_}_{secret}")

    async def verify(self, text: str) -> Principal | None:
        """Return whose key this is; None if it is not valid."""
        hashed = hashed_key(text)
        return None if hashed is None else await self.holder(hashed)

    async def holder(self, key: HashedKey) -> Principal | None:
        """Return whose key this is, without its text; None if it is not valid any more."""
        if key.id == _PROCESS:
            return self._of_process.get(key.hash)
        record = await self._known.read(SERVER, KIND, key.id)
        if record is None:
            return None
        value, now = record.value, self._clock.now()
        expires_at = cast("int | None", value["expires_at"])
        is_valid = False
        for known in cast("list[Mapping[str, Json]]", value["hashes"]):
            until = cast("int | None", known["until"])
            same = hmac.compare_digest(str(known["hash"]), key.hash)
            is_valid |= same and (until is None or now < until)
        if not is_valid or (expires_at is not None and now >= expires_at):
            return None
        await self._note_use(record, now)
        return Principal.of(value)

    async def of_app(self, app: str | None) -> list[KeyInfo]:
        """Return the keys of a tenant, or of all."""
        found = all_records(self.records, SERVER, KIND)
        return [_info(record) async for record in found if app in (None, record.value["app"])]

    async def rotate(self, app: str, id_: str, *, grace: int = GRACE) -> NewKey:
        """Give a key another secret; the old one is valid for a while (in milliseconds)."""
        record = await self._of(app, id_)
        secret, now = secrets.token_urlsafe(32), self._clock.now()
        old = cast("list[Mapping[str, Json]]", record.value["hashes"])[-1]
        hashes: list[Json] = [
            {"hash": old["hash"], "until": now + grace},
            {"hash": _hash(secret), "until": None},
        ]
        await self.records.put_record(SERVER, KIND, id_, {**record.value, "hashes": hashes})
        self._known.forget(SERVER, KIND, id_)
        return NewKey(id_, f"{PREFIX}{id_}_{secret}")

    async def delete(self, app: str, id_: str) -> None:
        """Delete a key: it is not valid from now on, in other processes after a few seconds."""
        await self._of(app, id_)
        await self.records.delete_record(SERVER, KIND, id_)
        self._known.forget(SERVER, KIND, id_)

    async def exist(self) -> bool:
        """Tell whether there is any key."""
        return bool(await self.records.records(SERVER, KIND, limit=1))

    async def _of(self, app: str, id_: str) -> Record:
        record = await self.records.record(SERVER, KIND, id_)
        if record is None or record.value["app"] != app:
            raise AccessDenied(f"there is no key {id_}")
        return record

    async def _note_use(self, record: Record, now: int) -> None:
        last = max(
            cast("int | None", record.value["last_used_at"]) or 0, self._noted.get(record.key, 0)
        )
        if now - last < _NOTED:
            return
        self._noted[record.key] = now
        value = {**record.value, "last_used_at": now}
        try:  # Unless it was changed meanwhile.
            await self.records.put_record(SERVER, KIND, record.key, value, version=record.version)
        except StoreError as error:
            _log.warning("the use of key %s could not be noted: %s", record.key, error)


def hashed_key(text: str) -> HashedKey | None:
    """Return a key without its secret; None if a text is no key."""
    id_, _, secret = text.removeprefix(PREFIX).partition("_")
    is_key = text.startswith(PREFIX) and secret
    return HashedKey(id_, _hash(secret)) if is_key else None


def _hash(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _info(record: Record) -> KeyInfo:
    names = [each.name for each in fields(KeyInfo)[1:]]
    return KeyInfo(record.key, **{name: cast("Any", record.value[name]) for name in names})
