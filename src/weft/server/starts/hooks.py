"""Webhooks that begin runs: a signed request begins one run, however often it is sent."""

import logging
import time
from typing import Final, NamedTuple, cast

from pydantic_core import from_json

from weft.errors import StoreError, UsageError
from weft.findings import Json
from weft.server.identity import Unauthenticated
from weft.server.signatures import verify
from weft.server.starts.firing import Start, Starts
from weft.spec.orchestrator import WebhookStart

_log: Final = logging.getLogger("weft.server")

#: The first part of the kind of records of deliveries and signatures that were used.
SEEN: Final = "seen"

#: Milliseconds; a delivery that is repeated is known on its day and the next.
_DAY: Final = 24 * 3600 * 1000

#: The number of runs after which old records are removed: each run adds two.
_FORGET_EVERY: Final = 100

#: Seconds between two log entries of refused requests: everyone can send these.
_REFUSED_EVERY: Final = 1.0


class Delivery(NamedTuple):
    """A request to a webhook: its headers as far as they matter, and its raw body."""

    signature: str
    id: str
    body: bytes


class Hooks:
    """Begins the runs of webhooks."""

    def __init__(self, starts: Starts) -> None:
        self._starts = starts
        self._refused_at: dict[tuple[str, str], float] = {}
        self._begun = 0

    async def receive(self, app: str, path: str, delivery: Delivery) -> str:
        """Begin a run and return it; a repeated delivery returns its run.

        Raises Unauthenticated for a request without a valid signature, also where there is no such
        webhook: a sender without the secret is not told which there are.
        """
        start = await self._starts.hook(app, path)
        secrets = [] if start is None else _secrets(self._starts, start)
        now = self._starts.clock.now()
        try:
            signature = verify(delivery.signature, delivery.body, secrets, now // 1000)
        except Unauthenticated as error:
            if start is not None:
                await self._note_refused(start, delivery, str(error))
            raise
        if start is None:  # `verify` accepts nothing without a secret.
            raise Unauthenticated("the signature does not fit")
        run, is_new = await _begin(self._starts, start, delivery, signature, now)
        self._begun += is_new
        if is_new and self._begun % _FORGET_EVERY == 0:
            await _forget_old(self._starts, start, now)
        return run

    async def _note_refused(self, start: Start, delivery: Delivery, error: str) -> None:
        key, now = (start.app, start.workflow), time.monotonic()
        if now - self._refused_at.get(key, -_REFUSED_EVERY) >= _REFUSED_EVERY:
            self._refused_at[key] = now
            await self._starts.note_refused(start, error, delivery.id)


def _secrets(starts: Starts, start: Start) -> list[str]:
    """Return the secrets of a webhook: two of them while they are changed."""
    name = cast("WebhookStart", start.trigger).secret_env
    text = starts.host.environment_of(start.app).get(name, "")
    found = [part.strip() for part in text.split(",") if part.strip()]
    if not found:
        _log.warning(
            "the webhook of %s accepts nothing: %s is not set for tenant %s",
            start.workflow, name, start.app,
        )  # fmt: skip
    return found


async def _begin(
    starts: Starts, start: Start, delivery: Delivery, signature: str, now: int
) -> tuple[str, bool]:
    """Begin the run of a delivery, unless it or its signature was seen before."""
    given = _parse(delivery.body)
    id_ = delivery.id or signature
    seconds, _, digest = signature.partition(".")
    today = now // _DAY * _DAY // 1000
    run = start.run_id(now, id_)
    before = await _seen(starts, start, _key(today - _DAY // 1000, "id", id_))
    run = before or await _claim(starts, start, _key(today, "id", id_), run)
    # The id is not signed: a repeated request with another id gets the first run.
    run = await _claim(starts, start, _key(int(seconds), "signature", digest), run)
    is_new = await starts.fire(start, run, at=now, by="webhook", input=given, delivery=id_)
    return run, is_new


def _key(seconds: int, kind: str, text: str) -> str:
    """Return the key of what was seen: it begins with a time, by which old ones are removed."""
    return f"{seconds:012}.{kind}.{text}"


async def _seen(starts: Starts, start: Start, key: str) -> str:
    record = await starts.records.record(start.app, f"{SEEN}:{start.workflow}", key)
    return "" if record is None else str(record.value["run"])


async def _claim(starts: Starts, start: Start, key: str, run: str) -> str:
    """Return the run that belongs to a key: this one, unless it had one already."""
    kind = f"{SEEN}:{start.workflow}"
    is_first = await starts.records.add_record(start.app, kind, key, {"run": run})
    return run if is_first else await _seen(starts, start, key) or run


async def _forget_old(starts: Starts, start: Start, now: int) -> None:
    """Remove what was seen before yesterday."""
    kind, oldest = f"{SEEN}:{start.workflow}", _key((now // _DAY - 1) * _DAY // 1000, "", "")
    try:
        for record in await starts.records.records(start.app, kind, limit=2 * _FORGET_EVERY):
            if record.key < oldest:
                await starts.records.delete_record(start.app, kind, record.key)
    except StoreError as error:  # The run has begun; a later one removes them.
        _log.warning("old deliveries could not be removed: %s", error)


def _parse(body: bytes) -> dict[str, Json]:
    try:
        value: Json = from_json(body)
    except ValueError as error:
        raise UsageError(f"the body is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError("the body is not a JSON object", hint='send one: {"order": 17}')
    return cast("dict[str, Json]", value)
