"""Services requested over HTTP, with retries, a cache and shared requests."""

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeAlias

from weft.engine.events.codec import read_json
from weft.errors import PortError, SetupError
from weft.ports.clock import Clock
from weft.ports.external import ServiceAnswer, ServiceRequest
from weft.ports.scope import Scope

if TYPE_CHECKING:
    from weft.adapters.services.connections import Connections


#: How many answers are kept, and how many bytes of them; the one used longest ago goes first.
MOST_ANSWERS: Final = 1_000
MOST_BYTES: Final = 50_000_000


class AnswerCache:
    """Keeps bytes, not values: whoever changes a value he was given changes nobody else's."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[int, bytes]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable, *, now: int, ttl: float) -> bytes | None:
        """Return an answer that came at most `ttl` seconds ago; the time is in milliseconds."""
        at, raw = self._kept.get(key, (0, None))
        # An answer from the future is one from before the clock was set back.
        if raw is None or not 0 <= now - at < ttl * 1000:
            return None
        self._kept.move_to_end(key)
        return raw

    def put(self, key: Hashable, raw: bytes, *, now: int) -> None:
        self._drop(key)
        self._kept[key] = now, raw
        self._size += len(raw)
        while len(self._kept) > MOST_ANSWERS or self._size > MOST_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        _, raw = self._kept.pop(key, (0, b""))
        self._size -= len(raw)


#: The most seconds a service is waited for because it asks for it.
LONGEST_ASKED: Final = 30.0

#: What came, and what it says.
_Asked: TypeAlias = tuple[bytes, ServiceAnswer]


@dataclass(slots=True)
class _Call:
    """One call for everybody who waits for it."""

    task: asyncio.Task[_Asked]
    waiting: int = 0


class HttpServices:
    """Asks services. Addresses that are not public only at `allow_hosts`: HOST or HOST:PORT."""

    def __init__(self, clock: Clock, allow_hosts: frozenset[str] = frozenset()) -> None:
        self._clock = clock
        self._allow_hosts = allow_hosts
        self._connections: Connections | None = None
        self._cache = AnswerCache()
        self._calls: dict[Hashable, _Call] = {}
        self._closed = False

    async def get(self, scope: Scope, request: ServiceRequest) -> ServiceAnswer:
        """Return the JSON a service answers with.

        Raises PortError, which names no secret; SetupError if the library is not installed.
        """
        if request.cache <= 0:
            return (await self._ask(request))[1]
        key = _cache_key(scope, request)
        kept = self._cache.get(key, now=self._clock.now(), ttl=request.cache)
        if kept is not None:
            return ServiceAnswer(read_json(kept), cached=True)
        raw, answer = await self._ask_together((scope.app, request), request)
        self._cache.put(key, raw, now=self._clock.now())
        return replace(answer, value=read_json(raw))  # others are given this answer, too

    async def close(self) -> None:
        """Close every connection, for good."""
        self._closed = True
        if self._connections is not None:
            await self._connections.close()

    async def _ask_together(self, key: Hashable, request: ServiceRequest) -> _Asked:
        """Ask, or wait with those who ask the same; the call ends when nobody waits any more."""
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = _Call(asyncio.create_task(self._ask(request)))
        call.waiting += 1
        try:
            return await asyncio.shield(call.task)
        finally:
            call.waiting -= 1
            if not call.waiting:
                del self._calls[key]
                call.task.cancel()

    async def _ask(self, request: ServiceRequest) -> _Asked:
        attempt = 1
        while True:
            connections = await self._open(request)
            try:
                raw, value = await connections.get(request)
                return raw, ServiceAnswer(value, attempts=attempt)
            except PortError as error:
                error.attempts = attempt
                if not error.retryable or attempt >= request.attempts:
                    raise
                asked = min(error.after_seconds or 0.0, LONGEST_ASKED)
            wait = max(asked, request.backoff * 2 ** (attempt - 1))
            await self._clock.sleep_until(self._clock.now() + round(wait * 1000))
            attempt += 1

    async def _open(self, request: ServiceRequest) -> "Connections":
        if self._connections is None and not self._closed:
            # In a thread: what else is read meanwhile neither waits for it nor takes so long.
            made = await asyncio.to_thread(_load, request.service)
            self._connections = self._connections or made(self._allow_hosts)
        if self._closed or self._connections is None:
            raise PortError(f"{request.service} is not asked any more: the host is closed")
        return self._connections


def _load(service: str) -> "type[Connections]":
    try:
        # An extra that takes longer to load than all of Weft, and not every run needs it.
        from weft.adapters.services.connections import Connections  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            f"{service} needs a library that is not installed: {error.name}",
            hint='install it: pip install "weft-agents[models]"',
        ) from error
    return Connections


def _cache_key(scope: Scope, request: ServiceRequest) -> Hashable:
    """Say which requests have the same answer: those of one tenant, one login, one url."""
    login = request.login
    # Kept for longer than the request, so without the secret itself.
    who = login and (
        login.kind,
        login.header,
        sha256(login.secret.encode("utf-8", "surrogatepass")).digest(),
    )
    return scope.app, who, request.url, request.max_bytes
