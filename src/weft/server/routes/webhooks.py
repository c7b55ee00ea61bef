"""Webhooks of a tenant: addresses that get the events of its runs."""

import re
import secrets
from http import HTTPStatus
from typing import Annotated, Final, TypeAlias

from fastapi import Depends, Path
from pydantic import Field, StringConstraints
from typing_extensions import TypedDict

from weft.adapters.services.http_services import load_connections
from weft.engine.events import KINDS
from weft.errors import NotFoundError, UsageError
from weft.ids import suggestion
from weft.runtime.runs.outgoing import WEBHOOKS, Webhook
from weft.server.answers import page_of
from weft.server.identity import DEVELOPER
from weft.server.parameters import PRINTABLE, Body, Cursor, IdPath, Limit, log_page
from weft.server.records import SERVER, delete_all
from weft.server.routing import Caller, Context, Routes
from weft.server.webhooks import DELIVERIES

routes: Final = Routes("webhooks")

#: How many webhooks a tenant may have: each event is sent to each of them.
MOST: Final = 20

#: An address without a user name and a fragment.
_ADDRESS: Final = re.compile(r"https?://[^\s/?#@]+(?:[/?][^\s#]*)?")
NameText = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=PRINTABLE)]


class WebhookBody(Body):
    """An address, and the events that it gets: all, or those of some kinds and workflows."""

    url: Annotated[str, StringConstraints(max_length=2000)]
    kinds: list[NameText] = Field(default=[], max_length=100)
    workflows: list[NameText] = Field(default=[], max_length=100)


class NewWebhookAnswer(TypedDict):
    """A webhook that was just made; its secret is shown only now."""

    id: str
    secret: str


class WebhookAnswer(TypedDict):
    """What is shown of a webhook."""

    id: str
    url: str
    kinds: list[str]
    workflows: list[str]
    created_at: int


class DeliveryAnswer(TypedDict):
    """An attempt to send an event; the error is empty if it was accepted."""

    at: int
    run: str
    seq: int
    error: str


async def _all(caller: Caller, context: Context) -> list[Webhook]:
    await context.host.webhooks.refresh()
    found = await context.host.webhooks.all()
    return [webhook for webhook in found.values() if webhook.app == caller.app]


#: The webhooks of the caller's tenant.
Webhooks: TypeAlias = Annotated[list[Webhook], Depends(_all)]


async def _find(id_: Annotated[IdPath, Path(alias="id")], webhooks: Webhooks) -> Webhook:
    for webhook in webhooks:
        if webhook.id == id_:
            return webhook
    raise NotFoundError("there is no such webhook")


FoundWebhook: TypeAlias = Annotated[Webhook, Depends(_find)]


@routes.add("GET", "/api/webhooks", roles=DEVELOPER, answer=page_of(WebhookAnswer))
async def list_webhooks(webhooks: Webhooks) -> object:
    """List the webhooks of the tenant."""
    names = WebhookAnswer.__annotations__
    return [{name: getattr(webhook, name) for name in names} for webhook in webhooks]


@routes.add(
    "POST",
    "/api/webhooks",
    roles=DEVELOPER,
    answer=NewWebhookAnswer,
    status=HTTPStatus.CREATED,
)
async def create_webhook(
    body: WebhookBody, webhooks: Webhooks, caller: Caller, context: Context
) -> object:
    """Send the events of runs to an address, as developers see them, from now on.

    Each is a POST request of `{app, workflow, event}`, signed as webhooks that begin runs are. It
    is repeated for a day until a 2xx answer; a repeated one has the same `Weft-Delivery`.
    """
    if not _ADDRESS.fullmatch(body.url):
        raise UsageError(f"{body.url!r} is not an address", hint="write https://HOST/PATH")
    for kind in body.kinds:
        if kind not in KINDS:
            raise UsageError(f"there is no kind of events {kind}", hint=suggestion(kind, KINDS))
    if len(webhooks) >= MOST:
        raise UsageError(f"a tenant has at most {MOST} webhooks", hint="delete one of them")
    load_connections("a webhook")  # Raises if a library is missing.
    webhook = Webhook(
        context.clock.new_id(),
        caller.app,
        body.url,
        secrets.token_urlsafe(32),
        tuple(body.kinds),
        tuple(body.workflows),
        context.clock.now(),
    )
    await context.records.add_record(SERVER, WEBHOOKS, webhook.id, webhook.value)
    await context.host.webhooks.refresh()
    return {"id": webhook.id, "secret": webhook.secret}


@routes.add("DELETE", "/api/webhooks/{id}", roles=DEVELOPER)
async def delete_webhook(webhook: FoundWebhook, context: Context) -> None:
    """Send nothing more to a webhook, also no events that it has not accepted yet."""
    await context.records.delete_record(SERVER, WEBHOOKS, webhook.id)
    await delete_all(context.records, webhook.app, f"{DELIVERIES}:{webhook.id}")
    await context.host.webhooks.refresh()


@routes.add(
    "GET",
    "/api/webhooks/{id}/deliveries",
    roles=DEVELOPER,
    answer=page_of(DeliveryAnswer, "DeliveriesAnswer"),
)
async def list_deliveries(
    webhook: FoundWebhook, context: Context, cursor: Cursor = None, limit: Limit = 50
) -> object:
    """List what was sent to a webhook: the newest of the last 1,000 attempts first."""
    log = f"{DELIVERIES}:{webhook.id}"
    return await log_page(context.starts.logs, webhook.app, log, cursor, limit)
