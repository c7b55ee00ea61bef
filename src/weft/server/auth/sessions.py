"""Sessions of the page: a one-time token of the address, or a key, is exchanged for a cookie."""

import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, cast

from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.records import Records
from weft.server.auth.keys import ApiKeys, HashedKey, hashed_key
from weft.server.identity import Principal
from weft.server.records import SERVER, RecordCache, all_records

#: The cookie, without the port of the server.
COOKIE: Final = "weft_session"
KIND: Final = "session"

#: Milliseconds for which a session and a one-time token are valid.
LIFETIME: Final = 7 * 24 * 3600 * 1000
TOKEN_LIFETIME: Final = 600_000


@dataclass
class Sessions:
    """Makes sessions, finds and ends them. They are stored, so that a restart ends none."""

    records: Records
    clock: Clock
    keys: ApiKeys
    #: Who gets a session for a one-time token, and until when: by the hash of the token.
    _tokens: dict[str, tuple[Principal, int]] = field(
        default_factory=dict[str, tuple[Principal, int]]
    )
    _known: RecordCache = field(init=False)

    def __post_init__(self) -> None:
        self._known = RecordCache(self.records, self.clock)

    def one_time_token(self, principal: Principal) -> str:
        """Return a token that may be exchanged once, soon, for a session of a principal."""
        token = secrets.token_urlsafe(32)
        self._tokens[_hash(token)] = principal, self.clock.now() + TOKEN_LIFETIME
        return token

    async def exchange(self, token: str) -> str | None:
        """Return the cookie of a new session for a one-time token or a key; None if not valid."""
        hashed = _hash(token)
        for known in self._tokens:
            if hmac.compare_digest(known, hashed):
                principal, until = self._tokens.pop(known)
                return await self.begin(principal) if self.clock.now() < until else None
        key = hashed_key(token)
        holder = None if key is None else await self.keys.holder(key)
        return None if holder is None else await self.begin(holder, key)

    async def begin(self, principal: Principal, key: HashedKey | None = None) -> str:
        """Return the cookie of a new session; those that have expired are deleted."""
        now = self.clock.now()
        await self._delete_if(lambda value: now >= cast("int", value["expires_at"]))
        cookie = secrets.token_urlsafe(32)
        value: dict[str, Json] = {
            "app": principal.app,
            "user": principal.user,
            "roles": list[Json](sorted(principal.roles)),
            "groups": list[Json](principal.groups),
            "expires_at": now + LIFETIME,
            "key": None if key is None else key._asdict(),
        }
        await self.records.add_record(SERVER, KIND, _hash(cookie), value)
        return cookie

    async def find(self, cookie: str) -> Principal | None:
        """Return whose session a cookie is; one that was begun with a key ends with the key."""
        record = await self._known.read(SERVER, KIND, _hash(cookie))
        if record is None:
            return None
        key = cast("dict[str, str] | None", record.value.get("key"))
        holder = Principal.of(record.value)
        if key is not None:
            holder = await self.keys.holder(HashedKey(**key))
        if holder is None or self.clock.now() >= cast("int", record.value["expires_at"]):
            await self.end(cookie)
            return None
        return holder

    async def end(self, cookie: str) -> None:
        """End a session."""
        await self._delete(_hash(cookie))

    async def end_all(self, app: str, user: str | None = None) -> int:
        """End all sessions of a tenant, or of one of its users; return how many there were."""
        return await self._delete_if(
            lambda value: value["app"] == app and user in (None, value["user"])
        )

    async def _delete_if(self, is_over: Callable[[Mapping[str, Json]], bool]) -> int:
        """Delete the sessions of which something is so; return how many there were."""
        ended = 0
        async for record in all_records(self.records, SERVER, KIND):
            if is_over(record.value):
                await self._delete(record.key)
                ended += 1
        return ended

    async def _delete(self, key: str) -> None:
        self._known.forget(SERVER, KIND, key)
        await self.records.delete_record(SERVER, KIND, key)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
