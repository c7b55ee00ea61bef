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


#: Limits of the cache: answers, and their bytes. The least recently used answer is dropped first.
MOST_ANSWERS: Final = 1_000
MOST_BYTES: Final = 50_000_000


class AnswerCache:
    """Caches bytes, not values: a caller that changes its value changes no other caller's."""

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, tuple[int, bytes]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable, *, now: int, ttl: float) -> bytes | None:
        """Return an answer that came at most `ttl` seconds ago; the time is in milliseconds."""
        at, raw = self._answers.get(key, (0, None))
        # An answer from the future is one from before the clock was set back.
        if raw is None or not 0 <= now - at < ttl * 1000:
            return None
        self._answers.move_to_end(key)
        return raw

    def put(self, key: Hashable, raw: bytes, *, now: int) -> None:
        self._drop(key)
        self._answers[key] = now, raw
        self._size += len(raw)
        while len(self._answers) > MOST_ANSWERS or self._size > MOST_BYTES:
            self._drop(next(iter(self._answers)))

    def _drop(self, key: Hashable) -> None:
        _, raw = self._answers.pop(key, (0, b""))
        self._size -= len(raw)


#: The longest Retry-After that is obeyed, in seconds.
LONGEST_ASKED: Final = 30.0

#: The body, and the answer it contains.
_Response: TypeAlias = tuple[bytes, ServiceAnswer]


@dataclass(slots=True)
class _Call:
    """One request, shared by all callers that wait for it."""

    task: asyncio.Task[_Response]
    waiting: int = 0


class HttpServices:
    """Requests services; those with private addresses only at `allow_hosts`: HOST or HOST:PORT."""

    def __init__(self, clock: Clock, allow_hosts: frozenset[str] = frozenset()) -> None:
        self._clock = clock
        self._allow_hosts = allow_hosts
        self._connections: Connections | None = None
        self._cache = AnswerCache()
        self._calls: dict[Hashable, _Call] = {}
        self._closed = False

    async def ask(self, scope: Scope, request: ServiceRequest) -> ServiceAnswer:
        """Return the JSON a service answers with.

        Raises PortError, which names no secret; SetupError if the library is not installed.
        """
        if request.cache <= 0:
            return (await self._request_with_retries(request))[1]
        key = _cache_key(scope, request)
        kept = self._cache.get(key, now=self._clock.now(), ttl=request.cache)
        if kept is not None:
            return ServiceAnswer(read_json(kept), cached=True)
        raw, answer = await self._request_shared((scope.app, request), request)
        self._cache.put(key, raw, now=self._clock.now())
        return replace(answer, value=read_json(raw))  # other callers share this answer

    async def close(self) -> None:
        """Close every connection permanently."""
        self._closed = True
        if self._connections is not None:
            await self._connections.close()

    async def _request_shared(self, key: Hashable, request: ServiceRequest) -> _Response:
        """Send a request, or wait for an equal one; it is cancelled when no caller waits for it."""
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = _Call(
                asyncio.create_task(self._request_with_retries(request))
            )
        call.waiting += 1
        try:
            return await asyncio.shield(call.task)
        finally:
            call.waiting -= 1
            if not call.waiting:
                del self._calls[key]
                call.task.cancel()

    async def _request_with_retries(self, request: ServiceRequest) -> _Response:
        attempt = 1
        while True:
            connections = await self._open(request)
            try:
                raw, value = await connections.send(request)
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
            # In a thread: the import takes long and must not block the event loop.
            made = await asyncio.to_thread(load_connections, request.service)
            self._connections = self._connections or made(self._allow_hosts)
        if self._closed or self._connections is None:
            raise PortError(f"{request.service} is not asked any more: the host is closed")
        return self._connections


def load_connections(service: str) -> "type[Connections]":
    try:
        # Deferred: an extra that loads slowly, and not every run needs it.
        from weft.adapters.services.connections import Connections  # noqa: PLC0415
    except ImportError as error:
        raise SetupError(
            f"{service} needs a library that is not installed: {error.name}",
            hint='install it: pip install "weft-agents[models]"',
        ) from error
    return Connections


def _cache_key(scope: Scope, request: ServiceRequest) -> Hashable:
    """Return the key of a request: equal for one tenant, one login, one url."""
    login = request.login
    # The key outlives the request, so it contains a hash instead of the secret.
    who = login and (
        login.kind,
        login.header,
        sha256(login.secret.encode("utf-8", "surrogatepass")).digest(),
    )
    return scope.app, who, request.url, request.max_bytes
