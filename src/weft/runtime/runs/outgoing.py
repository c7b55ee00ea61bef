"""Events for webhooks: each is a row in the batch that writes the event, so that none is lost."""

import logging
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from weft.engine.events import KIND_NAMES
from weft.engine.rows import Batch, OutgoingEvent
from weft.errors import StoreError
from weft.findings import Json
from weft.ports.records import Record, Records

_log: Final = logging.getLogger("weft.runtime")

#: The records of webhooks; they have no tenant, so that one read finds all of them.
WEBHOOKS: Final = "webhook"

#: Seconds after which the webhooks are read again.
CURRENT: Final = 3.0


class Webhook(NamedTuple):
    """An address to which events of a tenant are sent."""

    id: str
    app: str
    url: str
    secret: str
    #: The kinds of events and the workflows; empty: all.
    kinds: tuple[str, ...] = ()
    workflows: tuple[str, ...] = ()
    created_at: int = 0

    @property
    def value(self) -> Mapping[str, Json]:
        """The webhook as the value of its record."""
        lists = {"kinds": list(self.kinds), "workflows": list(self.workflows)}
        return {name: v for name, v in (self._asdict() | lists).items() if name != "id"}


class Webhooks:
    """The webhooks of all tenants, as they were a few seconds ago."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self.by_app: dict[str, list[Webhook]] = {}
        #: When they are to be read again, by the monotonic clock.
        self.outdated_at = -math.inf

    async def refresh(self) -> None:
        """Read the webhooks now."""
        asked_at = time.monotonic()
        by_app: dict[str, list[Webhook]] = {}
        after = ""
        while page := await self._records.records("", WEBHOOKS, after=after, limit=500):
            after = page[-1].key
            for record in page:
                webhook = _webhook(record)
                by_app.setdefault(webhook.app, []).append(webhook)
        self.by_app, self.outdated_at = by_app, asked_at + CURRENT

    async def all(self) -> Mapping[str, Webhook]:
        """Return the webhooks by id."""
        if time.monotonic() >= self.outdated_at:
            await self.keep_current()
        return {webhook.id: webhook for found in self.by_app.values() for webhook in found}

    async def keep_current(self) -> None:
        """Read the webhooks again; if that fails, those that were read before stay."""
        try:
            await self.refresh()
        except StoreError as error:
            if self.outdated_at < 0:
                raise
            _log.warning("the webhooks could not be read again: %s", error)


def with_outgoing(batch: Batch, webhooks: list[Webhook]) -> Batch:
    """Return a batch with a row for each of its events that a webhook subscribes to."""
    return batch._replace(changes=(*batch.changes, *_outgoing(batch, webhooks)))


def _outgoing(batch: Batch, known: list[Webhook]) -> Iterator[OutgoingEvent]:
    row = batch.row
    for webhook in known:
        if webhook.workflows and row.workflow not in webhook.workflows:
            continue
        for event in batch.events:
            if not webhook.kinds or KIND_NAMES[type(event.data)] in webhook.kinds:
                yield OutgoingEvent(row.app, row.run, event.seq, webhook.id, event.at)


def _webhook(record: Record) -> Webhook:
    value: dict[str, Any] = dict(record.value)
    for name in ("kinds", "workflows"):
        value[name] = tuple(value[name])
    return Webhook(record.key, **value)
