"""Webhooks that get the events of runs: each event is sent, signed, until it is accepted.

The events are rows that were written with them, so none is lost. What is sent again because an
answer was lost has the same id.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import to_json

from weft.adapters.services.http_services import load_connections
from weft.app.settings import allowed_hosts
from weft.engine.events import Event
from weft.engine.rows import OutgoingEvent
from weft.errors import AccessDenied, StoreError, WeftError
from weft.findings import Json
from weft.ports.clock import Clock
from weft.ports.scope import Scope
from weft.runtime.host import Host
from weft.runtime.runs.outgoing import Webhook
from weft.server.records import RecordLog
from weft.server.signatures import DELIVERY_HEADER, SIGNATURE_HEADER, sign
from weft.wire.events import event_data

if TYPE_CHECKING:
    from weft.adapters.services.connections import Connections

_log: Final = logging.getLogger("weft.server")

#: The first part of the names of the logs of deliveries.
DELIVERIES: Final = "delivery"

#: Seconds between two looks for events, and that one delivery may take.
_LOOK: Final = 1.0
_ANSWER: Final = 10.0

#: Events that are taken at once, the milliseconds for which no other server takes them, and the
#: seconds after which the rest of them is given back.
_LIMIT: Final = 100
_HOLD: Final = 90_000
_BUSY: Final = 60.0

#: Milliseconds until a failed event is sent again: as old as it is, within these limits; and the
#: age at which it is given up.
_SOONEST: Final = 5_000
_LATEST: Final = 3_600_000
GIVEN_UP: Final = 24 * 3_600_000


class WebhookSender:
    """Sends the events of runs to webhooks."""

    def __init__(self, host: Host, clock: Clock, logs: RecordLog) -> None:
        self._host = host
        self._clock = clock
        self._logs = logs
        self._connections: Connections | None = None

    async def run(self) -> None:
        """Send events until cancelled."""
        try:
            await self._run()
        finally:
            if self._connections is not None:
                await self._connections.close()

    async def _run(self) -> None:
        may_have_left = True  # Events of webhooks that were removed.
        while True:
            taken: list[OutgoingEvent] = []
            try:
                webhooks = await self._host.webhooks.all()
                if webhooks or may_have_left:
                    taken = await self._host.outbox.take_outgoing(limit=_LIMIT, hold=_HOLD)
                    may_have_left = bool(webhooks or taken)
                ids = dict.fromkeys(event.webhook for event in taken)
                if ids.keys() - webhooks.keys():  # Another server may have added one just now.
                    await self._host.webhooks.refresh()
                    webhooks = await self._host.webhooks.all()
                await asyncio.gather(
                    *(
                        self._send_all(webhooks.get(id_), [e for e in taken if e.webhook == id_])
                        for id_ in ids
                    )
                )
            except (WeftError, OSError) as error:
                _log.warning("events for webhooks could not be sent: %s", error)
            except Exception:  # noqa: BLE001 - other events come
                _log.exception("events for webhooks could not be sent")
            if len(taken) < _LIMIT:
                await asyncio.sleep(_LOOK)

    async def _send_all(self, webhook: Webhook | None, events: Sequence[OutgoingEvent]) -> None:
        """Send events of one webhook in their order, up to the first that is not accepted."""
        outbox, loop = self._host.outbox, asyncio.get_running_loop()
        if webhook is None:
            await outbox.remove_outgoing(events)
            return
        end = loop.time() + _BUSY
        for number, event in enumerate(events):
            if loop.time() > end:
                await outbox.postpone_outgoing(events[number:], hold=0)
                return
            error = await self._send(webhook, event)
            age = self._clock.now() - event.at
            if error and age < GIVEN_UP:
                hold = min(max(age, _SOONEST), _LATEST)
                await outbox.postpone_outgoing(events[number:], hold=hold)
                return
            await outbox.remove_outgoing([event])

    async def _send(self, webhook: Webhook, event: OutgoingEvent) -> str:
        """Send an event; return why it could not be sent, or was not accepted."""
        error = ""
        try:
            content = await self._content(event)
            if content is None:  # The run was removed.
                return ""
            await self._post(webhook, event, to_json(content))
        except Exception as found:  # noqa: BLE001 - later events must not wait for it for ever
            error = str(found)
            _log.warning("webhook %s of tenant %s: %s", webhook.id, webhook.app, error)
        await self._note(webhook, event, error)
        return error

    async def _post(self, webhook: Webhook, event: OutgoingEvent, body: bytes) -> None:
        headers = {
            "Content-Type": "application/json",
            DELIVERY_HEADER: f"{event.run}:{event.seq}",
            SIGNATURE_HEADER: sign(webhook.secret, body, self._clock.now() // 1000),
        }
        if self._connections is None:
            # Private addresses must be in WEFT_ALLOW_HOSTS.
            allowed = allowed_hosts(self._host.environment_of(""))
            self._connections = load_connections("a webhook")(allowed)
        await self._connections.post(webhook.url, body, headers, _ANSWER)

    async def _content(self, event: OutgoingEvent) -> dict[str, Any] | None:
        scope = Scope.operator(event.app)
        try:
            workflow = await self._host.workflow(event.run, scope=scope)
            found = self._host.events(event.run, scope=scope, after=event.seq - 1, limit=1)
            events = [each async for each in found if isinstance(each, Event)]
        except AccessDenied:
            return None
        if not events:
            return None
        shown = event_data(events[0], event.run, workflow)
        return {"app": event.app, "workflow": workflow.name, "event": shown}

    async def _note(self, webhook: Webhook, event: OutgoingEvent, error: str) -> None:
        entry: dict[str, Json] = {"run": event.run, "seq": event.seq, "error": error}
        log = f"{DELIVERIES}:{webhook.id}"
        with suppress(StoreError):  # The event counts, not its log.
            now = self._clock.now()
            await self._logs.add(webhook.app, log, now, f"{event.run}:{event.seq}", entry)
